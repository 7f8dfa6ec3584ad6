"""Gather: the operand in memory, read where index arrays say. Scatter: loops in index order, or a library call where the
target has one. Both are checked before."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.fusion.lower.nests import NestSite, nested, nests
from jitml.fusion.lower.points import Point, Ranges, limits, lowering
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar
from jitml.ir import ops
from jitml.ir.analysis.limits import Limits, dtype_limits, limits_of_numbers
from jitml.ir.dims import Size
from jitml.ir.dims import limits as size_limits
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, I64, U64, is_integer
from jitml.kernels.ir import (
    Apply,
    Buffer,
    Check,
    Combine,
    Const,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    add,
    floor_divide,
    less,
    mul,
    sub,
    with_blocks,
)
from jitml.kernels.program import Call
from jitml.kernels.target import Target
from jitml.records import dataclass, replace


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

    Clamped too, though it has been checked: memory stays safe if another thread changes the indices meanwhile. What lies between
    good limits by its dtype, or by how it is computed, is left as it is.
    """
    i = p.b.convert(i, I64)
    if i.kind == "const" and isinstance(n, int):
        return p.b.const(int(i.value) % max(n, 1), I64)
    place = _place(i)
    if place is not None and _stays(p, place, n):
        return p.b.index(place)
    wrapped, below, beyond = _from_the_end(p, i, n)
    zero, last = p.b.const(0, I64), p.b.index(sub(p.size(n), 1))
    # An argument has no memory beyond its true size, and a load may come before the check that it passes. (It has some:
    # see `emptiness.py`.) So zero has the last word, where sizes are open.
    below = below or (beyond and size_limits(n)[0] < 1)
    clamps = [("maximum", zero, below), ("minimum", last, beyond)]
    for function, limit, is_needed in clamps if isinstance(n, int) else reversed(clamps):
        if is_needed:
            wrapped = p.b.apply(function, (wrapped, limit), I64)
    return wrapped


def _from_the_end(p: Point, i: Scalar, n: Size) -> tuple[Scalar, bool, bool]:
    """An index i64 that may count from the end as one from the start; whether it may be below all, and beyond."""
    (low, high), (least, _) = _reached(i, p.reader.ranges), size_limits(n)
    if low < 0:
        i = p.b.select(p.b.compare("lt", i, p.b.const(0, I64)), p.b.apply("add", (i, p.b.index(p.size(n))), I64), i)
    return i, low < -least, high >= least


def _reached(i: Scalar, ranges: Ranges, depth: int = 6) -> Limits:
    """Between which numbers an index lies, whatever is in memory; of what is made of much, no more than its dtype is asked."""
    if i.kind == "const":
        return int(i.value), int(i.value)
    if i.kind == "index" and i.places[0] is not None:
        return limits(i.places[0], ranges) or dtype_limits(I64)
    if i.kind != "apply" or i.dtype.kind not in "iu" or not depth:
        return dtype_limits(i.dtype)
    if i.value == "floor_divide" and i.args[1].kind != "const":  # range analysis proves less of such
        return dtype_limits(i.dtype)
    return limits_of_numbers(i.value, i.dtype, [_reached(x, ranges, depth - 1) for x in i.args if x.dtype.kind in "biu"])


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


SCATTERED = "scattered"  # by which of a group's scatters, an operand's element, and at which place of the whole it goes


def scattered(p: Point, number: int) -> Scalar:
    """What a scatter does at one index of its second operand: the element, and the place, whose indices have been checked."""
    x, _, first, *_ = p.node.inputs
    axis, depth = p.node.params["axis"], first.ndim
    given = p.index[axis : axis + depth]
    count = len(p.node.inputs) - 2
    indices = [(p.read(2 + k, given), x.shape[axis + k]) for k in range(count)]
    tests: list[Scalar] = []
    if count == x.ndim:
        places = [_tested(p, i, n, tests) for i, n in indices]
    else:
        places = [wrap(p, i, n) for i, n in indices]
    is_inside = p.b.const(True, BOOL)
    for k, test in enumerate(tests):
        is_inside = p.b.apply("bit_and", (is_inside, test), BOOL) if k else test
    around = [[p.b.index(e) for e in part] for part in (p.index[:axis], p.index[axis + depth :])]
    which = p.b.const(number, I64)
    return p.b.apply(SCATTERED, (which, p.read(1, p.index), is_inside, *around[0], *places, *around[1]), x.dtype)


def _tested(p: Point, i: Scalar, n: Size, tests: list[Scalar]) -> Scalar:
    """Like `wrap`, of a single element: a branch that is never taken costs less than to clamp."""
    place, below, beyond = _from_the_end(p, p.b.convert(i, I64), n)
    if below or beyond:  # as a number without a sign it is beyond in both cases
        end = p.b.const(n, U64) if isinstance(n, int) else p.b.convert(p.b.index(p.size(n)), U64)
        tests.append(p.b.compare("lt", p.b.convert(place, U64), end))
    return place


def store_scattered(scatters: Sequence[Node], outs: Sequence[Buffer], value: Expr) -> tuple[Stmt, ...]:
    """Combine an element with what is at its place, if that is one."""
    assert isinstance(value, Apply) and value.fn == SCATTERED
    which, element, is_inside, *place = value.args
    assert isinstance(which, Const)
    number = int(which.value)
    store = Store(outs[number].name, tuple(place), element, _COMBINED[scatters[number].params["combine"]])
    return (store,) if is_inside == Const(True, BOOL) else (If(is_inside, (store,)),)


_COMBINED: dict[str, Combine | None] = {"set": None, "add": "add", "mul": "mul", "min": "min", "max": "max"}
_REDUCED = {"add": ops.reduce_sum, "mul": ops.reduce_prod, "min": ops.reduce_min, "max": ops.reduce_max}
MOST_PRIVATE = 4096  # elements of a table that each thread may have for itself
LEAST_TIMES = 16  # as many elements as in a table are to be counted in it, or more


def private_tables(node: Node, points: int, target: Target) -> int:
    """In how many tables a scatter may count, of which the whole is the sum: of integers, whose order does not matter."""
    x, combine = node.inputs[0], node.params["combine"]
    if not is_integer(x.dtype) or combine not in _REDUCED or node.params["axis"] or "parallel" not in target.kinds:
        return 1
    if "block" in target.kinds or not 0 < x.capacity <= MOST_PRIVATE or points < 1 << 15:
        return 1
    pays = target.limits.cores > 1 and points >= LEAST_TIMES * x.capacity
    return max(1, min(2 * target.limits.cores, points // (LEAST_TIMES * x.capacity))) if pays else 1


def in_private_tables(
    body: tuple[Stmt, ...], node: Node, out: Buffer, tables: Buffer, extents: Sequence[Expr]
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]] | None:
    """Loops that count in tables, a chunk in each, and loops that add these up; None if there is no outermost loop to be cut.

    Args:
        extents: of the whole.
    """
    *before, loop = body
    if not isinstance(loop, Loop) or any(not isinstance(s, Let) for s in before):
        return None
    count, chunk = tables.shape[0], Var("chunk")
    size = floor_divide(sub(loop.stop, loop.start) + (count - 1), count)
    start = add(loop.start, Apply("mul", (chunk, size)))
    combine = _COMBINED[node.params["combine"]]
    over = {f"j{axis}": extent for axis, extent in enumerate(extents)}
    place: tuple[Expr, ...] = tuple(map(Var, over))
    identity = Const(REDUCTIONS[_REDUCED[node.params["combine"]]].identity(out.dtype), out.dtype)
    empty = nested(over, (Store(tables.name, (chunk, *place), identity),))

    def in_table(inner: tuple[Stmt, ...], which: object = None) -> tuple[Stmt, ...]:
        return tuple(
            replace(s, buffer=tables.name, at=(chunk, *s.at))
            if isinstance(s, Store) and s.buffer == out.name
            else with_blocks(s, in_table)
            for s in inner
        )

    stop = Apply("minimum", (add(start, size), loop.stop))
    part = replace(loop, start=start, stop=stop, body=in_table(loop.body))
    counted = nested({"chunk": Const(count)}, (*empty, part))
    added = Store(out.name, place, Load(tables.name, (chunk, *place), out.dtype), combine)
    return (*before, *counted), nested({"chunk": Const(count), **over}, (added,))


def is_for_library(node: Node, target: Target) -> bool:
    """Whether the target scatters by a call: where there are too many indices for one to come after the other."""
    (x, _, index, *_), scatter = node.inputs, target.calls.get("scatter")
    takes = scatter is not None and (node.params["combine"] == "set" or scatter.takes(x.dtype))
    return scatter is not None and takes and index.capacity > scatter.small


@nests.rule(ops.scatter)
def lower_scatter(site: NestSite) -> None:
    """One step that calls the target's scatter. (Loops are written point by point: `scattered`.)"""
    (x, v, *indices), out, axis = site.reads, site.out, site.node.params["axis"]
    if v.size == 0 or x.size == 0:  # where there is an index all the same, its check fails
        site.steps.append(Call("copy", (x.name,), (out.name,), {}))
        return
    is_sized = not all(value.aval.is_static for value in site.node.inputs)
    lengths: tuple[str, ...] = ()
    if is_sized:
        extents = [site.extent(0, a) for a in range(len(x.shape))] + [site.extent(2, d) for d in range(len(indices[0].shape))]
        lengths = (site.held(extents),)
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
