"""Checkpointed regions: which operations came from a call that derivatives are to compute again?

They are recorded like all others, and marked.

A function that is checkpointed thus writes its arguments, fills containers and returns views as any other does. When the graph
is finished, each stretch becomes one node, with what is read behind it for results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.records import dataclass, replace
from jitml.trace.record.parts import LocalPart
from jitml.trace.record.recording import active_trace, current_trace


@dataclass(frozen=True)
class CheckpointStretch:
    """Nodes of one call, in order, and what derivatives may keep of them."""

    nodes: tuple[Node, ...]
    policy: Any


class Checkpoints(list[CheckpointStretch], LocalPart):
    """Those of a trace, in the order in which they ended."""


@contextmanager
def checkpointed(policy: Any) -> Iterator[None]:
    """What is recorded inside the block is one stretch, unless the block raises."""
    trace = active_trace()
    before = len(trace.builder.nodes)
    yield
    nodes = tuple(trace.builder.nodes[before:])
    if nodes and current_trace() is trace:
        trace.local[Checkpoints].append(CheckpointStretch(nodes, policy))


def outlined(graph: Graph, stretches: Sequence[CheckpointStretch]) -> Graph:
    """The graph with a `checkpoint` for each stretch; those inside others come first. O(nodes · nesting)."""
    return _Outlining(graph).result(stretches) if stretches else graph


def _happens_once(node: Node) -> bool:
    """Whether it, or something in its graphs, draws random numbers, or is seen by others."""
    if node.op is ops.host_call:
        return bool(node.params["function"].postpones)
    return node.op in (ops.random, ops.draw) or any(
        _happens_once(inner) for graph in node.graphs.values() for inner in graph.nodes
    )


class _Outlining:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.positions = {node: n for n, node in enumerate(graph.nodes)}
        self.now = list(graph.nodes)  # which node stands for each by now
        self.readers: dict[Value, list[int]] = {}
        self.mentions: dict[Sym, list[int]] = {}
        for n, node in enumerate(graph.nodes):
            for v in node.inputs:
                self.readers.setdefault(v, []).append(n)
            if node.op is not ops.bind:
                for sym in node.syms:
                    self.mentions.setdefault(sym, []).append(n)
        self.returned = set(graph.outputs)
        self.sizes = {sym for v in graph.outputs for sym in v.aval.syms}
        self.binders = {node.params["sym"]: node for node in graph.nodes if node.op is ops.bind}

    def result(self, stretches: Sequence[CheckpointStretch]) -> Graph:
        for stretch in stretches:
            for run in self._runs(stretch):
                self._outline_run(run, stretch)
        return replace(self.graph, nodes=tuple(dict.fromkeys(self.now)))

    def _runs(self, stretch: CheckpointStretch) -> list[range]:
        """Where its nodes stand side by side. What happens once, and sizes that others mention, stay between two runs."""
        places = sorted(self.positions[node] for node in stretch.nodes if node in self.positions)
        places = [n for n in places if not _happens_once(self.graph.nodes[n])]
        while True:
            runs: list[range] = []
            for n in places:
                if runs and runs[-1].stop == n:
                    runs[-1] = range(runs[-1].start, n + 1)
                else:
                    runs.append(range(n, n + 1))
            bound = {n for run in runs for n in run if self._is_bound_behind(n, run)}
            if not bound:
                return runs
            places = [n for n in places if n not in bound]

    def _is_bound_behind(self, n: int, run: range) -> bool:
        node = self.graph.nodes[n]
        if node.op is not ops.bind:
            return False
        sym = node.params["sym"]
        is_mentioned = sym in self.sizes or any(at not in run for at in self.mentions.get(sym, ()))
        return is_mentioned or self._is_read_behind(node.inputs[0], run)

    def _is_read_behind(self, value: Value, run: range) -> bool:
        return value in self.returned or any(at not in run for at in self.readers.get(value, ()))

    def _outline_run(self, run: range, stretch: CheckpointStretch) -> None:
        nodes = list(dict.fromkeys(self.now[n] for n in run))
        made = {v for node in nodes for v in node.outputs}
        outputs = [v for node in nodes for v in node.outputs if self._is_read_behind(v, run)]
        if not outputs:
            return
        inputs = dict.fromkeys(v for node in nodes for v in node.inputs if v not in made)
        binds = self._bound_before(nodes, inputs)
        inputs.update(dict.fromkeys(node.inputs[0] for node in binds))
        b = GraphBuilder()
        results = b.inline(Graph(tuple(inputs), (*binds, *nodes), tuple(outputs)), [b.add_input(v.aval) for v in inputs])
        params = {"call": b.build(results), "policy": stretch.policy}
        call = Node(ops.checkpoint, tuple(inputs), params, tuple(outputs), nodes[0].source)
        for n in run:
            self.now[n] = call

    def _bound_before(self, nodes: Sequence[Node], inputs: dict[Value, None]) -> list[Node]:
        """Binds of the sizes that the nodes mention, or read as values, and do not bind themselves."""
        bound = {node.params["sym"] for node in nodes if node.op is ops.bind}
        mentioned = {sym for node in nodes for sym in node.syms}.union(*(v.aval.syms for v in inputs))
        mentioned |= {sym for sym, node in self.binders.items() if node.inputs[0] in inputs}
        missing = sorted(mentioned - bound, key=lambda sym: sym.serial)
        return [self.binders[sym] for sym in missing]
