"""The order of loops as primitives: `split`, `fuse` and `reorder`."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from jitml.fusion.schedule.nest import chunk_stop
from jitml.fusion.schedule.tree import (
    Bind,
    Body,
    LoopTree,
    Misfit,
    TreeLoop,
    cells,
    chain,
    changed,
    named,
    names,
    nested,
    updated,
    with_loops,
)
from jitml.kernels.ir import Const, Var, add, floor_divide, is_ordered, mul, remainder, variables_of
from jitml.kernels.schedule import Fuse, Reorder, Split


def split(tree: LoopTree, p: Split) -> LoopTree:
    """for i in a:b  ->  for io in a:b:n { for i in io:min(io + n, b) }"""
    require_new(tree, p.outer)
    if p.size < 1:
        raise Misfit(f"pieces of {p.size} iterations are none")

    def piece(loop: TreeLoop) -> Body:
        require_whole(loop)
        first = Var(p.outer)
        whole = loop.divisor % p.size == 0
        stop = add(first, p.size) if whole else chunk_stop(first, p.size, loop.start, loop.stop)
        most, multiple = min(p.size, loop.most), 1 if whole else gcd(p.size, loop.divisor)
        inner = replace(loop, start=first, stop=stop, most=most, multiple=multiple)
        return (replace(loop, index=p.outer, step=p.size, body=(inner,)),)

    return with_loops(tree, p.loop, piece)


def fuse(tree: LoopTree, p: Fuse) -> LoopTree:
    """for i in 0:m { for j in 0:n:s }  ->  for f in 0:m*(n/s) { i = f // (n/s); j = f % (n/s) * s }"""
    require_new(tree, p.fused)
    inside = named(p.inner, tree)

    def whole(outer: TreeLoop) -> Body:
        require_whole(outer)
        inner = outer.body[0]
        if len(outer.body) > 1 or not isinstance(inner, TreeLoop) or all(inner is not loop for loop in inside):
            raise Misfit(f"{p.inner} is not all that {outer.index} holds", outer)
        require_whole(replace(inner, step=1))
        if not all(isinstance(x, Const) for x in (outer.start, inner.start, inner.stop)) or inner.most < 1:
            raise Misfit(f"the sizes of {outer.index} and {inner.index} are not known, which a division needs", outer)
        f, n = Var(p.fused), -(-inner.most // inner.step)
        place = add(mul(remainder(f, n), inner.step), inner.start)
        binds = Bind(outer.index, add(floor_divide(f, n), outer.start)), Bind(inner.index, place)
        stop = mul(outer.stop - outer.start, n)
        return (TreeLoop(p.fused, Const(0), stop, 1, outer.most * n, (*binds, *inner.body)),)

    return with_loops(tree, p.outer, whole)


def reorder(tree: LoopTree, p: Reorder) -> LoopTree:
    """for i { for j { body } }  ->  for j { for i { body } }

    Iterations of a group's loops may run in any order, but for products of floats, whose elements come one after the other.
    """
    wanted = {id(loop): name for name in p.loops for loop in named(name, tree)}
    done: set[str] = set()

    def turned(loop: TreeLoop) -> Body | None:
        links = chain(loop)
        places = [k for k, link in enumerate(links) if id(link) in wanted]
        found = {wanted[id(links[k])]: links[k] for k in places}
        if 0 not in places or len(found) < len(p.loops):
            return None
        order = list(links)
        for k, name in zip(places, p.loops):
            order[k] = found[name]
        last = max(places)
        _require_order(order[: last + 1], links[: last + 1], tree)
        done.update(p.loops)
        return nested(order[: last + 1], links[last].body)

    body = changed(tree.body, turned)
    if not done:
        raise Misfit(f"{' '.join(p.loops)} are not loops that hold nothing but each other", named(p.loops[0], tree)[0])
    return LoopTree(body)


def _require_order(order: list[TreeLoop], before: list[TreeLoop], tree: LoopTree) -> None:
    inside: set[str] = set()
    for loop in reversed(order):
        if variables_of(loop.start, loop.stop) & ({loop.index} | inside):
            raise Misfit(f"the limits of {loop.index} depend on a loop that would stand inside it", loop)
        inside.add(loop.index)
    require_any_order(before[0], tree)


def require_any_order(loop: TreeLoop, tree: LoopTree) -> None:
    """Refuse loops that combine elements one after the other, as NumPy does in products of floats."""
    init = cells(tree)
    for cell, combine in updated(loop.body).items():
        if is_ordered(combine, init[cell].init.dtype):
            raise Misfit(f"the product {cell} is taken in the order of {loop.index}", loop)


def require_new(tree: LoopTree, name: str) -> None:
    if name in names(tree):
        raise Misfit(f"the name {name} is taken")


def require_whole(loop: TreeLoop) -> None:
    """Refuse a loop whose iterations are handed out already."""
    if loop.kind != "serial" or loop.step != 1 or loop.together > 1:
        kind = f"is {loop.kind}" if loop.kind != "serial" else f"has steps of {loop.step}"
        raise Misfit(f"{loop.index} {'runs side by side' if loop.together > 1 else kind} already", loop)
