"""Schedules of many tiny reductions: written out, side by side in the lanes of vectors."""

from __future__ import annotations

from jitml.codegen.llvm.schedule.pointwise import SHORT_ROW, share
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.reduction_passes import passes_of
from jitml.kernels.schedule import Primitive, Unroll

MOST_UNROLLED = 64  # points of a loop's body that are written out


def is_tiny_inside(nest: GroupNest) -> bool:
    """Whether each step of the first loop is a handful of short sums (3 by 3 products): too short for vectors."""
    if not nest.outer or not nest.inner or len(passes_of(nest)[0]) > 1:
        return False
    first, *rest = nest.outer
    short = all(isinstance(axis.size, int) and nest.extent(axis) <= SHORT_ROW for axis in (*rest, *nest.inner))
    return bool(rest) and short and nest.extent(first) > SHORT_ROW and nest.size(nest.axes) <= MOST_UNROLLED * nest.extent(first)


def schedule_tiny(nest: GroupNest) -> list[Primitive]:
    """One loop, and inside it straight code."""
    first, *rest = nest.outer
    shared = [share(nest, first)] if nest.time > nest.target.cost.parallel_ns else []
    return [*shared, *(Unroll(axis.name) for axis in (*rest, *nest.inner))]
