"""Sums of rows over fewer numbers: `((a @ v.T) * p).sum(axis=1)` is `(a * (p @ v)).sum(axis=1)`, where p @ v is there anyway.

The slope of a softmax takes such sums: of its values times cotangents, which in attention are a product. No pass over scores is
needed for them (Dao and others 2022, arXiv:2205.14135, appendix B.2).
"""

from __future__ import annotations

from collections.abc import Container

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.ops.contraction import free_axes
from jitml.ir.rewrite import Producers, sweep


def with_short_sums(graph: Graph, squares: Container[Value]) -> Graph:
    """The graph with such sums of squares; the same one if there are none."""

    def visit(node: Node, producers: Producers) -> Value | None:
        if node.op is not ops.reduce_sum or node.inputs[0] not in squares or node.params["axes"] != (node.inputs[0].ndim - 1,):
            return None
        factors, number = _factors(node.inputs[0], producers)
        for x, y in (factors, factors[::-1]) if len(factors) == 2 else ():
            product = producers.get(x)
            end = _end(product, y, producers) if product is not None and product.op is ops.dot_general else None
            if product is not None and end is not None:
                moved: Value = ops.mul(product.inputs[0], end)
                total: Value = ops.reduce_sum(moved, axes=(moved.ndim - 1,))
                return total if number == 1 else total * ops.full(value=number, shape=total.shape, dtype=total.dtype)
        return None

    return sweep(graph, visit)


def _factors(value: Value, producers: Producers) -> tuple[list[Value], float]:
    """What a value is the product of, and the number among that."""
    factors, number, waiting = list[Value](), 1.0, [value]
    while waiting:
        v = waiting.pop()
        maker = producers.get(v)
        if maker is not None and maker.op is ops.mul:
            waiting += maker.inputs
        elif maker is not None and maker.op is ops.neg:
            number = -number
            waiting += maker.inputs
        elif maker is not None and maker.op is ops.full:
            number *= maker.params["value"]
        else:
            factors.append(v)
    return factors, number


def _end(product: Node, square: Value, producers: Producers) -> Value | None:
    """The product of a square with the right factor of one that is of the square's shape, if it lies as the left factor does."""
    left, right = product.inputs
    (batch, of_right), (_, depth) = product.params["batch"], product.params["contract"]
    columns = free_axes(right.ndim, of_right, depth)
    first = tuple(range(square.ndim - 2))
    if batch != first or product.params["contract"][0] != (left.ndim - 1,) or left.ndim != square.ndim:
        return None
    params = {"batch": (first, of_right), "contract": ((square.ndim - 1,), columns)}
    for node in producers.values():
        if node.op is ops.dot_general and node.inputs == (square, right) and node.params == params:
            return node.output if node.output.shape == left.shape else None
    return None
