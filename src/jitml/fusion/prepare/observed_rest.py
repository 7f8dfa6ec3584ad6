"""Errors of what is computed anyway: of which elements does nobody else hear?

`flux = c * u` of which `flux[1:]` and `flux[:-2]` are read is observed: NumPy computes its last element, too, and may warn. All
the others are computed by who reads them. If only the last one is observed, nobody needs `flux` in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from jitml.fusion.cost import recompute_pays, work_from_memory
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.demand import NOTHING, WHOLE, Box, Demand, asked, demanded, elements, undemanded
from jitml.kernels.target import Cost

SMALL = 4096  # elements: to have so few in memory costs less than another kernel
_MOST_BOXES = 4
_LEAST_SAVED = 4  # times as many elements as are observed


def observe_the_rest(graph: Graph, is_point: Callable[[Node], bool], cost: Cost) -> Graph:
    """The same graph, where of a large array that is quickly computed again only those elements are observed that no other node
    computes.

    Args:
        is_point: whether a node's result can be computed at one index alone.
    """
    observed = {node.inputs[0] for node in graph.nodes if node.op is ops.observe}
    large = {v for v in observed if v.aval.is_static and v.ndim and v.capacity >= SMALL}
    if not large:
        return graph
    rests = {v: boxes for v, boxes in _rests(graph, observed).items() if v in large and _are_few(v, boxes)}
    if not rests:
        return graph
    work = work_from_memory(graph, {v: is_point(n) for v, n in graph.producers().items()}, cost)
    users = graph.users()
    nodes: list[Node] = []
    for node in graph.nodes:
        value = node.inputs[0] if node.op is ops.observe else None
        if value in rests and value in work and recompute_pays(value, work[value], len(users[value]) * value.capacity, cost):
            for box in rests[value]:
                nodes += _observed_part(value, box, node)
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _rests(graph: Graph, observed: set[Value]) -> Mapping[Value, tuple[Box, ...]]:
    """Observed values, and what no other node computes of them. More may be said than is so."""
    demands: dict[Value, Demand] = dict.fromkeys(graph.outputs, WHOLE)
    found: dict[Value, tuple[Box, ...]] = {}
    for node in reversed(graph.nodes):
        if len(node.outputs) != 1 or node.bodies or node.has_effect or not node.inputs or node.op in (ops.observe, ops.bind):
            continue
        value = node.output
        demand = demands.get(value, NOTHING)
        if value in observed:
            if value.aval.is_static and node.op.is_pointwise:
                found[value] = undemanded(value, demand)
            demand = WHOLE
        for v, asks in zip(node.inputs, asked(node, demand), strict=True):
            demands[v] = demanded(v, demands.get(v, NOTHING), asks)
    return found


def _are_few(value: Value, boxes: tuple[Box, ...]) -> bool:
    return len(boxes) <= _MOST_BOXES and _LEAST_SAVED * sum(map(elements, boxes)) <= value.capacity


def _observed_part(value: Value, box: Box, observe: Node) -> tuple[Node, Node]:
    part = Value(value.aval.with_shape(tuple(hi - lo for lo, hi in box)))
    start, stop = tuple(lo for lo, _ in box), tuple(hi for _, hi in box)
    params = {"start": start, "stop": stop, "step": (1,) * len(box)}
    return Node(ops.slice, (value,), params, (part,), observe.source), Node(ops.observe, (part,), {}, (), observe.source)


__all__ = ["observe_the_rest"]
