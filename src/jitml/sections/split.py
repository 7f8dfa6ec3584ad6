"""Splits: a function in sections, and the statements between them, which run as Python.

What breaks is learned one refusal after another, and remembered: the frame that knows it is used when the function is next
entered. In the frame that runs, a section that was refused is itself split, and called in its place (a *bridge*), so that a loop
which is entered only once has a compiled body from its second iteration on.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from inspect import getattr_static
from time import perf_counter
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from jitml.config import CONFIG
from jitml.diagnostics import log
from jitml.dispatch.renting import FRAME, IN_FIRST_CALL, IN_SECTIONS, PURSE, PlainTurn, Rent
from jitml.errors import CompilerError, JitmlError, LifetimeError
from jitml.forks import lock
from jitml.records import dataclass
from jitml.sections.blame import Break, blame, cause_of
from jitml.sections.callees import CallSite, HotCallees, is_asked_for
from jitml.sections.code import build, function_of, own_node, section_code
from jitml.sections.frames import TUPLE, TYPE, FrameWriter, Place, StatementRun, with_held
from jitml.sections.live_names import NONE, Names
from jitml.sections.section import Compiled, Section
from jitml.trace.record.libraries import is_library
from jitml.trace.rewrite.code_names import names_in_code
from jitml.trace.rewrite.source import Missing, find
from jitml.trace.rewrite.syntax import inside

MOST_BREAKS = 200
PAUSE = 2.0  # seconds for which what is slower is left out at first
_TURNS = 3  # of each in a race
_FAR, _NEAR = 1.3, 1.05  # times what the function as it was written takes: too much after two turns of each, or after all
_SAVED = 0.25  # of the time of a call: who saves as much is in no race
_WORTH = 10  # times as long as another frame takes, the function has to run until what is left out of it is looked at again
_CALLS = 3  # how deep calls are followed to functions that look at frames
_MOST_WRAPPERS = 10  # around one
_LOOKS_AT_FRAMES = {"locals", "vars", "eval", "exec", "dir"}  # functions of Python's
_FRAMES_OF = {("sys", "_getframe"), ("inspect", "currentframe"), ("inspect", "stack")}


@dataclass(frozen=True, slots=True)
class _Text:
    """What a function was written as: its node, to be cut, and where it stands."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    file: str
    text: str


class Race:
    """Is a function faster with its sections than as it was written?  Calls of both in turns, where sections do not save enough.

    Work differs from call to call, so sums are compared. Calls inside of one go the same way.

    Attributes:
        is_plain: whether the call that runs is one of the function as it was written.
    """

    def __init__(self) -> None:
        self._turns: tuple[list[float], list[float]] = ([], [])  # seconds of each, with sections, and of plain Python
        self._depth, self._is_on = 0, False
        self.is_over, self.is_lost, self.is_plain = not CONFIG.trial, False, False

    def begin(self) -> None:
        """A call begins."""
        self._depth += 1
        if self._depth == 1:
            self.is_plain = self._is_on and not self.is_over and len(self._turns[1]) < len(self._turns[0])

    def ended(self, seconds: float, share: Callable[[], float]) -> None:
        """A call has ended.

        Args:
            share: of its time that sections have saved, about.
        """
        self._depth -= 1
        if self._depth or self.is_over:
            return
        if not self.is_plain and share() >= _SAVED:
            self._is_on = False
            return
        if not self._is_on:  # from the next call on: in the first one, more is done than is asked for later
            self._is_on, self._turns = True, ([], [])
            return
        self._turns[self.is_plain].append(seconds)
        if (turns := len(self._turns[0])) == len(self._turns[1]):
            # In the longest turn something may have been made that later ones have.
            sections, plain = (sum(x) - (max(x) if turns > 1 else 0.0) for x in self._turns)
            self.is_lost = turns > 1 and sections > (_NEAR if turns >= _TURNS else _FAR) * plain
            self.is_over = self.is_lost or turns >= _TURNS or _FAR * sections < plain


class SplitFunction:
    """One function, with its sections.

    Args:
        compiled: makes of a section's function what compiles it; if exceptions are handled around it, without calls of libraries.
        callee: what a plain statement calls in place of a function.

    Attributes:
        rent: as long as the whole has not been tried; then it is `asleep` until that is refused.
    """

    def __init__(
        self,
        function: FunctionType,
        compiled: Callable[[FunctionType, bool, Rent], Compiled],
        callee: HotCallees,
    ) -> None:
        self.function, self._compiled, self._callee = function, compiled, callee
        self.rent: Rent | None = None
        self.is_asleep = False
        self.seconds = 0.0  # that calls have taken
        self.race, self._saved = Race(), 0.0
        self._is_first = True  # of those of this function
        self._code = function.__code__
        self.breaks: dict[Place, Break] = {}
        self.sections: list[Section] = []
        self._made: dict[Any, Section] = {}
        self._left_out: set[Place] = set()
        self._pause, self._look_at, self._worth_at = PAUSE, math.inf, 0.0  # when they are looked at again
        self._inside: tuple[Names, Names] = (NONE, NONE)  # names that functions inside see, and bind
        self._frame: FunctionType | None = None
        self._changes = 0  # of what is known
        self._lock = lock()
        self._text = _read(function)

    @property
    def is_possible(self) -> bool:
        return self._text is not None

    def learn(self, error: BaseException) -> bool:
        """Note the statement that a refusal of the whole function is about; False if there is none left."""
        return self._text is not None and self._learn_break(error, self._text.node.body, self._text.file)

    def know(self, other: SplitFunction) -> None:
        """Take over what is known of another split of the function, with its sections."""
        self.breaks, self._made, self._is_first = dict(other.breaks), other._made, False

    def prepare(self) -> None:
        """Write the frame before it is called."""
        _ = self.frame

    @property
    def frame(self) -> Callable[..., Any]:
        """The function with its sections; the plain one if it has no source."""
        if perf_counter() > self._look_at and self.seconds >= self._worth_at:
            self._look_again()
        made = self._frame or self._written()
        if made.__defaults__ is not self.function.__defaults__:
            made.__defaults__ = self.function.__defaults__
        if made.__kwdefaults__ is not self.function.__kwdefaults__:
            made.__kwdefaults__ = self.function.__kwdefaults__
        return made

    @property
    def is_plain(self) -> bool:
        """Whether nothing that it runs is compiled: then the function as it was written is as good."""
        return all(section.is_plain for section in self.sections) and not self._has_callees

    @property
    def has_compiled(self) -> bool:
        """Whether a section of it has been compiled."""
        return any(section.has_variants for section in self.sections)

    @property
    def _has_callees(self) -> bool:
        """Whether a function that it calls may have been compiled."""
        return self._callee.are_compiled(names_in_code(self._code))

    @property
    def level(self) -> int:
        """What a thread is in that runs it (`RUNNING`)."""
        return IN_FIRST_CALL if self.breaks and self._is_first and not self.seconds else IN_SECTIONS

    def begin(self) -> PlainTurn:
        """A call begins."""
        self.race.begin()
        return PlainTurn(self.took)

    def took(self, seconds: float) -> None:
        """A call has run for so long."""
        if not self.seconds and self._frame is None:
            self.prepare()  # for what has been learned in the first call, which has taken long: the next one need not
        self.seconds += seconds
        if self.rent is not None:
            self.rent.paid(seconds)
        self.race.ended(seconds, partial(self._share_saved, seconds))

    def _share_saved(self, seconds: float) -> float:
        """Of the time of the last call, what its sections have saved, about; all if callees are compiled, which are timed."""
        if self._has_callees:
            return 1.0
        before, self._saved = self._saved, sum(section.saved for section in self.sections)
        return (self._saved - before) / max(seconds, 1e-9)

    def paid(self, seconds: float) -> bool:
        """The function as it was written has run for so long, of which sections and callees would have had their shares.

        Answers whether something may be compiled now.
        """
        share = seconds / self.seconds if self.seconds else 0.0
        self.seconds += seconds
        if self.rent is not None:
            self.rent.paid(seconds)
        callees = self._callee.timed(names_in_code(self._code))
        are_due = [section.paid(share) for section in self.sections] + [callee.paid(share) for callee in callees]
        return any(are_due) or (self.rent is not None and self.rent.is_due())

    def _written(self) -> FunctionType:
        """The frame for what is known now; other threads may learn of further breaks meanwhile."""
        began = PURSE.began()
        with self._lock:
            while (made := self._frame) is None:
                changes = self._changes
                made = self._write()
                if changes == self._changes:
                    self._frame = made
        PURSE.pay(PURSE.ended(began))
        return made

    def _renew(self) -> None:
        """Something has been learned."""
        self._changes += 1
        self._frame = None

    def _write(self) -> FunctionType:
        if self._text is None:
            return self.function
        self.sections = []
        return self._split(self._text.node, self.function)

    def _split(self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: FunctionType) -> FunctionType:
        """A function in sections, for the breaks that are known."""
        code = function.__code__
        names = frozenset((*code.co_varnames, *code.co_cellvars))
        asks = partial(is_asked_for, caller=self.function)
        is_part = self._text is None or node is not self._text.node
        frame = FrameWriter(node, names, frozenset(self.breaks), frozenset(self._left_out), asks, is_part, *self._inside)
        made = frame.write()
        self._inside = frame.seen, frame.changed
        cells = {TUPLE: CellType(tuple), TYPE: CellType(type)}
        for run in frame.runs:
            section = self._section(run)
            self.sections.append(section)
            cells[run.name] = section.cell
        for name, site in frame.sites.items():
            cells[name] = cell = CellType()
            cell.cell_contents = CallSite(self._callee, cell if site.may_end else None, is_inside=site.is_inside)
        return function_of(build(made, code, tuple(cells)), function, cells)

    def _section(self, run: StatementRun) -> Section:
        known = self._made.get(run.key)
        if known is not None:
            return known
        made = Section(run, self._make, self._refused, self._dropped, lambda run: self._function(run.node))
        self._made[run.key] = made
        return made

    def _make(self, run: StatementRun, held: tuple[str, ...], rent: Rent) -> Compiled:
        return self._compiled(self._function(with_held(run.node, held)), run.exact, rent)

    def _function(self, node: ast.FunctionDef) -> FunctionType:
        """A function that tracing finds the source of, although it stands in no file."""
        assert self._text is not None
        return function_of(section_code(node, self._code, self._text.file, self._text.text), self.function, {})

    def _refused(self, section: Section, error: BaseException) -> Callable[..., Any] | None:
        """Learn from a refusal; what stands in for the section while its frame runs."""
        if isinstance(error, CompilerError) or self._text is None:
            return None
        run = section.run
        if not self._learn_break(error, run.node.body, self._text.file):
            return None
        # What tracing raised, the statements may raise: in their own frame.
        if self._text is None or run.exact or run.unsure or not isinstance(error, JitmlError):
            return None
        with self._lock:
            return self._split(run.node, self._function(run.node))

    def _dropped(self, section: Section) -> None:
        self._left_out.add(section.run.place)  # in the next frame: in this one it costs next to nothing
        if self._look_at == math.inf:
            self._look_at, self._worth_at = perf_counter() + self._pause, self.seconds + _WORTH * FRAME

    def _look_again(self) -> None:
        """What was slower than plain Python may have been so in a noisy minute, or for other work than today's."""
        self._pause *= 4
        self._look_at = math.inf
        self._left_out.clear()
        self._renew()
        for section in [*self._made.values()]:
            section.look_again()

    def _learn_break(self, error: BaseException, body: list[ast.stmt], file: str) -> bool:
        if len(self.breaks) >= MOST_BREAKS:
            return False
        found = blame(error, body, file, frozenset(self.breaks))
        if found is None:
            return False
        where, why = found
        self.breaks[where] = why
        log.refused(self.function, f"line {why.line} runs as Python", cause_of(error))
        if isinstance(cause_of(error), LifetimeError):
            self._leave_as_written()
        self._renew()
        return True

    def _leave_as_written(self) -> None:
        """No section is used any more, in the frame that runs neither."""
        self._text = None
        for section in self.sections:
            section.cell.cell_contents = None
        self.sections = []


def is_possible(function: FunctionType) -> bool:
    """Whether a function can be cut."""
    return _read(function) is not None


def _read(function: FunctionType) -> _Text | None:
    """What a function was written as, if it can be cut."""
    found = find(function)
    if isinstance(found, Missing) or isinstance(found.node, ast.Lambda):
        return None
    node = own_node(found)
    if any(map(_looks_at_frames, inside([node]))) or _is_looked_at(function):
        return None
    return _Text(node, found.file, found.text)


def _looks_at_frames(node: ast.AST) -> bool:
    """Whether this may ask for the names of the function's own frame, in which those of ours are."""
    match node:
        case ast.Name(id=name):
            return name in _LOOKS_AT_FRAMES or any(name == part for _, part in _FRAMES_OF if part != "stack")
        case ast.Attribute(value=ast.Name(id=module), attr=part):
            return (module, part) in _FRAMES_OF
    return False


def _is_looked_at(function: FunctionType) -> bool:
    """Whether a function of the user's that it calls, or that those call, reads the names of frames."""
    waiting, known = [(function, _CALLS)], {function.__code__}
    while waiting:
        found, depth = waiting.pop()
        for called in _called_by(found) if depth else ():
            code = called.__code__
            if "f_locals" in names_in_code(code) and not is_library(called):
                return True
            if code not in known and not is_library(called):
                known.add(code)
                waiting.append((called, depth - 1))
    return False


def _called_by(function: FunctionType) -> Iterator[FunctionType]:
    """Functions, and those of modules and classes, that it finds by their names."""
    names = names_in_code(function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    for name in (*names, *cells):
        value = function.__globals__.get(name)
        if name in cells:
            with suppress(ValueError):  # not bound yet
                value = cells[name].cell_contents
        if isinstance(value, (ModuleType, type)):
            for part in names:
                yield from _plain(vars(value).get(part))
        yield from _plain(value)


def _plain(x: Any) -> Iterator[FunctionType]:
    for _ in range(_MOST_WRAPPERS):
        if isinstance(x, (staticmethod, classmethod, MethodType)):
            x = x.__func__
        elif (inner := getattr_static(x, "__wrapped__", None)) is not None:  # an object of the user's is not asked
            x = inner
    if type(x) is FunctionType:
        yield x


__all__ = ["SplitFunction", "is_possible"]
