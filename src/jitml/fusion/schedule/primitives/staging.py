"""Staging as a primitive: what several passes over a row need is kept in memory (`stage`), or computed again (`inline`)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from jitml.fusion.grouping.scalarize import Stored
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest, all_scalars, reachable
from jitml.fusion.schedule.passes import visits
from jitml.fusion.schedule.tree import (
    Body,
    ComputePoint,
    Home,
    LoopTree,
    Misfit,
    Recall,
    Scratch,
    TreeLoop,
    TreeNode,
    names,
    nodes,
    with_block,
)
from jitml.kernels.ir import Buffer, Var
from jitml.kernels.schedule import Inline, Stage


def stage(tree: LoopTree, p: Stage, nest: GroupNest) -> LoopTree:
    """for j { s += x }; for j { y = x / s }  ->  for j { h[j] = x; s += h[j] }; for j { y = h[j] / s }

    The home is an output that is stored no earlier than the scalar is read for the last time, or `row`: scratch.
    """
    scalar = nest.stageable.get(p.scalar)
    if scalar is None:
        raise Misfit(f"no scalar is called {p.scalar}; there are {nest.describe_scalars() or 'none'}")
    if not any(scalar.variables & {*axis.members} for axis in nest.inner):
        raise Misfit(f"{p.scalar} is the same all along a row: it waits in a register")
    row = _row_with(tree.body, scalar, nest)
    makers = [k for k, node in enumerate(row) if _makes(node, scalar, nest)]
    if len(makers) < 2 or not all(isinstance(row[k], TreeLoop) for k in makers):
        raise Misfit(f"there are no two passes over a row that make {p.scalar}")
    if any(isinstance(node, Recall) and node.home.scalar == p.scalar for node in nodes(row)):
        raise Misfit(f"{p.scalar} is staged already")
    first, last = makers[0], makers[-1]
    scratch: tuple[Scratch, ...] = ()
    if p.home == "row":
        number = sum(name.startswith("row") for name in names(tree))
        buffer = Buffer(f"row{number}", scalar.dtype, tuple(axis.extent for axis in nest.inner))
        scratch = (Scratch(buffer),)
        home = Home(p.scalar, buffer.name, tuple(Var(axis.name) for axis in nest.inner))
    else:
        store = _require_home(p, scalar, nest, row, first, last)
        at = tuple(e for e in nest.views.at(store.buffer, store.at) if e is not None)
        home = Home(p.scalar, store.buffer, at)
    kept = _with_home(row[first : first + 1], home, scalar, nest)
    new = (*row[:first], *scratch, *kept, Recall(home), *row[first + 1 :])
    return LoopTree(with_block(tree.body, row, new))


def _require_home(p: Stage, scalar: Scalar, nest: GroupNest, row: Body, first: int, last: int) -> Stored:
    """The output that a scalar is to wait in."""
    store = nest.stored.get(p.home)
    if store is None:
        raise Misfit(f"{p.home} is no output and no row of scratch; there are {', '.join((*nest.stored, 'row'))}")
    at = next((k for k, node in enumerate(row) if p.home in _stored_in((node,))), -1)
    if store.scalar is scalar and at == first:
        return store
    inside = {name for axis in nest.inner for name in axis.members}
    if store.scalar.dtype != scalar.dtype or not visits(store, inside):
        raise Misfit(f"{p.home} has no place for each {p.scalar}")
    if at < last:
        raise Misfit(f"{p.home} is stored before {p.scalar} is read for the last time")
    if store.buffer in {s.value for s in all_scalars(nest.points) if s.kind == "load"}:
        raise Misfit(f"{p.home} is read by the kernel itself")
    if any(isinstance(node, Recall) and node.home.buffer == store.buffer for node in nodes(row)):
        raise Misfit(f"another scalar waits in {p.home}")
    return store


def _row_with(body: Body, scalar: Scalar, nest: GroupNest) -> Body:
    """The innermost block in which all passes stand that make a scalar."""
    while True:
        makers = [node for node in body if _makes(node, scalar, nest)]
        if len(makers) != 1 or not isinstance(makers[0], TreeLoop):
            return body
        body = makers[0].body


def _makes(node: TreeNode, scalar: Scalar, nest: GroupNest) -> bool:
    points = [point for point in nodes((node,)) if isinstance(point, ComputePoint)]
    return any(scalar in reachable(_roots(point, nest)) for point in points)


def _roots(point: ComputePoint, nest: GroupNest) -> list[Scalar]:
    return [nest.reductions[u.of].operand for u in point.updates] + [nest.stored[name].scalar for name in point.stores]


def _stored_in(body: Sequence[TreeNode]) -> Container[str]:
    return {name for node in nodes(body) if isinstance(node, ComputePoint) for name in node.stores}


def _with_home(body: Body, home: Home, scalar: Scalar, nest: GroupNest) -> Body:
    result: list[TreeNode] = []
    for node in body:
        match node:
            case TreeLoop():
                node = replace(node, body=_with_home(node.body, home, scalar, nest))
            case ComputePoint() if _makes(node, scalar, nest):
                node = replace(node, staged=(*node.staged, home))
        result.append(node)
    return tuple(result)


def inline(tree: LoopTree, p: Inline) -> LoopTree:
    """for j { h[j] = x; s += h[j] }; for j { y = h[j] / s }  ->  for j { s += x }; for j { y = x / s }"""
    homes = {node.home.buffer for node in nodes(tree.body) if isinstance(node, Recall) and node.home.scalar == p.scalar}
    if not homes:
        raise Misfit(f"{p.scalar} is not staged")

    def without(body: Body) -> Body:
        kept: list[TreeNode] = []
        for node in body:
            match node:
                case TreeLoop():
                    kept.append(replace(node, body=without(node.body)))
                case ComputePoint():
                    kept.append(replace(node, staged=tuple(h for h in node.staged if h.scalar != p.scalar)))
                case Recall(home) if home.scalar == p.scalar:
                    pass
                case Scratch(buffer) if buffer.name in homes:
                    pass
                case _:
                    kept.append(node)
        return tuple(kept)

    return LoopTree(without(tree.body))
