"""Schedules of pointwise loops: threads along what is stored, each with a few whole vectors of it.

Where something is read that lies turned around, threads go along that, and each of them stores a piece of a row: what a warp
reads at a time are neighbours, and what a thread stores are whole sectors of memory.
"""

from __future__ import annotations

from jitml.codegen.cuda.schedule.spread import lanes, spans, spread
from jitml.codegen.cuda.target import THREADS, WARP
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.views import Axis
from jitml.kernels.schedule import BindLoop, Primitive, Reorder, Split, Vector

SECTOR = 32  # bytes that memory hands over at least


def schedule_points(nest: GroupNest) -> list[Primitive]:
    if not nest.axes:
        return []
    last = nest.axes[-1]
    if not nest.is_apart:
        return [BindLoop(last.name, "thread")]
    partner = _turned_with(nest)
    if partner is not None:
        return _turned(nest, partner)
    return spread(spans(nest, nest.axes), lanes(nest, last, alone=len(nest.axes) == 1))


def _turned_with(nest: GroupNest) -> Axis | None:
    """The axis along which some load is contiguous while the last axis, along which is stored, jumps."""
    last = nest.axes[-1]
    stores = [nest.views.steps(s.buffer, s.at) or {} for s in nest.points.stores]
    if not all(steps.get(last.name) == 1 for steps in stores) or nest.extent(last) < 2:
        return None
    for steps in nest.load_steps():
        if steps is not None and steps.get(last.name, 0) not in (0, 1):
            for axis in nest.axes[:-1]:
                if steps.get(axis.name) == 1 and nest.extent(axis) >= WARP:
                    return axis
    return None


def _turned(nest: GroupNest, partner: Axis) -> list[Primitive]:
    last = nest.axes[-1]
    widest = max(s.scalar.dtype.itemsize for s in nest.points.stores)
    piece, rows = f"{last.name}v", f"{partner.name}b"
    others = [axis.name for axis in nest.axes if axis not in (partner, last)]
    blocks = [*others, rows, piece]
    return [
        Split(last.name, max(2, SECTOR // widest), piece),
        Split(partner.name, THREADS, rows),
        Reorder((*blocks, partner.name, last.name)),
        *(BindLoop(name, "block") for name in blocks),
        BindLoop(partner.name, "thread"),
        Vector(last.name),
    ]
