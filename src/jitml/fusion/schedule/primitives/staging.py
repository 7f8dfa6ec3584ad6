"""Staging as a primitive: what several passes over a row need is kept in memory (`stage`), or computed again (`inline`)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from jitml.fusion.grouping.scalarize import Stored
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest, all_scalars, reachable
from jitml.fusion.schedule.reduction_passes import visits
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
    chain,
    changed,
    loops,
    names,
    nested,
    nodes,
    with_block,
)
from jitml.kernels.ir import Buffer, Var, sub, variables_of
from jitml.kernels.schedule import Inline, Stage, StageAhead


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


def stage_ahead(tree: LoopTree, p: StageAhead, nest: GroupNest) -> LoopTree:
    """for i { for j { y = x } }  ->  for j { for i { h[j, i] = x } }; for i { for j { y = h[j, i] } }

    Rows of h have an odd length, as columns then lie in all banks of memory.
    """
    scalar = nest.stageable.get(p.scalar)
    if scalar is None:
        raise Misfit(f"no scalar is called {p.scalar}; there are {nest.describe_scalars() or 'none'}")
    outer = _loops_of(tree, p)
    inside = {loop.index: loop for loop in outer}
    over = [replace(inside[name], kind="serial", body=()) for name in p.loops]
    if any(variables_of(loop.start, loop.stop) & inside.keys() for loop in over):
        raise Misfit(f"the limits of {' '.join(p.loops)} depend on each other", outer[0])
    number = sum(name.startswith("tile") for name in names(tree))
    *rows, row = (loop.most for loop in over)
    shape = (*rows, row | 1)
    buffer = Buffer(f"tile{number}", scalar.dtype, shape)
    home = Home(p.scalar, buffer.name, tuple(sub(Var(loop.index), loop.start) for loop in over))
    made = nested(over, (ComputePoint((), (), (home,)),))
    return LoopTree(_with_loop(tree.body, outer[0], (Scratch(buffer), *made, Recall(home), outer[0])))


def _loops_of(tree: LoopTree, p: StageAhead) -> list[TreeLoop]:
    """The loops that a scalar is to be made ahead of: in each other, around one point that reads it."""
    for loop in loops(tree.body):
        links = chain(loop)
        if {link.index for link in links} != {*p.loops} or len(links) != len(p.loops):
            continue
        if len(links[-1].body) == 1 and isinstance(links[-1].body[0], ComputePoint):
            if any(link.step != 1 or link.kind != "serial" or link.together > 1 for link in links):
                raise Misfit(f"the iterations of {' '.join(p.loops)} are handed out already", loop)
            return links
    raise Misfit(f"{' '.join(p.loops)} are not the innermost loops around a point")


def _with_loop(body: Body, old: TreeLoop, new: Body) -> Body:
    return changed(body, lambda loop: new if loop is old else None)


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
                    inside = without(node.body)
                    kept += [replace(node, body=inside)] if inside else []  # else it was there for that alone
                case ComputePoint():
                    left = replace(node, staged=tuple(h for h in node.staged if h.scalar != p.scalar))
                    kept += [left] if left != ComputePoint((), ()) else []
                case Recall(home) if home.scalar == p.scalar:
                    pass
                case Scratch(buffer) if buffer.name in homes:
                    pass
                case _:
                    kept.append(node)
        return tuple(kept)

    return LoopTree(without(tree.body))
