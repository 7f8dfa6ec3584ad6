"""What if arguments share memory?  Those that overlap become views of the one array that owns it, as they are in NumPy.

Each argument of such a group gets a tracer that looks into one storage: writes through one are seen through the
others, in the user's order. The owner is seen as a grid (its own shape, or rows as long as the arguments' strides say) in which
every argument is a box of regular steps. Where memory is shared in another way (several dtypes, a foreign buffer, steps that no
grid has), the arguments stay apart, and writing into one of them is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from jitml.trace.context import Trace
from jitml.trace.host import Slot
from jitml.trace.memory import Array, disjoint, is_native, root, same_view
from jitml.trace.registry import call
from jitml.trace.tracers import TracedArray, lift

Member = tuple[Slot, Array]


@dataclass(frozen=True, slots=True)
class Box:
    """A view of a grid: an index of it, the order of the axes left, and the shape (perhaps with more axes of length 1)."""

    index: tuple[int | slice, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    def of(self, grid: Any) -> Any:
        chosen = call(operator.getitem, grid, self.index) if type(grid) is TracedArray else grid[self.index]
        if type(chosen) is TracedArray:
            return call(np.reshape, call(np.transpose, chosen, self.axes), self.shape)
        return chosen.transpose(self.axes).reshape(self.shape)


def groups(members: Sequence[Member]) -> list[list[Member]]:
    """The arguments that overlap others (and are not simply the same)."""
    found: list[list[Member]] = []
    for member in members:
        touching = [g for g in found if any(not disjoint(member[1], other) for _, other in g)]
        found = [g for g in found if g not in touching] + [[m for g in touching for m in g] + [member]]
    return [g for g in found if any(not same_view(g[0][1], other) for _, other in g)]


def enter_together(recording: Trace, group: Sequence[Member]) -> None:
    """Fill `recording.parts` with tracers of arguments that overlap, if they can be seen as boxes of one grid."""
    base = root(group[0][1])
    arrays = [array for _, array in group]
    if not base.flags.c_contiguous:
        return
    if any(root(a) is not base or a.dtype != base.dtype or not is_native(a) or not a.size for a in arrays):
        return
    found = next((f for shape in _grids(base, arrays) if (f := _boxes(base, shape, arrays))), None)
    if found is None:
        return
    shape, boxes = found
    host, slots = recording.host, tuple(slot for slot, _ in group)
    for slot, array in group:
        host.require_array(slot, array)
    shared = host.compute(root, slots[:1], f"the memory of {host.name(slots[0])}")
    places = host.compute(_places, (shared, *slots))
    host.require(places, _places(base, *arrays))
    grid = call(np.reshape, lift(base, shared), shape)
    for (slot, array), box in zip(group, boxes):
        tracer = box.of(grid)
        tracer.writeable = array.flags.writeable
        if tracer.writeable:
            host.require_writeable(slot)
        recording.parts[slot] = recording.lifted.setdefault(id(array), tracer)


def _places(base: Array, *arrays: Array) -> tuple[int, ...]:
    """Where arrays begin in the memory that they share.

    Raises:
        ValueError: they do not share it.
    """
    if any(root(a) is not base for a in arrays):
        raise ValueError("another owner")
    start = base.__array_interface__["data"][0]
    return tuple(a.__array_interface__["data"][0] - start for a in arrays)


def _grids(base: Array, arrays: Sequence[Array]) -> Iterator[tuple[int, ...]]:
    """Shapes that the owner may be seen in: its own, and with rows as each view has them."""
    yield base.shape
    for array in arrays:
        strides = sorted({abs(s) // array.itemsize for s, n in zip(array.strides, array.shape) if n > 1} | {1}, reverse=True)
        if 0 not in strides and base.size % strides[0] == 0 and all(a % b == 0 for a, b in pairwise(strides)):
            yield (base.size // strides[0], *(a // b for a, b in pairwise(strides)))


def _boxes(base: Array, shape: tuple[int, ...], arrays: Sequence[Array]) -> tuple[tuple[int, ...], list[Box]] | None:
    grid = base.reshape(shape)
    boxes = [_box(grid, array) for array in arrays]
    return (shape, [b for b in boxes if b is not None]) if None not in boxes else None


def _box(grid: Array, array: Array) -> Box | None:
    """Where in the grid an array lies; None if nowhere."""
    (offset,) = _places(root(grid), array)
    starts = [int(n) for n in np.unravel_index(offset // grid.itemsize, grid.shape)] if offset % grid.itemsize == 0 else []
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
    return box if starts and same_view(_normal(box.of(grid)), _normal(array)) else None


def _fits(grid: Array, axis: int, start: int, n: int, stride: int) -> bool:
    if stride == 0 or stride % grid.strides[axis]:
        return False
    return 0 <= start + (n - 1) * (stride // grid.strides[axis]) < grid.shape[axis]


def _normal(array: Array) -> Array:
    """Without axes of length 1, whose strides mean nothing."""
    return array.squeeze()
