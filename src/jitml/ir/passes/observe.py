"""Errors of what is computed in vain.

NumPy computes what it is told to, and warns. Here an element is computed where a user needs it (`demand.py`). What may warn and
has no user for some of its elements gets an `observe`. Passes after this one keep to what was found: a region has what it takes
in in memory, all of it, so where one stops to take something in, `let_go` says so (`observable_errors.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import is_heard
from jitml.ir.analysis.limits import indices_outside, intervals
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts
from jitml.ir.passes.demand import NOTHING, SOME, WHOLE, Demand, asked, demanded
from jitml.ir.passes.observable_errors import may_warn
from jitml.ir.passes.trim import needed


def observe_errors(graph: Graph) -> Graph:
    """Let what raises floating-point errors, or an index error, be computed though nothing needs all of it.

    `x / y` whose result is dropped or overwritten, or of which only a part is read, would not be computed at all here. Errors
    that `np.errstate` ignores are no reason. One reverse sweep, with what is demanded of each value.
    """
    return _DemandSweep(graph, range(len(graph.outputs))).graph()


class _DemandSweep:
    """The sweep over one graph.

    Args:
        wanted: positions of the outputs that are needed.
    """

    def __init__(self, graph: Graph, wanted: Iterable[int]) -> None:
        self.source = graph
        self.demands: dict[Value, Demand] = {}
        self.nodes: list[Node] = []
        self.makers = graph.producers()
        self.known = intervals(graph) if any(node.op in (ops.gather, ops.scatter) for node in graph.nodes) else {}
        self.need(graph.outputs[position] for position in wanted)
        for node in reversed(graph.nodes):
            self.place(node)

    def graph(self) -> Graph:
        return replace(self.source, nodes=tuple(reversed(self.nodes)))

    def of(self, value: Value) -> Demand:
        """What is demanded of a value."""
        return self.demands.get(value, NOTHING)

    def ask(self, value: Value, demand: Demand) -> None:
        before = self.of(value)
        if not before.is_whole and not demand.is_nothing:
            self.demands[value] = demanded(value, before, demand)

    def need(self, values: Iterable[Value]) -> None:
        for value in values:
            self.ask(value, WHOLE)

    def place(self, node: Node) -> None:
        if node.bodies:
            self.region(node)
            return
        if len(node.outputs) == 1 and self.is_observed(node):
            self.observe(node, node.output)
        self.nodes.append(node)
        if node.op is ops.bind or not node.inputs:
            return
        if len(node.outputs) == 1 and (node.op is ops.check or not node.has_effect):
            for v, demand in zip(node.inputs, asked(node, self.of(node.output)), strict=True):
                self.ask(v, demand)
        elif node.has_effect or any(self.of(v).is_sure for v in node.outputs):
            self.need(node.inputs)
        elif not all(self.of(v).is_nothing for v in node.outputs):
            for v in node.inputs:
                self.ask(v, SOME)

    def observe(self, node: Node, value: Value) -> None:
        self.nodes.append(Node(ops.observe, (value,), {}, (), node.source))
        self.ask(value, WHOLE)

    def is_observed(self, node: Node) -> bool:
        demand = self.of(node.output)
        if node.op in (ops.gather, ops.scatter):
            return not demand.is_sure and any(indices_outside(node, self.known))  # its indices are to be checked
        return not demand.is_whole and 0 not in node.output.shape and may_warn(node, self.makers)

    def region(self, node: Node) -> None:
        """A region with its bodies swept: they make what is needed of its results, from what is in memory then."""
        used = [k for k, v in enumerate(node.outputs) if not self.of(v).is_nothing]
        wanted = used if node.op is ops.cond else needed(Parts.of(node), used)
        sweeps = {name: _DemandSweep(body, [0] if name == "test" else wanted) for name, body in node.bodies.items()}
        after = replace(node, params={**node.params, **{name: sweep.graph() for name, sweep in sweeps.items()}})
        reasons = used or wanted  # what tells a while to go on is computed to know that, and NumPy warns of it
        if not any(self.of(node.outputs[k]).is_sure for k in reasons) and is_heard(node):
            for k in reasons:
                self.observe(node, node.outputs[k])
        used = [k for k, v in enumerate(node.outputs) if not self.of(v).is_nothing]
        self.nodes.append(after)
        if not used and not after.has_effect:
            return
        parts = Parts.of(after)
        self.need(parts.head)
        if node.op is not ops.cond:
            self.need(parts.carried[k] for k in needed(parts, used))
        for n, v in enumerate(parts.captured, parts.first + len(parts.carried)):
            if not all(sweep.of(sweep.source.inputs[n]).is_nothing for sweep in sweeps.values()):
                self.ask(v, WHOLE)
