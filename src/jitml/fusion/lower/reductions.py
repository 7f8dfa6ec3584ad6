"""Reductions (how partial results combine, and where they start), cumulative scans, and sorts."""

from __future__ import annotations

import numpy as np

from jitml.fusion.lower.nests import NestSite, nests
from jitml.ir import ops
from jitml.ir.op import Op
from jitml.ir.types import F32, DType
from jitml.kernels.ir import Apply, Cell, Combine, Const, Expr, If, Load, Loop, Stmt, Store, Update, Var, is_ordered, less, sub
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class Reduction:
    """An associative operation by its kernel name."""

    combine: Combine

    def identity(self, dtype: DType) -> bool | int | float:
        number: type[bool] | type[int] | type[float] = {"b": bool, "f": float}.get(dtype.kind, int)
        if self.combine in ("add", "or", "mul", "and"):
            return number(self.combine in ("mul", "and"))
        if number is float:
            return float("-inf") if self.combine == "max" else float("inf")
        if number is bool:
            return self.combine == "min"
        limits = np.iinfo(dtype.name)
        return int(limits.min if self.combine == "max" else limits.max)

    def accumulator(self, dtype: DType) -> DType:
        """Half precision sums in single, as NumPy does."""
        return F32 if dtype == np.float16 and self.combine in ("add", "mul") else dtype


REDUCTIONS: dict[Op, Reduction] = {
    ops.reduce_sum: Reduction("add"),
    ops.reduce_prod: Reduction("mul"),
    ops.reduce_max: Reduction("max"),
    ops.reduce_min: Reduction("min"),
    ops.reduce_all: Reduction("and"),
    ops.reduce_any: Reduction("or"),
}


_CUMULATIVE: dict[Op, Combine] = {ops.cumsum: "add", ops.cumprod: "mul", ops.cummax: "max", ops.cummin: "min"}


def _is_for_the_library(site: NestSite, dtype: DType, combine: Combine) -> bool:
    """Whether the target scans by a call, in which the order is free."""
    scan = site.target.calls.get("scan")
    return scan is not None and scan.takes(dtype) and not is_ordered(combine, dtype) and site.out.size > 0


@nests.rule(ops.cumsum, ops.cumprod, ops.cummax, ops.cummin)
def lower_cumulative(site: NestSite) -> None:
    """In order along the axis, with a carry in a register, or in the row above where vectors run across."""
    (x,), out, axis = site.reads, site.out, site.node.params["axis"]
    combine = _CUMULATIVE[site.node.op]
    if _is_for_the_library(site, x.dtype, combine):
        site.call("scan", x, out, axis=axis, combine=combine, reverse=site.node.params["reverse"])
        return
    n, reverse = site.extent(0, axis), site.node.params["reverse"]
    fn = {"max": "maximum", "min": "minimum"}.get(combine, combine)
    if out.size == 0:
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
