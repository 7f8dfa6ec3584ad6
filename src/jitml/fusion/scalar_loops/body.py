"""Loop bodies: what does a body of plain loops do, node by node?

Numbers become names at once, windows of arrays wait until they are used.

Each value of the graph is *held* in one of three ways: a number as a scalar; an array as the memory where it lies, as long as
nobody has written there since; anything else as a rule that gives its element at an index. A rule that reads memory is run
before that memory changes, into scratch if somebody still needs it later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from jitml.fusion.lower.points import Index, Point, Ranges, lowering
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.lower.statement_writer import StatementWriter
from jitml.fusion.scalar_loops.order import NotRolled, in_order, is_single
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, Sym
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import RuleTable
from jitml.ir.types import DType
from jitml.kernels.ir import Buffer, Const, Expr, as_expr
from jitml.kernels.target import Target
from jitml.records import dataclass, field

COSTLY, MANY = 12.0, 2048  # work on an element, and elements, that are worth kernels of their own, fused and in vectors
MOST_ELEMENTS = 16384  # of a window: longer ones are worth kernels of their own, with threads


@dataclass(frozen=True, eq=False, slots=True)
class WholeMemory:
    """All of a memory, as it was at one time."""

    memory: str
    version: int


@dataclass(frozen=True, eq=False, slots=True)
class Lazy:
    """An array that exists element by element. `reads`: the memories that it depends on, and as of when; work per element."""

    at: Callable[[Index], Scalar]
    reads: Mapping[str, int] = field(default_factory=dict)
    work: float = 0.0


Held: TypeAlias = Scalar | WholeMemory | Lazy


class Memories:
    """The buffers of a kernel and how often each has changed, counted over all of them.

    Args:
        new_constant: makes a buffer of the program with given contents.
    """

    def __init__(self, buffers: Sequence[Buffer], new_constant: Callable[[np.ndarray[Any, Any]], Buffer]) -> None:
        self.buffers = {b.name: b for b in buffers}
        self._new_constant = new_constant
        self.version = dict.fromkeys(self.buffers, 0)
        self._changes = 0

    def add(self, buffer: Buffer) -> WholeMemory:
        self.buffers[buffer.name] = buffer
        return self.change(buffer.name)

    def constant(self, value: np.ndarray[Any, Any]) -> WholeMemory:
        """A literal array."""
        buffer = self._new_constant(value)
        self.buffers[buffer.name] = buffer
        self.version[buffer.name] = 0
        return WholeMemory(buffer.name, 0)

    def change(self, name: str) -> WholeMemory:
        """The memory after a store."""
        self._changes += 1
        self.version[name] = self._changes
        return WholeMemory(name, self._changes)

    def is_current(self, name: str, version: int) -> bool:
        return self.version[name] == version


class SymExtents:
    """What each Sym is, as far as it has been bound."""

    def __init__(self, known: Mapping[Sym, Expr]) -> None:
        self.known = dict(known)

    def expr(self, size: Size) -> Expr:
        if isinstance(size, Dim):
            missing = [sym for sym in size.syms if sym not in self.known]
            if missing:
                raise NotRolled(f"the size {missing[0]} is not bound")
            return as_expr(size.evaluate(self.known))
        return Const(size)


class GraphBody:
    """A graph on its way to statements.

    Args:
        sizes: those bound around it.
        owned: memories that this body may write to.
    """

    def __init__(
        self, writer: StatementWriter, memories: Memories, sizes: Mapping[Sym, Expr], owned: frozenset[str], target: Target
    ) -> None:
        self.w, self.memories, self.sizes, self.owned, self.target = writer, memories, SymExtents(sizes), set(owned), target
        self.b = writer.b
        self.ranges: Ranges = {}  # nothing that index maps could use
        self.axes: Mapping[str, Size] = {}
        self.held: dict[Value, Held] = {}
        self.left: Counter[Value] = Counter()  # uses that are still to come
        self.uses: Counter[Value] = Counter()
        self.syms: frozenset[Sym] = frozenset()  # that sizes depend on
        self.rooms: dict[Value, WholeMemory] = {}  # memory that a result must be in

    def run(self, graph: Graph, operands: Sequence[Held]) -> list[Held]:
        """Write a graph's statements; returns how its outputs are held."""
        self.held.update(zip(graph.inputs, operands, strict=True))
        self.uses = Counter(v for node in graph.nodes for v in node.inputs) + Counter(graph.outputs)
        self.left = Counter(self.uses)
        self.syms = frozenset[Sym]().union(*(node.syms for node in graph.nodes if node.op.name != "bind"))
        nodes = in_order(graph)
        # A size that an input is may be used before the node that says so.
        for node in sorted(nodes, key=lambda node: not (node.op is ops.bind and node.inputs[0] in graph.inputs)):
            self.left.subtract(node.inputs)
            self.node(node)
        return [self.held[v] for v in graph.outputs]

    def node(self, node: Node) -> None:
        rule = rolled.get(node.op)
        if rule is not None:
            rule(self, node, [self.held[v] for v in node.inputs])
        elif node.op in lowering:
            self.point(node)
        else:
            raise NotRolled(f"{node.op} has no form in plain loops")

    def point(self, node: Node) -> None:
        """A node of which each element is computed by itself."""
        if node.op is ops.array and not is_single(node.output):
            self.define(node.output, self.memories.constant(node.params["value"]))
            return
        if is_single(node.output):
            self.define(node.output, lowering[node.op](Point(self, node, (Const(0),) * node.output.ndim)))
            return
        reads: dict[str, int] = {}
        work = self.target.cost.work_of(node.op.name) if node.op.is_pointwise else 0.0
        for v in node.inputs:
            held = self.held[v]
            if isinstance(held, WholeMemory):
                reads[held.memory] = held.version
            elif isinstance(held, Lazy):
                reads |= held.reads
                work += held.work
            else:  # what takes the array may lie in a branch, where the number's errors would not come up as often as they should
                self.held[v] = self.w.named(held)
        self.define(node.output, Lazy(lambda index: lowering[node.op](Point(self, node, index)), reads, work))

    def define(self, value: Value, held: Held) -> None:
        """Note how a value is held: numbers that come from memory or are used twice get a name now."""
        if isinstance(held, Scalar):
            if self.uses[value] > 1 or _reads_memory(held):
                held = self.w.named(held)
        elif isinstance(held, Lazy) and held.work > 0 and self.uses[value] > 1:
            held = self.stored(value, held)
        self.held[value] = held

    # ------------------------------------------------------------------------------------------------- elements

    def element(self, held: Held, index: Sequence[Expr | Scalar], dtype: DType) -> Scalar:
        match held:
            case WholeMemory(memory, version):
                if not self.memories.is_current(memory, version):
                    raise NotRolled("an array is read as it was before an update")
                return self.b.load(memory, tuple(index), dtype)
            case Lazy(at, reads):
                if not all(self.memories.is_current(memory, version) for memory, version in reads.items()):
                    raise NotRolled("a window is read as it was before an update")
                return at(tuple(i if not isinstance(i, Scalar) else self.w.index(i) for i in index))
        return held

    def read(self, node: Node, operand: int, index: Index) -> Scalar:
        value = node.inputs[operand]
        return self.element(self.held[value], index, value.dtype)

    def load(self, node: Node, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar:
        value = node.inputs[operand]
        return self.element(self.held[value], index, value.dtype)

    def place(self, value: Value) -> Expr:
        return self.number(self.held[value])

    def inside(self, expr: Expr, low: int, high: int) -> bool | None:
        least, most = self.w.ranges.bounds(expr)
        if least is not None and most is not None and low <= least and most < high:
            return True
        if (most is not None and most < low) or (least is not None and least >= high):
            return False
        return None

    def number(self, held: Held) -> Expr:
        """A number that serves as index or size."""
        assert isinstance(held, Scalar)
        return self.w.index(held)

    # --------------------------------------------------------------------------------------------------- memory

    def over(self, shape: Sequence[Size], write: Callable[[Index], None], before: Index = ()) -> None:
        """Loops over a shape around what `write` writes at an index."""
        if not shape:
            write(before)
        elif shape[0] == 1:
            self.over(shape[1:], write, (*before, Const(0)))
        else:
            with self.w.loop(self.sizes.expr(shape[0])) as index:
                self.over(shape[1:], write, (*before, index))

    def scratch(self, value: Value) -> WholeMemory:
        """Memory for a value; it is this body's own."""
        shape = value.aval.bounds
        if prod(shape) > MOST_ELEMENTS:
            raise NotRolled(f"a temporary of {prod(shape)} elements")
        buffer = self.w.scratch(value.dtype, shape)
        self.owned.add(buffer.name)
        return self.memories.add(buffer)

    def stored(self, value: Value, held: Held) -> WholeMemory:
        """The value in scratch."""
        if isinstance(held, Lazy) and held.work >= COSTLY and value.capacity >= MANY:
            raise NotRolled(f"costly functions of {value.capacity} elements")
        array = self.scratch(value)

        def write(index: Index) -> None:
            self.w.store(array.memory, index, self.w.expr(self.element(held, index, value.dtype)))

        self.over(value.shape, write)
        return array

    def in_memory(self, value: Value, held: Held) -> WholeMemory:
        """Where the value lies as it is now, or in scratch."""
        if isinstance(held, WholeMemory) and self.memories.is_current(held.memory, held.version):
            return held
        return self.stored(value, held)

    def about_to_change(self, memory: str) -> None:
        """Compute what is still wanted of a memory's contents."""
        for value, held in list(self.held.items()):
            if self.left[value] > 0 and self.reads_now(held, memory):
                self.held[value] = self.stored(value, held)

    def reads_now(self, held: Held, memory: str) -> bool:
        """Whether something depends on what a memory holds at present."""
        if isinstance(held, WholeMemory):
            return held.memory == memory and self.memories.is_current(memory, held.version)
        return isinstance(held, Lazy) and self.memories.is_current(memory, held.reads.get(memory, -1))

    def in_place(self, value: Value, held: Held) -> WholeMemory:
        """The value's memory, to be written to; a copy where it is not ours."""
        if isinstance(held, WholeMemory) and held.memory in self.owned:
            if not self.memories.is_current(held.memory, held.version):
                raise NotRolled("an array is updated that has been updated otherwise")
            self.about_to_change(held.memory)
            return held
        return self.stored(value, held)


def _reads_memory(scalar: Scalar) -> bool:
    return scalar.kind == "load" or any(map(_reads_memory, scalar.args))


Rule: TypeAlias = Callable[[GraphBody, Node, list[Held]], None]
rolled: RuleTable[Rule] = RuleTable("form in plain loops", "fusion/lower/rolled")
