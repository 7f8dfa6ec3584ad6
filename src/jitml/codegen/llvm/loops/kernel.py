"""Kernels as functions: how does a kernel become functions?

One for the kernel, one per parallel loop in it, with scratch and checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from jitml.codegen.llvm.ir.builder import Operand
from jitml.codegen.llvm.ir.conventions import LOOK, NO_MEMORY, RAISED, STOPPED, Effort
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.access import BufferMemory, Extents
from jitml.codegen.llvm.loops.compaction import CompactingNest
from jitml.codegen.llvm.loops.function import Function
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.codegen.llvm.loops.safepoints import BLOCK, READ_WORD, SELF_LOOKING, find_word, look_every, looking, parallel_for, work
from jitml.codegen.llvm.loops.statements import identifier
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Alloc, Buffer, Check, Kernel, Load, Loop, Store, Var, walk, walk_expressions
from jitml.memory.aliasing import BufferStorage

STACK_LIMIT = 16 * 1024  # bytes of scratch on the stack of one function; beyond that it is allocated


def emit_kernel(
    unit: Unit, kernel: Kernel, symbol: str, places: Mapping[str, BufferStorage], streamed: Mapping[str, Extents] | None = None
) -> str:
    """Append the functions of a kernel to the unit, unless it has their like; returns the name of the one to call.

    `i64 @symbol(ptr error, ptr buffer...)`, with the buffers in the order of `kernel.params`, returns 0, or 1 + the index
    of the check that failed, whose values are then in `error`, or NO_MEMORY.

    Args:
        places: of each parameter, its storage; parameters that share bytes have one group.
        streamed: parameters whose stores may go past the caches, and the shapes that are used of them; () is all.
    """
    streamed = streamed or {}
    shared = [places[b.name].group for b in kernel.params]
    memory = [
        (b.dtype, b.shape, b.strides, shared.index(places[b.name].group), places[b.name].offset, streamed.get(b.name))
        for b in kernel.params
    ]
    if (twin := unit.twin(kernel, (tuple(memory), unit.loops > 0), symbol)) is not None:
        return twin
    pointers = {places[b.name]: pointer(b) for b in reversed(kernel.params)}
    buffers = {
        b.name: BufferMemory(b, replace(pointers[places[b.name]], dtype=b.dtype), places[b.name].group, streamed.get(b.name))
        for b in kernel.params
    }
    body = KernelBody(unit, symbol, buffers, "optimizer" if kernel.optimize else "usual")
    body.block(kernel.body)
    body.leave("0")
    params = ["ptr noalias %error"]
    for b in kernel.params:
        attribute = "noalias " if shared.count(places[b.name].group) == 1 else ""
        params.append(f"ptr {attribute}{pointer(b).names[0]}")
    sources = [f"; {source}: {source.text}" for source in kernel.sources]
    has_loops = kernel.optimize or body.function.has_loops
    unit.add(f"i64 @{symbol}({', '.join(params)})", [*sources, *body.text()], body.effort if has_loops else None)
    return symbol


def _scratch(stmt: Alloc) -> int:
    """Bytes that are taken for it."""
    return max(64, -(-stmt.buffer.nbytes // 64) * 64)


def pointer(buffer: Buffer) -> Operand:
    """The parameter that holds a buffer's address."""
    return Operand(buffer.dtype, 1, (f"%{identifier(buffer.name)}",))


class KernelBody(CompactingNest):
    """The body of a kernel, or of a parallel loop in it: statements that need the function around them."""

    def __init__(self, unit: Unit, symbol: str, buffers: dict[str, BufferMemory], effort: Effort) -> None:
        super().__init__(Function(unit.builder(effort)), buffers, unit.cpu)
        self.unit, self.symbol, self.effort = unit, symbol, effort
        self.prologue: list[str] = []
        self.failures: list[str] = []
        self.allocated: list[str] = []
        self.parallel_loops = 0
        self.has_polls, self.is_watched = False, unit.is_long

    def text(self) -> list[str]:
        entry, failures = ["entry:", *self.prologue], self.failures
        if self.has_polls:
            entry += find_word()
            failures = [*failures, "stop:", *self._finish(), f"  {self.stop}"]
        if self.allocated:
            entry.append("  br label %taken0")
            for n, name in enumerate(self.allocated):
                there = f"  %there{n} = icmp ne ptr {name}, null"
                following = f"taken{n + 1}" if n + 1 < len(self.allocated) else "start"
                entry += [f"taken{n}:", there, f"  br i1 %there{n}, label %{following}, label %no.memory"]
            failures = [*failures, "no.memory:", *self._without_memory()]
        else:
            entry.append("  br label %start")
        return [*entry, "start:", *self.function.regions[0].lines, *failures]

    def _without_memory(self) -> list[str]:
        return [*(f"  call void @free(ptr {name})" for name in self.allocated), f"  ret i64 {NO_MEMORY}"]

    def leave(self, code: str) -> None:
        self.builder.lines += [*self._finish(), f"  ret i64 {code}"]

    def claim_error(self, code: int) -> None:
        """Called before a failed check writes its values; in a kernel's own function nobody else can be writing."""

    def _finish(self) -> list[str]:
        lines = [f"  call void @free(ptr {name})" for name in self.allocated]
        if self.cpu.is_x86 and any(memory.streamed is not None for memory in self.buffers.values()):
            # Streamed stores are ordered with nothing else, not even with what tells another thread that they are done.
            self.unit.declarations.declare("void @llvm.x86.sse.sfence()")
            lines.append("  call void @llvm.x86.sse.sfence()")
        return lines

    # ------------------------------------------------------------------------------------------------- scratch

    def alloc(self, stmt: Alloc) -> None:
        """Scratch belongs to the function, so to a thread: it is taken once, before all loops."""
        name = f"%{self.builder.fresh(identifier(stmt.buffer.name))}"
        size = _scratch(stmt)
        if size <= STACK_LIMIT:
            self.prologue.append(f"  {name} = alloca [{size} x i8], align 64")
        else:
            self.unit.declarations.declare("noalias ptr @aligned_alloc(i64, i64)")
            self.unit.declarations.declare("void @free(ptr)")
            self.prologue.append(f"  {name} = call ptr @aligned_alloc(i64 64, i64 {size})")
            self.allocated.append(name)
        self.function.keep_loads(name)
        saved = self.buffers.get(stmt.buffer.name)
        self.buffers[stmt.buffer.name] = BufferMemory(stmt.buffer, Operand(stmt.buffer.dtype, 1, (name,)), name)
        self.block(stmt.body)
        if saved is not None:
            self.buffers[stmt.buffer.name] = saved

    # -------------------------------------------------------------------------------------------------- checks

    def check(self, stmt: Check) -> None:
        """Go on if the condition holds in every active lane; else note the values of the first that fails, and return."""
        b = self.builder
        condition = self.value(stmt.condition)
        failed = self.apply("bit_not", (condition,), BOOL)
        if failed.lanes > 1 and self.lanes is not None and self.lanes.mask is not None:
            failed = self.apply("bit_and", (failed, self.lanes.mask), BOOL)
        values = [self.value(x) for x in stmt.values]
        fail, good = b.fresh("fail"), b.fresh("good")
        weights = self.unit.declarations.metadata('!{!"branch_weights", i32 1, i32 100000}')
        b.emit(f"br i1 {b.any(failed).names[0]}, label %{fail}, label %{good}, !prof {weights}")
        b.start_block(good)
        self.function.hold_loads()
        self.failures += self._failure(fail, failed, values, self.unit.check_number(stmt))

    def _failure(self, label: str, failed: Operand, values: list[Operand], index: int) -> list[str]:
        b = self.builder
        lines, place = b.lines, b.label
        b.lines = []
        b.start_block(label)
        lane = ""
        if failed.lanes > 1:
            bits = f"i{failed.lanes}"
            b.module.declare(f"{bits} @llvm.cttz.{bits}({bits}, i1)")
            packed = b.define(f"bitcast {failed.type} {failed.names[0]} to {bits}")
            lane = b.define(f"call {bits} @llvm.cttz.{bits}({bits} {packed}, i1 true)")
        self.claim_error(index + 1)
        for n, x in enumerate(values):
            name = x.names[0]
            if x.lanes > 1:
                name = b.define(f"extractelement {x.type} {name}, i{failed.lanes} {lane}")
            slot = b.define(f"getelementptr i64, ptr %error, i64 {n}")
            b.emit(f"store i64 {name}, ptr {slot}")
        self.leave(str(index + 1))
        written, b.lines, b.label = b.lines, lines, place
        return written

    # ----------------------------------------------------------------------------------------------- parallel

    def parallel_loop(self, loop: Loop) -> None:
        """Outline the body, and hand it to the pool with what it needs from here.

        Few iterations are not worth that. Cells of the enclosing function cannot be updated from several threads:
        such a loop runs here, in order.
        """
        trips = self.trips(loop)
        if (trips is not None and trips <= loop.grain) or self.carried(loop.body):
            self.serial_loop(loop)
            return
        b, unit = self.builder, self.unit
        symbol = f"{self.symbol}.body{self.parallel_loops}"
        self.parallel_loops += 1
        parts = [*walk_expressions((loop,))]
        used = {part.name for part in parts if isinstance(part, Var)}
        touched = {x.buffer for x in (*walk((loop,)), *parts) if isinstance(x, (Load, Store))}
        values = {name: self.value(Var(name)) for name in sorted(used) if name in self.scope or name in self.linears}
        buffers = {name: self.buffers[name] for name in sorted(touched) if name in self.buffers}
        looks = unit.is_long and look_every(loop, self.known, is_inside=False) > 0
        body = ParallelBody(unit, symbol, values, buffers, self.effort)
        body.known, body.is_watched = self.known, looks
        body.run(loop)
        context = f"%{b.fresh('context')}"
        self.prologue.append(f"  {context} = alloca [{FIRST_CAPTURE + len(body.captures)} x i64], align 16")
        b.emit(f"store i64 0, ptr {context}, align 16")
        for slot, (kind, name) in enumerate([("ptr", "%error"), *body.captures], 1):
            place = b.define(f"getelementptr i64, ptr {context}, i64 {slot}")
            b.emit(f"store {kind} {name}, ptr {place}")
        arguments = f"ptr @{symbol}, ptr {context}, i64 0, i64 {self._count_of(loop).names[0]}, i64 {loop.grain}"
        b.emit(parallel_for(unit.declarations, arguments, watched=looks))
        self.function.forget_loads(self.stored(loop.body))
        if body.allocated or any(isinstance(stmt, Check) for stmt in walk(loop.body)):
            self._leave_if_failed(context)
        if looks:
            self._leave_if_stopped()

    def _leave_if_failed(self, context: str) -> None:
        b = self.builder
        code = b.define(f"load i64, ptr {context}")
        fail, good = b.fresh("fail"), b.fresh("good")
        b.emit(f"br i1 {b.define(f'icmp eq i64 {code}, 0')}, label %{good}, label %{fail}")
        b.start_block(fail)
        self.leave(code)
        b.start_block(good)

    # --------------------------------------------------------------------------------------------------- polls

    stop = f"ret i64 {RAISED}"

    def poll(self) -> None:
        """Where a long program looks whether it is to end."""
        if not self.is_watched:
            return
        b = self.builder
        is_due = b.define(f"icmp ne i64 {b.define(READ_WORD)}, 0")
        look, on = b.fresh("look"), b.fresh("on")
        self._rarely(is_due, look, on)
        self.failures += self._look(look, on)
        b.start_block(on)

    def poll_at_end(self, left: Operand) -> Operand:
        b = self.builder
        fewer = b.define(f"add i64 {left.names[0]}, -1")
        time, look, again, on = (b.fresh(stem) for stem in ("time", "look", "again", "on"))
        before = b.label
        self._rarely(b.define(f"icmp eq i64 {fewer}, 0"), time, on)
        word, is_due = b.fresh("word"), b.fresh("is.due")
        self.failures += [f"{time}:", f"  %{word} = {READ_WORD}", f"  %{is_due} = icmp ne i64 %{word}, 0"]
        self.failures += [f"  br i1 %{is_due}, label %{look}, label %{again}", *self._look(look, again)]
        self.failures += [f"{again}:", f"  br label %{on}"]
        b.start_block(on)
        name = f"%{b.fresh('left')}"
        b.emit(f"{name} = phi i64 [ {fewer}, %{before} ], [ {BLOCK}, %{again} ]")
        return self.function.pin(Operand(I64, 1, (name,)), self.function.here.depth)

    def _rarely(self, condition: str, label: str, otherwise: str) -> None:
        weights = self.unit.declarations.metadata('!{!"branch_weights", i32 1, i32 100000}')
        self.builder.emit(f"br i1 {condition}, label %{label}, label %{otherwise}, !prof {weights}")

    def _look(self, label: str, on: str) -> list[str]:
        """The block that calls out, and goes on at another one or ends the function."""
        self.has_polls = True
        self.unit.declarations.declare(f"i64 @{LOOK}(ptr)")
        told, over = self.builder.fresh("told"), self.builder.fresh("over")
        lines = [f"{label}:", f"  %{told} = call i64 @{LOOK}(ptr %error)", f"  %{over} = icmp ne i64 %{told}, 0"]
        return [*lines, f"  br i1 %{over}, label %stop, label %{on}"]

    def _leave_if_stopped(self) -> None:
        self.has_polls = True
        b = self.builder
        stopped = b.define(f"load i64, ptr {b.define(f'getelementptr i64, ptr %error, i64 {STOPPED}')}")
        on = b.fresh("on")
        b.emit(f"br i1 {b.define(f'icmp eq i64 {stopped}, 0')}, label %{on}, label %stop")
        b.start_block(on)


# Slots of a parallel body's context: the code of the first check that failed (0: none), the error record, captures.
FIRST_CAPTURE = 2


class ParallelBody(KernelBody):
    """`void body(ptr ctx, i64 begin, i64 end)`: iterations begin..end of a parallel loop, numbered from 0.

    Captured values and pointers are read from the context once per call. Nothing here depends on the thread.
    """

    def __init__(
        self, unit: Unit, symbol: str, values: Mapping[str, Operand], buffers: Mapping[str, BufferMemory], effort: Effort
    ) -> None:
        super().__init__(unit, symbol, {}, effort)
        self.captures: list[tuple[str, str]] = []
        self.prologue += ["  %place = getelementptr i64, ptr %ctx, i64 1", "  %error = load ptr, ptr %place"]
        for name, x in values.items():
            local = x if x.is_constant else replace(x, names=(self._capture(x.type, x.names[0], name),))
            if x.dtype == I64:
                self.bind(name, self.atom(local))
            else:
                self.scope[name] = local
        addresses: dict[str, str] = {}
        for name, memory in buffers.items():
            (outside,) = memory.pointer.names
            if outside not in addresses:
                addresses[outside] = self._capture("ptr", outside, name)
            self.buffers[name] = replace(memory, pointer=replace(memory.pointer, names=(addresses[outside],)))

    def _capture(self, kind: str, outside: str, stem: str) -> str:
        """Note a value of the enclosing function, and read it here; returns its name here."""
        slot = FIRST_CAPTURE + len(self.captures)
        self.captures.append((kind, outside))
        place = self.builder.define(f"getelementptr i64, ptr %ctx, i64 {slot}")
        name = f"%{self.builder.fresh(identifier(stem))}"
        self.builder.emit(f"{name} = load {kind}, ptr {place}")
        return name

    def run(self, loop: Loop) -> None:
        """Write the function of a loop's iterations."""
        begin, end = Operand(I64, 1, ("%begin",)), Operand(I64, 1, ("%end",))
        start = self.linear(loop.start)

        # A call in the function would take the registers in which the loops inside keep constants.
        is_apart = self.is_watched and not any(isinstance(s, Alloc) and _scratch(s) > STACK_LIMIT for s in walk(loop.body))
        operations = work(loop.body, self.known)
        length = SELF_LOOKING if operations == inf else max(1, int(BLOCK // max(1.0, operations)))

        def body(number: LinearForm, current: dict[str, Operand]) -> dict[str, Operand]:
            self.iteration(loop, start + number * loop.step)
            return {}

        stored, stem = self.stored(loop.body), identifier(loop.index)
        own = length if self.is_watched and not is_apart else None
        self.counted(own, begin, end, 1, {}, body, stored=stored, is_certain=True, stem=stem)
        self.leave("0")
        symbol, parameters = f"{self.symbol}.some" if is_apart else self.symbol, "(ptr %ctx, i64 %begin, i64 %end)"
        self.unit.add(f"void @{symbol}{parameters}", self.text(), self.effort)
        if is_apart:
            self.unit.declarations.declare(f"i64 @{LOOK}(ptr)")
            self.unit.add(f"void @{self.symbol}{parameters}", looking(symbol, length))

    stop = "ret void"

    def leave(self, code: str) -> None:
        self.builder.lines += [*self._finish(), "  ret void"]

    def _without_memory(self) -> list[str]:
        note = f"  cmpxchg ptr %ctx, i64 0, i64 {NO_MEMORY} monotonic monotonic"
        return [note, *(f"  call void @free(ptr {name})" for name in self.allocated), "  ret void"]

    def claim_error(self, code: int) -> None:
        """Only the first failure of all threads is kept."""
        b = self.builder
        pair = b.define(f"cmpxchg ptr %ctx, i64 0, i64 {code} monotonic monotonic")
        is_first, mine, lost = b.define(f"extractvalue {{ i64, i1 }} {pair}, 1"), b.fresh("first"), b.fresh("later")
        b.emit(f"br i1 {is_first}, label %{mine}, label %{lost}")
        b.start_block(lost)
        self.leave("0")
        b.start_block(mine)
