"""Hoisting pointwise work above broadcasts."""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.rewrite import Producers, sweep


def hoist_broadcasts(graph: Graph) -> Graph:
    """Compute before repeating: `exp(broadcast x) -> broadcast(exp x)`.

    Fires where every operand is a broadcast of one small shape along the same axes, or a `full`, and the small shape
    has fewer elements. Gradients are full of such nodes: the cotangent of a sum is broadcast before it is scaled.
    """
    if ops.broadcast not in graph.ops:
        return graph

    def visit(node: Node, producers: Producers) -> Value | None:
        if not node.op.is_pointwise or node.output.ndim == 0:
            return None
        small: Value | None = None
        axes: tuple[int, ...] = ()
        for v in node.inputs:
            maker = producers.get(v)
            if maker is None or maker.op not in (ops.broadcast, ops.full):
                return None
            if maker.op is ops.full:
                continue
            source = maker.inputs[0]
            if small is not None and (source.shape != small.shape or maker.params["axes"] != axes):
                return None
            small, axes = source, maker.params["axes"]
        if small is None or small.capacity >= node.output.capacity:
            return None
        operands = [_before_broadcast(producers[v], small.shape) for v in node.inputs]
        result = node.op(*operands, **node.params)
        return ops.broadcast(result, shape=node.output.shape, axes=axes)

    return sweep(graph, visit)


def _before_broadcast(maker: Node, shape: tuple[int, ...]) -> Value:
    if maker.op is ops.broadcast:
        return maker.inputs[0]
    return ops.full(value=maker.params["value"], shape=shape, dtype=maker.params["dtype"])
