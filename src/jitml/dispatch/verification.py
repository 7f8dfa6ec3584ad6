"""Verification: is a variant's first answer NumPy's?  The plain function is called on the same state, and both are compared.

What the call can reach is saved before it (`state.py`). After it the state is put back, the plain function runs on the very same
objects, so that views alias and keys are what they are, and what it returns, raises and has changed is compared (`outcomes.py`).
Then everything is as the compiled program has left it. Where the two differ, the plain function is asked again: if it contradicts
itself, nothing can be said; nor where the program's own graph gives other numbers as soon as it is rounded otherwise
(`rounding.py`). What remains is a wrong answer: the user is told, has NumPy's, and the variant answers no more.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.dispatch.outcomes import Difference, Outcome, differences
from jitml.dispatch.quiet import silenced
from jitml.dispatch.repeatable import others_run, why_not
from jitml.dispatch.reproduce import remember
from jitml.dispatch.rounding import ROUNDING, nudge_results, nudged_inputs, precision, within
from jitml.dispatch.state import State, Unsaved
from jitml.errors import FailedCheck, JitmlError, WrongPath, WrongResultWarning
from jitml.ir.graph import Graph, Node
from jitml.ir.interpret import watched
from jitml.ir.ops.host import keeping_made, postponing
from jitml.ir.types import F64
from jitml.trace.context import is_jitmls
from jitml.trace.eager import witnessed
from jitml.trace.entry import MISS, bind, interpreted
from jitml.trace.trace import Traced
from jitml.trace.tree import flatten, unflatten
from jitml.trace.watching import as_python, runs_as_python

Enter = Callable[[Sequence[Any]], Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]
_NUDGES = 6
_SLACK = 100  # how much further apart numbers may be than those of one nudge
_MOST_TRANSFORMED = 3  # functions of which derivatives are checked, in a call
_RECYCLED = 1 << 20  # bytes: larger blocks come from the system, which has zeros there
_garbage = count()
_MOST_TRIES = 3  # calls in which other threads run
_FIRST, _NEVER = 0, -1


def cadence(option: str | int) -> int:
    """Each how many calls an answer is checked; 0 for the first one alone, -1 for none.

    Raises:
        ValueError: no such choice.

    >>> cadence("always"), cadence(10)
    (1, 10)
    """
    named = {"first": _FIRST, "always": 1, "never": _NEVER}
    if isinstance(option, str) and option in named:
        return named[option]
    if isinstance(option, int) and not isinstance(option, bool) and option > 0:
        return option
    raise ValueError(f"verify={option!r} is neither 'first', 'always', 'never' nor a number of calls")


@dataclass(eq=False)
class Verification:
    """Stands for a variant's `enter` as long as answers are to be checked.

    Args:
        function: the plain one.
        enter: the compiled one.
        call_of: the arguments that flattened ones stand for.
        every: see `cadence`.
        fast: whether arithmetic is not NumPy's own.
        settle: takes what `enter` is to be from now on, and what is to be said of the variant.
    """

    function: Callable[..., Any]
    name: str
    enter: Enter
    traced: Traced
    call_of: Callable[[Sequence[Any]], Call]
    every: int
    fast: bool
    settle: Callable[[Enter, str], None]
    calls: int = 0
    tries: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        if runs_as_python() or not self.lock.acquire(blocking=False):
            return self.enter(leaves)
        try:
            if self.traced.host.first_failure(leaves):
                return MISS
            self.calls += 1
            if self.every > 1 and (self.calls - 1) % self.every:
                return self.enter(leaves)
            return self._verified(leaves)
        finally:
            self.lock.release()

    def _verified(self, leaves: Sequence[Any]) -> Any:
        args, kwargs = self.call_of(leaves)
        reason = why_not(self.traced.graph)
        if not reason and others_run():
            self.tries += 1
            if self.tries < _MOST_TRIES:
                return self.enter(leaves)
            reason = "other threads run the program at the same time"
        try:
            state = None if reason else State(_roots(self.function, args, kwargs), CONFIG.verify_bytes)
        except (Unsaved, MemoryError) as error:
            reason = str(error) or "there is no memory for copies"
        if reason:
            self.settle(self.enter, f"not checked: {reason}")
            return self.enter(leaves)
        assert state is not None
        result, raised = self._compiled(leaves)
        if result is MISS:
            return MISS
        return self._compared(Outcome(raised, result, state.changes()), state, leaves, args, kwargs)

    def _compiled(self, leaves: Sequence[Any]) -> tuple[Any, Exception | None]:
        try:
            return self.enter(leaves), None
        except (JitmlError, MemoryError):
            raise
        except Exception as error:
            return None, error

    def _compared(self, got: Outcome, state: State, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trial = _Trial(self, state, leaves, args, kwargs)
        try:
            expected = trial.plainly()
            found = trial.without_excuse(trial.compared(got, expected), expected)
            found = found or trial.wrong_slope()
        except (RecursionError, MemoryError) as error:
            state.put_back(got.now)
            self.settle(self.enter, f"not checked: the plain function raised {type(error).__name__}")
            return _given(got)
        except BaseException:  # an interrupt: as if there had been no call
            state.put_back()
            raise
        if not found:
            state.put_back(got.now)
            self.settle(self if self.every > 0 else self.enter, trial.verdict(self.calls))
            return _given(got)
        state.put_back()
        remember(self.function, self.name, args, kwargs, f"{self.name}: {found[0]}")
        state.put_back(expected.now)
        self.settle(bind(self.traced, _refuse), f"wrong in call {self.calls}: {found[0]}; plain Python answers since then")
        self._warn(found[0])
        return _given(expected)

    def _warn(self, difference: Difference) -> None:
        text = (
            f"{self.name} was compiled wrongly: {difference}. This call has NumPy's answer, and so have others like it from now "
            f"on. This is a bug in jitml: please report it with what `jitml.reproduce()` writes, a script and the arguments."
        )
        warnings.warn(text, WrongResultWarning, stacklevel=_frames_of_ours() + 1)


class _Trial:
    """The plain function, again and again from the same state."""

    def __init__(
        self, of: Verification, state: State, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.of, self.state, self.leaves, self.args, self.kwargs = of, state, leaves, args, kwargs
        slack = 1e3 if of.fast else 1.0
        self.close = within(slack * ROUNDING[F64], precision([of.traced.graph]))
        self.by_host = any(node.op.family == "host" for node in _all_nodes(of.traced.graph))
        self.transformed: list[Any] = []
        self.excuse = ""

    def verdict(self, call: int) -> str:
        which = "its first answer" if call == 1 else f"its answer to call {call}"
        return f"{which} is {self.excuse or 'as NumPy gives it'}"

    def plainly(self) -> Outcome:
        self.state.put_back()
        with as_python(), silenced(), witnessed(self._note if self.of.every > 0 else None):
            return self._run(lambda: self.of.function(*self.args, **self.kwargs))

    def _note(self, key: Hashable, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Keep a function that is transformed."""
        if len(self.transformed) < _MOST_TRANSFORMED:
            leaves, spec = flatten((args, dict(kwargs)))
            copied = [leaf.copy("K") if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
            self.transformed.append((key, function, *unflatten(spec, copied)))

    def wrong_slope(self) -> list[Difference]:
        """The first derivative that differences of values contradict, unless the user says what derivatives are."""
        transformed, self.transformed = self.transformed, []
        if not transformed or self.state.mentions("stop_gradient", "custom_jvp", "custom_vjp", "debug_nans"):
            return []
        slopes = import_module("jitml.dispatch.slopes")  # brings the derivatives, which `import jitml` must not
        for key, function, args, kwargs in transformed:
            with as_python(), silenced():
                if wrong := slopes.wrong_slope(key, function, args, kwargs):
                    return [Difference(f"{key[0]} of {getattr(function, '__name__', 'a function')}", wrong, "other values there")]
        return []

    def _run(self, call: Callable[[], Any]) -> Outcome:
        result: Any = None
        error: Exception | None = None
        try:
            result = call()
        except (RecursionError, MemoryError):
            raise
        except Exception as raised:
            error = raised
        return Outcome(error, result, self.state.changes())

    def compared(self, got: Outcome, expected: Outcome) -> list[Difference]:
        return differences(got, expected, self.state, self.close, by_host=self.by_host)

    def without_excuse(self, found: list[Difference], expected: Outcome) -> list[Difference]:
        """The differences that are not NumPy's own, either."""
        if found:
            self.transformed, noted = [], self.transformed
            _fill_free_memory(self.of.traced.graph)
            again = self.compared(self.plainly(), expected)
            found = _beyond(found, again, np.inf)
            self.transformed = noted
            self.excuse = "" if found else "another one at each call, by NumPy as well: nothing was compared"
        return self._beyond_rounding(found) if found else found

    def _beyond_rounding(self, found: list[Difference]) -> list[Difference]:
        """The differences where the program's graph gives the same, or nearly so, if it is rounded otherwise."""
        try:
            usual = self._interpreted(None)
        except FailedCheck:
            return found
        for seed in range(_NUDGES):
            try:
                found = _beyond(found, self.compared(self._interpreted(seed), usual), _SLACK)
            except WrongPath:  # it takes another branch
                found = []
            except FailedCheck:
                continue
            if not found:
                self.excuse = "as near to NumPy's as rounding allows, which decides what comes out"
                break
        return found

    def _interpreted(self, seed: int | None) -> Outcome:
        """What the program's graph gives, run by NumPy, with its results moved by chance if there is a seed."""
        traced = self.of.traced
        execute = interpreted(traced)
        has_calls = any(node.op.family in ("host", "linalg", "fft") for node in _all_nodes(traced.graph))

        def nudged(*inputs: Any) -> Any:
            if seed is None:
                return execute(*inputs)
            given = nudged_inputs(inputs, seed) if has_calls else inputs
            with watched(nudge_results(seed, self.of.fast)):
                return execute(*given)

        self.state.put_back()
        enter = bind(traced, nudged)
        with as_python(), silenced(), keeping_made():
            return postponing(lambda: self._run(lambda: enter(self.leaves)))[0]


def _beyond(found: list[Difference], other: list[Difference], slack: float) -> list[Difference]:
    """The differences that are not among others, or further apart."""
    gaps: dict[str, float] = {}
    for difference in other:
        gaps[difference.where] = max(gaps.get(difference.where, 0.0), difference.gap)
    return [d for d in found if d.where not in gaps or gaps[d.where] * slack < d.gap < np.inf]


def _fill_free_memory(graph: Graph) -> None:
    """Have `np.empty` in the plain function find other garbage than it did: compiled code has zeros there."""
    avals = {v.aval for node in _all_nodes(graph) for v in node.outputs if v.aval.is_static}
    sizes = {aval.nbytes for aval in avals if 0 < aval.nbytes < _RECYCLED}
    byte = next(_garbage) % 100 + 20
    blocks = [np.full(size, byte, np.uint8) for size in sizes for _ in range(4)]
    del blocks


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.bodies.values():
            yield from _all_nodes(body)


def _roots(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[Any, str]]:
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    named = [(x, names[n] if n < len(names) else f"args[{n}]") for n, x in enumerate(args)]
    return [(function, getattr(function, "__name__", "the function")), *((x, name) for name, x in kwargs.items()), *named]


def _given(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def _refuse(*_: Any) -> Any:
    raise FailedCheck("an answer of this variant was not NumPy's")


def _frames_of_ours() -> int:
    """How many frames are between the caller and the user's line."""
    count = 0
    frame = sys._getframe(1)
    while frame is not None and is_jitmls(frame.f_code.co_filename):
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]  # None at the outermost frame ends the loop
    return count
