"""Schedules of many tiny reductions: written out, with the results that lie side by side as lanes of a vector."""

from __future__ import annotations

from jitml.codegen.llvm.schedule.pointwise import SHORT_ROW, share
from jitml.fusion.schedule.memory_views import Axis
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.reduction_passes import passes_of
from jitml.kernels.schedule import Primitive, Unroll, Vector

MOST_UNROLLED = 64  # points of a loop's body that are written out


def is_tiny_inside(nest: GroupNest) -> bool:
    """Whether each step of the first loop is a handful of short sums (3 by 3 products): too short for vectors."""
    if not nest.outer or not nest.inner or len(passes_of(nest)[0]) > 1:
        return False
    first, *rest = nest.outer
    short = all(isinstance(axis.size, int) and nest.extent(axis) <= SHORT_ROW for axis in (*rest, *nest.inner))
    return bool(rest) and short and nest.extent(first) > SHORT_ROW and nest.size(nest.axes) <= MOST_UNROLLED * nest.extent(first)


def schedule_tiny(nest: GroupNest) -> list[Primitive]:
    """One loop, and inside it straight code: of vectors if the results of a row and what they are made of lie side by side."""
    first, *rest = nest.outer
    last = rest[-1]
    shared = [share(nest, first)] if nest.time > nest.target.cost.parallel_ns else []
    marks = [
        Vector(last.name) if axis is last and _are_neighbours(nest, last) else Unroll(axis.name) for axis in (*rest, *nest.inner)
    ]
    return [*shared, *marks]


def _are_neighbours(nest: GroupNest, axis: Axis) -> bool:
    """Whether each store goes to the next element along an axis, and each load does that or stays where it is."""
    stores = [nest.views.steps(s.buffer, s.at) for s in nest.points.stores]
    return all(steps is not None and steps.get(axis.name) == 1 for steps in stores) and all(
        steps is not None and steps.get(axis.name, 0) in (0, 1) for steps in nest.load_steps()
    )
