"""Interleaved stores: how are neighbours stored that lanes compute one after the other?

Together, as the whole vectors that they make up.

Lanes that run across rows of two to four elements (points in space, colours) store `x[i, 0]`, then `x[i, 1]`, ...: each goes to
every second to fourth element. Such a store waits until the others have come, and shuffles make dense vectors of all of them
(0.1 instead of 0.3 ns an element where memory keeps up). Who needs memory as it is to be, a load of what
waits or the end of the code that runs straight, asks for it to be stored.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.builder import Operand
from jitml.codegen.llvm.ir.cpu import DENSE_STRIDE, Cpu
from jitml.codegen.llvm.loops.access import Address, BufferMemory, MemoryEmitter, memory_type
from jitml.codegen.llvm.loops.function import Function
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.kernels.ir import Load, Store
from jitml.records import dataclass, field


@dataclass(slots=True)
class Neighbours:
    """Stores to elements that lie side by side.

    start: place of the first of them in lane 0, in elements of the buffer.
    parts: what there is so far, by the distance from the start.
    """

    memory: BufferMemory
    start: LinearForm
    stride: int
    parts: dict[int, Operand] = field(default_factory=dict)


class InterleavedStores(MemoryEmitter):
    """`MemoryEmitter` whose stores may wait for their neighbours."""

    def __init__(self, function: Function, buffers: dict[str, BufferMemory], cpu: Cpu) -> None:
        super().__init__(function, buffers, cpu)
        self.waiting: list[Neighbours] = []

    def load(self, expr: Load) -> Operand:
        memory = self.buffers[expr.buffer]
        these = next((these for these in self.waiting if these.memory.group == memory.group), None)
        if these is not None and not self._lies_between(expr, memory, these):
            self.store_waiting(memory.group)
        return super().load(expr)

    def _lies_between(self, expr: Load, memory: BufferMemory, these: Neighbours) -> bool:
        """Whether a load is of other neighbours than those that wait, which are in memory as they were."""
        distance = self.form(expr.buffer, expr.at) - these.start
        is_beside = memory.pointer.names == these.memory.pointer.names and memory.buffer.dtype == these.memory.buffer.dtype
        return is_beside and not distance.terms and distance.constant % these.stride not in these.parts

    def store(self, stmt: Store) -> None:
        memory, lanes = self.buffers[stmt.buffer], self.lanes
        if lanes is not None and lanes.mask is None and lanes.count > 1 and stmt.combine is None and lanes.streamed is not stmt:
            form = self.form(stmt.buffer, stmt.at)
            stride = form.terms.get(lanes.counter.names[0], 0)
            if 2 <= stride <= DENSE_STRIDE and all(self.atoms[name].lanes == 1 for name in form.terms):
                value = self.widen(self.value(stmt.value), lanes.count)
                self._hold_back(memory, form, stride, value)
                return
        self.store_waiting(memory.group)
        super().store(stmt)

    def store_waiting(self, group: str | None = None) -> None:
        """Store what waits, in one storage or in all."""
        for these in [these for these in self.waiting if group in (None, these.memory.group)]:
            self.waiting.remove(these)
            self._store_together(these)
            self.function.forget_loads(frozenset({these.memory.group}))

    def _hold_back(self, memory: BufferMemory, form: LinearForm, stride: int, value: Operand) -> None:
        place = form.constant % stride
        start = form - LinearForm(constant=place)
        these = next((these for these in self.waiting if these.memory.group == memory.group), None)
        if these is not None and (these.memory, these.start, these.stride) != (memory, start, stride):
            self.store_waiting(memory.group)  # they may overlap, so that the order counts
            these = None
        if these is None:
            these = Neighbours(memory, start, stride)
            self.waiting.append(these)
        these.parts[place] = value
        if len(these.parts) == stride:
            self.store_waiting(memory.group)

    def _store_together(self, these: Neighbours) -> None:
        b, memory, stride = self.builder, these.memory, these.stride
        dtype = memory.buffer.dtype
        if len(these.parts) < stride:
            for place, value in these.parts.items():
                self.write(Address(memory, self.pointer(memory, these.start + LinearForm(constant=place)), stride), value, None)
            return
        pointer = self.pointer(memory, these.start).names[0]
        parts = [self.raw(these.parts[place]) for place in range(stride)]
        count = these.parts[0].lanes
        width = min(count, self.cpu.vector_bytes // dtype.itemsize)
        kind, whole = memory_type(dtype, width), memory_type(dtype, count)
        for vector in range(count // width * stride):
            elements = range(vector * width, (vector + 1) * width)
            lanes = [element // stride for element in elements]
            first = ", ".join(f"i32 {lane + (count if element % stride == 1 else 0)}" for element, lane in zip(elements, lanes))
            name = b.define(f"shufflevector {whole} {parts[0]}, {whole} {parts[1]}, <{width} x i32> <{first}>")
            for place in range(2, stride):
                own = ", ".join(f"i32 {lane}" for lane in lanes)
                other = b.define(f"shufflevector {whole} {parts[place]}, {whole} poison, <{width} x i32> <{own}>")
                chosen = ", ".join(f"i32 {n + (width if e % stride == place else 0)}" for n, e in enumerate(elements))
                name = b.define(f"shufflevector {kind} {name}, {kind} {other}, <{width} x i32> <{chosen}>")
            at = b.define(f"getelementptr i8, ptr {pointer}, i64 {vector * width * dtype.itemsize}") if vector else pointer
            b.emit(f"store {kind} {name}, ptr {at}, align {dtype.itemsize}")


__all__ = ["InterleavedStores", "Neighbours"]
