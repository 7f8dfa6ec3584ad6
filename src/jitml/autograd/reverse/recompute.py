"""Rematerialization: what would reverse mode keep that costs less to compute again?

Large values made of small ones, and reduced to small ones.

The scores of attention are N² numbers made of N rows, and end as N rows. Such a stretch of a graph becomes a checkpoint, so that
the way back makes it once more and throws it away again: where it fits into the caches and what all of them keep does not, if
the work takes less time than the way to memory and back; and wherever more than JITML_SAVED_BYTES would be kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jitml.autograd.core.jvp import push
from jitml.autograd.reverse.budget import saved_bytes
from jitml.autograd.reverse.checkpoint import work_behind
from jitml.autograd.reverse.residuals import choose
from jitml.autograd.reverse.split import halve
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.types import is_inexact
from jitml.records import dataclass, replace

_LARGE = 1 << 20  # bytes of a value that is worth a look
_CACHES = 1 << 23  # bytes
_SWELLS = 4  # times more is kept than goes in and comes out
_OPERATIONS_PER_BYTE = 4  # in the time that a byte takes to memory and back


@dataclass(frozen=True)
class _SwollenStretch:
    """Nodes that belong together, in order; what they read from before, and what of theirs is read behind."""

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def nbytes(self) -> int:
        """What goes in and comes out."""
        return sum(v.aval.nbytes for v in (*self.inputs, *self.outputs))

    @property
    def largest(self) -> int:
        return max(v.aval.nbytes for node in self.nodes for v in node.outputs)

    @property
    def graph(self) -> Graph:
        return Graph(self.inputs, self.nodes, self.outputs)


def recomputing(graph: Graph) -> Graph:
    """The graph with checkpoints around what is to be computed again on the way back."""
    swelling = [(stretch, *_costs(stretch)) for stretch in _stretches(graph)]
    swelling = [(s, kept, work) for s, kept, work in swelling if kept > _SWELLS * s.nbytes]
    total = sum(kept for _, kept, _ in swelling)
    if total > saved_bytes():
        chosen = [s for s, _, _ in swelling]
    elif total > _CACHES:
        chosen = [s for s, kept, work in swelling if 2 * s.largest <= _CACHES and work < kept * _OPERATIONS_PER_BYTE]
    else:
        return graph
    return _wrapped(graph, chosen) if chosen else graph


def _costs(stretch: _SwollenStretch) -> tuple[int, int]:
    """How many bytes reverse mode would keep of a stretch, and how much work it is to make them again."""
    b = GraphBuilder()
    wrt = [n for n, v in enumerate(stretch.inputs) if is_inexact(v.dtype)]
    values, tangents = push(b, stretch.graph, wrt)
    derivative = eliminate_dead(b.build([*values, *(t for t in tangents if t is not None)]))
    halves = halve(derivative, derivative.inputs[len(stretch.inputs) :])
    makers = {v: node for node in halves.known.nodes for v in node.outputs}
    kept = choose(halves, halves.outputs[len(values) :], set(halves.known.inputs))
    return kept.nbytes, work_behind(kept.saved, makers, ())


def _stretches(graph: Graph) -> list[_SwollenStretch]:
    """Each group of nodes that hand large values to each other, and what makes small ones of them."""
    least = max(_LARGE, _SWELLS * max((v.aval.nbytes for v in graph.inputs), default=0))
    large = {v for node in graph.nodes for v in node.outputs if v.aval.nbytes >= least}
    found: list[_SwollenStretch] = []
    for group in _groups(graph, large):
        whole = _between(graph, group)
        nodes = tuple(node for node in graph.nodes if node in whole)
        made = {v for node in nodes for v in node.outputs}
        elsewhere = {v for node in graph.nodes if node not in whole for v in node.inputs}.union(graph.outputs)
        outputs = tuple(v for v in dict.fromkeys(v for node in nodes for v in node.outputs) if v in elsewhere)
        inputs = tuple(dict.fromkeys(v for node in nodes for v in node.inputs if v not in made))
        if all(map(_may_repeat, nodes)) and large.isdisjoint(outputs) and large.isdisjoint(inputs):
            found.append(_SwollenStretch(nodes, inputs, outputs))
    return found


def _may_repeat(node: Node) -> bool:
    return not (node.bodies or node.graphs or node.op.has_effect or node.syms) and all(v.aval.is_static for v in node.outputs)


def _groups(graph: Graph, large: Collection[Value]) -> Iterable[set[Node]]:
    """Nodes that touch a large value, as far as these connect them."""
    group_of: dict[Value, set[Node]] = {}
    for node in graph.nodes:
        touched = [v for v in (*node.inputs, *node.outputs) if v in large]
        if touched:
            merged = {node}.union(*(group_of.get(v, ()) for v in touched))
            for v in {v for member in merged for v in (*member.inputs, *member.outputs) if v in large}:
                group_of[v] = merged
    return {id(group): group for group in group_of.values()}.values()


def _between(graph: Graph, group: set[Node]) -> set[Node]:
    """The group, and what lies on a way from one of its nodes to another."""
    below: set[Value] = set()
    after: set[Node] = set()
    for node in graph.nodes:
        if node in group or not below.isdisjoint(node.inputs):
            below.update(node.outputs)
            after.add(node)
    above: set[Value] = set()
    whole: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in group or (node in after and not above.isdisjoint(node.outputs)):
            whole.add(node)
        if node in group or not above.isdisjoint(node.outputs):
            above.update(node.inputs)
    return whole


def _wrapped(graph: Graph, stretches: Sequence[_SwollenStretch]) -> Graph:
    """Each stretch as one node, where all that it reads has been made."""
    stretch_of = {node: stretch for stretch in stretches for node in stretch.nodes}
    makers = graph.producers()
    b = GraphBuilder()
    env = {v: b.add_input(v.aval) for v in graph.inputs}

    def make(first: Node) -> None:
        """What a node, or the stretch that it belongs to, waits for; then the node."""
        waiting: list[tuple[Node | _SwollenStretch, bool]] = [(stretch_of.get(first, first), False)]
        while waiting:
            unit, is_ready = waiting.pop()
            inputs, outputs = unit.inputs, unit.outputs
            if outputs and outputs[0] in env:
                continue
            if not is_ready:
                waiting.append((unit, True))
                before = [makers[v] for v in inputs if v not in env]
                waiting += [(stretch_of.get(node, node), False) for node in before]
            elif isinstance(unit, Node):
                here = tuple(env[v] for v in inputs)
                outs = b.emit(unit.op, here, unit.params, tuple(v.aval for v in outputs), unit.source)
                env.update(zip(outputs, outs, strict=True))
            else:
                with recording(b), b.at(unit.nodes[0].source):
                    outs = ops.checkpoint(*(env[v] for v in inputs), call=unit.graph, policy=None)
                env.update(zip(outputs, outs, strict=True))

    for node in graph.nodes:
        make(node)
    return replace(b.build([env[v] for v in graph.outputs]), names=graph.names)
