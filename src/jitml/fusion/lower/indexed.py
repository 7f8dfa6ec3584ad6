"""Gather: the operand in memory, read where index arrays say. Scatter: loops in index order, or a library call where the
target has one. Both are checked before."""

from __future__ import annotations

from jitml.fusion.lower.index_maps import clamped
from jitml.fusion.lower.nests import NestSite, nested, nests
from jitml.fusion.lower.points import Point, limits, lowering
from jitml.fusion.lower.scalars import Scalar
from jitml.ir import ops
from jitml.ir.dims import Size
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import (
    Apply,
    Check,
    Combine,
    Const,
    Expr,
    If,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    add,
    less,
    mul,
    sub,
)
from jitml.kernels.program import Call
from jitml.records import dataclass


@lowering.rule(ops.gather)
def lower_gather(p: Point) -> Scalar:
    axis, operand = p.node.params["axis"], p.node.inputs[0]
    depth = p.node.inputs[1].ndim
    place = p.index[axis : axis + depth]
    wrapped: list[Expr | Scalar] = []
    for k in range(1, len(p.node.inputs)):
        wrapped.append(wrap(p, p.read(k, place), operand.shape[axis + k - 1]))
    return p.load(0, (*p.index[:axis], *wrapped, *p.index[axis + depth :]))


def wrap(p: Point, i: Scalar, n: Size) -> Scalar:
    """An index that may count from the end, as an offset from the start.

    Clamped too, though it has been checked: memory stays safe if another thread changes the indices meanwhile.
    """
    i = p.b.convert(i, I64)
    if i.kind == "const" and isinstance(n, int):
        return p.b.const(int(i.value) % max(n, 1), I64)
    place = _place(i)
    if place is not None and _stays(p, place, n):
        return p.b.index(place)
    zero = p.b.const(0, I64)
    wrapped = p.b.select(p.b.compare("lt", i, zero), p.b.apply("add", (i, p.b.index(p.size(n))), I64), i)
    if isinstance(n, int):
        return p.b.apply("minimum", (p.b.apply("maximum", (wrapped, zero), I64), p.b.const(n - 1, I64)), I64)
    # An argument has no memory beyond its true size, and a load may come before the check that it passes. (It has some:
    # see `emptiness.py`.)
    return p.b.apply("maximum", (p.b.apply("minimum", (wrapped, p.b.index(sub(p.size(n), 1))), I64), zero), I64)


_SUMS = {"add": add, "sub": sub, "mul": mul}


def _place(i: Scalar) -> Expr | None:
    """An index that comes from iotas: a sum of multiples of loop indices."""
    match i.kind:
        case "const":
            return Const(int(i.value))
        case "index":
            return i.places[0]
        case "apply" if i.value in _SUMS:
            x, y = map(_place, i.args)
            return None if x is None or y is None else _SUMS[i.value](x, y)
    return None


def _stays(p: Point, place: Expr, n: Size) -> bool:
    """Whether loops stay within n, counted from the start. Those behind a check may leave it where that fails."""
    if not isinstance(n, int):
        return isinstance(place, Var) and p.reader.axes.get(place.name) == n
    reached = limits(place, p.reader.ranges)
    return reached is not None and reached[0] >= 0 and reached[1] < n


@nests.rule(ops.scatter)
def lower_scatter(site: NestSite) -> None:
    """In the order of the indices, in place; leading and trailing axes run as plain loops around and inside."""
    (x, v, *indices), out = site.reads, site.out
    axis, depth = site.node.params["axis"], len(indices[0].shape)
    if _is_for_library(site):
        _scatter_by_library(site)
        return
    shape = site.node.inputs[0].shape
    place = tuple(Var(f"k{d}") for d in range(depth))
    at: list[Expr] = [Var(f"i{a}") for a in range(len(x.shape))]
    body: list[Stmt] = []
    for k, index in enumerate(indices):
        n = site.sizes.expr(shape[axis + k])
        raw = Load(index.name, place, index.dtype)
        wide: Expr = raw if raw.dtype == I64 else Apply("convert", (raw,), I64)
        negative = less(wide, 0)
        wrapped = Apply("select", (negative, wide + n, wide))
        inside = Apply("maximum", (Apply("minimum", (wrapped, sub(n, 1))), Const(0)))
        body.append(Let(f"t{k}", clamped(wrapped, 0, x.shape[axis + k] - 1) if isinstance(n, Const) else inside))
        at[axis + k] = Var(f"t{k}")
    trailing = list(range(axis + len(indices), len(x.shape)))
    source = (*(Var(f"i{a}") for a in range(axis)), *place, *(Var(f"i{a}") for a in trailing))
    combine: dict[str, Combine | None] = {"set": None, "add": "add", "mul": "mul", "min": "min", "max": "max"}
    store = Store(out.name, tuple(at), Load(v.name, source, v.dtype), combine[site.node.params["combine"]])
    nest: tuple[Stmt, ...] = (*body, *site.loops(trailing, (store,)))
    nest = site.loops(list(range(axis)), nested({f"k{d}": site.extent(2, d) for d in range(depth)}, nest))
    if v.size == 0 or x.size == 0:  # where there is an index all the same, its check fails
        site.steps.append(Call("copy", (x.name,), (out.name,), {}))
    else:
        site.emit(nest, out, v, *indices, updates={out.name: x.name})


def _is_for_library(site: NestSite) -> bool:
    """Whether the target scatters by a call: where there are too many indices for one to come after the other."""
    scatter, (x, v, index, *_) = site.target.calls.get("scatter"), site.reads
    dtypes = scatter is not None and (site.node.params["combine"] == "set" or scatter.takes(x.dtype))
    return scatter is not None and dtypes and index.size > scatter.small and v.size > 0 and x.size > 0


def _scatter_by_library(site: NestSite) -> None:
    """One step that calls the target's scatter."""
    (x, v, *indices), out, axis = site.reads, site.out, site.node.params["axis"]
    is_sized = not all(value.aval.is_static for value in site.node.inputs)
    lengths: tuple[str, ...] = ()
    if is_sized:
        extents = [site.extent(0, a) for a in range(len(x.shape))] + [site.extent(2, d) for d in range(len(indices[0].shape))]
        held = site.new_buffer(I64, (len(extents),))
        site.emit(tuple(Store(held.name, (Const(k),), n) for k, n in enumerate(extents)), held)
        lengths = (held.name,)
    params = {
        "axis": axis,
        "combine": site.node.params["combine"],
        "shapes": tuple(b.shape for b in (v, *indices)),
        "sized": is_sized,
    }
    reads = (v.name, *(b.name for b in indices), *lengths)
    site.steps.append(Call("scatter", reads, (out.name,), params, site.sources, {out.name: x.name}))


@dataclass(frozen=True)
class IndexCheck:
    """What is to be looked at: whether indices are good ones of an axis of this size.

    low, high: the least and the greatest of them, where these can be wrong, and tell it sooner than a look at each.
    """

    index: Value
    axis: int
    size: Size
    node: Node
    low: Value | None = None
    high: Value | None = None

    @property
    def by_extremes(self) -> bool:
        return self.low is not None or self.high is not None


def look_at(index: Expr, check: IndexCheck, n: Expr) -> tuple[Stmt, ...]:
    """Raise NumPy's IndexError for an index that is out of bounds."""
    value: Expr = index if index.dtype == I64 else Apply("convert", (index,), I64)
    inside = Apply("bit_and", (Apply("ge", (Var("index"), 0 - n), BOOL), less(Var("index"), n)), BOOL)
    message = "index {} is out of bounds for axis {} with size {}"
    shown = (Var("index"), Const(check.axis), n)
    return Let("index", value), Check(inside, "IndexError", message, shown, check.node.source)


def where_extremes_fail(body: tuple[Stmt, ...], low: Expr | None, high: Expr | None, n: Expr) -> tuple[Stmt, ...]:
    """Loops that look at each index, if their extremes show that one is out of bounds. Without extremes they run in any case."""
    low, high = (None if e is None else e if e.dtype == I64 else Apply("convert", (e,), I64) for e in (low, high))
    tests: list[Expr] = [] if low is None else [less(low, 0 - n)]
    tests += [] if high is None else [Apply("ge", (high, n), BOOL)]
    return (If(Apply("bit_or", tuple(tests), BOOL) if len(tests) == 2 else tests[0], body),) if tests else body
