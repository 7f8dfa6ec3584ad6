"""Reduction passes: in how many passes over a row can a group's reductions be had?  One per dependence: softmax takes three."""

from __future__ import annotations

from collections.abc import Mapping

from jitml.fusion.grouping.scalarize import Reduced, Stored
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.ir import Const, is_ordered, variables_of
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class Pass:
    """One loop over a row: what can be done once the reductions of the passes before are known."""

    reductions: tuple[Reduced, ...]
    stores: tuple[Stored, ...]

    @property
    def roots(self) -> list[Scalar]:
        """What is computed in it."""
        return [r.operand for r in self.reductions] + [s.scalar for s in self.stores]


def passes_of(nest: GroupNest) -> tuple[list[Pass], tuple[Stored, ...]]:
    """The passes over a row, in order, and the stores that happen once per row."""
    inside = {name for axis in nest.inner for name in axis.members}
    cells: dict[str, int] = {}
    levels: dict[Scalar, int] = {}
    for reduced in nest.points.reductions:
        cells[reduced.cell] = 1 + _level(reduced.operand, cells, levels)
    per_row = tuple(s for s in nest.points.stores if not s.scalar.variables & inside and not visits(s, inside))
    stores = [s for s in nest.points.stores if s not in per_row]
    depth = max([*cells.values()] + [1 + _level(s.scalar, cells, levels) for s in stores])
    passes = []
    for k in range(depth):
        reductions = tuple(r for r in nest.points.reductions if cells[r.cell] == k + 1)
        at_k = tuple(s for s in stores if _level(s.scalar, cells, levels) == k)
        if reductions or at_k:
            passes.append(Pass(reductions, at_k))
    return passes, per_row


def visits(store: Stored, inside: set[str]) -> bool:
    return bool(variables_of(*store.at) & inside)


def _level(scalar: Scalar, cells: Mapping[str, int], levels: dict[Scalar, int]) -> int:
    """How many passes must have run before a scalar can be computed."""
    stack = [scalar]
    while stack:
        s = stack[-1]
        missing = [a for a in s.args if a not in levels]
        if missing:
            stack += missing
            continue
        own = cells[s.value] if s.kind == "cell" else 0
        levels[s] = max([own, *(levels[a] for a in s.args)])
        stack.pop()
    return levels[scalar]


def identity(r: Reduced) -> Const:
    return Const(REDUCTIONS[r.node.op].identity(r.dtype), r.dtype)


def rounds(r: Reduced) -> bool:
    """Whether its result depends on how its elements are put together: a sum or product of floats."""
    return r.dtype.kind == "f" and REDUCTIONS[r.node.op].combine in ("add", "mul")


def in_order(r: Reduced) -> bool:
    """Whether its elements are combined one after the other."""
    return is_ordered(REDUCTIONS[r.node.op].combine, r.dtype)
