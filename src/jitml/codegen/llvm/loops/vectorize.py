"""Vectorization: how does a loop become SIMD?  A main loop over several vectors, then a tail of single vectors under a mask.

Both run the same code with another number of lanes: a main iteration works on values of `vectors * width` lanes, which
LLVM splits into registers operation by operation, so that independent chains overlap. A target without masked memory
has a scalar tail instead (one lane). Reductions keep one accumulator per lane and are folded by halves at the end, in
an order that depends on the shape only.
"""

from __future__ import annotations

from functools import reduce

from jitml.codegen.llvm.ir.builder import Operand
from jitml.codegen.llvm.ir.cpu import DENSE_STRIDE
from jitml.codegen.llvm.loops.access import COMBINES, STREAMED_BYTES
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.codegen.llvm.loops.register_pressure import (
    POLYNOMIAL,
    operations,
    registers_needed,
    vector_operations,
    widest_element,
)
from jitml.codegen.llvm.loops.statements import StatementEmitter, identifier, identity
from jitml.codegen.llvm.loops.values import Lanes
from jitml.codegen.scalar_math import emit
from jitml.ir.op import is_total
from jitml.ir.types import BOOL, DTYPES, I64
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Cell,
    Combine,
    Const,
    Draw,
    Expr,
    Let,
    Load,
    Loop,
    Store,
    Update,
    While,
    affine,
    expressions,
    is_ordered,
    mul,
    variables_of,
    walk,
    walk_expressions,
)
from jitml.records import dataclass, replace

# Operations from which on a mask on every step costs less than the time to compile a second copy of the body.
LARGE_BODY = 100
# Operations on registers in a loop's body from which on LLVM takes more than linear time: what hoists invariants asks for each
# instruction which blocks leave the loop, and there are more of both. Of 43 gathers at quotients and remainders, 9,000 took
# 0.9 seconds, 18,000 took 1.9, 36,000 took 6, and 145,000 did not end within minutes.
LARGEST_BODY = 8_000
# Main steps from which on the few elements that they leave are not worth a copy of the body for single vectors.
LONG_STRIP = 64
# Fewer iterations than this are not worth aligning a streamed store for.
STREAMED_LENGTH = 1024


def _is_total(loop: Loop) -> bool:
    return all(is_total(e.fn) for e in walk_expressions(loop.body) if isinstance(e, Apply))


@dataclass(frozen=True, slots=True)
class Strip:
    """Iterations low:high of a vector loop (counted from 0), `lanes` at a time; masked: the last step may be a partial one."""

    low: Operand
    high: Operand
    lanes: int
    is_masked: bool = False
    streamed: Store | None = None  # the store that goes past the caches
    has_more: bool = False  # iterations follow that are not part of the strip


class VectorNest(StatementEmitter):
    """`StatementEmitter` with vector loops."""

    # --------------------------------------------------------------------------------------------- may we

    def is_vectorizable(self, loop: Loop) -> bool:
        """Whether lanes may run side by side; if not, the loop runs in order."""
        shared = set(self.carried(loop.body))
        combines: dict[str, Combine] = {}
        varying, moving = {loop.index}, {loop.index}  # what may be another in each lane; what surely depends on which it is
        for stmt in walk(loop.body):
            if isinstance(stmt, (Alloc, Draw, While)):
                return False  # one scratch, one generator or one test, but many lanes at once
            if isinstance(stmt, (Let, Cell)):
                varying.add(stmt.name)
                moving |= {stmt.name} if variables_of(*expressions(stmt)) & moving else set()
            if isinstance(stmt, Loop) and variables_of(stmt.start, stmt.stop) & varying:
                return False
            if isinstance(stmt, Update) and stmt.cell in shared:
                if stmt.combine is None or combines.setdefault(stmt.cell, stmt.combine) != stmt.combine:
                    return False
                if self._is_in_order(stmt) and all(stmt is not own for own in loop.body):
                    return False  # of a loop inside, which each lane would have to leave before the next one begins
            if isinstance(stmt, Store) and not (variables_of(*stmt.at) & moving and self._is_injective(stmt, loop)):
                return False  # one element for all iterations, where there is at most one, is no vector to be written
            if variables_of(*expressions(stmt)) & shared:
                return False  # a scan: the running value is read
        return True

    def _is_in_order(self, stmt: Update) -> bool:
        return is_ordered(stmt.combine, self.scope[stmt.cell].dtype)

    def _is_injective(self, stmt: Store, loop: Loop) -> bool:
        """Whether no two lanes store to one element. An indirect store without `combine` was proved so by its author."""
        if stmt.combine is None:
            return True
        forms = [affine(index) for index in stmt.at]
        return all(form is not None for form in forms) and any(form and form.get(loop.index) for form in forms)

    # --------------------------------------------------------------------------------------------- how wide

    def widths(self, loop: Loop, trips: int | None) -> tuple[int, int]:
        """Lanes of one vector, and vectors side by side in the main loop."""
        width = self.cpu.vector_bytes // widest_element(loop)
        needed = registers_needed(loop.body)
        is_short = trips is not None and trips <= 8 * width
        most = 8 if is_short or self.carried(loop.body) else 4
        if any(isinstance(stmt, Update) and stmt.cell in self.scope and self._is_in_order(stmt) for stmt in loop.body):
            most = 1  # one element after the other: there is nothing to overlap
        if most == 4 and operations(loop.body, polynomial=POLYNOMIAL) <= self._moves(loop, width):
            most = 1  # one vector has as much to overlap as the processor looks at
        vectors = 1
        while vectors < most and 2 * vectors * needed <= self.cpu.vector_registers:
            vectors *= 2
        if trips is not None:
            while width > 1 and (trips < width if not self.cpu.has_avx512 else trips <= width // 2):
                width //= 2
            # Under masks a short loop is one step, however many lanes of it are left over.
            while vectors > 1 and (vectors * width // 2 >= trips if self.cpu.has_avx512 else vectors * width > trips):
                vectors //= 2
        return self._within_reach(loop, width, vectors)

    def _within_reach(self, loop: Loop, width: int, vectors: int) -> tuple[int, int]:
        """As many of the lanes as LLVM can make code of: fewer vectors, then fewer lanes than a register holds of bytes."""
        size = self.cpu.vector_bytes
        while vectors * width * 8 > size and (
            vector_operations(loop.body, vectors * width, vector_bytes=size, polynomial=POLYNOMIAL) > LARGEST_BODY
        ):
            width, vectors = (width, vectors // 2) if vectors > 1 else (width // 2, vectors)
        return width, vectors

    # --------------------------------------------------------------------------------------------- how

    def vector_loop(self, loop: Loop) -> None:
        if self.trips(loop) == 0:
            return
        combines = {s.cell: s.combine for s in walk(loop.body) if isinstance(s, Update) and s.cell in self.scope and s.combine}
        outer = {name: self.scope[name] for name in combines}
        in_order = {
            stmt.cell for stmt in loop.body if isinstance(stmt, Update) and stmt.cell in outer and self._is_in_order(stmt)
        }
        strips = self._strips(loop)
        partial = {
            name: outer[name] if name in in_order else identity(self.builder, combine, outer[name].dtype, strips[0].lanes)
            for name, combine in combines.items()
        }
        for strip in strips:
            folded = {name: self._fold(x, strip.lanes, combines[name]) for name, x in partial.items()}
            partial = self._run(loop, strip, folded)
        self.scope |= {name: partial[name] for name in in_order}
        for name, combine in combines.items():
            if name in in_order:
                continue
            total = self._fold(partial[name], 1, combine)
            self.scope[name] = self.apply(COMBINES[combine], (outer[name], total), total.dtype)

    def _strips(self, loop: Loop) -> list[Strip]:
        """The parts of a loop, in order: until a streamed store is aligned, several vectors a time, single ones, the rest."""
        trips, count, zero = self.trips(loop), self._count_of(loop), self.builder.const(0, I64)
        width, vectors = self.widths(loop, trips)
        has_masks = self.cpu.has_avx512 and _is_total(loop)  # lanes that do not run compute in vain
        rest = width if has_masks else 1
        strips, low = [], zero
        streamed = self._streamed(loop, trips, width)
        is_large = None
        if streamed is not None:
            is_large, low = self._is_large(streamed), self._until_aligned(loop, streamed, width, count)
            if is_large is not None:
                low = self.apply("select", (is_large, low, zero), I64)
            strips.append(Strip(zero, low, rest, is_masked=rest > 1))
        is_strided = self._has_strided_loads(loop)
        # Strided loads read whole vectors, so that the last element of all must be left to the rest.
        last = count
        if is_strided:
            last = self.apply("maximum", (self.evaluate(self.atom(count) - LinearForm(constant=1)), low), I64)
        lanes = width * vectors
        is_one_step = trips is not None and trips <= lanes
        if has_masks and streamed is None and not is_strided and (is_one_step or operations(loop.body) >= LARGE_BODY):
            return [Strip(zero, count, lanes, is_masked=self._whole(zero, count, lanes) != count)]
        usual = self._usual_trips(loop) or 0
        has_singles = vectors > 1 and (usual < LONG_STRIP * width * vectors if is_strided else not has_masks)
        for lanes in (width * vectors, width) if has_singles else (width * vectors,):
            high = self._whole(low, last, lanes)
            if high != low and is_large is not None:  # one of two strips is empty
                middle = self.apply("select", (is_large, high, low), I64)
                strips.append(Strip(low, middle, lanes, streamed=streamed, has_more=is_strided))
                strips.append(Strip(middle, high, lanes, has_more=is_strided))
            elif high != low:
                strips.append(Strip(low, high, lanes, streamed=streamed, has_more=is_strided))
            low = high
        if low != count:
            if has_masks and low.is_constant and trips is not None and trips <= 8 * lanes:
                # In a short loop the rest is one step as well.
                while rest < trips - int(low.names[0]):
                    rest *= 2
            if low.is_constant and trips == int(low.names[0]) + 1:
                # LLVM 20 turns a masked store of one lane into a store of that lane as it was before it was narrowed: too wide.
                rest = 1
            left = self._whole(low, count, rest)
            strips.append(Strip(low, count, rest, is_masked=rest > 1 and left != count))
        return strips

    def _usual_trips(self, loop: Loop) -> int | None:
        """Number of iterations, if known: of a loop over a block, those of all blocks but the last."""
        stop = loop.stop.args[0] if isinstance(loop.stop, Apply) and loop.stop.fn == "minimum" else loop.stop
        return self.trips(replace(loop, stop=stop))

    def _whole(self, low: Operand, high: Operand, lanes: int) -> Operand:
        """The end of the last whole step of `lanes` from `low` that is not beyond `high`."""
        if low.is_constant and high.is_constant:
            start, stop = int(low.names[0]), int(high.names[0])
            return self.builder.const(start + (stop - start) // lanes * lanes, I64)
        length = self.apply("sub", (high, low), I64)
        return self.apply("add", (low, self.apply("bit_and", (length, self.builder.const(-lanes, I64)), I64)), I64)

    def _count_of(self, loop: Loop) -> Operand:
        """Number of iterations, at least 0."""
        b = self.builder
        distance = self.evaluate(self.linear(loop.stop) - self.linear(loop.start), is_lane_zero=True)
        if distance.is_constant:
            return b.const(max(0, -(-int(distance.names[0]) // loop.step)), I64)
        step = b.const(loop.step, I64)
        if loop.step != 1:
            shifted = self.apply("add", (distance, b.const(loop.step - 1 if loop.step > 0 else loop.step + 1, I64)), I64)
            # Truncation is as good as rounding down here: a distance of no iteration is clamped below.
            distance = self.function.compute(("quotient",), (shifted, step), lambda: b.divide(shifted, step))
        return self.apply("maximum", (distance, b.const(0, I64)), I64)

    def _run(self, loop: Loop, strip: Strip, partial: dict[str, Operand]) -> dict[str, Operand]:
        """One part of the loop; `partial` holds the accumulators."""
        start, outside = self.linear(loop.start), self.accumulators
        low, high = strip.low, strip.high
        is_known = low.is_constant and high.is_constant
        self.accumulators = frozenset(partial)

        def body(counter: Operand, current: dict[str, Operand]) -> dict[str, Operand]:
            mask = self._tail_mask(low, counter, high, strip.lanes, widest_element(loop)) if strip.is_masked else None
            is_all = low.is_constant and int(low.names[0]) == 0
            self.lanes = Lanes(strip.lanes, counter, mask, streamed=strip.streamed, has_more=strip.has_more, is_all=is_all)
            self.scope.update(current)
            self.iteration(loop, start + self.atom(counter) * loop.step)
            self.store_waiting()
            self.lanes = None
            return {name: self.scope[name] for name in partial}

        if is_known and int(low.names[0]) + strip.lanes >= int(high.names[0]):
            # One iteration: no loop, but the counter must be a name for strides to be seen.
            name = f"add i64 {low.names[0]}, 0"
            define = self.builder.define
            after = body(self.function.compute(("counter",), (low,), lambda: Operand(I64, 1, (define(name),))), partial)
        else:
            after = self.function.loop(
                low, high, strip.lanes, partial, body,
                stored=self.stored(loop.body), is_certain=is_known, stem=identifier(loop.index),
            )  # fmt: skip
        self.accumulators = outside
        return after

    def _has_strided_loads(self, loop: Loop) -> bool:
        return loop.step == 1 and any(
            isinstance(e, Load) and 2 <= self._stride(e.buffer, e.at, loop) <= DENSE_STRIDE for e in walk_expressions(loop.body)
        )

    def _moves(self, loop: Loop, width: int) -> int:
        """Instructions of the body that only move elements of one vector, seen at a glance: accesses lane by lane, and shuffles.

        A store that waits for its neighbours (`interleave.py`) takes a shuffle for each vector of them: several vectors at a
        time were slower there, too.
        """
        loads = [self._stride(e.buffer, e.at, loop) for e in walk_expressions(loop.body) if isinstance(e, Load)]
        stores = [self._stride(stmt.buffer, stmt.at, loop) for stmt in walk(loop.body) if isinstance(stmt, Store)]
        by_lane = [stride for stride in loads if stride < -1 or stride > DENSE_STRIDE] + [n for n in stores if abs(n) > 1]
        return width * len(by_lane) + sum(stride - 1 for stride in loads if 1 < stride <= DENSE_STRIDE)

    def _stride(self, buffer: str, at: tuple[Expr, ...], loop: Loop) -> int:
        """Elements between the accesses of neighbouring iterations; 0 if that is not seen at a glance."""
        forms = [affine(index) for index in at]
        memory = self.buffers.get(buffer)  # scratch declared in the loop is not known yet
        if memory is None or None in forms:
            return 0
        return sum(form.get(loop.index, 0) * n for form, n in zip(forms, memory.buffer.element_strides, strict=True) if form)

    # ----------------------------------------------------------------------------------------- streamed stores

    def _streamed(self, loop: Loop, trips: int | None, width: int) -> Store | None:
        """The store of the loop that may go past the caches: dense, unconditional, into a buffer that is too large for them.

        Such a store must be aligned to a vector. One per loop can be made so.
        """
        if (trips is not None and trips < STREAMED_LENGTH) or self.carried(loop.body) or loop.step != 1:
            return None
        for stmt in loop.body:
            if isinstance(stmt, Store) and stmt.combine is None and (used := self.buffers[stmt.buffer].streamed) is not None:
                itemsize = self.buffers[stmt.buffer].buffer.dtype.itemsize
                is_known = variables_of(*used) <= self.scope.keys() | self.linears.keys()
                if not is_known or (used and operations(loop.body) >= LARGE_BODY):
                    continue  # it is written twice, once for memory that is small
                if self._stride(stmt.buffer, stmt.at, loop) == 1 and itemsize == widest_element(loop):
                    return stmt
        return None

    def _is_large(self, streamed: Store) -> Operand | None:
        """Whether what the run uses of a buffer is too large for the caches; None if it surely is."""
        memory = self.buffers[streamed.buffer]
        if not memory.streamed:
            return None
        one: Expr = Const(memory.buffer.dtype.itemsize)
        return self.value(Apply("ge", (reduce(mul, memory.streamed, one), Const(STREAMED_BYTES)), BOOL))

    def _until_aligned(self, loop: Loop, streamed: Store, width: int, count: Operand) -> Operand:
        """Iterations before the streamed store meets a vector boundary."""
        b = self.builder
        self.bind(loop.index, self.linear(loop.start))
        pointer = self.address(streamed.buffer, streamed.at).pointer
        del self.linears[loop.index]
        itemsize = self.buffers[streamed.buffer].buffer.dtype.itemsize

        def emit_distance() -> Operand:
            place = Operand(I64, 1, (b.define(f"ptrtoint ptr {pointer.names[0]} to i64"),))
            elements = b.lshr(place, itemsize.bit_length() - 1)
            return b.min(b.and_(b.sub(b.const(0, I64), elements), width - 1), count)

        return self.function.compute(("distance", width), (pointer, count), emit_distance)

    # ------------------------------------------------------------------------------------------------- details

    def _tail_mask(self, low: Operand, counter: Operand, high: Operand, lanes: int, itemsize: int) -> Operand:
        """Lanes below `high`, compared at the width of the data so that the mask needs no shuffling."""
        b = self.builder
        if low.is_constant and high.is_constant and int(low.names[0]) + lanes >= int(high.names[0]):
            # One step: LLVM makes plain loads of the vectors that are whole.
            active = int(high.names[0]) - int(low.names[0])
            flags = ", ".join(f"i1 {'true' if n < active else 'false'}" for n in range(lanes))
            return Operand(BOOL, lanes, (f"<{flags}>",))
        left = b.sub(high, counter)
        bits = 16 if itemsize == 1 and lanes > 127 else 8 * itemsize  # a byte does not count so many lanes
        dtype = DTYPES[f"i{bits}"]
        steps = ", ".join(f"i{bits} {n}" for n in range(lanes))
        numbers = Operand(dtype, lanes, (f"<{steps}>",))
        mask = b.icmp("lt", numbers, b.convert(b.min(left, lanes), dtype))
        return self.function.pin(mask, self.function.here.depth)

    def _fold(self, x: Operand, lanes: int, combine: Combine) -> Operand:
        """Combine the upper half of the lanes with the lower one until `lanes` are left."""
        b = self.builder
        while x.lanes > lanes:
            x = emit(b, COMBINES[combine], b.halves(x), x.dtype)
        return self.function.pin(x, self.function.here.depth)
