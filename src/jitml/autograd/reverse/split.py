"""Linearization, the split: which part of a derivative depends on tangents?

A graph of values and tangents in two halves: what is known without any
tangent, and what is linear in them.

The known half is recorded; the linear one is a list of nodes that read values of the known half (residuals) and values of
its own. A region that tangents reach is halved too: a loop becomes a loop that keeps what its linear half will read, and a
linear loop that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from jitml.autograd.core.transpose import not_linear
from jitml.autograd.reverse.recompute_cost import is_light
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import RuleTable, recording
from jitml.ir.passes.bodies import Parts
from jitml.records import dataclass, replace


@dataclass(frozen=True)
class Halves:
    """A graph in two halves.

    Args:
        known: holds the known half; its inputs are the known inputs of the graph.
        linear: the nodes of the other half, in order.
        inputs: for each input of the graph, what stands for it: in the known half, or a tangent.
        outputs: for each output of the graph, what stands for it.
        tangents: the values of the linear half, its inputs among them.
    """

    known: GraphBuilder
    linear: Sequence[Node]
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    tangents: Collection[Value]

    def read(self, outputs: Iterable[Value]) -> list[Value]:
        """The known values that the linear half reads, if it makes those outputs; values of sizes included."""
        values = [v for node in self.linear for v in node.inputs] + list(outputs)
        binders = {node.params["sym"]: node.inputs[0] for node in self.known.nodes if node.op is ops.bind}
        shaped = [sym for v in self.inputs if v in self.tangents for sym in v.aval.syms]
        syms = sorted({*shaped, *(sym for node in self.linear for sym in node.syms)}, key=lambda sym: sym.serial)
        return list(dict.fromkeys([*(v for v in values if v not in self.tangents), *(binders[sym] for sym in syms)]))


# Of a region that tangents reach, its inputs replaced by values of the halves, the tangents so far, and the known values that
# the linear half may read for little (None: all) -> what stands for its results, and the linear nodes. Records the known half.
Halve = Callable[[Node, Collection[Value], Collection[Value] | None], tuple[Sequence[Value], Sequence[Node]]]

halving: RuleTable[Halve] = RuleTable("halving", "autograd/rules")


def halve(graph: Graph, moving: Collection[Value], cheap: Collection[Value] | None = None) -> Halves:
    """Split a graph by what depends on the inputs `moving`.

    Args:
        cheap: the inputs that the linear half may read for little, as what is easily made of them; None: it may read anything.
            Of other values each iteration of a loop around saves a copy.
    """
    known = GraphBuilder()
    env = {v: Value(v.aval) if v in moving else known.add_input(v.aval) for v in graph.inputs}
    tangents = {env[v] for v in moving}
    readable = None if cheap is None else {env[v] for v in cheap}
    linear: list[Node] = []
    with recording(known):
        for node in graph.nodes:
            inputs = tuple([env[v] for v in node.inputs])
            outs: Sequence[Value]
            if tangents.isdisjoint(inputs):
                outs = known.emit(node.op, inputs, node.params, tuple([v.aval for v in node.outputs]), node.source)
                if readable is not None and is_light(node) and readable.issuperset(inputs):
                    readable.update(outs)
            elif node.op is ops.bind:
                raise not_linear("a size or place", node)
            elif node.bodies:
                with known.at(node.source):
                    outs, linear_nodes = halving[node.op](replace(node, inputs=inputs), tangents, readable)
                linear += linear_nodes
                tangents.update(v for linear_node in linear_nodes for v in linear_node.outputs)
            else:
                linear.append(Node(node.op, inputs, node.params, tuple([Value(v.aval) for v in node.outputs]), node.source))
                outs = linear[-1].outputs
                tangents.update(outs)
            env.update(zip(node.outputs, outs, strict=True))
    return Halves(known, linear, [env[v] for v in graph.inputs], [env[v] for v in graph.outputs], tangents)


def reached(graph: Graph, moving: Iterable[Value]) -> set[Value]:
    """The values of a graph that depend on some of its inputs; of a region's results, those that do."""
    found = set(moving)
    for node in graph.nodes:
        if found.isdisjoint(node.inputs):
            continue
        if not node.bodies:
            found.update(node.outputs)
            continue
        parts = Parts.of(node)
        while True:
            # What is carried starts the next iteration as it ended the last; if there is none it is the result.
            carried = [found.intersection(pair) for pair in zip(node.outputs, parts.carried)]
            held = [*carried, *(found.intersection([x]) for x in parts.captured)]
            more = {v for v, origin in zip(node.outputs, carried) if origin}
            for name, body in node.bodies.items():
                inside = reached(body, (v for v, origin in zip(body.inputs[parts.first :], held) if origin))
                more |= {v for v, after in zip(node.outputs, body.outputs) if after in inside and name != "test"}
            if more <= found:
                break
            found |= more
    return found
