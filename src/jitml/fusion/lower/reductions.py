"""Reductions (how partial results combine, and where they start), cumulative scans, and sorts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jitml.fusion.loops import Apply, Buffer, Cell, Combine, Const, Expr, Let, Load, Loop, Stmt, Store, Update, Var, less, sub
from jitml.fusion.lower.index_maps import clamped
from jitml.fusion.lower.nests import Site, nests
from jitml.ir import ops
from jitml.ir.op import Op
from jitml.ir.types import BOOL, F32, I64, DType


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


@nests.rule(ops.cumsum, ops.cumprod, ops.cummax, ops.cummin)
def lower_cumulative(site: Site) -> None:
    """In order along the axis, with a carry in a register, or in the row above where vectors run across."""
    (x,), out, axis = site.reads, site.out, site.node.params["axis"]
    n, reverse = out.shape[axis], site.node.params["reverse"]
    fn = {"cumsum": "add", "cumprod": "mul", "cummax": "maximum", "cummin": "minimum"}[site.node.op.name]
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
            Loop("k0", Const(1), Const(n), 1, "serial", (Update("s0", value), Store(out.name, at(k), Var("s0", x.dtype)))),
        )
        inner: list[int] = []
    else:
        inner = list(range(axis + 1, len(out.shape)))
        value = Apply(fn, (Load(out.name, at(k - 1), x.dtype), Load(x.name, at(k), x.dtype)), x.dtype)
        first = site.loops(inner, (Store(out.name, at(Const(0)), Load(x.name, at(Const(0)), x.dtype)),), vector=True)
        rest = site.loops(inner, (Store(out.name, at(k), value),), vector=True)
        body = (*first, Loop("k0", Const(1), Const(n), 1, "serial", rest))
    site.emit(site.loops(list(range(axis)), body, parallel=True), x, out)


@nests.rule(ops.sort, ops.argsort)
def lower_sort(site: Site) -> None:
    """Merge sort from the bottom up, one row of the axis after the other: stable, with NaN last as in NumPy.

    Runs of 1, 2, 4, ... elements are merged to and fro between two buffers; the last merge writes the result. Argsort
    carries positions along with the keys.
    """
    (x,), out, axis = site.reads, site.out, site.node.params["axis"]
    n = x.shape[axis]
    if out.size == 0:
        return
    carries = site.node.op is ops.argsort
    keys = [site.new_buffer(x.dtype, x.shape) for _ in range(2)]
    places = [site.new_buffer(out.dtype, x.shape) for _ in range(2)] if carries else []

    def at(place: Expr) -> tuple[Expr, ...]:
        return tuple(place if a == axis else Var(f"i{a}") for a in range(len(x.shape)))

    levels = max(1, (n - 1).bit_length())
    body: list[Stmt] = []
    used: dict[str, Buffer] = {x.name: x}
    run, place = x, None
    for level in range(levels):
        last = level == levels - 1
        next_run = (None if carries else out) if last else keys[level % 2]
        next_place = (out if last else places[level % 2]) if carries else None
        body.append(_merge(run, next_run, place, next_place, at, 1 << level, n))
        used |= {b.name: b for b in (next_run, next_place) if b is not None}
        if next_run is not None:
            run, place = next_run, next_place
    site.emit(site.loops([a for a in range(len(x.shape)) if a != axis], tuple(body), parallel=True), *used.values())


def _merge(
    x: Buffer,
    out: Buffer | None,
    x_place: Buffer | None,
    out_place: Buffer | None,
    at: Callable[[Expr], tuple[Expr, ...]],
    width: int,
    n: int,
) -> Stmt:
    """Merge neighbouring sorted runs of `width` elements: the keys into `out`, their positions into `out_place`."""
    low, k, i, j = Var("lo0"), Var("k0"), Var("s0"), Var("s1")
    middle, high = Var("t0"), Var("t1")
    left = Load(x.name, at(clamped(i, 0, n - 1)), x.dtype)
    right = Load(x.name, at(clamped(j, 0, n - 1)), x.dtype)
    a, b = Var("t2", x.dtype), Var("t3", x.dtype)
    before: Expr = Apply("lt", (b, a), BOOL)
    if x.dtype.kind == "f":
        before = _or(before, _and(Apply("isnan", (a,), BOOL), _not(Apply("isnan", (b,), BOOL))))
    # The left run goes first on ties; the right one when the left has run out.
    take_right = _and(less(j, high), _or(_not(less(i, middle)), before))
    chosen = Var("t4", BOOL)
    step = Apply("convert", (chosen,), I64)
    stores: list[Stmt] = []
    if out is not None:
        stores.append(Store(out.name, at(k), Apply("select", (chosen, b, a), x.dtype)))
    if out_place is not None:
        position = Apply("select", (chosen, clamped(j, 0, n - 1), clamped(i, 0, n - 1)))
        carried = position if x_place is None else Load(x_place.name, at(position), I64)
        stores.append(Store(out_place.name, at(k), carried))
    merge: tuple[Stmt, ...] = (
        Let("t2", left),
        Let("t3", right),
        Let("t4", take_right),
        *stores,
        Update("s1", j + step),
        Update("s0", i + (1 - step)),
    )
    return Loop(
        "lo0",
        Const(0),
        Const(n),
        2 * width,
        "serial",
        (
            Let("t0", Apply("minimum", (low + width, Const(n)))),
            Let("t1", Apply("minimum", (low + 2 * width, Const(n)))),
            Cell("s0", low),
            Cell("s1", middle),
            Loop("k0", low, high, 1, "serial", merge),
        ),
    )


def _and(x: Expr, y: Expr) -> Expr:
    return Apply("bit_and", (x, y), BOOL)


def _or(x: Expr, y: Expr) -> Expr:
    return Apply("bit_or", (x, y), BOOL)


def _not(x: Expr) -> Expr:
    return Apply("bit_not", (x,), BOOL)
