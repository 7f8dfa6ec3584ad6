"""Schedules of pointwise loops: in the order of what they store, in chunks for threads, in tiles where arrays are transposed."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.fusion.schedule.memory_views import Axis
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.schedule import Parallel, Primitive, Reorder, Split, Unroll, Vector

SHORT_ROW = 8  # a row that fills no vector: vectors run across rows, though their loads are strided
TILE = 32  # elements on each side of a tile through which a transposed array is read


def schedule_points(nest: GroupNest) -> list[Primitive]:
    axes = nest.axes
    if not axes:
        return []
    is_shared = nest.time > nest.target.cost.parallel_ns
    partner = _transposed_with(nest)
    if partner is not None:
        return _tiles(nest, partner, is_shared)
    last = axes[-1]
    # Strided stores of neighbours become whole vectors.
    is_tiny = isinstance(last.size, int) and nest.extent(last) <= nest.target.limits.dense_stride
    if len(axes) > 1 and is_tiny and nest.extent(axes[-2]) >= 2 * SHORT_ROW:
        return _across(nest, is_shared)
    if is_shared and (len(axes) == 1 or nest.extent(axes[0]) < 4 * nest.target.limits.cores):
        return _chunks(nest)
    shared = [share(nest, axes[0])] if is_shared and len(axes) > 1 else []
    return [*shared, Vector(last.name)]


def share(nest: GroupNest, axis: Axis) -> Parallel:
    """Threads take steps of an axis."""
    return Parallel(axis.name, nest.grain(axis))


def share_chunks(nest: GroupNest, axis: Axis, size: int, order: Sequence[Axis]) -> list[Primitive]:
    """Threads take chunks of an axis, with the loops over these axes inside."""
    outermost: list[Primitive] = [Reorder(("c0", *(a.name for a in order)))] if order[0] is not axis else []
    return [Split(axis.name, size, "c0"), *outermost, Parallel("c0", nest.grain(axis, size))]


def _chunks(nest: GroupNest) -> list[Primitive]:
    """Threads take chunks of the longest axis, which comes first; the rest runs inside a chunk."""
    longest, last = max(nest.axes, key=nest.extent), nest.axes[-1]
    rest = nest.size(nest.axes) // nest.extent(longest)
    size = max(1 if longest is not last else 512, nest.target.blocks.chunk // rest)
    before = nest.axes[: nest.axes.index(longest)]
    return [*share_chunks(nest, longest, size, [*before, longest]), Vector(last.name)]


def _across(nest: GroupNest, is_shared: bool) -> list[Primitive]:
    """Vectors along the last axis but one; the last, which would fill no vector, is written out inside."""
    *lead, wide, tiny = nest.axes
    found: list[Primitive] = []
    if is_shared and lead:
        found.append(share(nest, lead[0]))
    elif is_shared:
        found += share_chunks(nest, wide, max(512, nest.target.blocks.chunk // nest.extent(tiny)), [wide])
    return [*found, Vector(wide.name), Unroll(tiny.name)]


def _transposed_with(nest: GroupNest) -> Axis | None:
    """The axis along which some load is contiguous while the last axis, along which is stored, jumps."""
    last = nest.axes[-1]
    if nest.extent(last) < TILE:
        return None
    for steps in nest.load_steps():
        if steps is not None and steps.get(last.name, 0) not in (0, 1):
            for axis in nest.axes[:-1]:
                if steps.get(axis.name) == 1 and nest.extent(axis) >= TILE:
                    return axis
    return None


def _tiles(nest: GroupNest, partner: Axis, is_shared: bool) -> list[Primitive]:
    last, rows, columns = nest.axes[-1], f"{partner.name}b", f"{nest.axes[-1].name}b"
    others = [a.name for a in nest.axes if a not in (partner, last)]
    found: list[Primitive] = [
        Split(partner.name, TILE, rows),
        Split(last.name, TILE, columns),
        Reorder((rows, *others, columns, partner.name, last.name)),
    ]
    if is_shared:
        found.append(Parallel(rows, nest.grain(partner, TILE)))
    return [*found, Vector(last.name)]
