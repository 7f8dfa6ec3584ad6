"""Ops that are not a value at a point: their own loops, or a call into a library. The table, and what a rule is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from jitml.errors import Source
from jitml.ir.graph import Node, Value
from jitml.ir.op import RuleTable
from jitml.ir.types import DType
from jitml.kernels.ir import Buffer, Const, Expr, Kind, Loop, Stmt
from jitml.kernels.program import Call, Step
from jitml.kernels.sizes import Shape, Sizes
from jitml.kernels.target import Target
from jitml.records import dataclass

SERIAL_NS = 1.0  # one element of a loop that carries a value along


class NewBuffer(Protocol):
    """Makes a temporary; its strides are in elements, C order if None."""

    def __call__(self, dtype: DType, shape: Shape, strides: tuple[int, ...] | None = None) -> Buffer: ...


class Emit(Protocol):
    """Ends a kernel of that name."""

    def __call__(
        self,
        what: str,
        body: tuple[Stmt, ...],
        params: Sequence[Buffer],
        updates: Mapping[str, str] | None = None,
        sources: tuple[Source, ...] = (),
    ) -> None: ...


@dataclass
class NestSite:
    """Where a node's loops are written: its operands and results as buffers.

    `makers` are the nodes that make the graph's values. `emit` ends a kernel; a rule may emit several, and ask for temporaries
    that they share. Buffers have the largest shapes; the true ones are the node's, and `extent` writes them as limits of loops.
    views: of a product's operands that are parts of what was read, the index maps between, first to last.
    transposed: stored in place of a product's result, in whose memory that then lies.
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

    def loops(
        self, axes: Sequence[int], body: tuple[Stmt, ...], *, vector: bool = False, parallel: bool = False
    ) -> tuple[Stmt, ...]:
        """Whole loops over some of the first operand's axes, named `i` and the axis, around a body."""
        shape = self.reads[0].shape
        for k, axis in reversed(list(enumerate(axes))):
            kind: Kind = "vector" if vector and k == len(axes) - 1 else "serial"
            grain = 1
            if parallel and k == 0:
                time = self.reads[0].size * SERIAL_NS
                if time > self.target.cost.parallel_ns:
                    kind, grain = "parallel", max(1, round(self.target.cost.grain_ns * shape[axis] / time))
            body = (Loop(f"i{axis}", Const(0), self.extent(0, axis), 1, kind, body, grain),)
        return body

    def call(self, name: str, read: Buffer, written: Buffer, **params: Any) -> None:
        """A call into a library that makes one buffer from one other."""
        self.steps.append(Call(name, (read.name,), (written.name,), params, self.sources))

    def emit(self, body: tuple[Stmt, ...], *buffers: Buffer, updates: dict[str, str] | None = None) -> None:
        self.add_kernel(self.node.op.name, body, tuple({b.name: b for b in buffers}.values()), updates, self.sources)


nests: RuleTable[Callable[[NestSite], None]] = RuleTable("lowering", "fusion/lower")
