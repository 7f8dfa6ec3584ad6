"""Overlapping arguments: what if arguments share memory?

Those that overlap become views of the one array that owns it, as they are in NumPy.

Each argument of such a group gets a tracer that looks into one storage: writes through one are seen through the
others, in the user's order. The owner is seen as a grid (its own shape, or rows as long as the arguments' steps, or a divisor
of those) in which every argument is a box of regular steps. Where memory is shared in another way (several dtypes, a foreign
buffer, steps that no grid has), the arguments stay apart, and writing into one of them is refused.

Arrays that are met one by one (attributes, globals, cells, items) are seen by themselves at first. Where one is written and
overlaps another, the function is traced again, and every part of that memory is then a view of its owner.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from jitml.records import dataclass
from jitml.trace.record.array_memory import Array, disjoint, is_native, root, same_view
from jitml.trace.record.guards import Slot
from jitml.trace.record.recording import Trace
from jitml.trace.speculation.modes import Decisions
from jitml.trace.values.boxing import LiftedArrays, TracedArray, lift, meet_again
from jitml.trace.values.registry import call

Member = tuple[Slot, Array]
_FEW = 8  # arrays that are compared with each other
_MOST_OWNERS = 50  # of memory that is seen in parts: a library's function may give new arrays whenever the trace begins again


@dataclass(frozen=True, slots=True)
class Box:
    """A view of a grid: an index of it, the order of the axes left, and the shape (perhaps with more axes of length 1)."""

    index: tuple[int | slice, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    def of(self, grid: Any) -> Any:
        """This view of a grid, of an array that is traced or not."""
        index = (*self.index, ...)  # an array even where it is one element
        chosen = call(operator.getitem, grid, index) if type(grid) is TracedArray else grid[index]
        if type(chosen) is TracedArray:
            return call(np.reshape, call(np.transpose, chosen, self.axes), self.shape)
        return chosen.transpose(self.axes).reshape(self.shape)


def groups(members: Sequence[Member]) -> list[list[Member]]:
    """The arguments that overlap others (and are not simply the same)."""
    found: list[list[Member]] = []
    for near in _neighbours(members):
        apart: list[list[Member]] = []
        for member in near:
            touching = [g for g in apart if any(not disjoint(member[1], other) for _, other in g)]
            apart = [g for g in apart if g not in touching] + [[m for g in touching for m in g] + [member]]
        found += apart
    return [g for g in found if any(not same_view(g[0][1], other) for _, other in g)]


def _neighbours(members: Sequence[Member]) -> list[list[Member]]:
    """Those whose ranges of addresses meet, in the order of the arguments; all others overlap nothing. O(n log n)."""
    if len(members) <= _FEW:
        return [[*members]]
    ranges = [byte_bounds(array) for _, array in members]
    found: list[list[int]] = []
    end = 0
    for place in sorted(range(len(members)), key=ranges.__getitem__):
        low, high = ranges[place]
        if found and low < end:
            found[-1].append(place)
        else:
            found.append([place])
        end = max(end, high)
    return [[members[place] for place in sorted(places)] for places in found if len(places) > 1]


def enter_together(recording: Trace, group: Sequence[Member]) -> None:
    """Fill `recording.parts` with tracers of arguments that overlap, if they can be seen as boxes of one grid."""
    base = root(group[0][1])
    arrays = [array for _, array in group]
    if not base.flags.c_contiguous:
        return
    if any(root(a) is not base or a.dtype != base.dtype or not is_native(a) or not a.size for a in arrays):
        return
    found = next((f for grid in _grids(base, arrays) if (f := _boxes(base, grid, arrays))), None)
    if found is None:
        return
    grid, boxes = found
    host, slots = recording.host, tuple(slot for slot, _ in group)
    for slot, array in group:
        host.require_array(slot, array)
    shared = host.compute(root, slots[:1], f"the memory of {host.name(slots[0])}")
    places = host.compute(_places, (shared, *slots))
    host.require(places, _places(base, *arrays))
    whole = grid.of(lift(base, shared))
    for (slot, array), box in zip(group, boxes):
        tracer = box.of(whole)
        tracer.writeable = array.flags.writeable
        host.require_writeable(slot, tracer.writeable)
        known = recording.call[LiftedArrays].known.setdefault(id(array), tracer)
        meet_again(known, slot)
        recording.call[LiftedArrays].parts[slot] = known


def enter_part(recording: Trace, owners: Mapping[int, Array], shared: dict[int, Slot], array: Array, slot: Slot) -> Any:
    """The tracer of an array of whose memory other parts are met as well, as a view of all of it; None if it is seen by itself.

    Args:
        owners: memory of which an earlier attempt has met parts that overlap, by the id of the array that owns it.
        shared: is filled with where the host program has that array.
    """
    base = root(array)
    if owners.get(id(base)) is not base or array is base:
        return None
    found = next((f for grid in _grids(base, [array]) if (f := _boxes(base, grid, [array]))), None)
    if found is None or not array.size or not is_native(array) or array.dtype != base.dtype:
        return None
    grid, (box,) = found
    host = recording.host
    if id(base) not in shared:
        shared[id(base)] = host.compute(root, (slot,), f"the memory of {host.name(slot)}")
    host.require(host.compute(_places, (shared[id(base)], slot)), _places(base, array))
    tracer = box.of(grid.of(lift(base, shared[id(base)])))
    tracer.writeable = array.flags.writeable
    host.require_writeable(slot, tracer.writeable)
    meet_again(tracer, slot)
    recording.call[LiftedArrays].known[id(array)] = recording.call[LiftedArrays].parts[slot] = tracer
    return tracer


def see_parts(recording: Trace, one: Array, other: Array) -> None:
    """Two arrays overlap, one of which has been written: trace anew with both as views, if that has not been tried."""
    base, owners = root(one), recording.call[Decisions].in_parts
    if root(other) is base and base.flags.c_contiguous and id(base) not in owners and len(owners) < _MOST_OWNERS:
        owners[id(base)] = base
        recording.call[Decisions].again()


def _places(base: Array, *arrays: Array) -> tuple[int, ...]:
    """Where arrays begin in the memory that they share.

    Raises:
        ValueError: they do not share it.
    """
    if any(root(a) is not base for a in arrays):
        raise ValueError("another owner")
    start = base.__array_interface__["data"][0]
    return tuple(a.__array_interface__["data"][0] - start for a in arrays)


@dataclass(frozen=True, slots=True)
class Grid:
    """A stretch of the owner's elements, seen in a shape."""

    stretch: slice
    shape: tuple[int, ...]

    def of(self, base: Any) -> Any:
        """The grid of the array that owns the memory of overlapping arguments."""
        if type(base) is not TracedArray:
            return base.reshape(-1)[self.stretch].reshape(self.shape)
        line = call(np.reshape, base, (-1,))
        return call(np.reshape, call(operator.getitem, line, self.stretch), self.shape)


def _grids(base: Array, arrays: Sequence[Array]) -> Iterator[Grid]:
    """Ways to see the owner: in its own shape, and with rows as long as each view steps, or a divisor of that."""
    yield Grid(slice(0, base.size), base.shape)
    start = base.__array_interface__["data"][0]
    low, high = ((n - start) // base.itemsize for n in _reach(arrays))
    for array in arrays:
        strides = sorted({abs(s) // array.itemsize for s, n in zip(array.strides, array.shape) if n > 1} | {1}, reverse=True)
        if 0 in strides or any(a % b for a, b in pairwise(strides)):
            continue
        inner = strides[1] if len(strides) > 1 else 1
        for row, first in product(_divisors(strides[0], inner), dict.fromkeys((0, low, high % strides[0]))):
            count = (base.size - first) // row
            if first <= low and high <= first + count * row:
                shape = (count, *(a // b for a, b in pairwise((row, *strides[1:]))))
                yield Grid(slice(first, first + count * row), shape)


def _divisors(n: int, unit: int) -> list[int]:
    """Those of n that are multiples of a divisor of it, largest first.

    >>> _divisors(24, 4)
    [24, 12, 8, 4]
    """
    count = n // unit
    small = [d for d in range(1, math.isqrt(count) + 1) if count % d == 0]
    return sorted({unit * d for d in small} | {n // d for d in small}, reverse=True)


def _reach(arrays: Sequence[Array]) -> tuple[int, int]:
    """The first byte of all arrays, and the one behind the last."""
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays]
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _boxes(base: Array, grid: Grid, arrays: Sequence[Array]) -> tuple[Grid, list[Box]] | None:
    seen = grid.of(base)
    boxes = [_box(seen, array) for array in arrays]
    return (grid, [b for b in boxes if b is not None]) if None not in boxes else None


def _box(grid: Array, array: Array) -> Box | None:
    """Where in the grid an array lies; None if nowhere."""
    offset = array.__array_interface__["data"][0] - grid.__array_interface__["data"][0]
    if offset % grid.itemsize or not 0 <= offset < grid.nbytes:
        return None
    starts = [int(n) for n in np.unravel_index(offset // grid.itemsize, grid.shape)]
    index: list[int | slice] = list(starts)
    taken: list[int] = []
    for n, stride in zip(array.shape, array.strides):
        if n == 1:
            continue
        fits = [a for a in range(len(starts)) if a not in taken and grid.shape[a] > 1 and _fits(grid, a, starts[a], n, stride)]
        if not fits:
            return None
        axis = max(fits, key=lambda a: grid.strides[a])
        taken.append(axis)
        step = stride // grid.strides[axis]
        stop = starts[axis] + step * n
        index[axis] = slice(starts[axis], stop if stop >= 0 else None, step)
    kept = sorted(taken)
    box = Box(tuple(index), tuple(kept.index(axis) for axis in taken), array.shape)
    return box if same_view(_normal(box.of(grid)), _normal(array)) else None


def _fits(grid: Array, axis: int, start: int, n: int, stride: int) -> bool:
    if stride == 0 or stride % grid.strides[axis]:
        return False
    return 0 <= start + (n - 1) * (stride // grid.strides[axis]) < grid.shape[axis]


def _normal(array: Array) -> Array:
    """Without axes of length 1, whose strides mean nothing."""
    return array.squeeze()
