"""Inlining: calls become what they compute, once no transform is to come."""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import everywhere, inlined
from jitml.ir.rewrite import Producers, sweep

_CALLED = {ops.custom_jvp: "call", ops.custom_vjp: "call", ops.checkpoint: "call", ops.again: "linear"}


def inline_calls(graph: Graph) -> Graph:
    """Put the graphs of calls in their place, and those of the calls inside of them, in their loops too, in turn."""
    if graph.ops.isdisjoint((*_CALLED, ops.keep)):
        return graph

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op is ops.keep:
            return node.inputs
        if node.op not in _CALLED:
            return None
        return inlined(everywhere(inline_calls)(node.params[_CALLED[node.op]]), node.inputs)

    return sweep(graph, visit)


def drop_barriers(graph: Graph) -> Graph:
    """Barriers have kept apart what was equal: what comes after the passes shares nothing of itself."""
    if ops.barrier not in graph.ops:
        return graph
    return sweep(graph, lambda node, producers: node.inputs if node.op is ops.barrier else None)
