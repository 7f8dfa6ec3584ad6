"""Cumulative scans: how are elements combined with all before them?

In order, element by element, so that floating-point sums have NumPy's bits. Where the order is free, long rows are cut into
chunks. First each chunk alone is combined, then the chunks before each. Then threads run through them, several chunks side by
side: a step waits for the one before it, and meanwhile the others go on.
"""

from __future__ import annotations

from collections.abc import Callable

from jitml.fusion.lower.nests import SERIAL_NS, NestSite, nests
from jitml.fusion.lower.reductions import Reduction
from jitml.ir import ops
from jitml.ir.op import Op
from jitml.ir.types import BOOL, DType
from jitml.kernels.ir import (
    Apply,
    Buffer,
    Cell,
    Combine,
    Const,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    floor_divide,
    is_ordered,
    less,
    sub,
)
from jitml.records import dataclass

CHUNK = 2048  # elements of a row
LEAST = 16 * CHUNK  # elements of a row that is cut
TOGETHER = {"f": 8, "i": 4, "u": 4}  # chunks: a comparison of floats takes twice as long

_CUMULATIVE: dict[Op, Combine] = {ops.cumsum: "add", ops.cumprod: "mul", ops.cummax: "max", ops.cummin: "min"}
_FUNCTIONS = {"max": "maximum", "min": "minimum"}


def _is_for_the_library(site: NestSite, dtype: DType, combine: Combine) -> bool:
    """Whether the target scans by a call, in which the order is free."""
    scan = site.target.calls.get("scan")
    return scan is not None and scan.takes(dtype) and not is_ordered(combine, dtype) and site.out.size > 0


def _is_any_order(dtype: DType, combine: Combine) -> bool:
    """Whether chunks can be combined alone, with the same bits. (Of zeros of half precision NumPy has the first.)"""
    return dtype.kind in "iu" or (combine in ("max", "min") and dtype.kind == "f" and dtype.itemsize > 2)


@nests.rule(ops.cumsum, ops.cumprod, ops.cummax, ops.cummin)
def lower_cumulative(site: NestSite) -> None:
    """In order along the axis, with a carry in a register, or in the row above where vectors run across."""
    (x,), out, axis = site.reads, site.out, site.node.params["axis"]
    combine = _CUMULATIVE[site.node.op]
    if _is_for_the_library(site, x.dtype, combine):
        site.call("scan", x, out, axis=axis, combine=combine, reverse=site.node.params["reverse"])
        return
    n, reverse = site.extent(0, axis), site.node.params["reverse"]
    fn = _FUNCTIONS.get(combine, combine)
    if out.size == 0:
        return
    if axis == len(out.shape) - 1 and out.shape[axis] >= LEAST and _is_any_order(x.dtype, combine):
        _Chunks(site, x, out, combine, n, reverse).emit()
        return

    def at(step: Expr) -> tuple[Expr, ...]:
        place = sub(n - 1, step) if reverse else step
        return tuple(place if a == axis else Var(f"i{a}") for a in range(len(out.shape)))

    k = Var("k0")
    if axis == len(out.shape) - 1:
        value = Apply(fn, (Var("s0", x.dtype), Load(x.name, at(k), x.dtype)), x.dtype)
        body: tuple[Stmt, ...] = (
            Cell("s0", Load(x.name, at(Const(0)), x.dtype)),
            Store(out.name, at(Const(0)), Var("s0", x.dtype)),
            Loop("k0", Const(1), n, 1, "serial", (Update("s0", value), Store(out.name, at(k), Var("s0", x.dtype)))),
        )
        inner: list[int] = []
    else:
        inner = list(range(axis + 1, len(out.shape)))
        value = Apply(fn, (Load(out.name, at(k - 1), x.dtype), Load(x.name, at(k), x.dtype)), x.dtype)
        first = site.loops(inner, (Store(out.name, at(Const(0)), Load(x.name, at(Const(0)), x.dtype)),))
        rest = site.loops(inner, (Store(out.name, at(k), value),))
        body = (*first, Loop("k0", Const(1), n, 1, "serial", rest))
    if not isinstance(n, Const):  # there may be no first element
        body = (If(less(0, n), body),)
    site.emit(site.loops(list(range(axis)), body), x, out)


@dataclass
class _Chunks:
    """A scan along the last axis of long rows, in chunks. Of two zeros, the later one is kept, as by NumPy."""

    site: NestSite
    x: Buffer
    out: Buffer
    combine: Combine
    n: Expr
    reverse: bool

    def emit(self) -> None:
        site, x = self.site, self.x
        most = -(-x.shape[-1] // CHUNK)
        totals, before = (site.new_buffer(x.dtype, (*x.shape[:-1], most)) for _ in range(2))
        outer, chunks = list(range(len(x.shape) - 1)), floor_divide(self.n + (CHUNK - 1), CHUNK)
        c = Var("c")
        alone = (
            Cell("s0", self.identity),
            Loop("k", c * CHUNK, self.end(c), 1, "serial", (Update("s0", self.element(Var("k")), self.combine),)),
            Store(totals.name, self.at(c), self.cell(0)),
        )
        time = x.size * SERIAL_NS
        site.emit(site.loops(outer, (Loop("c", Const(0), chunks, 1, "serial", alone),)), x, totals, ns=time / 8)
        total = Load(totals.name, self.at(c), x.dtype)
        carried = (
            Cell("s0", self.identity),
            Loop("c", Const(0), chunks, 1, "serial", (Store(before.name, self.at(c), self.cell(0)), *self._carry(c, total))),
        )
        site.emit(site.loops(outer, carried), x, totals, before, ns=time / CHUNK)
        together = TOGETHER[x.dtype.kind]
        groups = floor_divide(chunks + (together - 1), together)
        each = Loop("g", Const(0), groups, 1, "serial", self._together(totals, before, most, together))
        site.emit(site.loops(outer, (each,)), x, totals, before, self.out, ns=time)

    @property
    def identity(self) -> Const:
        return Const(Reduction(self.combine).identity(self.x.dtype), self.x.dtype)

    @property
    def is_float(self) -> bool:
        """Whether there is nan, and there are two zeros."""
        return self.x.dtype.kind == "f"

    def at(self, last: Expr) -> tuple[Expr, ...]:
        return (*(Var(f"i{a}") for a in range(len(self.x.shape) - 1)), last)

    def place(self, step: Expr) -> tuple[Expr, ...]:
        return self.at(sub(self.n - 1, step) if self.reverse else step)

    def element(self, step: Expr) -> Expr:
        return Load(self.x.name, self.place(step), self.x.dtype)

    def cell(self, number: int) -> Var:
        return Var(f"s{number}", self.x.dtype)

    def end(self, chunk: Expr) -> Expr:
        return Apply("minimum", ((chunk + 1) * CHUNK, self.n))

    def combined(self, x: Expr, y: Expr) -> Expr:
        return Apply(_FUNCTIONS.get(self.combine, self.combine), (x, y), self.x.dtype)

    def quick(self, x: Expr, y: Expr) -> Expr:
        """The same of numbers, not nan; of the two zeros the second one, as NumPy has it."""
        if not self.is_float:
            return self.combined(x, y)
        ahead = Apply("gt" if self.combine == "max" else "lt", (x, y), BOOL)
        return Apply("select", (ahead, x, y), self.x.dtype)

    def _carry(self, chunk: Expr, total: Expr) -> tuple[Stmt, ...]:
        """What is carried past a chunk. Which zero, if that is the extreme, only a look at all elements tells."""
        t = Var("t0", self.x.dtype)
        past = Update("s0", self.combined(self.cell(0), t))
        if not self.is_float:
            return Let("t0", total), past
        step = Update("s0", self.quick(self.cell(0), self.element(Var("k"))))
        look = Loop("k", chunk * CHUNK, self.end(chunk), 1, "serial", (step,))
        zero = Const(0.0, t.dtype)
        matters = Apply("le" if self.combine == "max" else "ge", (self.cell(0), zero), BOOL)
        return Let("t0", total), If(Apply("bit_and", (Apply("eq", (t, zero), BOOL), matters), BOOL), (look,), (past,))

    def _together(self, totals: Buffer, before: Buffer, most: int, together: int) -> tuple[Stmt, ...]:
        """Some chunks side by side, where all of them are whole; else one after the other."""
        first, numbers = Var("g") * together, range(together)
        places = [Apply("minimum", (first + j, Const(most - 1))) for j in numbers]
        cells = [Cell(f"s{j}", Load(before.name, self.at(places[j]), self.x.dtype)) for j in numbers]
        is_quick: Expr = Apply("le", ((first + together) * CHUNK, self.n), BOOL)
        for j in numbers if self.is_float else ():
            for x in (self.cell(j), Load(totals.name, self.at(places[j]), self.x.dtype)):
                is_quick = Apply("bit_and", (is_quick, Apply("eq", (x, x), BOOL)), BOOL)

        def step(j: int, combined: Callable[[Expr, Expr], Expr]) -> tuple[Stmt, ...]:
            k = (first + j) * CHUNK + Var("k")
            update = Update(f"s{j}", combined(self.cell(j), self.element(k)))
            return update, Store(self.out.name, self.place(k), self.cell(j))

        quick = Loop("k", Const(0), Const(CHUNK), 1, "serial", tuple(stmt for j in numbers for stmt in step(j, self.quick)))
        lengths = [Apply("minimum", (sub(self.n, (first + j) * CHUNK), Const(CHUNK))) for j in numbers]
        slow = [Loop("k", Const(0), lengths[j], 1, "serial", step(j, self.combined)) for j in numbers]
        return *cells, If(is_quick, (quick,), tuple(slow))
