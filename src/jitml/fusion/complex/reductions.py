"""Reductions, scans and sorts of complex numbers that are not those of the parts."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from jitml.fusion.complex.arithmetic import isnan, mul, number
from jitml.fusion.complex.host import call_by_parts
from jitml.fusion.complex.moves import zeros
from jitml.fusion.complex.split import Complex, each_part, splitting
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.ops.host import function_of
from jitml.ir.types import I64, Aval

Ints = tuple[int, ...]


def _rows_first(x: Complex, axis: int) -> Complex:
    return each_part(ops.transpose, x, perm=(axis, *(a for a in range(x.ndim) if a != axis)))


def _rows_last(x: Complex, axis: int) -> Complex:
    """What `_rows_first` did, undone."""
    return each_part(ops.transpose, x, perm=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


@splitting.rule(ops.reduce_prod)
def split_product(node: Node, x: Complex) -> Complex:
    """One element after the other, through all axes."""
    axes = node.params["axes"]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = each_part(ops.transpose, x, perm=(*axes, *kept))
    rows = each_part(ops.reshape, rows, shape=(prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :]))
    start = Complex(_like_row(rows.re, 1.0), _like_row(rows.re, 0.0))
    return _fold(rows, start)


@splitting.rule(ops.cumprod)
def split_cumprod(node: Node, x: Complex) -> Complex:
    axis = node.params["axis"]
    if node.params["reverse"]:
        x = each_part(ops.flip, x, axes=(axis,))
    x = _rows_last(_scan(_rows_first(x, axis)), axis)
    return each_part(ops.flip, x, axes=(axis,)) if node.params["reverse"] else x


def _like_row(rows: Value, value: float) -> Value:
    made: Value = ops.full(value=value, shape=rows.shape[1:], dtype=rows.dtype)
    return made


def _count(rows: Value) -> Value:
    count: Value = ops.full(value=rows.shape[0], shape=(), dtype=I64)
    return count


def _row(x: Complex, k: Value) -> Complex:
    starts = [k] + [ops.full(value=0, shape=(), dtype=I64)] * (x.ndim - 1)
    row = each_part(ops.dynamic_slice, x, *starts, sizes=(1, *x.shape[1:]), step=(1,) * x.ndim)
    return each_part(ops.reshape, row, shape=x.shape[1:])


def _fold(rows: Complex, start: Complex) -> Complex:
    """The product of rows, in order."""
    if rows.shape[0] == 0:
        return start

    def step(k: Value, product: Complex, rows: Complex) -> tuple[Complex, ...]:
        return (mul(product, _row(rows, k)),)

    (result,) = _loop(step, rows, (start,))
    return result


def _scan(rows: Complex) -> Complex:
    """The products of the first rows, for each number of them; that of one is the row itself, which 1 times it may not be."""
    if rows.shape[0] <= 1:
        return rows
    first = each_part(ops.slice, rows, start=(0,) * rows.ndim, stop=(1, *rows.shape[1:]), step=(1,) * rows.ndim)
    rest = each_part(ops.slice, rows, start=(1,) + (0,) * (rows.ndim - 1), stop=rows.shape, step=(1,) * rows.ndim)

    def step(k: Value, product: Complex, found: Complex, rows: Complex) -> tuple[Complex, ...]:
        product = mul(product, _row(rows, k))
        starts = [k + 1] + [ops.full(value=0, shape=(), dtype=I64)] * (rows.ndim - 1)
        line = each_part(ops.reshape, product, shape=(1, *product.shape))
        found = each_part(ops.dynamic_update_slice, found, line, *starts, step=(1,) * rows.ndim)
        return product, found

    start = each_part(ops.reshape, first, shape=rows.shape[1:])
    begun = each_part(ops.concat, first, Complex(zeros(rest.re), zeros(rest.re)), axis=0)
    _, found = _loop(step, rest, (start, begun))
    return found


def _loop(step: Callable[..., tuple[Complex, ...]], rows: Complex, start: tuple[Complex, ...]) -> tuple[Complex, ...]:
    """Run a step for each row, on what it returned for the row before."""
    body = GraphBuilder()
    index = body.add_input(Aval((), I64))

    def inside(x: Complex) -> Complex:
        return Complex(body.add_input(x.re.aval), body.add_input(x.im.aval))

    carried = [inside(x) for x in start]
    operands = inside(rows)
    with recording(body):
        results = step(index, *carried, operands)
    graph: Graph = body.build([part for x in results for part in (x.re, x.im)])
    given = [part for x in (*start, rows) for part in (x.re, x.im)]
    found = ops.loop(_count(rows.re), *given, body=graph, carried=2 * len(start))
    return tuple(Complex(re, im) for re, im in zip(found[::2], found[1::2], strict=True))


def _position(x: Complex, axis: int, largest: bool) -> Value:
    """Where along an axis the first nan stands, else the first of the extremes."""
    reduce = ops.reduce_max if largest else ops.reduce_min
    worst = number(x.re, float("-inf") if largest else float("inf"))
    kept = tuple(a for a in range(x.ndim) if a != axis)

    def spread(extreme: Value) -> Value:
        wide: Value = ops.broadcast(extreme, shape=x.shape, axes=kept)
        return wide

    bad = isnan(x)
    re = ops.select(bad, worst, x.re)
    is_extreme = ops.bit_and(ops.eq(re, spread(reduce(re, axes=(axis,)))), ops.bit_not(bad))
    im = ops.select(is_extreme, x.im, worst)
    is_extreme = ops.bit_and(is_extreme, ops.eq(im, spread(reduce(im, axes=(axis,)))))
    any_bad = spread(ops.reduce_any(bad, axes=(axis,)))
    found = ops.select(any_bad, bad, is_extreme)
    place = ops.iota(shape=x.shape, axis=axis, dtype=I64)
    beyond = ops.full(value=2**62, shape=x.shape, dtype=I64)
    result: Value = ops.reduce_min(ops.select(found, place, beyond), axes=(axis,))
    return result


@splitting.rule(ops.argmax, ops.argmin)
def split_position(node: Node, x: Complex) -> Value:
    return _position(x, node.params["axis"], node.op is ops.argmax)


@splitting.rule(ops.reduce_max, ops.reduce_min)
def split_extreme_of_all(node: Node, x: Complex) -> Complex:
    """The element at the position of the extreme: a maximum over that one alone."""
    for axis in reversed(node.params["axes"]):
        place = _position(x, axis, node.op is ops.reduce_max)
        kept = tuple(a for a in range(x.ndim) if a != axis)
        there = ops.eq(ops.iota(shape=x.shape, axis=axis, dtype=I64), ops.broadcast(place, shape=x.shape, axes=kept))
        nothing = number(x.re, float("-inf"))
        parts = (ops.reduce_max(ops.select(there, part, nothing), axes=(axis,)) for part in (x.re, x.im))
        x = Complex(*parts)
    return x


@splitting.rule(ops.sort)
def split_sort(node: Node, x: Complex) -> Complex:
    return _along(x, _order(x, node.params["axis"]), node.params["axis"])


@splitting.rule(ops.argsort)
def split_argsort(node: Node, x: Complex) -> Value:
    if node.params["kind"] != "stable" and node.output.aval.is_static:  # where equal elements go, only NumPy's own sort tells
        (order,) = call_by_parts(node, function_of(node), (x,))
        assert isinstance(order, Value)
        return order
    return _order(x, node.params["axis"])


def _order(x: Complex, axis: int) -> Value:
    """By the imaginary parts, then by the real ones, then nan to the end: stable sorts, the weightiest last."""
    order: Value = ops.argsort(x.im, axis=axis, kind="stable")
    bad = ops.convert(ops.isnan(x.re), dtype=I64) * 2 + ops.convert(ops.isnan(x.im), dtype=I64)
    for key in (x.re, bad):
        again = ops.argsort(_taken(key, order, axis), axis=axis, kind="stable")
        order = _taken(order, again, axis)
    return order


def _along(x: Complex, order: Value, axis: int) -> Complex:
    return Complex(_taken(x.re, order, axis), _taken(x.im, order, axis))


def _taken(x: Value, order: Value, axis: int) -> Value:
    """x[..., order, ...] along an axis, row by row."""
    places = [order if a == axis else ops.iota(shape=x.shape, axis=a, dtype=I64) for a in range(x.ndim)]
    taken: Value = ops.gather(x, *places, axis=0)
    return taken
