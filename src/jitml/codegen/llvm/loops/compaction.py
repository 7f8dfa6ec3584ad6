"""Vector compaction: how are the elements that a mask keeps packed?

A vector at a time: what is kept moves to the front, and all of it is stored.

What a step stores beyond what it keeps, the next one overwrites. It has room for that: no more elements are kept than were looked
at, so that no store goes further than the loads before it. Without an instruction that packs (AVX-512 has it), one by one
is best: telling vectors apart that are kept as a whole, or not at all, was slower where both are mixed and no faster where not.
"""

from __future__ import annotations

from jitml.codegen.llvm.ir.builder import Operand
from jitml.codegen.llvm.ir.operand import mangled
from jitml.codegen.llvm.loops.access import Address, memory_type
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.codegen.llvm.loops.values import Lanes
from jitml.codegen.llvm.loops.vectorize import VectorNest
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Apply, Const, Expr, Load, Loop, Store, Update, Var
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Compaction:
    """A loop `out[kept] = element; kept += keep`.

    Args:
        store: the first statement.
        axis: of the array that is stored to, the one that `kept` goes along.
        at: the place, without the limit that holds `kept` in the axis.
        most: that limit.
    """

    cell: str
    keep: Load
    store: Store
    axis: int
    at: tuple[Expr, ...]
    most: int


def compaction(loop: Loop) -> Compaction | None:
    """What a loop packs; None if it is anything else."""
    if loop.start != Const(0) or loop.step != 1:
        return None
    match loop.body:
        case (Store(_, at, _, None) as store, Update(cell, Apply("convert", (Load(_, (Var(loop.index),), _) as keep,)), "add")):
            for axis, index in enumerate(at):
                match index:
                    case Apply("minimum", (Var(name), Const(most))) if name == cell and keep.dtype == BOOL:
                        return Compaction(cell, keep, store, axis, (*at[:axis], Var(cell), *at[axis + 1 :]), int(most))
    return None


class CompactingNest(VectorNest):
    """`VectorNest` with loops that pack."""

    def serial_loop(self, loop: Loop) -> None:
        packing = compaction(loop) if self.lanes is None else None
        if packing is None or not self._may_pack(packing):
            super().serial_loop(loop)
            return
        lanes = self.cpu.vector_bytes // packing.store.value.dtype.itemsize
        zero = self.builder.const(0, I64)
        whole = self._whole(zero, self._count_of(loop), lanes)

        def body(index: LinearForm, current: dict[str, Operand]) -> dict[str, Operand]:
            self.scope.update(current)
            counter = self.evaluate(index)
            self.bind(loop.index, self.atom(counter))
            place = self.address(packing.store.buffer, packing.at)
            self.lanes = Lanes(lanes, counter)
            element, keep = (self.widen(self.value(x), lanes) for x in (packing.store.value, packing.keep))
            self.lanes = None
            del self.linears[loop.index]
            kept = self._pack(place, element, keep)
            self.function.forget_loads(frozenset({place.memory.group}))
            return {packing.cell: self.apply("add", (current[packing.cell], kept), I64)}

        if whole != zero:
            before, stored = {packing.cell: self.scope[packing.cell]}, self.stored(loop.body)
            looks = self.looks(loop)
            length = max(1, looks // lanes) if looks else None
            self.scope |= self.counted(length, zero, whole, lanes, before, body, stored=stored, is_certain=whole.is_constant)
        name = f"{loop.index}_rest"
        self.bind(name, self.atom(whole))
        self.run_in_order(replace(loop, start=Var(name)), looks=0)

    def _may_pack(self, packing: Compaction) -> bool:
        """Whether there is an instruction, and room for a vector wherever the mask has as many elements left."""
        dtype, before = packing.store.value.dtype, self.scope[packing.cell]
        if not self.cpu.has_avx512 or (dtype.itemsize < 4 and not self.cpu.has("avx512vbmi2")):
            return False
        out, mask = self.buffers[packing.store.buffer].buffer, self.buffers[packing.keep.buffer].buffer
        is_dense = out.element_strides[packing.axis] == 1
        return is_dense and before.is_constant and int(before.names[0]) == 0 and mask.shape[0] <= packing.most + 1

    def _pack(self, place: Address, element: Operand, keep: Operand) -> Operand:
        """Store what is kept, and then whatever was in the vector; how many elements are kept."""
        b, lanes, dtype = self.builder, element.lanes, element.dtype
        kind = memory_type(dtype, lanes)
        symbol = f"@llvm.experimental.vector.compress.{mangled(dtype, lanes)}"
        b.module.declare(f"{kind} {symbol}({kind}, <{lanes} x i1>, {kind})")
        raw = b.define(f"call {kind} {symbol}({kind} {self.raw(element)}, <{lanes} x i1> {keep.names[0]}, {kind} poison)")
        b.emit(f"store {kind} {raw}, ptr {place.pointer.names[0]}, align {dtype.itemsize}")
        return self._number_of(keep)

    def _number_of(self, keep: Operand) -> Operand:
        """How many lanes are kept."""
        b, bits = self.builder, f"i{keep.lanes}"
        b.module.declare(f"{bits} @llvm.ctpop.{bits}({bits})")
        packed = b.define(f"bitcast {keep.type} {keep.names[0]} to {bits}")
        name = b.define(f"call {bits} @llvm.ctpop.{bits}({bits} {packed})")
        wide = name if keep.lanes == 64 else b.define(f"zext {bits} {name} to i64")
        return self.function.pin(Operand(I64, 1, (wide,)), self.function.here.depth)


__all__ = ["CompactingNest", "Compaction", "compaction"]
