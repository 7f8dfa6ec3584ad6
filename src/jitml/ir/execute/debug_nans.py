"""NaN debugging: which op was the first whose result is no number?

`debug_nans`: transforms run op by op, through NumPy, and raise there.

Nothing is compiled then: a jitted function runs as plain Python, and the transforms in it are watched. An op that makes NaN, or
an infinite slope, of finite numbers raises at once. One that makes it of infinities may be harmless, as programs mask with them:
each element that is not finite is marked with where it comes from, and what has reached a result of the transform raises then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any
from weakref import ref

import numpy as np

from jitml.config import CONFIG
from jitml.diagnostics.tracebacks import passed_over
from jitml.errors import NonFiniteError, Source
from jitml.interrupts import unset
from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.ir.interpret import iterations, watched
from jitml.records import dataclass, replace

Array = np.ndarray[Any, Any]

_debugging: ContextVar[bool] = ContextVar("jitml_debug_nans", default=CONFIG.debug_nans)
AS_PYTHON: ContextVar[bool] = ContextVar("jitml_as_python", default=CONFIG.debug_nans)
_watcher: ContextVar[Watcher | None] = ContextVar("jitml_watcher", default=None)


@contextmanager
def debug_nans(enabled: bool = True) -> Iterator[None]:
    """Find where NaN comes from: in the block, the first operation of a transformed function that makes NaN of numbers raises.

    An infinite derivative raises, too. If an operand is infinite already, it is an error only if what the operation makes of it
    reaches a result of the transform. `JITML_DEBUG_NANS=1` does so for a whole program.

    Raises:
        NonFiniteError: a result is NaN, or a derivative NaN or infinite, that was made of numbers; it names the op, the line that
            it comes from, and the iteration of a loop. It is a FloatingPointError.

    >>> import numpy as np, jitml
    >>> with jitml.debug_nans():
    ...     jitml.grad(lambda x: np.sqrt(x))(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jitml.errors.NonFiniteError: the slope of sqrt is inf: div(0.5, 0)
    ...
    """
    token, plain, watcher = _debugging.set(enabled), AS_PYTHON.set(enabled), _watcher.set(Watcher())
    try:
        yield
    finally:
        unset(_debugging, token)
        unset(AS_PYTHON, plain)
        unset(_watcher, watcher)


@contextmanager
def watching() -> Iterator[Watcher]:
    """Inside the block, graphs that are interpreted are watched."""
    watcher = _watcher.get()
    if watcher is None:  # JITML_DEBUG_NANS
        _watcher.set(watcher := Watcher())
    with watched(watcher.see):
        yield watcher


def is_debugging() -> bool:
    return _debugging.get()


@contextmanager
def as_python() -> Iterator[None]:
    """Jitted functions run as plain Python inside the block."""
    token = begin_python()
    try:
        yield
    finally:
        end_python(token)


@passed_over
def called_as_python(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call inside of which no function is to be compiled for it."""
    with as_python():
        return function(*args, **kwargs)


def begin_python() -> Token[bool]:
    """Jitted functions run as plain Python from here, until `end_python` is called."""
    return AS_PYTHON.set(True)


def end_python(token: Token[bool]) -> None:
    unset(AS_PYTHON, token)


runs_as_python: Callable[[], bool] = AS_PYTHON.get


def derived(node: Node, role: str) -> Source | None:
    """The source of what a derivative records for a node: its own, and, where somebody watches, what it is for."""
    source = node.source
    if not _debugging.get():
        return source
    of = source.role.rsplit(" ", 1)[-1] if source is not None and source.role else node.op.name
    return replace(source or Source("", 0, ""), role=f"{role} of {of}")


# Elements go from operands to results unchanged.
_MOVES = frozenset(
    (
        *(ops.broadcast, ops.transpose, ops.reshape, ops.slice, ops.flip, ops.concat, ops.update_slice),
        *(ops.gather, ops.dynamic_slice, ops.dynamic_update_slice, ops.select),
    )
)


@dataclass(frozen=True)
class NonFiniteOrigin:
    """Where what is not finite was made.

    Args:
        is_wrong: it is an error where it reaches a result; else an infinity that an op of the function itself has made.
    """

    message: str
    source: Source | None
    is_wrong: bool
    infinity: NonFiniteOrigin | None = None

    def error(self) -> NonFiniteError:
        remedy = ""
        if self.infinity is not None:
            place = self.infinity.source
            remedy = self.infinity.message[0].upper() + self.infinity.message[1:]
            remedy += f"  {place}" if place is not None and place != self.source else ""
        return NonFiniteError(self.message, source=self.source, remedy=remedy)


class Watcher:
    """Looks at the results of each node, and remembers of elements that are not finite which node they come from."""

    def __init__(self) -> None:
        self._origins: list[NonFiniteOrigin | None] = [None]  # None: of an argument, or a constant; as far as is known
        self._overflows: dict[Node, int] = {}
        # The numbers of those, for each element of an array that has such elements.
        self._marks: dict[int, tuple[ref[Array], Array]] = {}

    def see(self, node: Node, operands: Sequence[Array], results: Sequence[Array]) -> None:
        if node.op is ops.sub:
            _turn(node, results)
        if not operands or node.bodies:  # what is inside has been seen
            return
        for result in results:
            if not _is_finite(result) and not any(result is x for x in operands):
                self._mark(result, self._marked(node, operands, result))

    def hand_on(self, x: Array, copy: Array) -> None:
        """Let a copy's elements come from where the array's do."""
        if (marks := self._marks_of(x)) is not None:
            self._mark(copy, marks)

    def judge(self, results: Sequence[Array]) -> None:
        """Look at what a transform returns.

        Raises:
            NonFiniteError: an element of it is NaN, or a derivative infinite, that was made of numbers.
        """
        found = {int(n) for x in results if (marks := self._marks_of(x)) is not None for n in np.unique(marks)}
        wrong = (origin for n in sorted(found) if (origin := self._origins[n]) is not None and origin.is_wrong)
        if (first := next(wrong, None)) is not None:
            raise first.error()

    def _mark(self, x: Array, marks: Array) -> None:
        if marks.any():
            key = id(x)
            self._marks[key] = ref(x, lambda _: self._marks.pop(key, None)), marks

    def _marks_of(self, x: Array) -> Array | None:
        found = self._marks.get(id(x))
        return found[1] if found is not None and found[0]() is x else None

    def _marked(self, node: Node, operands: Sequence[Array], result: Array) -> Array:
        """Where a result's elements come from."""
        known = [(x, self._marks_of(x)) for x in operands if x.dtype.kind in "fc"]
        if node.op in _MOVES and not node.syms:
            given = [
                x if x.dtype.kind not in "fc" else np.zeros(x.shape, int) if (marks := self._marks_of(x)) is None else marks
                for x in operands
            ]
            return np.asarray(node.op.run(tuple(given), dict(node.params)))
        if not node.op.is_pointwise:  # each element may be made of all
            known = [
                (np.asarray(_worst(x)), None if marks is None else np.asarray(marks[marks > 0].min(initial=marks.max())))
                for x, marks in known
            ]
        role = node.source.role if node.source is not None else ""
        nan, infinite = np.isnan(result), np.isinf(result)
        was_nan, was_infinite = _any(np.isnan, known, result), _any(np.isinf, known, result)
        of_numbers = ~was_nan & ~was_infinite
        wrong = of_numbers & (nan | infinite if role else nan)
        if wrong.any():
            raise self._make_origin(node, operands, result, wrong, 0).error()
        marks = np.zeros(result.shape, int)
        for x, before in reversed(known):
            if before is not None:  # NaN comes of NaN where there is any
                handed_on = np.where(nan & was_nan, np.isnan(x), (nan | infinite) & ~np.isfinite(x))
                marks = np.where(handed_on & (before > 0), before, marks)
        overflow = infinite & of_numbers
        if overflow.any():
            if node not in self._overflows:
                self._overflows[node] = self._add(self._make_origin(node, operands, result, overflow, 0, is_wrong=False))
            marks = np.where(overflow, self._overflows[node], marks)
        wrong = nan & ~was_nan
        if role:
            wrong = wrong | (infinite & was_infinite & np.isin(marks, [*self._overflows.values()]))
        if wrong.any():
            cause = int(marks[tuple(np.argwhere(wrong)[0])])
            marks = np.where(wrong, self._add(self._make_origin(node, operands, result, wrong, cause)), marks)
        return marks

    def _add(self, origin: NonFiniteOrigin) -> int:
        self._origins.append(origin)
        return len(self._origins) - 1

    def _make_origin(
        self, node: Node, operands: Sequence[Array], result: Array, wrong: Array, cause: int, *, is_wrong: bool = True
    ) -> NonFiniteOrigin:
        source = node.source if node.source is not None and node.source.file else None
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        told = [_told(x[place] if x.shape == result.shape else x) for x in operands]
        role = (source.role if source is not None else "") or f"result of {node.op}"
        at = (f" at {list(place)}" if place else "") + _iteration(role)
        message = f"the {role} is {_told(result[place])}{at}: {node.op}({', '.join(told)})"
        return NonFiniteOrigin(message, source, is_wrong, self._origins[cause])


def _turn(node: Node, results: Sequence[Array]) -> None:
    """Backwards, an iteration is known by its number on the way there: the first of what `loop_transpose` records."""
    if node.source is None and iterations() and node.inputs[1] is (now := iterations()[-1]).index:
        now.number, now.index, now.is_turned = int(results[0]), node.output, True


def _iteration(role: str) -> str:
    if role.startswith("cotangent") and not all(iteration.is_turned for iteration in iterations()):
        return ""
    numbers = [str(iteration.number) for iteration in iterations()]
    return f" in iteration {', '.join(numbers)}" if numbers else ""


def _any(holds: Callable[[Array], Array], operands: Sequence[tuple[Array, Array | None]], result: Array) -> Array:
    """For each element of a result, whether it holds of one that it is made of."""
    found = np.zeros(result.shape, bool)
    for x, _ in operands:
        found |= holds(x)
    return found


def _worst(x: Array) -> Any:
    """NaN if there is one, an infinity if there is one, or a number."""
    return np.nan if np.isnan(x).any() else np.inf if np.isinf(x).any() else 0.0


def _is_finite(x: Array) -> bool:
    return x.dtype.kind not in "fc" or bool(np.isfinite(x).all())


def _told(x: Any) -> str:
    array = np.asarray(x)
    return (
        f"{array.item():.6g}" if array.ndim == 0 and array.dtype.kind == "f" else str(x) if array.size < 8 else f"{array.shape}"
    )
