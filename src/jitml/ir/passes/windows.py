"""Which part of an array a region reads, the region says itself: then nothing is copied in front of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts
from jitml.ir.rewrite import Producers, sweep


def sink_windows(graph: Graph) -> Graph:
    """Where a region captures the start of an array, up to a size that is a value, it captures the array and takes that inside.

    Loops carry arrays whose sizes change in memory of their largest size. What they do with them, a branch say, would get a copy.
    """
    if not graph.has_regions:
        return graph

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if not node.bodies:
            return None
        parts = Parts.of(node)
        makers = {k: producers[v] for k, v in enumerate(parts.captured) if v in producers}
        windows = {k: maker for k, maker in makers.items() if _is_open_start(maker, producers)}
        if not windows:
            return None
        captured = tuple(windows[k].inputs[0] if k in windows else v for k, v in enumerate(parts.captured))
        bodies = {name: _with_windows(body, parts.inputs(body)[1], windows) for name, body in parts.bodies.items()}
        return replace(parts, captured=captured, bodies=bodies).record()

    return sweep(graph, visit)


def _is_open_start(node: Node, producers: Producers) -> bool:
    return node.op is ops.dynamic_slice and bool(node.syms) and is_start(node, producers)


def is_start(node: Node, producers: Producers) -> bool:
    """Whether a node reads, or writes, a window that begins where its array does, element by element."""
    if node.op not in (ops.dynamic_slice, ops.dynamic_update_slice) or any(s != 1 for s in node.params["step"]):
        return False
    starts = [producers.get(v) for v in node.inputs[-len(node.params["step"]) :]]
    return all(maker is not None and maker.op is ops.full and maker.params["value"] == 0 for maker in starts)


def _with_windows(body: Graph, captured: Sequence[Value], windows: Mapping[int, Node]) -> Graph:
    """The body with other inputs, and the nodes that take the windows out of those after the sizes are bound."""
    inside = {captured[k]: Value(window.inputs[0].aval) for k, window in windows.items()}
    taken: list[Node] = []
    for k, window in windows.items():
        starts = tuple(Value(v.aval) for v in window.inputs[1:])
        taken += [Node(ops.full, (), {"value": 0, "shape": (), "dtype": v.dtype}, (v,)) for v in starts]
        taken.append(Node(window.op, (inside[captured[k]], *starts), window.params, (captured[k],), window.source))
    bound = [node for node in body.nodes if node.op is ops.bind and node.inputs[0] in body.inputs]
    rest = [node for node in body.nodes if node not in bound]
    inputs = tuple(inside.get(v, v) for v in body.inputs)
    return replace(body, inputs=inputs, nodes=(*bound, *taken, *rest))
