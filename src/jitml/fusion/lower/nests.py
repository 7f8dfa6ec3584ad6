"""Ops that are not a value at a point: their own loops, or a call into a library. The table, and what a rule is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from jitml.errors import Source
from jitml.fusion.lower.points import Index, Ranges
from jitml.ir.graph import Node, Value
from jitml.ir.op import RuleTable
from jitml.ir.types import I64, DType
from jitml.kernels.ir import Buffer, Const, Expr, Loop, Stmt, Store
from jitml.kernels.program import Call, Step
from jitml.kernels.sizes import Shape, Sizes
from jitml.kernels.target import Target
from jitml.records import dataclass

SERIAL_NS = 1.0  # one element of a loop that carries a value along


class NewBuffer(Protocol):
    """Makes a temporary; its strides are in elements, C order if None."""

    def __call__(self, dtype: DType, shape: Shape, strides: tuple[int, ...] | None = None) -> Buffer: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """Where loops read a value: its index, and the limits of their indices."""

    index: Index
    ranges: Ranges


class Emit(Protocol):
    """Ends a kernel of that name, whose loops take so long, or so, one iteration after the other."""

    def __call__(
        self,
        what: str,
        body: tuple[Stmt, ...],
        params: Sequence[Buffer],
        updates: Mapping[str, str] | None = None,
        sources: tuple[Source, ...] = (),
        ns: float = 0.0,
        *,
        optimize: bool = False,
    ) -> None: ...


@dataclass
class NestSite:
    """Where a node's loops are written: its operands and results as buffers.

    `makers` are the nodes that make the graph's values. `emit` ends a kernel; a rule may emit several, and ask for temporaries
    that they share. Buffers have the largest shapes; the true ones are the node's, and `extent` writes them as limits of loops.
    views: of a product's operands that are parts of what was read, the index maps between, first to last.
    transposed: stored in place of a product's result, in whose memory that then lies.
    looks: where a value is read, if not everywhere.
    """

    node: Node
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    target: Target
    sizes: Sizes
    new_buffer: NewBuffer
    add_kernel: Emit
    steps: list[Step]
    makers: Mapping[Value, Node]
    views: Mapping[int, tuple[Node, ...]]
    transposed: Node | None
    looks: Callable[[Value], Sequence[Reading] | None]

    @property
    def out(self) -> Buffer:
        (buffer,) = self.writes
        return buffer

    def extent(self, operand: int, axis: int) -> Expr:
        """The true extent of an operand's axis."""
        return self.sizes.expr(self.node.inputs[operand].shape[axis])

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.node.source,) if self.node.source else ()

    def loops(self, axes: Sequence[int], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Whole loops over some of the first operand's axes, named `i` and the axis, around a body."""
        return nested({f"i{axis}": self.extent(0, axis) for axis in axes}, body)

    def call(self, name: str, read: Buffer, written: Buffer, **params: Any) -> None:
        """A call into a library that makes one buffer from one other."""
        self.steps.append(Call(name, (read.name,), (written.name,), params, self.sources))

    def held(self, extents: Sequence[Expr]) -> str:
        """The name of a buffer, i64[], that holds extents which only the run knows."""
        buffer = self.new_buffer(I64, (len(extents),))
        self.emit(tuple(Store(buffer.name, (Const(k),), n) for k, n in enumerate(extents)), buffer)
        return buffer.name

    def emit(
        self,
        body: tuple[Stmt, ...],
        *buffers: Buffer,
        updates: dict[str, str] | None = None,
        ns: float | None = None,
        optimize: bool = False,
    ) -> None:
        """End a kernel. That it takes time for each element of the first operand is a guess, where `ns` says nothing else."""
        time = self.reads[0].size * SERIAL_NS if ns is None else ns
        params = tuple({b.name: b for b in buffers}.values())
        self.add_kernel(self.node.op.name, body, params, updates, self.sources, time, optimize=optimize)


def nested(extents: Mapping[str, Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Loops from 0 to these extents, from the outermost in, around a body."""
    for index, extent in reversed([*extents.items()]):
        body = (Loop(index, Const(0), extent, 1, "serial", body),)
    return body


nests: RuleTable[Callable[[NestSite], None]] = RuleTable("lowering", "fusion/lower")
