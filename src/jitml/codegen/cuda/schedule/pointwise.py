"""Schedules of pointwise loops: threads along what is stored, each with a few whole vectors of it.

Where something is read that lies turned around, blocks take tiles: a warp reads rows of it into memory that its threads share,
and reads that in columns. Rows of a tile have an odd length, so that both ways each bank has one lane.
"""

from __future__ import annotations

from jitml.codegen.cuda.schedule.spread import NEIGHBOURS, lanes, spans, spread
from jitml.codegen.cuda.target import WARP
from jitml.fusion.schedule.memory_views import Axis
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.schedule import BindLoop, Primitive, Reorder, Split, StageAhead

TILE = WARP  # elements on each side, so that a row of a tile is a lane's for each lane
TILE_BYTES = 34 << 10  # of the tiles of one block, so that some blocks fit on a processor
LEAST_TURNED = 8  # elements along an axis for which it matters how they lie


def schedule_points(nest: GroupNest) -> list[Primitive]:
    if not nest.axes:
        return []
    last = nest.axes[-1]
    if not nest.is_apart:
        return [BindLoop(last.name, "thread")]
    partner = _turned_with(nest)
    if partner is not None:
        return _tiles(nest, partner)
    return spread(spans(nest, nest.axes), lanes(nest, last, alone=len(nest.axes) == 1))


def _turned_with(nest: GroupNest) -> Axis | None:
    """The axis along which some load is contiguous while the last axis, along which is stored, jumps."""
    last = nest.axes[-1]
    stores = [nest.views.steps(s.buffer, s.at) or {} for s in nest.points.stores]
    if not all(steps.get(last.name) in NEIGHBOURS for steps in stores) or nest.extent(last) < LEAST_TURNED:
        return None
    for axis in nest.axes[:-1]:
        if nest.extent(axis) >= LEAST_TURNED and _turned(nest, axis):
            return axis
    return None


def _turned(nest: GroupNest, partner: Axis) -> list[str]:
    """The loads that are contiguous along an axis, and not along the last one; as many as have a tile."""
    last, room, found = nest.axes[-1].name, TILE_BYTES, []
    for name, load in nest.stageable.items():
        steps = nest.views.steps(load.value, load.places) if load.kind == "load" else None
        if steps is not None and steps.get(last, 0) not in (0, *NEIGHBOURS) and steps.get(partner.name) in NEIGHBOURS:
            room -= TILE * (TILE + 1) * load.dtype.itemsize
            found += [name] if room >= 0 else []
    return found


def _tiles(nest: GroupNest, partner: Axis) -> list[Primitive]:
    """Blocks of one warp take tiles: its lanes are columns of what is read, and then of what is stored."""
    last = nest.axes[-1]
    columns, rows = f"{last.name}b", f"{partner.name}b"
    blocks = [*(axis.name for axis in nest.axes if axis not in (partner, last)), rows, columns]
    turned = _turned(nest, partner)
    return [
        Split(last.name, TILE, columns),
        Split(partner.name, TILE, rows),
        Reorder((*blocks, last.name, partner.name)),
        *(StageAhead(name, (partner.name, last.name)) for name in turned),
        *(BindLoop(name, "block") for name in blocks),
        *(BindLoop(f"{partner.name}.{n}", "thread") for n in range(len(turned))),
        BindLoop(f"{last.name}.{len(turned)}", "thread"),
    ]
