"""Reduction passes: in how many passes over a row can a group's reductions be had?  One per dependence: softmax takes three."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jitml.fusion.grouping.scalarize import Reduced, Stored
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.ir import Const, Expr, Kind, Let, Load, Store, Update, Var, is_ordered, variables_of, walk_expression


@dataclass(frozen=True, slots=True)
class Pass:
    """One loop over a row: what can be done once the reductions of the passes before are known."""

    reductions: tuple[Reduced, ...]
    stores: tuple[Stored, ...]


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


def in_order(r: Reduced) -> bool:
    """Whether its elements are combined one after the other."""
    return is_ordered(REDUCTIONS[r.node.op].combine, r.dtype)


def write_pass_at_point(
    nest: GroupNest, step: Pass, staged: Sequence[Scalar], homes: Sequence[tuple[str, tuple[Expr, ...]]], cells: Sequence[str]
) -> None:
    w = nest.writer
    values = w.values([*staged, *(r.operand for r in step.reductions), *(s.scalar for s in step.stores)])
    kept = {store.buffer for store in step.stores}
    for (buffer, at), value in zip(homes, values):
        if buffer not in kept:
            w.add(Store(buffer, at, value))
    values = values[len(staged) :]
    for r, c, value in zip(step.reductions, cells, values):
        w.add(Update(c, value, REDUCTIONS[r.node.op].combine))
    for store, value in zip(step.stores, _before_overwritten(nest, step.stores, values[len(cells) :])):
        w.store(store.buffer, store.at, value)


def _before_overwritten(nest: GroupNest, stores: Sequence[Stored], values: Sequence[Expr]) -> list[Expr]:
    """The values to store; one that reads what waits in the output of an earlier store is named ahead of them all."""
    w, written, result = nest.writer, set[str](), []
    for store, value in zip(stores, values):
        if any(isinstance(e, Load) and e.buffer in written for e in walk_expression(value)):
            name = w.fresh()
            w.add(Let(name, value))
            value = Var(name, store.scalar.dtype)
        written.add(store.buffer)
        result.append(value)
    return result


def write_updates(nest: GroupNest, step: Pass) -> None:
    write_pass_at_point(nest, step, (), (), [r.cell for r in step.reductions])


def write_sum_of_partials(nest: GroupNest, partial: Sequence[str], count: Expr, at: tuple[Expr, ...], kind: Kind) -> None:
    w = nest.writer
    for r in nest.points.reductions:
        w.cell(r.cell, identity(r))
    with w.loop("c0", 0, count, kind) as c:
        for r, buffer in zip(nest.points.reductions, partial):
            w.add(Update(r.cell, Load(buffer, (c, *at), r.dtype), REDUCTIONS[r.node.op].combine))
