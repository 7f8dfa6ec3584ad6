"""The basic part of an index, an integer or a slice per axis, as a window: where it starts, how many elements, which step.

Known windows are `ops.slice`, others `ops.dynamic_slice`. What NumPy would find out of range is claimed to be in range by a
`check` of the run, unless it is known; slices are clipped by minima and maxima of sizes, of which most are decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import I64, Aval
from jitml.numpy.arrays.reshaping import flipped, same
from jitml.numpy.support.arguments import spread_size
from jitml.records import dataclass
from jitml.trace.storage.index_maps import Step
from jitml.trace.symbolic.sizes import larger, number, once, quotient, smaller, span, value_of_size, wrapped
from jitml.trace.values.boxing import TracedArray, view
from jitml.trace.values.indices import known_integer, place_of

_FURTHEST = 1 << 60


@dataclass(frozen=True, slots=True)
class Window:
    """`size` elements of an axis from `start` on, every `step`-th, `step > 0`; `flipped`: in reverse."""

    start: Size | Value
    size: Size
    step: Size = 1
    flipped: bool = False


def whole(size: Size) -> Window:
    """All of an axis."""
    return Window(0, size)


def element(place: Size, size: Size, axis: int) -> Window:
    """The window of an integer index.

    Raises:
        IndexError: it is out of bounds, in NumPy's words; where that is not known, the program ends with it.
    """
    if type(place) is int and type(size) is int:
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of bounds for axis {axis} with size {size}")
        return Window(place % size, 1)
    start = wrapped(place, size)
    if span(place + size)[0] >= 0 and span(size - 1 - place)[0] >= 0:
        return Window(start, 1)
    return Window(once(("element", place, size, axis), lambda: _checked(start, place, size, axis)), 1)


def _checked(start: Size, place: Size, size: Size, axis: int) -> Value:
    at, given, extent = value_of_size(start), value_of_size(place), value_of_size(size)
    inside = ops.bit_and(ops.ge(at, number(0)), ops.lt(at, extent))
    message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
    checked: Value = ops.check(at, inside, given, extent, error="IndexError", message=message)
    # From the end of an axis that may be empty: layers below see the sum, and not what the check says of it.
    return ops.maximum(checked, number(0)) if type(place) is int and place < 0 else checked


def part(item: slice, size: Size) -> Window:
    """The window of a slice, clipped to the axis."""
    step = 1 if item.step is None else place_of(item.step)
    start, stop = (None if n is None else place_of(n) for n in (item.start, item.stop))
    if all(n is None or type(n) is int for n in (start, stop, step)) and type(size) is int:
        return _known_part(slice(start, stop, step), size)
    if isinstance(step, Dim) and span(step)[0] <= 0:
        step = known_integer(item.step)  # which way it goes decides where it begins
    if step == 0:
        raise ValueError("slice step cannot be zero")
    step = _no_longer(step, size)
    inner = _ends_of_inner(start, stop)
    if step > 0 and inner is not None:
        before, behind = inner
        return Window(smaller(before, size), _length(size - before - behind, step), step)
    if step > 0:
        first = 0 if start is None else _clipped(start, size, 0, size)
        end = size if stop is None else _clipped(stop, size, 0, size)
        return Window(first, _length(end - first, step), step)
    assert type(step) is int, "a step of the program is positive"
    first = size - 1 if start is None else _clipped(start, size, -1, size - 1)
    end = -1 if stop is None else _clipped(stop, size, -1, size - 1)
    length = _length(first - end, -step)
    # An empty window may start anywhere in the axis.
    last = first + (length - 1) * step
    return Window(last if span(length)[0] > 0 else smaller(last, size), length, -step, flipped=True)


def _known_part(item: slice, size: int) -> Window:
    start, stop, step = item.indices(size)
    length = len(range(start, stop, step))
    if length == 0:
        return Window(0, 0)
    return Window(start, length, step) if step > 0 else Window(start + (length - 1) * step, length, -step, flipped=True)


def _ends_of_inner(start: Size | None, stop: Size | None) -> tuple[int, int] | None:
    """How many elements a slice leaves out at both ends, if that is in the program: `x[1:-1]`.

    Windows that leave out equally many, such as `x[2:]` and `x[:-2]`, are then of one size, which need not be checked.
    """
    first = 0 if start is None else start
    last = 0 if stop is None else -stop
    if type(first) is not int or type(last) is not int or (stop is not None and last <= 0):
        return None
    return (first, last) if 0 <= first <= _FURTHEST >= last else None


def _clipped(place: Size, size: Size, low: Size, high: Size) -> Size:
    least, most = span(place)
    if most < 0:
        return larger(place + size, low)
    return smaller(place if least >= 0 else larger(wrapped(place, size), low), high)


def _no_longer(step: Size, size: Size) -> Size:
    """A step beyond the end of an axis leads as far as any other, and sums with it may not fit 64 bits."""
    most = max(1, span(size)[1])
    if type(step) is int:
        return max(-most, min(step, most))
    return step if span(step)[1] <= _FURTHEST else smaller(step, most)


def _length(distance: Size, step: Size) -> Size:
    """How many steps fit, rounded up; 0 for a negative distance."""
    length = quotient(larger(distance, 0) + step - 1, step)
    assert length is not None, "a step is never -1 here"
    return length


def window_view(x: TracedArray, windows: Sequence[Window]) -> TracedArray:
    """A view of x through a window on each axis."""
    for axis, window in enumerate(windows):
        if isinstance(window.step, Dim):
            rest = [*windows[:axis], whole(x.sizes[axis]), *windows[axis + 1 :]]
            return _every_so_many(window_view(x, rest), axis, window)
    flips = [axis for axis, window in enumerate(windows) if window.flipped]
    if all(type(w.start) is int and w.start == 0 and w.size == n and w.step == 1 for w, n in zip(windows, x.sizes)):
        return flipped(x, flips) if flips else same(x)
    step = tuple(w.step for w in windows)
    known = [(w.start, w.size) for w in windows if type(w.start) is int and type(w.size) is int]
    if len(known) == x.ndim and not any(isinstance(n, Dim) for n in x.sizes):
        start = tuple(a for a, _ in known)
        stop = tuple(min(a + (n - 1) * s + 1, m) if n else a for (a, n), s, m in zip(known, step, x.sizes))
        return flipped(view(x, ops.slice, start=start, stop=stop, step=step), flips)
    starts = [w.start if isinstance(w.start, Value) else value_of_size(w.start) for w in windows]
    sizes = tuple(w.size for w in windows)
    return flipped(view(x, ops.dynamic_slice, *starts, sizes=sizes, step=step), flips)


def _every_so_many(x: TracedArray, axis: int, window: Window) -> TracedArray:
    """A view by a step that only the running program knows: the places are computed, gathered from and scattered to."""
    step = window.step
    assert not isinstance(window.start, Value), "a slice begins at a size"
    index = ops.iota(shape=(window.size,), axis=0, dtype=I64)
    places = ops.add(ops.mul(index, spread_size(step, index.shape)), spread_size(window.start, index.shape))
    aval = ops.gather.aval(x.aval, places.aval, axis=axis)
    assert isinstance(aval, Aval)
    layout = tuple(s * step if n == axis else s for n, s in enumerate(x.layout))
    steps = (*x.steps, Step(ops.gather, {"axis": axis}, x.aval, (places,)))
    return TracedArray(x.storage, steps, aval, layout, x.writeable)
