"""Read-back of updates: which values are read again from where they were written?

Those that an update in place has stored anyway.

`B[1:-1] = f(A); A[1:-1] = g(B)` reads in g what f has just made. Simplification hands g the value itself, which fusion would
compute once more or keep a second time; but it lies in B now, and A can then change in place without being read again.
"""

from __future__ import annotations

from dataclasses import replace

from jitml.fusion.lower.points import targets
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value

_CHEAP = ("index_maps", "dynamic", "regions")  # costs nothing to compute again, or lies in memory


def read_back(graph: Graph, in_place: frozenset[Value]) -> Graph:
    """The same graph with computed parts of arrays read from the array, after an update has put them there.

    Not where the array before the update is read later: that must stay free to happen before it.

    Args:
        in_place: inputs that may be overwritten.
    """
    makers, users = graph.producers(), graph.users()
    order = {node: k for k, node in enumerate(graph.nodes)}
    stored: dict[Value, tuple[int, Node]] = {}  # part -> the update that stores it, and when
    for k, node in enumerate(graph.nodes):
        if node.op in targets:
            whole, part = node.inputs[:2]
            maker, before = makers.get(part), makers.get(whole)
            lies_there = whole in in_place if before is None else before.op in targets or bool(before.bodies)
            computed = maker is not None and maker.op.family not in _CHEAP
            fits = part.aval.is_static or node.op is ops.dynamic_update_slice
            if computed and lies_there and fits and part.capacity and all(order[user] <= k for user in users[whole]):
                stored[part] = k, node
    if not any(order[user] > k for part, (k, _) in stored.items() for user in users[part]):
        return graph
    nodes: list[Node] = []
    again: dict[Value, Value] = {}
    for k, node in enumerate(graph.nodes):
        nodes.append(replace(node, inputs=tuple(again.get(v, v) for v in node.inputs)))
        for part in node.inputs[1:2]:
            if stored.get(part, (-1, None))[0] == k and any(order[user] > k for user in users[part]):
                again[part] = Value(part.aval)
                nodes.append(_window(node, again[part]))
    return replace(graph, nodes=tuple(nodes))


def _window(update: Node, out: Value) -> Node:
    """The part of the updated array that was replaced."""
    step = update.params["step"]
    if update.op is ops.update_slice:
        start = update.params["start"]
        stop = tuple(a + (n - 1) * s + 1 for a, n, s in zip(start, out.shape, step))
        return Node(ops.slice, update.outputs, {"start": start, "stop": stop, "step": step}, (out,), update.source)
    params = {"sizes": out.shape, "step": step}
    return Node(ops.dynamic_slice, (*update.outputs, *update.inputs[2:]), params, (out,), update.source)
