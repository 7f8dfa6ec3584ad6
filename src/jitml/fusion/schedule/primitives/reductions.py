"""Reductions as primitives: `rfactor`, for partial results, and `stage cells`, which keeps results for a second loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from jitml.fusion.schedule.nest import chunk_count, chunk_stop, least
from jitml.fusion.schedule.primitives.order import require_any_order, require_new, require_whole
from jitml.fusion.schedule.tree import (
    Body,
    ComputePoint,
    LoopTree,
    Misfit,
    Scratch,
    TreeLoop,
    TreeNode,
    cells,
    chain,
    changed,
    named,
    names,
    nested,
    updated,
    with_loops,
)
from jitml.kernels.analysis.substitution import another
from jitml.kernels.ir import Buffer, Cell, Const, Load, Store, Update, Var, add, is_ordered, mul
from jitml.kernels.schedule import RFactor, StageCells


def rfactor(tree: LoopTree, p: RFactor) -> LoopTree:
    """Give the reductions in a loop partial results, in one of four places: see `RFactor`."""
    for loop in named(p.loop, tree):
        require_whole(loop)
    if p.outer:
        require_new(tree, p.outer)
        if p.block < 1:
            raise Misfit(f"blocks of {p.block} iterations are none")
    elif p.across or p.scope:
        raise Misfit("which blocks? It is written: rfactor j 1024 -> jb ...")
    if p.scope and (p.across or p.scope != "memory"):
        raise Misfit(f"partial results lie in memory, or across a loop, not in {p.scope}")
    return _in_memory(tree, p) if p.scope else _across(tree, p) if p.across else _in_cells(tree, p)


def _in_cells(tree: LoopTree, p: RFactor) -> LoopTree:
    """for j { s += x }  ->  for jb { cell sb; for j in jb:jb+n { sb += x }; s += sb }

    What is combined in order stays in the cell that it has.
    """
    known, taken = cells(tree), names(tree)
    if not any(updated(loop.body) for loop in named(p.loop, tree)):
        raise Misfit(f"{p.loop} adds nothing up", named(p.loop, tree)[0])

    def factored(loop: TreeLoop) -> Body:
        combines = updated(loop.body)
        if not combines:
            return (loop,)
        apart = {
            name: another(f"{name}b", taken) for name, how in combines.items() if not is_ordered(how, known[name].init.dtype)
        }
        inner = loop
        if p.outer:
            most, multiple = min(p.block, loop.most), gcd(p.block, loop.divisor)
            stop = least(add(Var(p.outer), p.block), loop.stop)
            inner = replace(loop, start=Var(p.outer), stop=stop, most=most, multiple=multiple)
        inner = replace(inner, body=_renamed(inner.body, apart))
        own = (Cell(new, known[name].init) for name, new in apart.items())
        totals = (Update(name, Var(new, known[name].init.dtype), combines[name]) for name, new in apart.items())
        body: Body = (*own, inner, *totals)
        return (replace(loop, index=p.outer, step=p.block, body=body),) if p.outer else body

    return with_loops(tree, p.loop, factored)


def _renamed(body: Body, new: dict[str, str]) -> Body:
    """A body that updates other cells."""
    result: list[TreeNode] = []
    for node in body:
        match node:
            case TreeLoop():
                node = replace(node, body=_renamed(node.body, new))
            case ComputePoint():
                node = replace(node, updates=tuple(replace(u, cell=new.get(u.cell, u.cell)) for u in node.updates))
            case Update(cell):
                node = replace(node, cell=new.get(cell, cell))
        result.append(node)
    return tuple(result)


def _only_row(tree: LoopTree, p: RFactor) -> tuple[list[TreeLoop], list[Cell], TreeLoop, Body]:
    """The loops around a row, its cells, its loop and what follows it, if one pass over a row is all that there is."""
    (loop,) = found if len(found := named(p.loop, tree)) == 1 else [None]
    around = chain(tree.body[0]) if len(tree.body) == 1 and isinstance(tree.body[0], TreeLoop) else []
    while around and loop is not None and any(link is loop for link in around):
        around.pop()
    row = around[-1].body if around else tree.body
    first = [node for node in row if isinstance(node, Cell)]
    rest = row[len(first) :]
    if loop is None or not rest or rest[0] is not loop or not _is_pass(first, loop, rest[1:]):
        raise Misfit(f"{p.loop} is not the one pass over a row", named(p.loop, tree)[0])
    return around, first, loop, rest[1:]


def _is_pass(own: Sequence[Cell], loop: TreeLoop, rest: Body) -> bool:
    """Whether a loop makes all reductions of a row, which begins with their cells, and no other loop follows."""
    return bool(own) and {cell.name for cell in own} == {*updated(loop.body)} and not any(isinstance(x, TreeLoop) for x in rest)


def _in_memory(tree: LoopTree, p: RFactor) -> LoopTree:
    """for i { cell s; for j { s += x }; use s }  ->
    for c { for i { cell s; for j in chunk c { s += x }; t[c, i] = s } }; for i { cell s; for c { s += t[c, i] }; use s }
    """
    around, own, loop, rest = _only_row(tree, p)
    for outer in around:
        require_whole(outer)
    require_any_order(loop, tree)
    if not isinstance(loop.start, Const) or not all(isinstance(outer.start, Const) for outer in around):
        raise Misfit(f"{loop.index} is a part of a loop already", loop)
    combines = updated(loop.body)
    c, most = Var(p.outer), -(-loop.most // p.block)
    count = chunk_count(p.block, loop.start, loop.stop)
    buffers = [Buffer(f"partial{n}", cell.init.dtype, (most, *(x.most for x in around))) for n, cell in enumerate(own)]
    at = (c, *(Var(outer.index) - outer.start for outer in around))
    start = add(mul(c, p.block), loop.start)
    stop = chunk_stop(start, p.block, loop.start, loop.stop)
    multiple = gcd(p.block, loop.divisor)
    chunk = replace(loop, start=start, stop=stop, most=min(p.block, loop.most), end=loop.stop, multiple=multiple)
    kept = tuple(Store(b.name, at, Var(cell.name, b.dtype)) for cell, b in zip(own, buffers))
    totals = tuple(Update(cell.name, Load(b.name, at, b.dtype), combines[cell.name]) for cell, b in zip(own, buffers))
    over = TreeLoop(p.outer, Const(0), count, 1, most, ())
    first = replace(over, body=nested(around, (*own, chunk, *kept)))
    second = nested(around, (*own, replace(over, body=totals), *rest))
    return LoopTree((*(Scratch(b, "memory") for b in buffers), first, *second))


def _across(tree: LoopTree, p: RFactor) -> LoopTree:
    """for i { cell s; for j { s += x }; use s }  ->
    for i { t[i] = 0 }; for jb { for i { cell s; for j in jb:jb+n { s += x }; t[i] += s } }; for i { cell s = t[i]; use s }

    Where the one use is to store s in memory, that is t.
    """
    (columns,) = found if len(found := named(p.across, tree)) == 1 else [named(p.across, tree)[0]]
    require_whole(columns)
    own = [node for node in columns.body if isinstance(node, Cell)]
    loop, *rest = columns.body[len(own) :] or (None,)
    if not isinstance(loop, TreeLoop) or loop.index != p.loop or not _is_pass(own, loop, tuple(rest)):
        raise Misfit(f"{p.loop} is not the one pass that {columns.index} makes over a row", columns)
    partial = {node.value: node for node in rest if isinstance(node, Store)}
    is_home = len(partial) == len(rest) == len(own) and all(Var(cell.name, cell.init.dtype) in partial for cell in own)
    homes = [partial[Var(cell.name, cell.init.dtype)] for cell in own] if is_home else []
    scratch: list[Scratch] = []
    if not is_home:
        extent = add(columns.start, columns.most)
        if not isinstance(extent, Const) or any(isinstance(node, Store) for node in rest):
            raise Misfit(f"{columns.index} is a part of a loop already", columns)
        scratch = [Scratch(Buffer(f"row{n}", cell.init.dtype, (int(extent.value),))) for n, cell in enumerate(own)]
        homes = [Store(s.buffer.name, (Var(columns.index),), Const(0)) for s in scratch]
    body = _row_blocks(columns, own, loop, homes, p)
    if not is_home:
        recalled = (replace(cell, init=Load(home.buffer, home.at, cell.init.dtype)) for cell, home in zip(own, homes))
        body = (*scratch, *body, replace(columns, body=(*recalled, *rest)))
    return LoopTree(changed(tree.body, lambda node: body if node is columns else None))


def _row_blocks(columns: TreeLoop, own: Sequence[Cell], loop: TreeLoop, homes: Sequence[Store], p: RFactor) -> Body:
    """Blocks of rows, added up in registers and then to what lies at home."""
    combines = updated(loop.body)
    ordered = {cell.name for cell in own if is_ordered(combines[cell.name], cell.init.dtype)}
    starts = tuple(replace(home, value=cell.init) for cell, home in zip(own, homes))
    inits = (
        replace(cell, init=Load(home.buffer, home.at, cell.init.dtype)) if cell.name in ordered else cell
        for cell, home in zip(own, homes)
    )
    sums = (
        replace(home, value=Var(cell.name, cell.init.dtype), combine=None if cell.name in ordered else combines[cell.name])
        for cell, home in zip(own, homes)
    )
    # Of a chunk that is made of whole blocks, only the last one may end before its blocks do.
    end = loop.stop if loop.end is None or loop.most % p.block else loop.end
    stop = least(add(Var(p.outer), p.block), end)
    block = replace(loop, start=Var(p.outer), stop=stop, most=min(p.block, loop.most), end=None, multiple=1)
    rows = replace(columns, body=(*inits, block, *sums))
    return (replace(columns, body=starts), replace(loop, index=p.outer, step=p.block, body=(rows,)))


def stage_cells(tree: LoopTree, p: StageCells) -> LoopTree:
    """for ib { for i { row; use s } }  ->  for ib { for i { row; t[i - ib] = s }; for i { cell s = t[i - ib]; use s } }"""

    def staged(outer: TreeLoop) -> Body:
        loop = outer.body[0]
        if len(outer.body) > 1 or not isinstance(loop, TreeLoop) or loop.kind != "serial" or loop.start != Var(outer.index):
            raise Misfit(f"{outer.index} is no loop over pieces of another, which is all that it holds", outer)
        last = max((k for k, node in enumerate(loop.body) if updated((node,))), default=-1)
        row, rest = loop.body[: last + 1], loop.body[last + 1 :]
        own = [node for node in row if isinstance(node, Cell)]
        if not own or not rest or not all(isinstance(node, ComputePoint) for node in rest):
            raise Misfit(f"nothing is made of the reductions of {loop.index} after all of them", loop)
        buffers = [Buffer(f"sums{n}", cell.init.dtype, (outer.step,)) for n, cell in enumerate(own)]
        at = (Var(loop.index) - Var(outer.index),)
        kept = (Store(b.name, at, Var(cell.name, b.dtype)) for cell, b in zip(own, buffers))
        back = (Cell(cell.name, Load(b.name, at, b.dtype)) for cell, b in zip(own, buffers))
        memory = [Scratch(b) for b in buffers]
        body: Body = (*memory, replace(loop, body=(*row, *kept)), replace(loop, body=(*back, *rest)))
        return (replace(outer, body=body),)

    return with_loops(tree, p.outer, staged)
