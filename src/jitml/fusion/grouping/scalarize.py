"""Scalarization: what does a group compute at one point?

Runs the lowering rules over a group's nodes, in one box of its loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.fusion.grouping.groups import Group
from jitml.fusion.lower import Point, lowering
from jitml.fusion.lower.indexed import scattered
from jitml.fusion.lower.points import Index, Ranges, decide, substituted
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar, Scalars
from jitml.ir.dims import Size
from jitml.ir.graph import Node, Value
from jitml.ir.types import DType
from jitml.kernels.ir import Const, Expr
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduction in a group: its node, the operand's scalar, and the cell that holds the result."""

    node: Node
    operand: Scalar
    cell: str
    dtype: DType  # the cell's


@dataclass(frozen=True, slots=True)
class Stored:
    """A scalar kept in memory."""

    value: Value
    buffer: str
    at: Index
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class Points:
    """All that happens at one point of a group's loops, in one box of them. `ranges` holds the loops that are run."""

    ranges: Ranges
    stores: tuple[Stored, ...]
    reductions: tuple[Reduced, ...]


SINK = "sink"  # stands for a buffer of what is not stored there in the end: what is scattered, an index that is looked at
_READ = "read"  # stands for a buffer whose element is read


class _Needs:
    """Records which operand elements a rule reads in a box.

    moved: node -> index -> the operand's element that it is, of a rule that reads one and makes nothing of it.
    """

    def __init__(self, group: Group, ranges: Ranges) -> None:
        self.b = Scalars()
        self.ranges, self.sizes, self.axes = ranges, group.sizes, group.axes
        self.wanted: dict[Value, dict[Index, None]] = {}
        self.moved: dict[Node, dict[Index, tuple[Value, Index]]] = {}
        self._reads: list[tuple[Value, Index]] = []

    def look(self, node: Node, indices: Mapping[Index, None]) -> None:
        """Find out what a node reads where it is wanted."""
        if node.op.is_pointwise:
            for value in node.inputs:
                self.wanted.setdefault(value, {}).update(indices)
            return
        for index in indices:
            self._reads = []
            result = lowering[node.op](Point(self, node, index))
            if len(self._reads) == 1 and result.value == _READ:
                self.moved.setdefault(node, {})[index] = self._reads[0]

    def read(self, node: Node, operand: int, index: Index) -> Scalar:
        value = node.inputs[operand]
        self.wanted.setdefault(value, {})[index] = None
        self._reads.append((value, index))
        return self.b.load(_READ, (), value.dtype)

    def load(self, node: Node, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar:
        return self.b.load("", (), node.inputs[operand].dtype)

    def place(self, value: Value) -> Expr:
        return self.sizes.place(value)

    def inside(self, expr: Expr, low: int, high: int) -> bool | None:
        return decide(expr, low, high, self.ranges)


class _GroupBuilder:
    """Answers a rule with the scalars of its operands."""

    def __init__(self, b: Scalars, group: Group, ranges: Ranges, names: Mapping[Value, str]) -> None:
        self.b, self.ranges, self.names, self.sizes, self.axes = b, ranges, names, group.sizes, group.axes
        self.made: dict[tuple[Value, Index], Scalar] = {}
        self.cells: dict[Value, Scalar] = {}

    def at(self, value: Value, index: Index) -> Scalar:
        if value in self.cells:
            return self.cells[value]
        made = self.made.get((value, index))
        return self.b.load(self.names[value], index, value.dtype) if made is None else made

    def read(self, node: Node, operand: int, index: Index) -> Scalar:
        return self.at(node.inputs[operand], index)

    def load(self, node: Node, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar:
        value = node.inputs[operand]
        return self.b.load(self.names[value], index, value.dtype)

    def place(self, value: Value) -> Expr:
        return self.sizes.place(value)

    def inside(self, expr: Expr, low: int, high: int) -> bool | None:
        return decide(expr, low, high, self.ranges)


def scalarize(group: Group, ranges: Ranges, names: Mapping[Value, str], members: Sequence[Node], b: Scalars) -> Points:
    """The scalars that a group stores and reduces, in one box.

    Args:
        names: the buffers' names.
        members: the group's, in the order of the graph.
    """
    scatters = {node.output: (number, node) for number, node in enumerate(group.scatters)}
    updated = group.node.inputs[1] if group.node is not None else None
    needs = _Needs(group, ranges)
    if scatters:
        for value in {value: None for _, node in scatters.values() for value in node.inputs[1:]}:
            needs.wanted[value] = {i: None for i in group.wanted[value] if i is not None}
    elif updated is None:
        reduced = reduced_values(group)
        needs.wanted.update((value, {index: None}) for value, index in group.stores.items() if value not in reduced)
    else:
        needs.wanted[updated] = {i: None for i in group.wanted[updated] if i is not None}
    needed: list[Node] = []
    for node in reversed(members):
        if node in group.reductions:
            needs.wanted.setdefault(node.inputs[0], {})[group.reductions[node][1]] = None
            needed.append(node)
        elif node.outputs[0] in needs.wanted and node is not group.node and node.output not in scatters:
            needs.look(node, needs.wanted[node.outputs[0]])
            needed.append(node)
    builder = _GroupBuilder(b, group, ranges, names)
    reductions: list[Reduced] = []
    for node in reversed(needed):
        if node in group.reductions:
            reduction = REDUCTIONS[node.op]
            dtype = reduction.accumulator(node.output.dtype)
            operand = b.convert(builder.at(node.inputs[0], group.reductions[node][1]), dtype)
            cell = f"s{len(reductions)}"
            reductions.append(Reduced(node, operand, cell, dtype))
            builder.cells[node.output] = b.convert(b.cell(cell, dtype), node.output.dtype)
        else:
            moved = needs.moved.get(node, {})
            for index in needs.wanted[node.output]:
                element = moved.get(index)
                builder.made[node.output, index] = (
                    lowering[node.op](Point(builder, node, index)) if element is None else builder.at(*element)
                )
    stores = []
    for value, index in group.stores.items():
        if value in scatters:
            number, node = scatters[value]
            scalar = scattered(Point(builder, node, index), number)
        elif updated is None:
            scalar = builder.at(value, index)
        else:
            (source,) = needs.wanted[updated]
            scalar = builder.at(updated, source)
        stores.append(Stored(value, names[value] if group.check is None and not scatters else SINK, index, scalar))
    return Points(ranges, tuple(stores), tuple(reductions))


def without_loops_of_one(points: Points, axes: Mapping[str, Size], b: Scalars) -> Points:
    """The same with the index of an axis written out where there is only one in the box: no loop is left of it."""
    ranges = points.ranges
    fixed = {n: Const(low) for n, (low, high) in ranges.items() if high - low == 1 and isinstance(axes[n], int)}
    if not fixed:
        return points

    def at(expr: Expr) -> Expr:
        return substituted(expr, fixed, ranges)

    written = b.substituted([*(s.scalar for s in points.stores), *(r.operand for r in points.reductions)], fixed, at)
    stores = [replace(s, at=tuple(map(at, s.at)), scalar=written[s.scalar]) for s in points.stores]
    reductions = [replace(r, operand=written[r.operand]) for r in points.reductions]
    return Points({n: limits for n, limits in ranges.items() if n not in fixed}, tuple(stores), tuple(reductions))


def reduced_values(group: Group) -> set[Value]:
    return {node.output for node in group.reductions}
