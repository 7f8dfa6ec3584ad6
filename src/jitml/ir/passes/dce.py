"""Dead code elimination."""

from __future__ import annotations

from dataclasses import replace

from jitml.ir.graph import Graph, Node


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes that no output depends on.

    One reverse sweep: when a node is reached, all its users have been seen. Tracing turned mutation into values, so
    the only effects left are those an op declares. O(nodes + edges).
    """
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.op.has_effect or not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            kept.append(node)
    return replace(graph, nodes=tuple(reversed(kept)))
