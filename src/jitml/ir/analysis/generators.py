"""Generators among inputs: which inputs of a graph are generators that it draws from?"""

from __future__ import annotations

from collections.abc import Collection

from jitml.ir import ops
from jitml.ir.graph import Graph, Value


def generators_in(graph: Graph) -> tuple[int, ...]:
    """Positions of the inputs that hold addresses of generators, or that draws inside regions take for such."""
    return tuple(sorted(_drawn_from(graph, ())))


def _drawn_from(graph: Graph, handed_on: Collection[Value]) -> set[int]:
    """Backwards from the draws and from outputs that are addresses."""
    addresses = set(handed_on)
    for node in reversed(graph.nodes):
        draws = node.op is ops.random or (node.op is ops.draw and node.params["function"].draws)
        if draws or (node.op is ops.check and node.output in addresses):
            addresses.add(node.inputs[0])
        # What a loop's body has for the count is its index.
        operands = node.inputs[1:] if node.op is ops.cond else node.inputs
        for name, body in node.bodies.items():
            outputs = [] if name == "test" else [v for v, out in zip(body.outputs, node.outputs) if out in addresses]
            addresses.update(operands[n] for n in _drawn_from(body, outputs))
    return {n for n, v in enumerate(graph.inputs) if v in addresses}
