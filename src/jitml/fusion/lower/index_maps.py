"""Index maps: the operand's element at another index. Nothing moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from math import prod

from jitml.fusion.lower.points import Index, Point, lowering, targets
from jitml.fusion.lower.scalars import Scalar
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL
from jitml.kernels.ir import Apply, Const, Expr, Var, add, mul, sub


@lowering.rule(ops.full)
def lower_full(p: Point) -> Scalar:
    return p.b.const(p.node.params["value"], p.node.output.dtype)


@lowering.rule(ops.array)
def lower_array(p: Point) -> Scalar:
    """Of one element only; longer literals are constants in memory."""
    value = p.node.params["value"]
    return p.b.const(value.item() if value.size else 0, p.node.output.dtype)  # an empty one is never run


@lowering.rule(ops.iota)
def lower_iota(p: Point) -> Scalar:
    return p.b.convert(p.b.index(p.index[p.node.params["axis"]]), p.node.output.dtype)


@lowering.rule(ops.broadcast)
def lower_broadcast(p: Point) -> Scalar:
    places = zip(p.node.params["axes"], p.node.inputs[0].shape, strict=True)
    return p.read(0, tuple(Const(0) if n == 1 else p.index[a] for a, n in places))


@lowering.rule(ops.transpose)
def lower_transpose(p: Point) -> Scalar:
    places = dict(zip(p.node.params["perm"], p.index, strict=True))
    return p.read(0, tuple(places[a] for a in range(len(p.index))))


@lowering.rule(ops.reshape)
def lower_reshape(p: Point) -> Scalar:
    return p.read(0, reshaped(p, p.node.inputs[0].shape, p.node.output.shape))


@lowering.rule(ops.resize)
def lower_resize(p: Point) -> Scalar:
    """The same element. Where the result's memory is the larger one, a clamp says so to the verifier."""
    given, wanted = p.node.inputs[0].aval.bounds, p.node.output.aval.bounds
    return p.read(0, tuple(i if n >= m else clamped(i, 0, n - 1) for i, n, m in zip(p.index, given, wanted)))


@lowering.rule(ops.slice)
def lower_slice(p: Point) -> Scalar:
    return p.read(0, tuple(add(mul(i, s), a) for i, a, s in zip(p.index, p.node.params["start"], p.node.params["step"])))


@lowering.rule(ops.flip)
def lower_flip(p: Point) -> Scalar:
    axes, shape = p.node.params["axes"], p.node.output.shape
    return p.read(0, tuple(sub(sub(p.size(n), 1), i) if a in axes else i for a, (i, n) in enumerate(zip(p.index, shape))))


@lowering.rule(ops.pad)
def lower_pad(p: Point) -> Scalar:
    """Inside the operand's box, its element; elsewhere the value. The loops are cut at the box's edges where they can be."""
    low, interior, shape = p.node.params["low"], p.node.params["interior"], p.node.inputs[0].shape
    condition: Scalar | None = None
    at: list[Expr] = []
    for i, a, b, gap, n in zip(p.index, low, p.node.params["high"], interior, shape):
        if a == b == gap == 0:
            at.append(i)
            continue
        span = (n - 1) * (gap + 1) + 1 if n else 0
        known = p.inside(i, a, a + span) if n else False
        if known is False:
            return p.read(1, ())
        offset = sub(i, a)
        if known is None:
            condition = _both(p, condition, _between(p, i, a, a + span))
            offset = clamped(offset, 0, span - 1)
        if gap:
            at.append(p.quotient(offset, gap + 1))
            if p.remainder(offset, gap + 1) != Const(0):
                hit = p.b.compare("eq", p.b.index(p.remainder(offset, gap + 1)), p.b.index(Const(0)))
                condition = _both(p, condition, hit)
        else:
            at.append(offset)
    value = p.read(0, tuple(at))
    return value if condition is None else p.b.select(condition, value, p.read(1, ()))


@lowering.rule(ops.concat)
def lower_concat(p: Point) -> Scalar:
    """The piece is found by halves: there may be thousands."""
    pieces, stops = _pieces(p.node)
    if not pieces:  # an empty result: never stored
        return p.b.const(0, p.node.output.dtype)
    return _of_pieces(p, pieces, stops, 0, len(pieces), is_sure=True)


@lru_cache(maxsize=8)
def _pieces(node: Node) -> tuple[list[int], list[int]]:
    """Which operands have elements, and where along the axis each of them stops."""
    extents = [piece.shape[node.params["axis"]] for piece in node.inputs]
    pieces = [k for k, n in enumerate(extents) if n]
    return pieces, list(accumulate(extents[k] for k in pieces))


def _of_pieces(p: Point, pieces: Sequence[int], stops: Sequence[int], first: int, last: int, *, is_sure: bool) -> Scalar:
    """The element of one of some pieces; where another one may hold it, `is_sure` being False, it is any of theirs."""
    axis = p.node.params["axis"]
    i, start = p.index[axis], stops[first - 1] if first else 0
    if last - first == 1:
        offset = sub(i, start) if is_sure else clamped(sub(i, start), 0, stops[first] - start - 1)
        return p.read(pieces[first], (*p.index[:axis], offset, *p.index[axis + 1 :]))
    middle = (first + last) // 2
    known = p.inside(i, start, stops[middle - 1])
    if known is not None:
        return _of_pieces(p, pieces, stops, *((first, middle) if known else (middle, last)), is_sure=is_sure)
    left = _of_pieces(p, pieces, stops, first, middle, is_sure=False)
    condition = p.b.compare("lt", p.b.index(i), p.b.index(Const(stops[middle - 1])))
    return p.b.select(condition, left, _of_pieces(p, pieces, stops, middle, last, is_sure=False))


@lowering.rule(ops.update_slice)
def lower_update_slice(p: Point) -> Scalar:
    """The value inside the slice, the operand elsewhere."""
    whole, shape = (v.shape for v in p.node.inputs)
    condition: Scalar | None = None
    at: list[Expr] = []
    for i, a, s, n, total in zip(p.index, p.node.params["start"], p.node.params["step"], shape, whole):
        if n == total:
            at.append(i)
            continue
        span = (n - 1) * s + 1 if n else 0
        known = p.inside(i, a, a + span) if n else False
        if known is False:
            return p.read(0, p.index)
        offset = sub(i, a)
        if known is None:
            condition = _both(p, condition, _between(p, i, a, a + span))
            offset = clamped(offset, 0, span - 1)
        if p.remainder(offset, s) != Const(0):
            hit = p.b.compare("eq", p.b.index(p.remainder(offset, s)), p.b.index(Const(0)))
            condition = _both(p, condition, hit)
        at.append(p.quotient(offset, s))
    value = p.read(1, tuple(at))
    return value if condition is None else p.b.select(condition, value, p.read(0, p.index))


@targets.rule(ops.update_slice)
def update_slice_target(node: Node, index: Index, place: Callable[[Value], Expr]) -> Index:
    return tuple(add(mul(i, s), a) for i, s, a in zip(index, node.params["step"], node.params["start"], strict=True))


def _both(p: Point, x: Scalar | None, y: Scalar) -> Scalar:
    return y if x is None else p.b.apply("bit_and", (x, y), BOOL)


def _between(p: Point, i: Expr, low: int, high: int) -> Scalar:
    lower = p.b.compare("ge", p.b.index(i), p.b.index(Const(low)))
    return _both(p, lower, p.b.compare("lt", p.b.index(i), p.b.index(Const(high))))


def clamped(expr: Expr, low: int, high: int) -> Expr:
    """An index kept in bounds, for a load whose value a select then drops."""
    if low == high:
        return Const(low)
    return Apply("minimum", (Apply("maximum", (expr, Const(low))), Const(high)))


def reshaped(p: Point, operand: tuple[Size, ...], result: tuple[Size, ...]) -> Index:
    """The operand's index where `p.index` is the result's. Divides only inside blocks of axes that do not align."""
    at: list[Expr] = [Const(0)] * len(operand)
    if 0 in operand:
        return tuple(at)
    for (x0, x1), (y0, y1) in aligned_blocks(operand, result):
        flat: Expr = Const(0)
        for k in range(y0, y1):
            if result[k] != 1:
                flat = add(mul(flat, p.size(result[k])), p.index[k])
        for k in range(x1 - 1, x0 - 1, -1):
            if operand[k] == 1:
                continue
            if prod(operand[x0:k]) == 1:
                is_sure = isinstance(flat, Var) or all(isinstance(n, int) for n in operand[k + 1 : x1])
                at[k] = flat if is_sure else clamped(flat, 0, bound(operand[k]) - 1)
                break
            at[k], flat = _divided(p, flat, operand[k])
    return tuple(at)


def _divided(p: Point, flat: Expr, n: Size) -> tuple[Expr, Expr]:
    """The place along an axis of extent n, the last of those that are left, and what the others share."""
    match flat:
        case Apply("add", (Apply("mul", (whole, by)), Var(name) as place)) if by == p.size(n) and p.reader.axes.get(name) == n:
            return place, whole  # as `packed` makes it
    if isinstance(n, int):
        return p.remainder(flat, n), p.quotient(flat, n)
    # Where there is an element there is no division by 0; and the clamps tell the verifier what the division does not.
    last, divisor = bound(n) - 1, Apply("maximum", (p.size(n), Const(1)))
    whole = Apply("floor_divide", (flat, divisor))
    return clamped(sub(flat, mul(whole, divisor)), 0, last), whole


def packed(index: Index, shape: Sequence[Size], size: Callable[[Size], Expr]) -> Expr:
    """The place of an element in the array made flat, C order."""
    flat: Expr = Const(0)
    for i, n in zip(index, shape, strict=True):
        if n != 1:
            flat = add(mul(flat, size(n)), i)
    return flat


@cache
def aligned_blocks(xs: tuple[Size, ...], ys: tuple[Size, ...]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The finest split of two shapes of one size into runs of axes with equal products.

    >>> aligned_blocks((2, 3, 4), (6, 4))
    [((0, 2), (0, 1)), ((2, 3), (1, 2))]
    >>> from jitml.ir.dims import Sym, as_size
    >>> rest = 5 - as_size(Sym("i", 0, 5))
    >>> aligned_blocks((rest,), (1, rest))
    [((0, 1), (0, 2))]
    >>> one = as_size(Sym("k", 0, 1))
    >>> aligned_blocks((1, one), (one,)), aligned_blocks((one,), (1, one))
    ([((0, 2), (0, 1))], [((0, 1), (0, 2))])
    """
    blocks: list[tuple[tuple[int, int], tuple[int, int]]] = []
    a = b = 0
    while a < len(xs) and b < len(ys):
        a0, b0, m, n = a, b, xs[a], ys[b]
        a, b = a + 1, b + 1
        while m != n:
            # The largest sizes tell which side lacks a factor; of equal ones, the number does.
            if bound(m) < bound(n) or (bound(m) == bound(n) and isinstance(n, Dim)):
                m, a = m * xs[a], a + 1
            else:
                n, b = n * ys[b], b + 1
        blocks.append(((a0, a), (b0, b)))
    # What is left over has size 1 on either side.
    return blocks
