"""Regions whose course is known."""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts, inlined
from jitml.ir.passes.observable_errors import let_go
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import I64


def unwrap_regions(graph: Graph) -> Graph:
    """Put bodies that run exactly once in their region's place, and drop those that never run.

    A `cond` whose condition is a number, a loop of no iteration or of one, a while that stops at once.
    """
    if not graph.has_regions:
        return graph
    bound: set[Sym] = set()

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op is ops.bind and node.params["sym"] in bound:
            return ()  # a body that now stands before it has bound the size
        results = _unwrapped(node, producers, bound)
        if results is None:
            return None
        for v in dict.fromkeys(node.inputs):
            let_go(v, producers)  # it was to be in memory, whatever the body reads of it
        return results

    return sweep(graph, visit)


def _unwrapped(node: Node, producers: Producers, bound: set[Sym]) -> tuple[Value, ...] | None:
    """The results of a region whose course is known; `bound` learns of the sizes that the body in its place binds."""
    if not node.bodies:
        return None
    parts = Parts.of(node)
    if node.op is ops.while_:
        test = parts.bodies["test"]
        stops = _number(test.outputs[0], test.producers()) == 0 and not any(inner.has_effect for inner in test.nodes)
        return parts.carried if stops else None
    known = _number(parts.head[0], producers)
    if known is None:
        return None
    if node.op is ops.loop and known != 1:
        return parts.carried if known <= 0 else None
    index = (ops.full(value=0, shape=(), dtype=I64),) if node.op is ops.loop else ()
    body = parts.bodies["body" if node.op is ops.loop else "then" if known else "orelse"]
    bound.update(body.binders())
    return inlined(body, (*index, *parts.carried, *parts.captured))


def _number(value: Value, producers: Producers) -> int | None:
    maker = producers.get(value)
    return int(maker.params["value"]) if maker is not None and maker.op is ops.full else None
