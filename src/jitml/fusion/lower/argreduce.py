"""Argument reductions: where is the extreme of a long row?

The extreme of each block, then the first place of the best one in its block alone.

So memory is read once. Short rows, and rows that are computed on the way, have an expansion (`expand.py`) that fuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, sqrt

from jitml.fusion.lower.index_maps import clamped
from jitml.fusion.lower.nests import SERIAL_NS, NestSite, nests
from jitml.fusion.lower.reductions import Reduction
from jitml.ir import ops
from jitml.ir.types import BOOL, DType
from jitml.kernels.ir import Apply, Cell, Combine, Const, Expr, Let, Load, Loop, Stmt, Store, Update, Var, floor_divide

LONG = 512  # elements of rows that are not worth reading twice


@nests.rule(ops.argmax, ops.argmin)
def lower_position(site: NestSite) -> None:
    (x,), out = site.reads, site.out
    axis, most = len(x.shape) - 1, x.shape[-1]
    n, length = site.extent(0, axis), _block(most)
    count, blocks_at_most = floor_divide(n + (length - 1), length), -(-most // length)
    combine: Combine = "max" if site.node.op is ops.argmax else "min"
    row = tuple(Var(f"i{a}") for a in range(axis))
    identity = Const(Reduction(combine).identity(x.dtype), x.dtype)
    block = (
        Cell("s2", identity),
        _elements(Var("b") * length, length, n, (Update("s2", Load(x.name, (*row, Var("i")), x.dtype), combine),)),
    )
    blocks = Loop("b", Const(0), count, 1, "serial", (*block, *_choice(Var("s2", x.dtype), combine)))
    start = (Cell("s0", identity), Cell("s1", Const(0)))
    find = _first_in_block(x.name, row, n, most, length, x.dtype)
    store = Store(out.name, row, Var("s3"))
    cost, rows = site.target.cost, x.size // most
    if rows >= 4 * site.target.limits.cores or x.nbytes < cost.parallel_ns * cost.memory_bandwidth:
        site.emit(site.loops(range(axis), (*start, blocks, *find, store)), x, out)
        return
    extremes = site.new_buffer(x.dtype, (*x.shape[:-1], blocks_at_most))
    at = (*row, Var("b"))
    each = site.loops(range(axis), (*block, Store(extremes.name, at, Var("s2", x.dtype))))
    time = extremes.size * length * x.dtype.itemsize / cost.memory_bandwidth
    site.emit((Loop("b", Const(0), count, 1, "serial", each),), x, extremes, ns=time)
    chosen = Loop("b", Const(0), count, 1, "serial", _choice(Load(extremes.name, at, x.dtype), combine))
    site.emit(site.loops(range(axis), (*start, chosen, *find, store)), x, extremes, out, ns=extremes.size * SERIAL_NS)


def _block(most: int) -> int:
    """Elements of a block. Folding the lanes of its extreme takes as long as looking at 250 more; one block is searched again."""
    return max(LONG, 1 << round(log2(16 * sqrt(most))))


def _elements(start: Expr, length: int, n: Expr, body: tuple[Stmt, ...]) -> Loop:
    return Loop("i", start, Apply("minimum", (start + length, n)), 1, "serial", body)


def _choice(extreme: Expr, combine: Combine) -> tuple[Stmt, ...]:
    """Block b becomes the best one if it beats all before: the first of equals, the first nan, stays."""
    dtype = extreme.dtype
    best = Var("s0", dtype)
    new = Var("t0", dtype)
    better: Expr = Apply("gt" if combine == "max" else "lt", (new, best), BOOL)
    if dtype.kind == "f":
        first_nan = Apply("bit_and", (Apply("ne", (new, new), BOOL), Apply("eq", (best, best), BOOL)), BOOL)
        better = Apply("bit_or", (better, first_nan), BOOL)
    wins = Var("t1", BOOL)
    return (
        Let("t0", extreme),
        Let("t1", better),
        Update("s0", Apply("select", (wins, new, best), dtype)),
        Update("s1", Apply("select", (wins, Var("b"), Var("s1")))),
    )


def _first_in_block(name: str, row: Sequence[Expr], n: Expr, most: int, length: int, dtype: DType) -> tuple[Stmt, ...]:
    """s3 = the first place in block s1 of the extreme s0, or of a nan."""
    element = Var("t3", dtype)
    found: Expr = Apply("eq", (element, Var("s0", dtype)), BOOL)
    if dtype.kind == "f":
        found = Apply("bit_or", (found, Apply("ne", (element, element), BOOL)), BOOL)
    place = Apply("select", (found, Var("i"), n - 1))
    search = (Let("t3", Load(name, (*row, Var("i")), dtype)), Update("s3", place, "min"))
    return (
        Let("t2", clamped(Var("s1"), 0, (most - 1) // length)),
        Cell("s3", n - 1),
        _elements(Var("t2") * length, length, n, search),
    )
