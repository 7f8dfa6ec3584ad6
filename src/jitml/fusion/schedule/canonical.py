"""Canonical loops: all serial, in the order of the group's axes, with one pass over a row for each dependence."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.fusion.grouping.scalarize import Reduced
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.schedule.memory_views import Axis
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.reduction_passes import identity, passes_of
from jitml.fusion.schedule.tree import Accumulate, Body, ComputePoint, LoopTree, TreeLoop, TreeNode, nested
from jitml.kernels.ir import Cell


def canonical(nest: GroupNest) -> LoopTree:
    """The loops of one box before anything is decided about them."""
    if not nest.points.reductions:
        return LoopTree(nested(_whole(nest, nest.axes), (ComputePoint((), tuple(nest.stored)),)))
    passes, per_row = passes_of(nest)
    row: list[TreeNode] = []
    for step in passes:
        row += [Cell(r.cell, identity(r)) for r in step.reductions]
        updates = tuple(map(_accumulate, step.reductions))
        row += nested(_whole(nest, nest.inner), (ComputePoint(updates, nest.names_of(step.stores)),))
    if per_row:
        row.append(ComputePoint((), nest.names_of(per_row)))
    return LoopTree(nested(_whole(nest, nest.outer), tuple(row)))


def _accumulate(r: Reduced) -> Accumulate:
    return Accumulate(r.cell, r.cell, REDUCTIONS[r.node.op].combine)


def _whole(nest: GroupNest, axes: Sequence[Axis]) -> list[TreeLoop]:
    body: Body = ()
    return [TreeLoop(axis.name, *nest.span(axis), 1, nest.extent(axis), body) for axis in axes]
