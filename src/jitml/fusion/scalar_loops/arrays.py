"""Small arrays inside a kernel: sums and products over windows, and index maps whose rule needs to know a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from jitml.fusion.lower.linalg.factorizations import SMALL, is_small, write_small
from jitml.fusion.lower.points import Index
from jitml.fusion.lower.reductions import REDUCTIONS, Reduction
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.scalar_loops.body import MOST_ELEMENTS, GraphBody, Held, Lazy, rolled
from jitml.fusion.scalar_loops.order import NotRolled, is_single
from jitml.fusion.scalar_loops.windows import reads_of
from jitml.ir import ops
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Node, Value
from jitml.ir.ops.contraction import free_axes
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Apply, Const, Expr, Var, sub

Reducible: TypeAlias = Callable[[Index, Index], Scalar]  # at an index of the result, and one of what is summed


@rolled.rule(*REDUCTIONS)
def roll_reduction(body: GraphBody, node: Node, operands: list[Held]) -> None:
    (x,), shape, axes = operands, node.inputs[0].shape, node.params["axes"]
    kept = [a for a in range(len(shape)) if a not in axes]

    def element(outer: Index, inner: Index) -> Scalar:
        place = {**dict(zip(kept, outer)), **dict(zip(axes, inner))}
        return body.element(x, [place[a] for a in range(len(shape))], node.inputs[0].dtype)

    reduce(body, node, element, [shape[a] for a in axes], REDUCTIONS[node.op])


@rolled.rule(ops.dot_general)
def roll_dot_general(body: GraphBody, node: Node, operands: list[Held]) -> None:
    (x, y), (xs, ys) = operands, (node.inputs[0].shape, node.inputs[1].shape)
    (xb, yb), (xc, yc) = node.params["batch"], node.params["contract"]
    xf, yf = free_axes(len(xs), xb, xc), free_axes(len(ys), yb, yc)
    dtype = node.output.dtype
    if dtype.kind == "b" or dtype.itemsize < 4:
        raise NotRolled(f"a product of {dtype}")
    x, y = (
        body.stored(value, held) if isinstance(held, Lazy) and held.work > 0 and prod(map(bound, free)) > 1 else held
        for value, held, free in zip(node.inputs, operands, ([ys[a] for a in yf], [xs[a] for a in xf]), strict=True)
    )

    def element(outer: Index, inner: Index) -> Scalar:
        batch, rows, columns = outer[: len(xb)], outer[len(xb) : len(xb) + len(xf)], outer[len(xb) + len(xf) :]
        left = {**dict(zip(xb, batch)), **dict(zip(xf, rows)), **dict(zip(xc, inner))}
        right = {**dict(zip(yb, batch)), **dict(zip(yf, columns)), **dict(zip(yc, inner))}
        factors = (
            body.element(x, [left[a] for a in range(len(xs))], dtype),
            body.element(y, [right[a] for a in range(len(ys))], dtype),
        )
        return body.b.apply("mul", factors, dtype)

    reduce(body, node, element, [xs[a] for a in xc], Reduction("add"))


def reduce(body: GraphBody, node: Node, element: Reducible, shape: Sequence[Size], reduction: Reduction) -> None:
    """One cell for each element of the result."""
    out = node.output
    if prod(map(bound, (*shape, *out.shape))) > MOST_ELEMENTS:
        raise NotRolled(f"a reduction of {prod(map(bound, (*shape, *out.shape)))} elements")
    dtype = reduction.accumulator(out.dtype)

    def total(outer: Index) -> Scalar:
        cell = body.w.cell(Const(reduction.identity(dtype), dtype))

        def combine(inner: Index) -> None:
            body.w.update(cell, body.w.expr(body.b.convert(element(outer, inner), dtype)), reduction.combine)

        body.over(shape, combine)
        return body.b.convert(body.b.cell(cell, dtype), out.dtype)

    _define_each(body, out, total)


@rolled.rule(ops.argmax, ops.argmin)
def roll_position(body: GraphBody, node: Node, operands: list[Held]) -> None:
    """The first place of the extreme; the first nan is one."""
    (x,), out, axis = operands, node.output, node.params["axis"]
    dtype, fn = node.inputs[0].dtype, "gt" if node.op is ops.argmax else "lt"

    def found(outer: Index) -> Scalar:
        def at(place: Expr) -> Scalar:
            return body.element(x, (*outer[:axis], place, *outer[axis:]), dtype)

        best, where = body.w.cell(body.w.expr(at(Const(0)))), body.w.cell(Const(0))
        n = body.sizes.expr(node.inputs[0].shape[axis])
        with body.w.loop(n) as index:
            new, old = body.w.let(at(index)), body.b.cell(best, dtype)
            better = body.b.compare(fn, new, old)
            if dtype.kind == "f":
                first_nan = body.b.apply("bit_and", (body.b.compare("ne", new, new), body.b.compare("eq", old, old)), BOOL)
                better = body.b.apply("bit_or", (better, first_nan), BOOL)
            better = body.w.let(better)
            body.w.update(best, body.w.expr(body.b.select(better, new, old)))
            body.w.update(where, body.w.expr(body.b.select(better, body.b.index(index), body.b.cell(where, I64))))
        # Within the row, which nothing else would say of what a loop has left in a cell.
        return body.w.let(body.b.index(Apply("minimum", (Apply("maximum", (Var(where), Const(0))), sub(n, 1)))))

    _define_each(body, out, found)


@rolled.rule(*SMALL)
def roll_small_matrices(body: GraphBody, node: Node, operands: list[Held]) -> None:
    if not is_small(node, body.target):
        raise NotRolled(f"{node.op} of matrices that are left to a library")
    memories = [body.in_memory(v, held).memory for v, held in zip(node.inputs, operands, strict=True)]
    results = [body.scratch(v) for v in node.outputs]

    def read(operand: int, index: Index) -> Scalar:
        return body.b.load(memories[operand], index, node.inputs[operand].dtype)

    def write(result: int, index: Index, value: Scalar) -> None:
        body.w.store(results[result].memory, index, body.w.expr(value))

    body.over(node.inputs[0].shape[:-2], lambda at: write_small(body.w, node, at, read, write))
    for out, result in zip(node.outputs, results, strict=True):
        zeros = (Const(0),) * out.ndim
        body.define(out, body.b.load(result.memory, zeros, out.dtype) if is_single(out) else result)


def _define_each(body: GraphBody, out: Value, element: Callable[[Index], Scalar]) -> None:
    """A result of which each element is computed where it stands."""
    if is_single(out):
        body.define(out, element((Const(0),) * out.ndim))
        return
    array = body.scratch(out)
    body.over(out.shape, lambda index: body.w.store(array.memory, index, body.w.expr(element(index))))
    body.define(out, array)


@rolled.rule(ops.reshape)
def roll_reshape(body: GraphBody, node: Node, operands: list[Held]) -> None:
    """Axes of one element come and go, whatever the others are; the rest as elsewhere."""
    (x,), before, after = operands, node.inputs[0].shape, node.output.shape
    if isinstance(x, Scalar) or [n for n in before if n != 1] != [n for n in after if n != 1]:
        body.point(node)
        return

    def at(index: Index) -> Scalar:
        rest = iter([i for i, n in zip(index, after) if n != 1])
        return body.element(x, [Const(0) if n == 1 else next(rest) for n in before], node.output.dtype)

    if is_single(node.output):
        body.define(node.output, at((Const(0),) * node.output.ndim))
    else:
        body.define(node.output, Lazy(at, reads_of(x), x.work if isinstance(x, Lazy) else 0.0))
