"""Which schedule suits a group, on a processor with vectors, caches and a few cores."""

from __future__ import annotations

from jitml.fusion.schedule.columns import runs_down_columns, schedule_columns
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.pointwise import schedule_points
from jitml.fusion.schedule.rows import schedule_rows
from jitml.fusion.schedule.tiny import is_tiny_inside, schedule_tiny
from jitml.kernels.schedule import Primitive


def choose(nest: GroupNest) -> tuple[Primitive, ...]:
    """The schedule of one box of a group."""
    if not nest.points.reductions:
        return tuple(schedule_points(nest))
    if is_tiny_inside(nest):
        return tuple(schedule_tiny(nest))
    if runs_down_columns(nest):
        return tuple(schedule_columns(nest))
    return tuple(schedule_rows(nest))
