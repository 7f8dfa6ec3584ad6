"""What two recorded branches become: a `cond` node, or, where both cost next to nothing, a choice between their results."""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import is_heard
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import BOOL
from jitml.trace.carried.body import RegionBody
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.booleans import as_value, choose

_MOST_INLINED = 8
_CHEAP = {
    ops.full, ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge, ops.bit_and, ops.bit_or, ops.bit_xor, ops.bit_not, ops.select,
    ops.add, ops.sub, ops.mul, ops.neg, ops.abs, ops.minimum, ops.maximum, ops.convert, ops.isnan, ops.isinf, ops.isfinite,
}  # fmt: skip


def conditional(test: Value, then: RegionBody, orelse: RegionBody, xs: list[Value], ys: list[Value]) -> list[Value]:
    """The results of a cond: what is the same in both branches, or known outside, is taken from there."""
    graphs: list[Graph] = []
    outer: list[list[Value]] = []
    for body, ends in ((then, xs), (orelse, ys)):
        body.resume()
        graph, captured = body.finish((), ends)
        body.suspend()
        graphs.append(graph)
        outer.append(captured)
    outside = [dict(zip(graph.inputs, captured)) for graph, captured in zip(graphs, outer)]
    results: list[Value | None] = []
    for x, y in zip(graphs[0].outputs, graphs[1].outputs):
        known = outside[0].get(x)
        results.append(known if known is not None and known is outside[1].get(y) else None)
    wanted = [n for n, result in enumerate(results) if result is None]
    graphs = [Graph(g.inputs, g.nodes, tuple(g.outputs[n] for n in wanted)) for g in graphs]
    effects = any(map(_has_effect, graphs))
    if wanted and not effects and all(_is_cheap(graph) for graph in graphs):
        made = _chosen(test, graphs, outer)
    elif wanted or effects:
        made = _cond(test, graphs, outer)
    else:
        made = []
    for n, value in zip(wanted, made):
        results[n] = value
    return [value for value in results if value is not None]


def _has_effect(graph: Graph) -> bool:
    """Whether a branch does more than to make its results: others may hear of errors in what it computes in vain."""
    needed = set(_needed(graph))
    return any(node.has_effect or (node not in needed and is_heard(node)) for node in graph.nodes)


def _is_cheap(graph: Graph) -> bool:
    """Whether computing both sides and choosing costs less than a branch: a few operations on scalars that cannot fail."""
    nodes = _needed(graph)
    return (
        len(nodes) <= _MOST_INLINED
        and all(node.op in _CHEAP and all(v.shape == () for v in (*node.inputs, *node.outputs)) for node in nodes)
        and all(v.shape == () for v in graph.outputs)
    )


def _needed(graph: Graph) -> list[Node]:
    live = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def _chosen(test: Value, graphs: list[Graph], outer: list[list[Value]]) -> list[Value]:
    builder = active_trace().builder
    sides = [
        builder.inline(Graph(graph.inputs, tuple(_needed(graph)), graph.outputs), captured)
        for graph, captured in zip(graphs, outer)
    ]
    return [as_value(choose(test, x, y)) if x.dtype == BOOL else ops.select(test, x, y) for x, y in zip(*sides)]


def _cond(test: Value, graphs: list[Graph], outer: list[list[Value]]) -> list[Value]:
    """The node; both branches get the same inputs, and bind all sizes that those mention."""
    sizes = active_trace().sizes.values
    captured = list(dict.fromkeys(v for values in outer for v in values))
    mentioned = sorted({sym for v in captured for sym in v.aval.syms}, key=lambda sym: sym.serial)
    captured = list(dict.fromkeys((*captured, *(sizes[sym] for sym in mentioned))))
    unified = []
    for graph, values in zip(graphs, outer):
        inner: dict[Value, Value] = {}
        replaced: dict[Value, Value] = {}
        for inside, outside in zip(graph.inputs, values):
            if outside in inner:
                replaced[inside] = inner[outside]
            inner.setdefault(outside, inside)
        for v in captured:
            inner.setdefault(v, Value(v.aval))
        bound = graph.binders()
        binds = [Node(ops.bind, (inner[sizes[sym]],), {"sym": sym}, ()) for sym in mentioned if sym not in bound]
        nodes = [_with_inputs(node, replaced) for node in graph.nodes]
        outputs = tuple(replaced.get(v, v) for v in graph.outputs)
        unified.append(Graph(tuple(inner[v] for v in captured), (*binds, *nodes), outputs))
    return list(ops.cond(test, *captured, then=unified[0], orelse=unified[1]))


def _with_inputs(node: Node, replaced: dict[Value, Value]) -> Node:
    if replaced.keys().isdisjoint(node.inputs):
        return node
    return Node(node.op, tuple(replaced.get(v, v) for v in node.inputs), node.params, node.outputs, node.source)
