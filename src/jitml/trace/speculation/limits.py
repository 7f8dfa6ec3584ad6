"""Limits: how much of a function may be traced into one program, and what has cost most where that is too much?

Without limits of its own a trace has those of the environment (`budget.py`, `modes.py`), which are there against what has no end.
Where Python can run a part of a function, a trace is given tighter ones. Then `TraceProfile` samples where operations are
recorded and seconds spent, so that a refusal has a place: the loop whose unrolling has brought most, or else the statement; and
so that a loop whose end is in sight may go on to it, if all of it is within the limits.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from time import thread_time
from typing import Protocol

from jitml.errors import Cause, Source, UnsupportedError, UserFrame
from jitml.ir.graph import Graph
from jitml.records import dataclass, field, replace
from jitml.trace.record.user_code import Instruction, frame_of, instructions, user_stack
from jitml.trace.speculation.compile_cost import ProgramSize

_MOST = 0.5  # of what is too much: the loop that has brought as much is to blame, and no statement
_MUCH = 0.25  # the same of a statement; where none has, they are cut in the middle
IN_SIGHT = 2  # times the seconds of tracing


@dataclass(frozen=True)
class TraceLimits:
    """How much one program may be; None where only what finds no end is too much.

    Attributes:
        iterations: of a loop that is unrolled, where it is not in sight that all of it is within the other limits.
        nodes: operations in its graph.
        seconds: that it is expected to take to compile (`too_large`).
        tracing: seconds that it may take to trace, all attempts together; more where its end is in sight (`IN_SIGHT`).
    """

    iterations: int | None = None
    nodes: int | None = None
    seconds: float | None = None
    tracing: float | None = None

    def within(self, seconds: float, tracing: float) -> TraceLimits:
        """Limits of a program that may take so long to compile, and so long to trace."""
        return replace(self, seconds=_least(self.seconds, seconds), tracing=_least(self.tracing, tracing))

    @property
    def are_tight(self) -> bool:
        return self != NO_LIMITS


def _least(limit: float | None, seconds: float) -> float | None:
    return limit if seconds == math.inf or (limit is not None and limit <= seconds) else seconds


NO_LIMITS = TraceLimits()
_Place = tuple[tuple[int, int], ...]  # a stack, with ids of code, whose hash would be made of all of it
Costs = defaultdict[_Place, float]


@dataclass
class _Spent:
    """Operations and seconds."""

    recorded: float = 0
    seconds: float = 0


class UnrolledLoop:
    """A loop at one place, with the calls that led there, as often as it is entered: what its unrolling has brought.

    length: how many iterations it has, if that is known.
    """

    def __init__(self) -> None:
        self.stack = user_stack()
        self.length: int | None = None
        self._before = _Spent()  # all entries but this one
        self._began = self._now = self._warm = _Spent()
        self._iterations = 1

    def begin(self) -> None:
        """Another attempt begins."""
        self._before = _Spent(0, self.brought.seconds)
        self._began = self._now = _Spent()

    def enter(self, recorded: int) -> None:
        self._before = self.brought
        self._began = self._now = self._warm = _Spent(recorded, thread_time())
        self._iterations = 0

    def go_on(self, recorded: int) -> None:
        """An iteration begins."""
        self._iterations += 1
        self._now = _Spent(recorded, thread_time())
        if self._iterations == 2:  # the first one has rewritten what is called
            self._warm = self._now

    def left(self, now: _Spent, inside: _Spent) -> _Spent | None:
        """What is to come, if its iterations are alike; None if nobody knows how many there are.

        Args:
            now: what there is.
            inside: what is to come in loops inside of this one, in this iteration.
        """
        if self.length is None:
            return None
        others = max(0, self.length - self._iterations) / max(1, self._iterations - 1)
        recorded = others * (now.recorded - self._warm.recorded + inside.recorded) + inside.recorded
        return _Spent(recorded, others * (now.seconds - self._warm.seconds + inside.seconds) + inside.seconds)

    @property
    def seconds(self) -> float:
        """That its iterations have taken, since it was entered."""
        return self._now.seconds - self._began.seconds

    @property
    def brought(self) -> _Spent:
        """What is there more than if the loop had one iteration."""
        share, began, now = 1 - 1 / max(1, self._iterations), self._began, self._now
        recorded, seconds = now.recorded - began.recorded, now.seconds - began.seconds
        return _Spent(self._before.recorded + share * recorded, self._before.seconds + share * seconds)


@dataclass
class TraceProfile:
    """What a trace has cost, by place. Operations are those of one attempt, seconds those of all."""

    loops: dict[Hashable, UnrolledLoop] = field(default_factory=dict)
    running: list[UnrolledLoop] = field(default_factory=list)  # innermost last
    recorded: Costs = field(default_factory=lambda: defaultdict(float))
    seconds: Costs = field(default_factory=lambda: defaultdict(float))
    stacks: dict[_Place, tuple[Instruction, ...]] = field(default_factory=dict)
    total_seconds: float = 0.0
    _last: int = 0
    _time: float = field(default_factory=thread_time)

    def begin(self) -> None:
        """The next attempt begins."""
        self.recorded.clear()
        self.running.clear()
        for loop in self.loops.values():
            loop.begin()
        self._last = 0

    def loop(self, site: Hashable, recorded: int, length: int | None) -> UnrolledLoop:
        """An unrolled loop is entered, of so many iterations if that is known."""
        loop = self.loops.get(site)
        if loop is None:
            loop = self.loops[site] = UnrolledLoop()
        loop.length = length
        loop.enter(recorded)
        self.running.append(loop)
        return loop

    def ended(self, loop: UnrolledLoop) -> None:
        """It has ended, or been left."""
        if loop in self.running:
            del self.running[self.running.index(loop) :]

    def left(self, recorded: int) -> _Spent | None:
        """What is to come until the loops have ended that are running; None if that is not in sight."""
        now, left = _Spent(recorded, thread_time()), _Spent()
        for loop in reversed(self.running):
            found = loop.left(now, left)
            if found is None:
                return None
            left = found
        return left if self.running else None

    def sample(self, recorded: int) -> None:
        """What has been recorded since the last time comes from here."""
        stack, now = instructions(), thread_time()
        if stack:
            place = tuple([(id(code), instruction) for code, instruction in stack])
            self.stacks.setdefault(place, stack)
            self.recorded[place] += recorded - self._last
            self.seconds[place] += now - self._time
            self.total_seconds += now - self._time
        self._last, self._time = recorded, now

    def heaviest(self, by: str) -> tuple[tuple[UserFrame, ...], bool]:
        """Where most has come from, of what is `recorded` or of `seconds`, and whether that is a loop that is unrolled."""
        costs: Costs = getattr(self, by)
        loop = max(self.loops.values(), key=lambda loop: getattr(loop.brought, by), default=None)
        if loop is not None and getattr(loop.brought, by) >= _MOST * sum(costs.values()):
            return loop.stack, True
        return _statement({self.stacks[place]: cost for place, cost in costs.items()}), False


def _statement(costs: Mapping[tuple[Instruction, ...], float]) -> tuple[UserFrame, ...]:
    """The stack that has cost most in the line of the outermost function that has; if none has cost much, in the middle one."""
    by_line: dict[int, float] = defaultdict(float)
    stacks: dict[int, tuple[Instruction, ...]] = {}
    for stack, cost in sorted(costs.items(), key=lambda pair: -pair[1]):
        line = frame_of(*stack[0]).line
        by_line[line] += cost
        stacks.setdefault(line, stack)
    if not by_line:
        return ()
    found, total = max(by_line, key=by_line.__getitem__), sum(by_line.values())
    if by_line[found] < _MUCH * total:
        lines = sorted(by_line)
        before = itertools.accumulate(by_line[line] for line in lines)
        found = next(line for line, cost in zip(lines, before) if cost >= total / 2)
    return tuple(frame_of(*place) for place in stacks[found])


def beyond(message: str, stack: tuple[UserFrame, ...], is_loop: bool) -> UnsupportedError:
    """The refusal of what is too much at a place."""
    what = "for a loop that is unrolled" if is_loop else "for what is computed here"
    remedy = "Write it so that the loop can stay one." if is_loop else "Call less of it from one function."
    cause = Cause.UNROLLED if is_loop else Cause.SLOW
    last = stack[-1] if stack else None
    source = Source(last.file, last.line, last.function.rpartition(".")[2]) if last is not None else None
    error = UnsupportedError(f"{message}, above all {what}", source=source, remedy=remedy, cause=cause)
    error.stack = stack
    return error


class Profiled(Protocol):
    """What has been traced, and what that has cost, if there were limits."""

    @property
    def graph(self) -> Graph: ...

    @property
    def profile(self) -> TraceProfile | None: ...


def too_large(traced: Profiled, limits: TraceLimits) -> UnsupportedError | None:
    """The refusal of a program beyond the limits that it was traced with, at what has brought most operations; else None."""
    size = ProgramSize.of(traced.graph.nodes)
    nodes, seconds = size.cheap + size.other, size.compile_seconds()
    stack, is_loop = traced.profile.heaviest("recorded") if traced.profile is not None else ((), False)
    if limits.nodes is not None and nodes > limits.nodes:
        return beyond(f"{nodes} operations have been recorded, too many for one program", stack, is_loop)
    if limits.seconds is not None and seconds > limits.seconds:
        return beyond(f"it would take some {seconds:.1f} s to compile {nodes} operations", stack, is_loop)
    return None


__all__ = ["IN_SIGHT", "NO_LIMITS", "TraceLimits", "TraceProfile", "UnrolledLoop", "beyond", "too_large"]
