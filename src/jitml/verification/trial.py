"""Trials: the plain function runs again from the same state, and the program's graph runs by NumPy, rounded otherwise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import count
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.device.array import Array
from jitml.dispatch.entry import bind, interpreted
from jitml.dispatch.witness import witnessed
from jitml.errors import FailedCheck, WrongPath
from jitml.interrupts import contained, pass_on
from jitml.ir.execute.debug_nans import as_python
from jitml.ir.graph import Graph
from jitml.ir.interpret import watched
from jitml.ir.run_state import keeping_made, postponing
from jitml.ir.types import F64
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.traced import Traced
from jitml.verification.outcomes import CallOutcome, Difference, differences
from jitml.verification.rounding import ROUNDING, moved, nudge_results, nudged_inputs, precision, within
from jitml.verification.saved_state import SavedState
from jitml.verification.silenced_warnings import silenced
from jitml.verification.time_limits import OutOfTime, limited

_NUDGES = 6
_SLACK = 100  # how much further apart numbers may be than those of one nudge
_MOST_TRANSFORMED = 3  # functions of which derivatives are checked, in a call
_PATIENCE = 4  # times what the plain function may take: for the program's graph, run by NumPy
_BY_ROUNDING = "as near to NumPy's as rounding allows, which decides what comes out"
_RECYCLED = 1 << 20  # bytes: larger blocks come from the system, which has zeros there
_garbage = count()


class Trial:
    """The plain function, again and again from the same state."""

    def __init__(
        self,
        function: Callable[..., Any],
        traced: Traced,
        by_host: bool,
        fast: bool,
        with_slopes: bool,
        limit: float | None,
        state: SavedState,
        leaves: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.function, self.traced, self.fast, self.with_slopes = function, traced, fast, with_slopes
        self.limit = limit if limit is None or not state.mentions("acquire") else None  # or a lock might stay taken
        self.state, self.leaves, self.args, self.kwargs = state, leaves, args, kwargs
        slack = 1e3 if self.fast else 1.0
        self.close = within(slack * ROUNDING[F64], precision([self.traced.graph]))
        self.by_host = by_host  # whether the program calls something
        self.calls = 0  # of what changes the state
        self.alike: set[int] = set()  # cells whose arrays the last outcomes compared left with the same bits
        self.seconds = 0.0  # that the plain function has taken, with what is done around it
        self.plain_seconds = inf  # that it has taken alone, at the least
        self.transformed: list[Any] = []
        self.excuse = ""

    def verdict(self, call: int) -> str:
        which = "its first answer" if call == 1 else f"its answer to call {call}"
        return f"{which} is {self.excuse or 'as NumPy gives it'}"

    def plainly(self, changed: Iterable[int] | None = None) -> CallOutcome:
        """What the plain function does; arrays that it has changed are shown as they lie (`SavedState.changes`).

        Args:
            changed: the cells that do not hold what they held; None if nobody knows.

        Raises:
            OutOfTime: it takes too long.
        """
        self.state.put_back(only=changed)
        began = perf_counter()
        outcome = contained(lambda: limited(self._called, self.limit))
        self.seconds = perf_counter() - began
        return outcome

    def _called(self) -> CallOutcome:
        with as_python(), silenced(), witnessed(self._note if self.with_slopes else None):
            return self.state.frozen(lambda: self._run(lambda: self.function(*self.args, **self.kwargs), shown=True))

    def _note(self, key: Hashable, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Keep a function that is transformed."""
        if len(self.transformed) < _MOST_TRANSFORMED:
            leaves, spec = flatten((args, dict(kwargs)))
            copied = [leaf.copy("K") if isinstance(leaf, (np.ndarray, Array)) else leaf for leaf in leaves]
            self.transformed.append((key, function, *unflatten(spec, copied)))

    def wrong_slope(self) -> list[Difference]:
        """The first derivative that differences of values contradict, unless the user says what derivatives are."""
        transformed, self.transformed = self.transformed, []
        self.calls += bool(transformed)
        if not transformed or self.state.mentions("stop_gradient", "custom_jvp", "custom_vjp", "debug_nans"):
            return []
        # It brings the derivatives, which `import jitml` must not.
        slopes = import_module("jitml.verification.directional_derivatives")
        for key, function, args, kwargs in transformed:
            with as_python(), silenced():
                if wrong := slopes.wrong_slope(key, function, args, kwargs):
                    return [Difference(f"{key[0]} of {getattr(function, '__name__', 'a function')}", wrong, "other values there")]
        return []

    def _run(self, call: Callable[[], Any], *, shown: bool = False) -> CallOutcome:
        self.calls += 1
        result: Any = None
        error: Exception | None = None
        began = perf_counter()
        try:
            result = call()
            if shown:  # others are of the program's interpreter
                self.plain_seconds = min(self.plain_seconds, perf_counter() - began)
        except (RecursionError, MemoryError):
            raise
        except Exception as raised:
            pass_on(raised)
            error = raised
        return CallOutcome(error, result, self.state.changes(shown=shown))

    def compared(self, got: CallOutcome, expected: CallOutcome) -> list[Difference]:
        self.alike = set()
        return differences(got, expected, self.state, self.close, by_host=self.by_host, alike=self.alike)

    def without_excuse(self, found: list[Difference], expected: CallOutcome) -> list[Difference]:
        """The differences that are not NumPy's own, either, as far as there is time to find out."""
        try:
            self.transformed, noted = [], self.transformed
            _fill_free_memory(self.traced.graph)
            again = self.compared(self.plainly(), expected)
            found = _beyond(found, again, np.inf)
            self.excuse = "" if found else "another one at each call, by NumPy as well: nothing was compared"
            if found and not (found := self._beyond_moves(found, expected)):
                self.excuse = _BY_ROUNDING
            self.transformed = noted
            patience = None if self.limit is None else _PATIENCE * self.limit
            return contained(lambda: limited(lambda: self._beyond_rounding(found), patience, anywhere=True)) if found else found
        except OutOfTime:
            return found

    def _beyond_moves(self, found: list[Difference], expected: CallOutcome) -> list[Difference]:
        """The differences where the plain function gives nearly the same of arrays that are moved by a unit in the last place.

        It is asked before the program's graph, which takes NumPy many times as long.
        """
        self.state.put_back()
        leaves = flatten((self.args, self.kwargs))[0]
        floats = [x for x in leaves if type(x) is np.ndarray and x.dtype.kind in "fc" and x.flags.writeable]
        before, rng = [x.copy() for x in floats], np.random.default_rng(0)
        try:
            for x in floats:
                np.copyto(x, moved(x, rng))
            other = contained(lambda: limited(self._called, self.limit))
            return _beyond(found, self.compared(other, expected), _SLACK)
        finally:
            for x, known in zip(floats, before):
                np.copyto(x, known)

    def _beyond_rounding(self, found: list[Difference]) -> list[Difference]:
        """The differences where the program's graph gives the same, or nearly so, if it is rounded otherwise."""
        usual: CallOutcome | None = None
        try:
            usual = self._interpreted(None)
        except WrongPath:  # a branch that the compiled program has not taken: is it rounding that decides?
            pass
        except FailedCheck:
            return found
        for seed in range(_NUDGES):
            try:
                other = self._interpreted(seed)
                found = _beyond(found, self.compared(other, usual), _SLACK) if usual is not None else []
            except WrongPath:  # it takes another branch
                found = [] if usual is not None else found
            except FailedCheck:
                continue
            if not found:
                self.excuse = _BY_ROUNDING
                break
        return found

    def _interpreted(self, seed: int | None) -> CallOutcome:
        """What the program's graph gives, run by NumPy, with its results moved by chance if there is a seed."""
        traced = self.traced
        is_on_device = traced.device is not None or CONFIG.backend == "cuda"
        execute = interpreted(traced)
        has_calls = any(node.op.family in ("host", "linalg", "fft") for node in traced.graph.walk())

        def nudged(*inputs: Any) -> Any:
            if seed is None:
                return execute(*inputs)
            given = nudged_inputs(inputs, seed) if has_calls and traced.device is None else inputs
            with watched(nudge_results(seed, self.fast, has_own_phases=is_on_device)):
                return execute(*given)

        self.state.put_back()
        enter = bind(traced, nudged)
        with as_python(), silenced(), keeping_made():
            outcome: CallOutcome = postponing(lambda: self._run(lambda: enter(self.leaves)))[0]
        if isinstance(outcome.error, FailedCheck):
            raise outcome.error
        return outcome


def _beyond(found: list[Difference], other: list[Difference], slack: float) -> list[Difference]:
    """The differences that are not among others, or further apart."""
    gaps: dict[str, float] = {}
    for difference in other:
        gaps[difference.where] = max(gaps.get(difference.where, 0.0), difference.gap)
    return [d for d in found if d.where not in gaps or gaps[d.where] * slack < d.gap < np.inf]


def _fill_free_memory(graph: Graph) -> None:
    """Have `np.empty` in the plain function find other garbage than it did: compiled code has zeros there."""
    avals = {v.aval for node in graph.walk() for v in node.outputs if v.aval.is_static}
    sizes = {aval.nbytes for aval in avals if 0 < aval.nbytes < _RECYCLED}
    byte = next(_garbage) % 100 + 20
    blocks = [np.full(size, byte, np.uint8) for size in sizes for _ in range(4)]
    del blocks
