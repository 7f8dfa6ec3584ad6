"""Schedule primitives: each takes a loop tree and returns another that computes the same, or says why it does not fit."""

from __future__ import annotations

from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.primitives.kinds import jam, mark
from jitml.fusion.schedule.primitives.legality import require_legal
from jitml.fusion.schedule.primitives.order import fuse, reorder, split
from jitml.fusion.schedule.primitives.reductions import rfactor, stage_cells
from jitml.fusion.schedule.primitives.staging import inline, stage, stage_ahead
from jitml.fusion.schedule.tree import LoopTree
from jitml.kernels.schedule import (
    BindLoop,
    Fuse,
    Inline,
    Jam,
    Parallel,
    Primitive,
    Reorder,
    RFactor,
    Split,
    Stage,
    StageAhead,
    StageCells,
    Unroll,
    Vector,
)


def apply(tree: LoopTree, primitive: Primitive, nest: GroupNest) -> LoopTree:
    """
    Raises:
        Misfit: the primitive does not fit the loops.
    """
    result = _applied(tree, primitive, nest)
    require_legal(result)
    return result


def _applied(tree: LoopTree, primitive: Primitive, nest: GroupNest) -> LoopTree:
    match primitive:
        case Split():
            return split(tree, primitive)
        case Fuse():
            return fuse(tree, primitive)
        case Reorder():
            return reorder(tree, primitive)
        case Parallel() | BindLoop() | Vector() | Unroll():
            return mark(tree, primitive)
        case RFactor():
            return rfactor(tree, primitive)
        case Stage():
            return stage(tree, primitive, nest)
        case StageAhead():
            return stage_ahead(tree, primitive, nest)
        case StageCells():
            return stage_cells(tree, primitive)
        case Inline():
            return inline(tree, primitive)
        case Jam():
            return jam(tree, primitive)
