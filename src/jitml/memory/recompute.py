"""Recomputation: what does a program compute twice, to need less memory than a device has?

Values that are read early and once more much later, as those that reverse mode saves, need not wait in memory: what reads them
last may have them made again. All of that is a graph again. Some sets of such values are tried, those first that cost least, and
each is planned: the first plan that fits is taken, else the one that needs least.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.kernels.program import Decision
from jitml.memory.plan import extent
from jitml.memory.program import Program
from jitml.memory.report import bytes_text
from jitml.records import dataclass, replace

_LEAST_GAP = 4  # steps between two uses, for which it may pay to make a value again
_FEW = 6  # operations that take less time than memory
_SOON = 8  # steps that a value may wait longer, to have another one made of it
_SMALL = 256  # so many times smaller than the largest value: not worth it


def bytes_needed(program: Program) -> int:
    """What a program takes of a device: its arrays, and the arena."""
    kernels = program.kernels
    returned = [name for name in kernels.outputs if name not in kernels.aliases]
    return program.arena_size + sum(extent(kernels.buffers[name]) for name in dict.fromkeys((*kernels.inputs, *returned)))


def within(most: int, graph: Graph, program: Program, remake: Callable[[Graph], Program]) -> tuple[Graph, Program]:
    """A graph of the same results, and its program, which needs no more than so many bytes; or the least that is found.

    Args:
        program: the graph's.
        remake: from a graph to a planned program.
    """
    best, before = (graph, program), bytes_needed(program)
    for dropped in _choices(graph):
        changed = recomputed(graph, dropped)
        planned = remake(changed)
        if bytes_needed(planned) < bytes_needed(best[1]):
            why = f"needs {bytes_text(bytes_needed(planned))} in place of {bytes_text(before)}; there are {bytes_text(most)}"
            best = (changed, _with_decision(planned, Decision(f"make {len(dropped)} values twice", why)))
        if bytes_needed(best[1]) <= most:
            break
    return best


def _with_decision(program: Program, decision: Decision) -> Program:
    kernels = replace(program.kernels, decisions=(decision, *program.kernels.decisions))
    return replace(program, kernels=kernels)


@dataclass(frozen=True, slots=True)
class _Saved:
    """A value that waits between two of its uses: where it is made, and the positions of the one before and the one behind."""

    value: Value
    made: int
    last: int
    back: int


def _choices(graph: Graph) -> Iterator[frozenset[Value]]:
    """Sets of values to be made again: those that take a few operations on what is there, then more and more of the others."""
    saved = _saved(graph)
    light = _light(graph, saved)
    others = [s for s in saved if s.value not in light]
    tried = {frozenset[Value]()}
    cuts = [len(others) >> shift for shift in range(1, len(others).bit_length() + 1)]
    for chosen in (light, *(light | _all_but(others, count) for count in cuts)):
        if chosen not in tried:
            tried.add(chosen)
            yield chosen


def _light(graph: Graph, saved: Sequence[_Saved]) -> frozenset[Value]:
    """Values that are made element by element of what is in memory when they are wanted again."""
    makers, kept = graph.producers(), {s.value: s.back + _SOON for s in saved}
    for s in saved:
        del kept[s.value]
        there = {v for v, until in kept.items() if until >= s.back}
        if not _is_light(s.value, makers, there):
            kept[s.value] = s.back + _SOON
    return frozenset(s.value for s in saved if s.value not in kept)


def _is_light(value: Value, makers: Mapping[Value, Node], there: Collection[Value]) -> bool:
    nodes, waiting = set[Node](), [value]
    while waiting:
        v = waiting.pop()
        node = makers.get(v)
        if node is None or not node.inputs or v in there or node in nodes:
            continue
        if len(nodes) == _FEW or not (_may_repeat(node) and (node.op.is_pointwise or node.op.family == "index_maps")):
            return False
        nodes.add(node)
        waiting += node.inputs
    return True


def _all_but(saved: Sequence[_Saved], cuts: int) -> frozenset[Value]:
    """All but those that cross so many cuts, which lie far apart: what is between two cuts is made from the first.

    A cut is moved to where least crosses it.
    """
    kept: set[Value] = set()
    for k in range(cuts):
        first, end = (len(saved) * (2 * k + side) // (2 * cuts + 1) for side in (1, 2))
        crossing = [[s for s in saved if s.made <= at.made < s.last] for at in saved[first : max(end, first + 1)]]
        kept.update(s.value for s in min(crossing, key=lambda found: sum(s.value.aval.nbytes for s in found)))
    return frozenset(s.value for s in saved) - kept


def _saved(graph: Graph) -> list[_Saved]:
    """The large values that wait, in the order in which they are made."""
    places: dict[Value, list[int]] = {}
    for n, node in enumerate(graph.nodes):
        if _may_repeat(node):
            places[node.output] = [n]
        for v in dict.fromkeys(node.inputs):
            if v in places:
                places[v].append(n)
    for v in graph.outputs:
        places.pop(v, None)
    least = max((v.aval.nbytes for v in places), default=0) // _SMALL
    found = []
    for v, uses in places.items():
        gap, n = max(((b - a, n) for n, (a, b) in enumerate(pairwise(uses))), default=(0, 0))
        if gap >= _LEAST_GAP and v.aval.nbytes > least:
            found.append(_Saved(v, uses[0], uses[n], uses[n + 1]))
    return found


def _may_repeat(node: Node) -> bool:
    is_plain = not (node.graphs or node.has_effect or node.syms) and node.op.family not in ("host", "random")
    return is_plain and node.op is not ops.empty and len(node.outputs) == 1 and bool(node.inputs) and node.output.aval.is_static


def recomputed(graph: Graph, dropped: Collection[Value]) -> Graph:
    """The graph in which late uses of these values, behind their longest wait, read new ones, made for them."""
    return _Recomputation(graph, dropped).graph()


class _Recomputation:
    def __init__(self, graph: Graph, dropped: Collection[Value]) -> None:
        self.whole, self.makers = graph, graph.producers()
        self.back = {s.value: s.back for s in _saved(graph) if s.value in dropped}
        self.last = dict.fromkeys(graph.inputs, len(graph.nodes))
        self.last |= {v: n for n, node in enumerate(graph.nodes) for v in node.inputs if v not in graph.inputs}
        self.last |= dict.fromkeys(graph.outputs, len(graph.nodes))
        self.again: dict[Value, Value] = {}
        self.nodes: list[Node] = []

    def graph(self) -> Graph:
        for n, node in enumerate(self.whole.nodes):
            late = [v for v in dict.fromkeys(node.inputs) if self._is_dropped(v, n)]
            for v in late:
                self._make(v, n)
            inputs = tuple(self.again[v] if v in late else v for v in node.inputs)
            self.nodes.append(replace(node, inputs=inputs) if late else node)
        return replace(self.whole, nodes=tuple(self.nodes))

    def _is_dropped(self, v: Value, n: int) -> bool:
        return v in self.back and n >= self.back[v]

    def _make(self, wanted: Value, n: int) -> None:
        """Write the node of a value once more, and before it those that are not there any more at node n."""
        waiting = [wanted]
        while waiting:
            v = waiting[-1]
            if v in self.again:
                waiting.pop()
                continue
            node = self.makers[v]
            absent = [x for x in dict.fromkeys(node.inputs) if self._is_absent(x, n)]
            missing = [x for x in absent if x not in self.again]
            if missing:
                waiting += missing
                continue
            self.again[v] = Value(v.aval)
            inputs = tuple(self.again[x] if x in absent else x for x in node.inputs)
            self.nodes.append(replace(node, inputs=inputs, outputs=(self.again[v],)))
            waiting.pop()

    def _is_absent(self, x: Value, n: int) -> bool:
        """Whether a value is not in memory at node n, unless it is kept for this, and can be made again."""
        maker = self.makers.get(x)
        if maker is None or not _may_repeat(maker):
            return False
        return x in self.again or self._is_dropped(x, n) or (x in self.back) or self.last.get(x, -1) + _SOON < n


__all__ = ["bytes_needed", "recomputed", "within"]
