"""Rollable sequences: what can a `for` go over without being unrolled?

`Rows`: a sequence whose elements are computed from a position.

Ranges, also with bounds that only the program knows, the rows of a traced array, and `enumerate`, `zip`, `reversed` of those,
which are iterators: what has been taken of them does not come again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitml.ir.dims import Dim, Size, limits
from jitml.records import dataclass
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.speculation import paths
from jitml.trace.speculation.modes import Decider
from jitml.trace.symbolic.sizes import compute, larger, size_of_value, value_of_size
from jitml.trace.values.boxing import TracedArray, TracedScalar, is_traced, lift, read
from jitml.trace.values.numbers import TracedNumber, size_of
from jitml.trace.values.registry import call, implements

_FURTHEST = 1 << 61  # no loop goes on so long; differences of bounds have to fit 64 bits
Position = Any  # an int, or a TracedNumber that is a size


@dataclass(eq=False)
class Rows:
    """`trip` elements; `at(position)` computes one. Iterating it, where nobody rolls the loop, is plain Python."""

    trip: Size
    at: Callable[[Position], Any]

    def __iter__(self) -> Iterator[Any]:
        return (self.at(position) for position in range(_known(self.trip)))

    def ended(self, decider: Decider | None) -> None:
        """A loop over it that the program runs has ended, after the last element or where `decider`, the loop, knows."""


def _known(trip: Size) -> int:
    if not isinstance(trip, Dim):
        return trip
    message = f"something iterates {trip} times, which only the running program knows, and is no `for` loop"
    known: int = paths.number(value_of_size(trip), message, "Write it as a for loop, or as operations on whole arrays.")
    return known


@dataclass(eq=False)
class Range(Rows):
    """`range(*bounds)`, which only the program knows. Of all `Rows`, this one has a length to Python, and may be false.

    is_cut: whether it goes on beyond what any loop comes to, so that `trip` is less than its length.
    """

    bounds: tuple[Any, ...]
    is_cut: bool = False

    def count(self) -> Any:
        """`len(self)`"""
        return len(self.known()) if self.is_cut else _number(self.trip)

    def known(self) -> range:
        """The range itself: the program is for these bounds alone."""
        return range(*map(operator.index, self.bounds))

    def ends(self) -> tuple[Any, Any, int]:
        """Start, stop and step."""
        start, stop, step = (0, self.bounds[0], 1) if len(self.bounds) == 1 else (*self.bounds, 1)[:3]
        return start, stop, operator.index(step)

    def __bool__(self) -> bool:
        return bool(_number(self.trip))

    def __contains__(self, x: Any) -> bool:  # what is no number
        return any(x == number for number in self)

    def __eq__(self, other: object) -> bool:
        return self is other or self.known() == (other.known() if isinstance(other, Range) else other)

    def __hash__(self) -> int:
        return hash(self.known())


@dataclass(eq=False)
class Going(Rows):
    """An iterator over such elements: `enumerate(x)`, `np.nditer(x)`.

    kind: what Python calls it.
    taken: how many elements have been handed out.
    lent: whether another iterator goes over it.
    decider: the loop that alone knows how many.
    """

    kind: str
    taken: int = 0
    lent: bool = False
    decider: Decider | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._require()
        if limits(self.trip)[0] <= self.taken:
            self.trip = _known(self.trip)
            if self.taken >= self.trip:
                raise StopIteration
        self.taken += 1
        return self.at(self.taken - 1)

    def left(self) -> Rows:
        """What is left of it, for a loop."""
        self._require()
        taken = self.taken
        return _Left(self.trip - taken, (lambda position: self.at(position + taken)) if taken else self.at, self)

    def lend(self) -> Rows:
        """The same for another iterator, which goes on by itself."""
        rows = self.left()
        self.lent = True
        return rows

    def _require(self) -> None:
        remedy = "Make a list of what it goes over."
        if self.lent:
            unsupported(f"{self.kind} is gone through by another iterator, and by itself", remedy)
        if self.decider is not None:
            self.decider.refuse(f"{self.kind} goes on after a loop over it that may have ended early", remedy)


@dataclass(eq=False)
class _Left(Rows):
    """What is left of an iterator."""

    of: Going

    def ended(self, decider: Decider | None) -> None:
        self.of.decider = decider
        if decider is None:
            self.of.taken = self.of.trip = 0


def rows_of(iterable: Any) -> Rows | None:
    """The sequence that an iterable is, if its elements can be computed from a position; else None."""
    if isinstance(iterable, Going):
        return iterable.left()
    if isinstance(iterable, Rows):
        return iterable
    if type(iterable) is range:
        try:
            count = len(iterable)
        except OverflowError:  # of more than anybody counts
            count = 2 * _FURTHEST
        return Rows(count, lambda position: iterable.start + iterable.step * position)
    if type(iterable) is np.ndarray:
        iterable = lift(iterable)
    if type(iterable) is TracedList:
        length = size_of(iterable.length())
        return Rows(length, lambda position: iterable[position]) if iterable.is_plain and length is not None else None
    if type(iterable) is TracedArray and iterable.ndim:
        return Rows(iterable.sizes[0], lambda position: call(operator.getitem, iterable, position))
    return None


def _is_lazy(*xs: Any) -> bool:
    return any(type(x) in (TracedList, TracedArray) or isinstance(x, Rows) for x in xs) and all(
        rows_of(x) is not None for x in xs
    )


@implements(range)
def _range(*args: Any) -> Any:
    bounds: list[Any] = [_bound(x) for x in args]
    if len(bounds) == 3 and type(bounds[2]) is not int:
        bounds[2] = operator.index(args[2])
    if all(type(bound) is int for bound in bounds):
        return range(*bounds)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if abs(step) > _FURTHEST:
        return range(*map(operator.index, args))
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    is_cut = any(type(n) is int and abs(n) > 2 * _FURTHEST for n in (start, stop))
    return Range(_trip(start, stop, step), lambda position: _element(start, stop, step, position), args, is_cut)


def _bound(x: Any) -> Size:
    """A bound of a range. That of a Python int from outside is taken as it is, under a guard."""
    if type(x) is TracedNumber and x.slot is None and x.kind is not float:
        return x.size if x.size is not None else size_of_value(read(x), -_FURTHEST, _FURTHEST)
    if (type(x) is TracedScalar or (type(x) is TracedArray and x.ndim == 0)) and x.dtype.kind in "iu":
        return size_of_value(read(x), -_FURTHEST, _FURTHEST)
    return operator.index(x)


def _trip(start: Size, stop: Size, step: int) -> Size:
    # Beyond that no loop comes to its end, so that it may be any number.
    start, stop = (max(-2 * _FURTHEST, min(n, 2 * _FURTHEST)) if type(n) is int else n for n in (start, stop))
    distance = stop - start if step > 0 else start - stop
    count: Any = compute(operator.floordiv, distance + abs(step) - 1, abs(step)) if abs(step) != 1 else distance
    return larger(0, count)


def _element(start: Size, stop: Size, step: int, position: Position) -> Any:
    """`start + step * position`, with the limits that the bounds give it."""
    place = size_of(position)
    if (type(start) is int and type(stop) is int) or place is None:
        return start + step * position
    exact = start + step * place
    if type(start) is int and step > 0:
        return _number(exact)
    low, high = (start, stop - 1) if step > 0 else (stop + 1, start)
    if not isinstance(exact, Dim):
        return exact
    return _number(active_trace().bind(value_of_size(exact), low, high, "i"))


def _number(size: Size) -> Any:
    return TracedNumber.of_size(active_trace(), None, size) if isinstance(size, Dim) else size


@implements(enumerate)
def _enumerate(iterable: Any, start: Any = 0) -> Any:
    if not _is_lazy(iterable) and type(iterable) is not range:
        return enumerate(iterable, start)
    rows, start = _handed(iterable), start if type(start) is int else _integer(start)
    return Going(rows.trip, lambda position: (start + position, rows.at(position)), "enumerate")


def _handed(iterable: Any) -> Rows:
    """The elements that another iterator goes over."""
    rows = iterable.lend() if isinstance(iterable, Going) else rows_of(iterable)
    assert rows is not None
    return rows


def _integer(n: Any) -> Any:
    """What `operator.index` gives, of numbers that only the program knows too."""
    return call(int, n) if isinstance(n, (int, np.integer)) else operator.index(n)


@implements(zip)
def _zip(*iterables: Any, strict: bool = False) -> Any:
    going = [id(x) for x in iterables if isinstance(x, Going)]
    if not _is_lazy(*iterables) or strict or len(set(going)) < len(going):
        return zip(*iterables, strict=strict)
    parts = [*map(_handed, iterables)]
    trip: Any = compute(min, *(part.trip for part in parts)) if len(parts) > 1 else parts[0].trip
    return Going(trip, lambda position: tuple(part.at(position) for part in parts), "zip")


@implements(reversed)
def _reversed(sequence: Any) -> Any:
    if type(sequence) is range:
        return sequence[::-1]
    if isinstance(sequence, Going):
        raise TypeError(f"'{sequence.kind}' object is not reversible")
    if not _is_lazy(sequence):
        return reversed(sequence)
    rows = rows_of(sequence)
    assert rows is not None
    return Going(
        rows.trip,
        lambda position: rows.at(rows.trip - 1 - position if not _is_size(rows.trip) else _from_end(rows, position)),
        "reversed",
    )


def _is_size(x: Size) -> bool:
    return isinstance(x, Dim)


def _from_end(rows: Rows, position: Position) -> Any:
    place = size_of(position)
    assert place is not None
    exact = rows.trip - 1 - place
    if not isinstance(exact, Dim):
        return exact
    return _number(active_trace().bind(value_of_size(exact), 0, rows.trip - 1, "i"))


__all__ = ["Going", "Range", "Rows", "is_traced", "limits", "rows_of"]
