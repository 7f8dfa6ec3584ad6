"""Dead code elimination."""

from __future__ import annotations

from dataclasses import replace

from jitml.ir import ops
from jitml.ir.graph import Graph, Node


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes that no output depends on.

    One reverse sweep: when a node is reached, all its users have been seen. Tracing turned mutation into values, so
    the only effects left are those an op declares. A size is bound as long as something mentions it. O(nodes + edges).
    """
    live = set(graph.outputs)
    sizes = {sym for v in (*graph.inputs, *graph.outputs) for sym in v.aval.syms}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        needed = node.params["sym"] in sizes if node.op is ops.bind else not live.isdisjoint(node.outputs)
        if needed or node.has_effect:
            live.update(node.inputs)
            sizes |= node.syms
            kept.append(node)
    return replace(graph, nodes=tuple(reversed(kept)))
