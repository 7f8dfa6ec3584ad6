"""Dead code elimination: nodes that nobody needs go."""

from __future__ import annotations

from dataclasses import replace

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value

_ARITHMETIC = (ops.add, ops.sub, ops.mul, ops.floor_divide, ops.minimum, ops.maximum)


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes that no output depends on.

    One reverse sweep: when a node is reached, all its users have been seen. Tracing turned mutation into values, so
    the only effects left are those an op declares. A size is bound as long as something mentions it or a loop runs so often:
    its limits are those of the loop's index. O(nodes + edges).
    """
    live = set(graph.outputs)
    binds = any(node.op is ops.bind for node in graph.nodes)
    sizes = {sym for v in (*graph.inputs, *graph.outputs) for sym in v.aval.syms}
    trips: set[Value] = set()
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.op is ops.bind:
            needed = node.params["sym"] in sizes or node.inputs[0] in trips
        else:
            needed = not live.isdisjoint(node.outputs)
        if needed or node.has_effect:
            if node.op is ops.loop:
                trips.add(node.inputs[0])
            elif not trips.isdisjoint(node.outputs) and node.op in _ARITHMETIC:
                trips.update(node.inputs)
            live.update(node.inputs)
            if binds:
                sizes |= node.syms
            kept.append(node)
    return replace(graph, nodes=tuple(reversed(kept))) if len(kept) < len(graph.nodes) else graph
