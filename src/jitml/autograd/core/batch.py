"""Batching: what is a batch?

`Batched` values, the `Batch` of rows that they belong to, and the table of rules that ops have for them.

A batched value has one more axis than its rows, anywhere; which one is noted beside it, and data moves only where an op needs
its axes in another order. `vmap.py` walks graphs; `batching/ragged.py` has what differs in size from row to row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, Sym, as_size, syms_in
from jitml.ir.graph import GraphBuilder, Value
from jitml.ir.op import RuleTable, active_recorder, recording
from jitml.ir.types import Aval
from jitml.records import dataclass, field, replace

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batched:
    """A value for each row, side by side along one axis."""

    value: Value
    axis: int

    @property
    def row(self) -> Aval:
        """What each row is."""
        shape = self.value.shape
        return self.value.aval.with_shape(shape[: self.axis] + shape[self.axis + 1 :])


Operand: TypeAlias = Value | Batched


def row_of(x: Operand) -> Aval:
    return x.row if isinstance(x, Batched) else x.aval


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows that are computed together.

    Args:
        size: how many.
        counts: what the Syms of the size and of the rooms are, in their order.
        active: bool[size], which of them count; None: all.
        units: a value whose rows are known to be the unit vectors, in order: what is multiplied by it is what comes out.
        rooms: the Syms that differ from row to row, and what there is memory for in each.
    """

    size: Size
    counts: tuple[Value, ...] = ()
    active: Value | None = None
    units: Value | None = None
    rooms: Mapping[Sym, Size] = field(default_factory=dict)

    @property
    def syms(self) -> list[Sym]:
        """What the batch's size and the rooms depend on."""
        return sorted(set(syms_in((self.size, *self.rooms.values()))), key=lambda sym: sym.serial)

    def room(self, size: Size) -> Size:
        """How many elements of an axis there is memory for in each row: as many as any row may have."""
        if not isinstance(size, Dim) or self.rooms.keys().isdisjoint(size.syms):
            return size
        most: Size = 0
        for monomial, factor in size.terms:
            term: Size = factor
            for sym in monomial:
                term = term * (self.rooms.get(sym, as_size(sym)) if factor > 0 else sym.low)
            most = most + term
        return most if isinstance(most, Dim) else max(0, most)

    def roomy(self, aval: Aval) -> Aval:
        """What a row is in memory."""
        return aval.with_shape(map(self.room, aval.shape)) if self.rooms else aval  # type: ignore[arg-type]  # as below

    def of(self, aval: Aval) -> Aval:
        """Such rows side by side along the first axis."""
        return Aval((self.size, *self.roomy(aval).shape), aval.dtype)  # type: ignore[arg-type]  # shapes may hold Dims

    def inside(self, b: GraphBuilder, active: Value | None = None) -> Batch:
        """The rows in a graph that begins: it gets inputs for the counts, which the node that holds it has as operands."""
        counts = tuple(b.add_input(count.aval) for count in self.counts)
        with recording(b):
            for count, sym in zip(counts, self.syms, strict=True):
                ops.bind(count, sym=sym)
        return Batch(self.size, counts, active, rooms=self.rooms)

    def at(self, x: Operand, axis: int) -> Value:
        """x with the rows along this axis; what is the same for all is repeated."""
        if not isinstance(x, Batched):
            shape = (*x.shape[:axis], self.size, *x.shape[axis:])
            if is_empty(x):  # memory with any contents is not worth a copy
                return as_value(ops.empty(shape=shape, dtype=x.dtype))
            return as_value(ops.broadcast(x, shape=shape, axes=tuple(a for a in range(x.ndim + 1) if a != axis)))
        if x.axis == axis:
            return x.value
        others = [a for a in range(x.value.ndim) if a != x.axis]
        return as_value(ops.transpose(x.value, perm=(*others[:axis], x.axis, *others[axis:])))

    def front(self, x: Operand) -> Value:
        return self.at(x, 0)

    def aligned(self, operands: Sequence[Operand]) -> tuple[list[Value], int]:
        """Operands of one shape, their rows along one axis: that of the first that is batched."""
        axis = next(x.axis for x in operands if isinstance(x, Batched))
        return [self.at(x, axis) for x in operands], axis

    def choose(self, condition: Value, x: Operand, y: Operand) -> Batched:
        """Each row of x where the condition, bool[size], holds, else of y."""
        x = x if isinstance(x, Batched) else Batched(self.front(x), 0)
        (a, b), axis = self.aligned((x, y))
        spread = condition if a.ndim == 1 else ops.broadcast(condition, shape=a.shape, axes=(axis,))
        return Batched(as_value(ops.select(spread, a, b)), axis)

    def within(self, index: Operand) -> Operand:
        """An index or a place that differs from row to row, made harmless for rows that do not count."""
        if self.active is None or not isinstance(index, Batched):
            return index
        return self.choose(self.active, index, ops.full(value=0, shape=index.row.shape, dtype=index.row.dtype))

    def with_one_more(self, x: Value, value: Any) -> Value:
        """x[size] with an element behind it where there may be no row at all."""
        if type(self.size) is int and self.size:
            return x
        border = ops.full(value=value, shape=(), dtype=x.dtype)
        return as_value(ops.pad(x, border, low=(0,), high=(1,), interior=(0,)))

    def among(self, condition: Value) -> Batch:
        """The same rows, of which only those count for which the condition, bool[size], holds too."""
        return replace(self, active=condition if self.active is None else as_value(ops.bit_and(self.active, condition)))


# (batch, *operands, **params) -> result, or a tuple of results for ops that have several.
VmapRule = Callable[..., Operand | tuple[Operand, ...]]

vmap: RuleTable[VmapRule] = RuleTable("vmap", "autograd/rules/batching")


def shifted(axes: Sequence[int], batch_axis: int) -> Ints:
    """Axes of a row as axes of the batched value."""
    return tuple(a + (a >= batch_axis) for a in axes)


def inserted(numbers: Sequence[Any], batch_axis: int, number: Any) -> tuple[Any, ...]:
    """A parameter with one number for each axis, with one for the batch's."""
    return (*numbers[:batch_axis], number, *numbers[batch_axis:])


def is_bound(b: GraphBuilder, sym: Sym) -> bool:
    return any(known.op is ops.bind and known.params["sym"] is sym for known in b.nodes)


def is_empty(x: Value) -> bool:
    """Whether a value is memory with any contents, made where a pass is recording."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    maker = b.producer(x)
    return maker is not None and maker.op is ops.empty


def refuse(message: str, remedy: str = "", kind: type[UnsupportedError] = UnsupportedError) -> NoReturn:
    """What cannot be done to all rows at once, at the user's line."""
    b = active_recorder()
    raise kind(f"vmap: {message}", source=b.locate() if isinstance(b, GraphBuilder) else None, remedy=remedy)


def as_value(x: Any) -> Value:
    assert isinstance(x, Value)
    return x
