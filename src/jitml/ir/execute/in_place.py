"""Updates in place: which updates of arrays may happen in place when a graph runs in NumPy?

Those of memory that nobody else looks at afterwards.

What an array shares memory with is followed from node to node, through views and into the bodies of regions: a loop may write
into what it carries, if each iteration hands on memory of its own. Then `y[i] = ...` in a loop costs what is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import Op
from jitml.records import dataclass, field

UPDATES: tuple[Op, ...] = (ops.update_slice, ops.dynamic_update_slice, ops.scatter)
# Their results are memory of their own; of other ops' nothing is known but that it may be an operand's.
_NEW_FAMILIES = ("pointwise", "reductions", "contraction")
_NEW = (ops.empty, ops.pad, ops.concat, *UPDATES)
_SAME = (ops.stop_gradient, ops.bits, ops.from_bits, ops.raise_divide, ops.raise_overflow, ops.raise_underflow, ops.raise_invalid)
_SMALL = 64  # elements

Owned = frozenset[int]  # positions of inputs


@dataclass(frozen=True)
class InPlace:
    """What may be written to while a graph runs.

    Args:
        updates: the nodes that may write into their first operand.
        given: for each region, the operands of its bodies that they may write into: positions among what is carried
            (which has been copied, if it is still needed outside) or, of a cond, captured.
        moved: those of `given` that need not be copied for it.
        written: the owned inputs that are written to.
        owned: for each output, whether it is memory that nobody else sees.
        copied: windows that are read into memory of their own: as views they would keep others from being written to.
    """

    updates: set[Node] = field(default_factory=set)
    given: dict[Node, Owned] = field(default_factory=dict)
    moved: dict[Node, Owned] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    owned: list[bool] = field(default_factory=list)
    copied: set[Node] = field(default_factory=set)


def in_place(graph: Graph, owned: Owned = frozenset()) -> InPlace:
    """What may be written to if the inputs `owned` are memory that only this run sees.

    Found once: what is in a nest of loops would else be looked at several times for each of them.
    """
    runs = _known.setdefault(graph, {})
    if owned not in runs:
        runs[owned] = _Analysis(graph, owned).run()
    return runs[owned]


_known: WeakKeyDictionary[Graph, dict[Owned, InPlace]] = WeakKeyDictionary()


def _copied(graph: Graph) -> set[Node]:
    """Windows that are small, or of an array that is written to here: of a stack, say, which is far larger."""
    updated = {node.inputs[0] for node in graph.nodes if node.op in UPDATES}
    windows = [node for node in graph.nodes if node.op is ops.dynamic_slice]
    return {node for node in windows if node.output.capacity <= _SMALL or node.inputs[0] in updated}


def additions(graph: Graph, found: InPlace) -> dict[Node, tuple[Node, Node, Value]]:
    """Updates that add to what is in their place: `x[place] += v`, with the nodes that this makes needless, and v."""
    users = Counter(v for node in graph.nodes for v in node.inputs)
    users.update(graph.outputs)
    makers = {v: node for v, node in graph.producers().items() if users[v] == 1}
    added = {}
    writes = 0  # a sum is taken later than it stood; until then nothing may be written to what it is of
    written = {}
    for node in graph.nodes:
        written[node] = writes
        writes += node in found.updates or bool(node.bodies)
        total = makers.get(node.inputs[1]) if node.op in _READS and node in found.updates and not node.syms else None
        if total is None or total.op is not ops.add or written[total] != written[node]:
            continue
        for old, new in (total.inputs, total.inputs[::-1]):
            read = makers.get(old)
            if read is not None and read.op is _READS[node.op] and _place_of(read, 1) == _place_of(node, 2):
                added[node] = (read, total, new)
    return added


_READS = {ops.update_slice: ops.slice, ops.dynamic_update_slice: ops.dynamic_slice}


def _place_of(node: Node, arrays: int) -> object:
    """Of which array, and where, a window is read or written."""
    return node.inputs[0], node.inputs[arrays:], node.params.get("start"), node.params["step"]


class _Analysis:
    def __init__(self, graph: Graph, owned: Owned) -> None:
        self.graph, self.found = graph, InPlace(copied=_copied(graph))
        self.last = {v: n for n, node in enumerate(graph.nodes) for v in node.inputs}
        self.last |= dict.fromkeys(graph.outputs, len(graph.nodes))
        # The memory that a value may lie in, each named by the value that it was made for, and until when it is read.
        self.memory: dict[Value, frozenset[Value]] = {}
        self.latest: dict[Value, int] = {}
        for v in graph.inputs:
            self.lie([v], frozenset([v]))
        self.private = {graph.inputs[n] for n in owned}
        self.positions = {v: k for k, v in enumerate(graph.inputs)}

    def run(self) -> InPlace:
        for n, node in enumerate(self.graph.nodes):
            if node.bodies:
                self.region(n, node)
            elif node.op in UPDATES and self.is_free(n, node.inputs[0]) and node.output.ndim:
                self.found.updates.add(node)
                self.write(node.inputs[0])
                self.lie(node.outputs, self.memory[node.inputs[0]])
            elif self.makes_new(node):
                self.own(node.outputs)
            elif node.op is ops.broadcast:  # not to be written to: its elements are shared
                self.lie(node.outputs, self.reach(node.inputs) | {node.output})
            else:
                self.lie(node.outputs, self.reach(node.inputs))
        alone = self.alone(self.graph.outputs)
        self.found.owned.extend(k in alone for k in range(len(self.graph.outputs)))
        return self.found

    def makes_new(self, node: Node) -> bool:
        return (node.op.family in _NEW_FAMILIES and node.op not in _SAME) or node.op in _NEW or node in self.found.copied

    def own(self, values: Iterable[Value]) -> None:
        for v in values:
            self.lie([v], frozenset([v]))
            self.private.add(v)

    def lie(self, values: Sequence[Value], memory: frozenset[Value]) -> None:
        """Each of these may lie anywhere in that memory."""
        self.memory |= dict.fromkeys(values, memory)
        last = max((self.last.get(v, -1) for v in values), default=-1)
        for m in memory:
            self.latest[m] = max(last, self.latest.get(m, -1))

    def reach(self, values: Iterable[Value]) -> frozenset[Value]:
        return frozenset().union(*{self.memory[v] for v in values})

    def is_private(self, value: Value) -> bool:
        return len(self.memory[value]) == 1 and self.memory[value] <= self.private

    def is_free(self, n: int, value: Value) -> bool:
        """Whether a value's memory may be written to by the n-th node: nobody reads it, or a view of it, later."""
        return self.is_private(value) and all(self.latest[m] <= n for m in self.memory[value])

    def write(self, value: Value) -> None:
        self.found.written.update(self.positions[m] for m in self.memory[value] if m in self.positions)

    def region(self, n: int, node: Node) -> None:
        first = 0 if node.op is ops.while_ else 1
        operands = node.inputs[first:]
        alone = self.alone(operands)
        free = frozenset(k for k in alone if operands[k].ndim and self.is_free(n, operands[k]))
        if node.op is ops.cond:
            bodies = [in_place(body, free) for body in node.bodies.values()]
            self.found.given[node] = self.found.moved[node] = free
            written: Owned = frozenset().union(*(body.written for body in bodies))
            owned = [all(of) for of in zip(*(body.owned for body in bodies))]
        else:
            given = carried_in_place(node)
            self.found.given[node], self.found.moved[node] = given, given & free
            written = given & free
            owned = [k in given for k in range(len(node.outputs))]
        for k in written:
            self.write(operands[k])
        self.own(v for v, mine in zip(node.outputs, owned) if mine)
        others = [v for v, mine in zip(node.outputs, owned) if not mine]
        # Memory that is new, or an operand's: the first of them stands for what is new of all of them.
        self.lie(others, self.reach(node.inputs).union(others[:1]))

    def alone(self, values: Sequence[Value]) -> Owned:
        """The positions of those whose memory is their own: none of the others may lie in it."""
        times = Counter[Value]()
        for memory, of_values in Counter(self.memory[v] for v in values).items():
            times.update(dict.fromkeys(memory, of_values))
        return frozenset(k for k, v in enumerate(values) if self.is_private(v) and all(times[m] == 1 for m in self.memory[v]))


def carried_in_place(node: Node) -> Owned:
    """What a loop or while carries and writes into: each iteration has to hand it on as memory of its own."""
    first = 1 if node.op is ops.loop else 0
    owned = frozenset(range(first, first + node.params["carried"]))

    def handed_on(owned: Owned) -> Owned:
        return frozenset(k for k in owned if in_place(node.params["body"], owned).owned[k - first])

    while (kept := handed_on(owned)) != owned:
        owned = kept
    written = owned & in_place(node.params["body"], owned).written
    # Where one that is not written to takes the place of one that is, all of them have to be.
    return frozenset(k - first for k in (written if handed_on(written) == written else owned))
