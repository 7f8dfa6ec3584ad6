"""Passes over regions: how does a pass reach into regions?

`everywhere` runs any pass on bodies too; `Parts` takes a region apart to be rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any

from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import active_recorder, recording
from jitml.records import dataclass, replace

Pass = Callable[[Graph], Graph]
_NOTHING: Mapping[Value, Any] = {}


def everywhere(apply: Pass) -> Pass:
    """The pass that does to every body, from the inside out, and then to the graph, what `apply` does.

    What it leaves as it was stays the same object.
    """

    def deep(graph: Graph) -> Graph:
        if not graph.has_regions:
            return apply(graph)
        nodes = tuple([inside(node) if node.op.has_bodies else node for node in graph.nodes])
        return apply(graph if all(map(is_, nodes, graph.nodes)) else replace(graph, nodes=nodes))

    def inside(node: Node) -> Node:
        bodies = {name: deep(body) for name, body in node.bodies.items()}
        is_same = all(body is node.params[name] for name, body in bodies.items())
        return node if is_same else replace(node, params={**node.params, **bodies})

    return deep


@dataclass(frozen=True)
class Parts:
    """A region as passes see it: `head` (trip, condition, or nothing), what is carried, what is captured, and the bodies.

    Inputs of every body: `first` ones that the region itself gives (a loop's index), the carried ones, the captured ones.
    """

    node: Node
    head: tuple[Value, ...]
    carried: tuple[Value, ...]
    captured: tuple[Value, ...]
    bodies: Mapping[str, Graph]

    @classmethod
    def of(cls, node: Node) -> Parts:
        heads = 0 if node.op is ops.while_ else 1
        carried = node.params.get("carried", 0)
        head, operands = node.inputs[:heads], node.inputs[heads:]
        return cls(node, head, operands[:carried], operands[carried:], node.bodies)

    @property
    def first(self) -> int:
        return 1 if self.node.op is ops.loop else 0

    @property
    def body(self) -> Graph:
        """The body that makes what is carried."""
        return self.bodies["body"]

    def inputs(self, body: Graph) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """A body's carried and captured inputs."""
        middle = self.first + len(self.carried)
        return body.inputs[self.first : middle], body.inputs[middle:]

    def record(self) -> tuple[Value, ...]:
        """Record the region; returns its results."""
        params: dict[str, Any] = {**self.node.params, **self.bodies}
        if self.node.op is not ops.cond:
            params["carried"] = len(self.carried)
        results: tuple[Value, ...] = self.node.op(*self.head, *self.carried, *self.captured, **params)
        return results


def rebuilt(
    graph: Graph,
    inputs: Iterable[Value],
    outputs: Iterable[Value],
    made: Mapping[Value, Callable[[], Any]] = _NOTHING,
    same: Mapping[Value, Value] = _NOTHING,
) -> Graph:
    """The same nodes under another signature.

    Args:
        inputs, outputs: values of the graph.
        made: former inputs, and what computes them now.
        same: former inputs, and those that they equal.
    """
    b = GraphBuilder()
    env = {v: b.add_input(v.aval) for v in inputs}
    with recording(b):
        env |= {v: make() for v, make in made.items()}
    env |= {v: env[other] for v, other in same.items()}
    for node in graph.nodes:
        outs = tuple(Value(v.aval) for v in node.outputs)
        b.append(Node(node.op, tuple(env[v] for v in node.inputs), node.params, outs, node.source))
        env.update(zip(node.outputs, outs, strict=True))
    return b.build([env[v] for v in outputs])


def inlined(graph: Graph, args: Iterable[Value]) -> tuple[Value, ...]:
    """Copy a body's nodes to where a pass is recording. Sizes that are bound there already are not bound again."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    bound = {node.params["sym"] for node in b.nodes if node.op is ops.bind}
    kept = tuple(node for node in graph.nodes if node.op is not ops.bind or node.params["sym"] not in bound)
    return b.inline(replace(graph, nodes=kept), tuple(args))
