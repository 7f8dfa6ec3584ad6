"""Schedules of pointwise loops: threads along what is stored, each with a few whole vectors of it."""

from __future__ import annotations

from jitml.codegen.cuda.schedule.spread import lanes, spans, spread
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.schedule import BindLoop, Primitive


def schedule_points(nest: GroupNest) -> list[Primitive]:
    if not nest.axes:
        return []
    last = nest.axes[-1]
    if not nest.is_apart:
        return [BindLoop(last.name, "thread")]
    return spread(spans(nest, nest.axes), lanes(nest, last, alone=len(nest.axes) == 1))
