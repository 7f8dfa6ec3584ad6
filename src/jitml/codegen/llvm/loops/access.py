"""Memory access: how are elements read and written?

Addresses from index expressions, and the instruction that suits their stride.

From lane to lane an address moves by a constant number of elements or by none: that is a plain, splat, reversed or
strided access. Where an index is itself a vector (`x[i // 3]`, `x[idx[i]]`) lanes are gathered. Row pointers are built
outermost loop first, so that an inner loop only adds what changes in it.
"""

from __future__ import annotations

from typing import TypeAlias

from jitml.codegen.llvm.ir.builder import Operand, literal, llvm_type
from jitml.codegen.llvm.ir.cpu import DENSE_STRIDE, Cpu
from jitml.codegen.llvm.ir.operand import mangled
from jitml.codegen.llvm.loops.function import Function
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.codegen.llvm.loops.values import Values
from jitml.codegen.scalar_math import emit
from jitml.ir.types import BOOL, I64, DType
from jitml.kernels.ir import Buffer, Expr, Load, Store
from jitml.records import dataclass

# About half of a usual last-level cache: from here on an ordinary store only reads memory that it overwrites
# (measured: x * 2 + z runs 1.5 times faster with streamed stores at 16 MB, and slower at 4 MB).
STREAMED_BYTES = 16 << 20
FAR_BYTES = 1 << 20  # about a near cache
Extents: TypeAlias = tuple[Expr, ...]  # a shape over size variables
COMBINES = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "or": "bit_or", "and": "bit_and"}


@dataclass(frozen=True, slots=True)
class BufferMemory:
    """A buffer at run time.

    Args:
        pointer: to element 0, as an operand of the buffer's dtype.
        group: names the storage; buffers that share bytes are in one group.
        streamed: it may be too large for the caches, and is not read again soon: store past them, if the shape that is used, of
            which only the run tells, takes STREAMED_BYTES; () is all of it, and does.
    """

    buffer: Buffer
    pointer: Operand
    group: str
    streamed: Extents | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where the lanes of an access lie.

    Args:
        pointer: the element of lane 0 (scalar accesses: of all lanes).
        stride: elements from one lane to the next; 0 for a scalar access.
        offsets: elements from `pointer`, one per lane, where there is no constant stride.
    """

    memory: BufferMemory
    pointer: Operand
    stride: int
    offsets: Operand | None = None

    @property
    def is_scalar(self) -> bool:
        return self.stride == 0 and self.offsets is None


class MemoryEmitter(Values):
    """Loads and stores of one function."""

    def __init__(self, function: Function, buffers: dict[str, BufferMemory], cpu: Cpu) -> None:
        super().__init__(function)
        self.buffers = buffers
        self.cpu = cpu

    # ----------------------------------------------------------------------------------------------- addresses

    def address(self, buffer: str, at: tuple[Expr, ...]) -> Address:
        memory, form = self.buffers[buffer], self.form(buffer, at)
        count = 1 if self.lanes is None else self.lanes.count
        per_lane = {name: c for name, c in form.terms.items() if self.atoms[name].lanes > 1}
        shared = LinearForm({name: c for name, c in form.terms.items() if name not in per_lane}, form.constant)
        stride = 0 if self.lanes is None or count == 1 else form.terms.get(self.lanes.counter.names[0], 0)
        if not per_lane:
            return Address(memory, self.pointer(memory, shared), stride)
        if stride:
            assert self.lanes is not None
            per_lane[self.lanes.counter.names[0]] = stride
            shared = shared - LinearForm({self.lanes.counter.names[0]: stride})
        return Address(memory, self.pointer(memory, shared), 0, self.evaluate(LinearForm(per_lane)))

    def form(self, buffer: str, at: tuple[Expr, ...]) -> LinearForm:
        """The element's offset from the buffer's first."""
        form = LinearForm()
        for index, stride in zip(at, self.buffers[buffer].buffer.element_strides, strict=True):
            form += self.linear(index) * stride
        return form

    def pointer(self, memory: BufferMemory, form: LinearForm) -> Operand:
        """Base plus a uniform linear form; each partial sum is formed where its last term becomes known."""
        itemsize = memory.buffer.dtype.itemsize
        pointer = memory.pointer
        for name, coefficient in self._by_depth(form):
            step, unit = self.atoms[name], coefficient * itemsize
            if unit not in (1, 2, 4, 8):  # what an address can scale by for nothing
                step, unit = self.apply("mul", (step, self.builder.const(unit, I64)), I64), 1
            pointer = self._advance(pointer, step, unit)
        if form.constant:
            pointer = self._advance(pointer, self.builder.const(form.constant * itemsize, I64), 1)
        return pointer

    def _advance(self, pointer: Operand, step: Operand, unit: int) -> Operand:
        b = self.builder

        def step_by() -> Operand:
            name = b.define(f"getelementptr i{8 * unit}, ptr {pointer.names[0]}, i64 {step.names[0]}")
            return Operand(pointer.dtype, 1, (name,))

        return self.function.compute(("pointer", unit), (pointer, step), step_by)

    # --------------------------------------------------------------------------------------------------- loads

    def load(self, expr: Load) -> Operand:
        address = self.address(expr.buffer, expr.at)
        mask = None if self.lanes is None or address.is_scalar else self.lanes.mask
        if mask is None and self.lanes is not None and self.lanes.has_more and 2 <= address.stride <= DENSE_STRIDE:
            return self._deinterleave(expr, address)
        operands = tuple(x for x in (address.pointer, address.offsets, mask) if x is not None)
        group = address.memory.group
        key = ("load", group, expr.dtype, address.stride, 1 if address.is_scalar else self._count, mask is not None)
        return self.function.compute(key, operands, lambda: self._read(address, mask), floor=self.function.load_floor(group))

    def _deinterleave(self, expr: Load, address: Address) -> Operand:
        """Every n-th element of dense vectors, by shuffles: neighbours such as `x[i, 0]` and `x[i, 1]` share the vectors."""
        b, stride, dtype = self.builder, address.stride, expr.dtype
        form, memory = self.form(expr.buffer, expr.at), address.memory
        phase = 0
        if form.constant >= 0 and min(form.terms.values()) > 0:
            # Nothing is subtracted, so the whole group of elements that this one belongs to lies in the buffer.
            phase = form.constant % stride
        start = self.pointer(memory, form - LinearForm(constant=phase))
        width = min(self._count, self.cpu.vector_bytes // dtype.itemsize)
        floor = max(self.function.load_floor(memory.group), self.function.depth(start))

        def read(number: int) -> Operand:
            kind = memory_type(dtype, width)
            place = b.define(f"getelementptr i8, ptr {start.names[0]}, i64 {number * width * dtype.itemsize}")
            return Operand(dtype, width, (b.define(f"load {kind}, ptr {place}, align {dtype.itemsize}"),))

        def vector(number: int) -> str:
            key = ("load", memory.group, "dense", dtype, width, number)
            return self.function.compute(key, (start,), lambda: read(number), floor=floor).names[0]

        def every_other(part: int, count: int, phase: int) -> str:
            """Each count-th element of as many vectors, a power of two: every other one of those of either half."""
            if count == 1:
                return vector(part)
            half = count // 2
            lanes = ", ".join(f"i32 {phase // half + 2 * n}" for n in range(width))

            def shuffle() -> Operand:
                kind, (low, high) = memory_type(dtype, width), (every_other(at, half, phase % half) for at in (part, part + half))
                return Operand(dtype, width, (b.define(f"shufflevector {kind} {low}, {kind} {high}, <{width} x i32> <{lanes}>"),))

            key = ("load", memory.group, "every other", dtype, width, part, count, phase)
            return self.function.compute(key, (start,), shuffle, floor=floor).names[0]

        def pick() -> Operand:
            kind, parts = memory_type(dtype, width), []
            for part in range(0, self._count // width * stride, stride):
                if stride != 3:
                    parts.append(every_other(part, stride, phase))
                    continue
                name = vector(part)
                for further in range(1, stride):
                    # Lanes found so far stay, those whose element is in this vector are taken, the others come later.
                    order = [n if further > 1 else phase + n * stride for n in range(width)]
                    for n in range(width):
                        element = phase + n * stride - further * width
                        order[n] = width + min(element, width - 1) if element >= 0 else order[n]
                    lanes = ", ".join(f"i32 {n}" for n in order)
                    other = vector(part + further)
                    name = b.define(f"shufflevector {kind} {name}, {kind} {other}, <{width} x i32> <{lanes}>")
                parts.append(name)
            whole = self._concatenate(parts, dtype, width)
            if dtype == BOOL:
                whole = b.define(f"icmp ne {memory_type(dtype, self._count)} {whole}, zeroinitializer")
            return Operand(dtype, self._count, (whole,))

        key = ("load", memory.group, "every", stride, phase, dtype, self._count)
        return self.function.compute(key, (start,), pick, floor=floor)

    def _concatenate(self, parts: list[str], dtype: DType, width: int) -> str:
        """Vectors side by side as one."""
        while len(parts) > 1:
            kind, order = memory_type(dtype, width), ", ".join(f"i32 {n}" for n in range(2 * width))
            parts = [
                self.builder.define(f"shufflevector {kind} {low}, {kind} {high}, <{2 * width} x i32> <{order}>")
                for low, high in zip(parts[::2], parts[1::2], strict=True)
            ]
            width *= 2
        return parts[0]

    @property
    def _count(self) -> int:
        return 1 if self.lanes is None else self.lanes.count

    def _read(self, address: Address, mask: Operand | None) -> Operand:
        """The loaded value; a bool is one byte in memory and one bit in a register."""
        dtype = address.memory.buffer.dtype
        lanes = 1 if address.is_scalar else self._count
        kind, first = memory_type(dtype, lanes), ""
        if address.is_scalar or (address.stride in (1, -1) and mask is None):
            start = self._lowest(address)
            raw = self.builder.define(f"load {kind}, ptr {start}, align {dtype.itemsize}")
        elif mask is None and address.offsets is None and address.stride != -1:
            raw = self._read_each(address, kind)
        else:
            first = self._first_of(address, kind) if self._goes_by_first(address) else ""
            raw = self._masked_read(address, mask, kind, first)
        if address.stride == -1:
            raw = self._reverse(raw, kind, lanes)
        if mask is not None and lanes > 1 and not first:
            raw = self._like_first(raw, mask, kind)
        if dtype == BOOL:
            zero = "0" if lanes == 1 else "zeroinitializer"
            raw = self.builder.define(f"icmp ne {kind} {raw}, {zero}")
        return Operand(dtype, lanes, (raw,))

    def _goes_by_first(self, address: Address) -> bool:
        """Whether a masked load begins with what the first lane has, in all lanes: it runs, and nothing else reads far memory.

        A load under a mask does not tell a processor that memory is read in order, as that of one element does (measured on
        Zen 5, 21 MB in rows of three and four float64: 290 instead of 700 us). In a near cache it costs a tenth.
        """
        buffer, group, lanes = address.memory.buffer, address.memory.group, self.lanes
        if address.stride != 1 or lanes is None or not lanes.is_all or lanes.branch_mask is not None or buffer.dtype == BOOL:
            return False
        return buffer.size * buffer.dtype.itemsize >= FAR_BYTES and not self.function.has_plain_load(group)

    def _first_of(self, address: Address, kind: str) -> str:
        """What the first lane loads, in all lanes."""
        b, memory, dtype = self.builder, address.memory, address.memory.buffer.dtype
        one = Address(memory, address.pointer, 0)
        key = ("load", memory.group, dtype, 0, 1, False)  # as of a load that all lanes share
        floor = self.function.load_floor(memory.group)
        first = self.function.compute(key, (address.pointer,), lambda: self._read(one, None), floor=floor)
        vector = b.define(f"insertelement {kind} poison, {memory_type(dtype)} {first.names[0]}, i64 0")
        return b.define(f"shufflevector {kind} {vector}, {kind} poison, <{self._count} x i32> zeroinitializer")

    def _like_first(self, raw: str, mask: Operand, kind: str) -> str:
        """Inactive lanes have what the first one has: what is computed of that raises the errors of the first one alone."""
        b, lanes = self.builder, self._count
        first = b.define(f"shufflevector {kind} {raw}, {kind} poison, <{lanes} x i32> zeroinitializer")
        return b.define(f"select <{lanes} x i1> {self._bits(mask)}, {kind} {raw}, {kind} {first}")

    def _masked_read(self, address: Address, mask: Operand | None, kind: str, first: str) -> str:
        """Inactive lanes read what the first one has, if that is there, or 1, which no function finds difficult."""
        b, dtype, lanes = self.builder, address.memory.buffer.dtype, self._count
        element = memory_type(dtype)
        ones = f"{kind} {first}" if first else f"{kind} splat ({element} {literal(1, dtype) if dtype != BOOL else 1})"
        active = f"<{lanes} x i1> {self._bits(mask)}"
        suffix = mangled(dtype, lanes)
        if address.stride not in (1, -1):
            symbol = f"@llvm.masked.gather.{suffix}.v{lanes}p0"
            b.module.declare(f"{kind} {symbol}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
            where = f"<{lanes} x ptr> {self._pointers(address)}"
            return b.define(f"call {kind} {symbol}({where}, i32 {dtype.itemsize}, {active}, {ones})")
        if address.stride == -1:
            active = f"<{lanes} x i1> {self._reverse(self._bits(mask), f'<{lanes} x i1>', lanes)}"
        where = self._lowest(address)
        if b.is_optimized:
            # LLVM 22's optimiser moves a masked.load past stores, to a select by the same mask (its issue 215453).
            symbol = f"@llvm.vp.load.{suffix}.p0"
            b.module.declare(f"{kind} {symbol}(ptr, <{lanes} x i1>, i32)")
            raw = b.define(f"call {kind} {symbol}(ptr align {dtype.itemsize} {where}, {active}, i32 {lanes})")
            return b.define(f"select {active}, {kind} {raw}, {ones}")
        symbol = f"@llvm.masked.load.{suffix}.p0"
        b.module.declare(f"{kind} {symbol}(ptr, i32, <{lanes} x i1>, {kind})")
        return b.define(f"call {kind} {symbol}(ptr {where}, i32 {dtype.itemsize}, {active}, {ones})")

    def _read_each(self, address: Address, kind: str) -> str:
        """Lane by lane: processors gather no faster (measured: x.T.copy() in 438 against 1349 us for 1000 x 1000 float64)."""
        b, dtype = self.builder, address.memory.buffer.dtype
        vector = "poison"
        for lane in range(self._count):
            offset = lane * address.stride * dtype.itemsize
            place = b.define(f"getelementptr i8, ptr {address.pointer.names[0]}, i64 {offset}")
            part = b.define(f"load {memory_type(dtype)}, ptr {place}, align {dtype.itemsize}")
            vector = b.define(f"insertelement {kind} {vector}, {memory_type(dtype)} {part}, i64 {lane}")
        return vector

    def _lowest(self, address: Address) -> str:
        """Pointer to the lowest of consecutive elements."""
        if address.stride != -1:
            return address.pointer.names[0]
        back = -(self._count - 1) * address.memory.buffer.dtype.itemsize
        return self.builder.define(f"getelementptr i8, ptr {address.pointer.names[0]}, i64 {back}")

    def _pointers(self, address: Address) -> str:
        """One pointer per lane."""
        lanes, element = self._count, memory_type(address.memory.buffer.dtype)
        if address.offsets is not None:
            offsets = self.widen(address.offsets, lanes).names[0]
        else:
            offsets = f"<{', '.join(f'i64 {n * address.stride}' for n in range(lanes))}>"
        return self.builder.define(f"getelementptr {element}, ptr {address.pointer.names[0]}, <{lanes} x i64> {offsets}")

    def _bits(self, mask: Operand | None) -> str:
        return "splat (i1 true)" if mask is None else mask.names[0]

    def _reverse(self, value: str, kind: str, lanes: int) -> str:
        order = ", ".join(f"i32 {n}" for n in reversed(range(lanes)))
        return self.builder.define(f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{order}>")

    # -------------------------------------------------------------------------------------------------- stores

    def store(self, stmt: Store) -> None:
        value = self.value(stmt.value)
        address = self.address(stmt.buffer, stmt.at)
        mask = None if self.lanes is None or address.is_scalar else self.lanes.mask
        if not address.is_scalar:
            value = self.widen(value, self._count)
        if stmt.combine is not None:
            current = self._read(address, mask)
            value = emit(self.builder, COMBINES[stmt.combine], (current, value), value.dtype)
        is_streamed = self.lanes is not None and self.lanes.streamed is stmt
        self.write(address, value, mask, is_streamed=is_streamed)
        self.function.forget_loads(frozenset({address.memory.group}))

    def write(self, address: Address, value: Operand, mask: Operand | None, *, is_streamed: bool = False) -> None:
        b, dtype, lanes = self.builder, value.dtype, value.lanes
        kind, raw = memory_type(dtype, lanes), self.raw(value)
        bits = self._bits(mask)
        if address.stride == -1:
            raw = self._reverse(raw, kind, lanes)
            bits = bits if mask is None else self._reverse(bits, f"<{lanes} x i1>", lanes)
        if address.is_scalar or (address.stride in (1, -1) and mask is None):
            how = f"align {dtype.itemsize}"
            if is_streamed:
                how = f"align {self.cpu.vector_bytes}, !nontemporal {b.module.metadata('!{i32 1}')}"
            b.emit(f"store {kind} {raw}, ptr {self._lowest(address)}, {how}")
            return
        if mask is None and address.offsets is None and abs(address.stride) not in (0, 1):
            self._write_each(address, kind, raw)
            return
        suffix = mangled(dtype, lanes)
        if address.stride in (1, -1):
            symbol, pointers = f"@llvm.masked.store.{suffix}.p0", "ptr"
            where = self._lowest(address)
        else:
            symbol, pointers = f"@llvm.masked.scatter.{suffix}.v{lanes}p0", f"<{lanes} x ptr>"
            where = self._pointers(address)
        b.module.declare(f"void {symbol}({kind}, {pointers}, i32, <{lanes} x i1>)")
        b.emit(f"call void {symbol}({kind} {raw}, {pointers} {where}, i32 {dtype.itemsize}, <{lanes} x i1> {bits})")

    def raw(self, x: Operand) -> str:
        """Elements as memory has them: a bool is a byte."""
        return (
            self.builder.define(f"zext {x.type} {x.names[0]} to {memory_type(BOOL, x.lanes)}") if x.dtype == BOOL else x.names[0]
        )

    def _write_each(self, address: Address, kind: str, value: str) -> None:
        """Lane by lane: processors scatter no faster (measured: 0.29 against 0.40 ns per element at stride 3)."""
        b, dtype = self.builder, address.memory.buffer.dtype
        for lane in range(self._count):
            part = b.define(f"extractelement {kind} {value}, i64 {lane}")
            offset = lane * address.stride * dtype.itemsize
            place = b.define(f"getelementptr i8, ptr {address.pointer.names[0]}, i64 {offset}")
            b.emit(f"store {memory_type(dtype)} {part}, ptr {place}, align {dtype.itemsize}")


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """As `llvm_type`, but with the byte that a bool takes in memory.

    >>> memory_type(BOOL, 4)
    '<4 x i8>'
    """
    if dtype != BOOL:
        return llvm_type(dtype, lanes)
    return "i8" if lanes == 1 else f"<{lanes} x i8>"
