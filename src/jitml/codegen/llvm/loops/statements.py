"""Statements: how is a loop nest written?  Statements, one after the other; vector loops stand in `vectorize.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf

from jitml.codegen.llvm.ir.builder import Builder, Operand, llvm_type
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.ir.operand import c_type
from jitml.codegen.llvm.loops.access import COMBINES, BufferMemory
from jitml.codegen.llvm.loops.function import Function
from jitml.codegen.llvm.loops.interleave import InterleavedStores
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.codegen.llvm.loops.register_pressure import POLYNOMIAL, operations
from jitml.codegen.llvm.loops.safepoints import BLOCK, LONG_ITERATION, SHORT_TRIPS, Range, look_every, within, work
from jitml.codegen.llvm.loops.trip_counts import BoundedCounter, course_of
from jitml.codegen.llvm.loops.values import Lanes
from jitml.codegen.scalar_math import emit
from jitml.errors import LoweringError
from jitml.ir.types import BOOL, I64, DType
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Cell,
    Check,
    Combine,
    Const,
    Draw,
    Expr,
    If,
    Let,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    While,
    children,
    is_ordered,
    stored_by,
    walk,
)
from jitml.kernels.metrics import known_trips


def identifier(name: str) -> str:
    """A name that LLVM takes without quotes.

    >>> identifier("%3")
    '_3'
    """
    return re.sub(r"\W", "_", name)


# Statements that a loop may become: of those to be unrolled anyway, and of short ones inside a vector loop.
LARGE_UNROLLED, SMALL_UNROLLED = 4096, 48
# Operations that a short one may become, where a polynomial counts as POLYNOMIAL: ten exponentials of four vectors each were more
# code than the processor keeps decoded, and ran at half the speed of a loop.
MOST_UNROLLED_OPERATIONS = 150


def _unrolled_size(stmt: Stmt) -> float:
    """Statements after all loops inside are unrolled; infinite if a limit is not known."""
    trips = known_trips(stmt) if isinstance(stmt, Loop) else 1
    return inf if trips is None or isinstance(stmt, While) else max(1, trips * sum(map(_unrolled_size, children(stmt))))


def identity(b: Builder, combine: Combine, dtype: DType, lanes: int) -> Operand:
    """What a reduction starts from in every lane: combining it changes nothing, not even the sign of -0.0."""
    value: bool | int | float
    match combine:
        case "add" | "or":
            value = -0.0 if dtype.kind == "f" else 0
        case "mul":
            value = 1
        case "and":
            value = True if dtype == BOOL else -1
        case "max" | "min":
            value = _extreme(dtype, is_low=combine == "max")
    return b.splat(b.const(value, dtype), lanes)


def _extreme(dtype: DType, *, is_low: bool) -> bool | int | float:
    if dtype == BOOL:
        return not is_low
    if dtype.kind == "f":
        return float("-inf" if is_low else "inf")
    bits: int = 8 * dtype.itemsize
    if dtype.kind == "u":
        return 0 if is_low else (1 << bits) - 1
    return -(1 << bits - 1) if is_low else (1 << bits - 1) - 1


def _holds(condition: Expr) -> bool:
    """Whether a comparison is one of numbers, and true."""
    match condition:
        case Apply("le" | "ge" as fn, (Const(x), Const(y))):
            return x <= y if fn == "le" else x >= y
    return False


class StatementEmitter(InterleavedStores):
    """Statements of one function. Cells are ordinary SSA values: `scope` always holds their current one."""

    def __init__(self, function: Function, buffers: dict[str, BufferMemory], cpu: Cpu) -> None:
        super().__init__(function, buffers, cpu)
        self.accumulators: frozenset[str] = frozenset()  # cells that lanes of the current vector loop share
        self.known: dict[str, Range | Expr] = {}  # of names of integers here, for `safepoints.py`

    # -------------------------------------------------------------------------------------------------- blocks

    def block(self, body: Sequence[Stmt]) -> None:
        """Statements in a scope of their own: cells declared outside keep what is assigned to them."""
        names, indices, buffers = dict(self.scope), dict(self.linears), dict(self.buffers)
        for stmt in body:
            self.statement(stmt)
        self.scope = {name: self.scope.get(name, x) for name, x in names.items()}
        self.linears, self.buffers = indices, buffers

    def statement(self, stmt: Stmt) -> None:
        if not isinstance(stmt, (Store, Let, Cell, Update, Loop)):
            self.store_waiting()
        match stmt:
            case Store():
                self.store(stmt)
            case Let():
                self._let(stmt)
            case Draw():
                self.draw(stmt)
            case Cell(name, init):
                value = self.value(init)
                self.scope[name] = value if self.lanes is None else self.widen(value, self.lanes.count)
            case Update():
                self._update(stmt)
            case If():
                self._if(stmt)
            case Loop():
                self._loop(stmt)
            case While():
                self._while(stmt)
            case Alloc():
                self.alloc(stmt)
            case Check():
                self.check(stmt)
            case Observe(value):
                self.value(value)

    def _let(self, stmt: Let) -> None:
        self.scope.pop(stmt.name, None)
        self.linears.pop(stmt.name, None)
        if getattr(stmt.value, "dtype", None) == I64:
            self.known[stmt.name] = stmt.value
            self.bind(stmt.name, self.linear(stmt.value))
        else:
            self.scope[stmt.name] = self.value(stmt.value)

    def draw(self, stmt: Draw) -> None:
        """One number, drawn right here."""
        b, args = self.builder, ", ".join(f"i64 {self.value(arg).names[0]}" for arg in stmt.args)
        kind = c_type(stmt.dtype)
        b.module.declare(f"{kind} @{stmt.routine}({', '.join(['i64'] * len(stmt.args))})")
        name = b.define(f"call {kind} @{stmt.routine}({args})")
        if kind != llvm_type(stmt.dtype):
            name = b.define(f"trunc {kind} {name} to {llvm_type(stmt.dtype)}")
        drawn = self.function.pin(Operand(stmt.dtype, 1, (name,)), self.function.here.depth)
        self.linears.pop(stmt.name, None)
        if stmt.dtype == I64:
            self.bind(stmt.name, self.atom(drawn))
        else:
            self.scope[stmt.name] = drawn

    def _update(self, stmt: Update) -> None:
        old, new = self.scope[stmt.cell], self.value(stmt.value)
        if self.lanes is not None and stmt.cell in self.accumulators and is_ordered(stmt.combine, old.dtype):
            self._update_in_order(stmt, old, new, self.lanes)
            return
        lanes = max(old.lanes, new.lanes)
        old, new = self.widen(old, lanes), self.widen(new, lanes)
        # LLVM would leave in an operation that may raise, though the first step of a reduction starts from nothing.
        if stmt.combine is not None and old != identity(self.builder, stmt.combine, old.dtype, lanes):
            operands = (old, new)
            fn = COMBINES[stmt.combine]
            floor = self.function.here.depth
            new = self.function.compute(
                (fn, old.dtype), operands, lambda: emit(self.builder, fn, operands, old.dtype), floor=floor
            )
        if self.lanes is not None:
            # Lanes past the end matter only in what outlives the loop.
            mask = self.lanes.mask if stmt.cell in self.accumulators else self.lanes.branch_mask
            if mask is not None and mask.lanes == lanes:
                new = self.apply("select", (mask, new, old), old.dtype)
        self.scope[stmt.cell] = new

    def _update_in_order(self, stmt: Update, old: Operand, new: Operand, lanes: Lanes) -> None:
        """Of a cell that lanes share, one lane after the other."""
        assert stmt.combine is not None
        new = self.widen(new, lanes.count)
        if lanes.mask is not None:
            new = self.apply("select", (lanes.mask, new, identity(self.builder, stmt.combine, old.dtype, lanes.count)), old.dtype)
        b, fn, floor = self.builder, COMBINES[stmt.combine], self.function.here.depth
        for n in range(lanes.count):
            operands = (old, self.function.compute(("lane", n), (new,), partial(b.lane, new, n), floor=floor))
            old = self.function.compute((fn, old.dtype), operands, partial(emit, b, fn, operands, old.dtype), floor=floor)
        self.scope[stmt.cell] = old

    def carried(self, body: Iterable[Stmt]) -> list[str]:
        """Cells declared outside `body` that it updates, in order."""
        return [name for name in dict.fromkeys(s.cell for s in walk(tuple(body)) if isinstance(s, Update)) if name in self.scope]

    def stored(self, body: Iterable[Stmt]) -> frozenset[str]:
        """Groups of the buffers that `body` stores to (scratch declared inside has none yet; `keep_loads` speaks for it)."""
        return frozenset(self.buffers[name].group for name in stored_by(body) if name in self.buffers)

    # ------------------------------------------------------------------------------------------------ branches

    def _if(self, stmt: If) -> None:
        condition = self.value(stmt.condition)
        if condition.lanes > 1:
            self._masked(condition, stmt.then)
            if stmt.orelse:
                self._masked(self.apply("bit_not", (condition,), condition.dtype), stmt.orelse)
            return
        cells = self.carried(stmt.then + stmt.orelse)
        before = {name: self.scope[name] for name in cells}

        def arm(body: Sequence[Stmt]) -> Callable[[], dict[str, Operand]]:
            def run() -> dict[str, Operand]:
                self.scope.update(before)
                self.block(body)
                self.store_waiting()
                return {name: self.scope[name] for name in cells}

            return run

        after = self.function.branch(condition, (arm(stmt.then), arm(stmt.orelse)))
        self.scope.update(after)

    def _masked(self, condition: Operand, body: Sequence[Stmt]) -> None:
        """Run `body` for the lanes where `condition` holds, and not at all where none does."""
        assert self.lanes is not None
        outside = self.lanes
        active = condition if outside.mask is None else self.apply("bit_and", (outside.mask, condition), condition.dtype)
        branch = (
            condition if outside.branch_mask is None else self.apply("bit_and", (outside.branch_mask, condition), condition.dtype)
        )
        cells = self.carried(body)
        before = {name: self.scope[name] for name in cells}

        def then() -> dict[str, Operand]:
            self.lanes = outside.within(branch, active)
            self.block(body)
            self.lanes = outside
            return {name: self.scope[name] for name in cells}

        def orelse() -> dict[str, Operand]:
            return before

        after = self.function.branch(self.builder.any(active), (then, orelse))
        self.scope.update(after)

    # --------------------------------------------------------------------------------------------------- loops

    def _loop(self, loop: Loop) -> None:
        outside, self.known = self.known, within(loop, self.known)
        self._loop_of_kind(loop)
        self.known = outside

    def _loop_of_kind(self, loop: Loop) -> None:
        match loop.kind:
            case "vector" if self.lanes is None and self.is_vectorizable(loop):
                self.vector_loop(loop)
            case "parallel" if self.lanes is None:
                self.parallel_loop(loop)
            case "block" | "thread":
                raise LoweringError(f"the loop over {loop.index} is for {loop.kind}s, which a processor with cores has not")
            case "unroll" if _unrolled_size(loop) <= LARGE_UNROLLED:
                self._unroll(loop)
            case "vector" | "serial" if self.lanes is not None and self._is_short_written_out(loop):
                # Lanes are wide, and what the iterations load may be the same: `x[i, k]` for every column.
                self._unroll(loop)
            case _:
                self.serial_loop(loop)

    def _is_short_written_out(self, loop: Loop) -> bool:
        own = (self.trips(loop) or 1) * operations(loop.body, polynomial=POLYNOMIAL)
        return _unrolled_size(loop) <= SMALL_UNROLLED and own <= MOST_UNROLLED_OPERATIONS

    def _unroll(self, loop: Loop) -> None:
        for n in range(self.trips(loop) or 0):
            self.iteration(loop, self.linear(loop.start) + LinearForm(constant=n * loop.step))

    def trips(self, loop: Loop) -> int | None:
        """Number of iterations, if known."""
        distance = self.linear(loop.stop) - self.linear(loop.start)
        return None if distance.terms else max(0, -(-distance.constant // loop.step))

    def iteration(self, loop: Loop, index: LinearForm) -> None:
        self.bind(loop.index, index)
        self.block(loop.body)
        del self.linears[loop.index]

    def serial_loop(self, loop: Loop) -> None:
        self.run_in_order(loop, looks=self.looks(loop))

    def run_in_order(self, loop: Loop, *, looks: int) -> None:
        """One iteration after the other, with a look in so many."""
        trips = self.trips(loop)
        if trips == 0:
            return
        start, stop = self.linear(loop.start), self.linear(loop.stop)
        if trips == 1:
            self.iteration(loop, start)
            return
        cells = self.carried(loop.body)
        self.store_waiting()

        def body(index: LinearForm, current: dict[str, Operand]) -> dict[str, Operand]:
            self.scope.update(current)
            if looks == 1:
                self.poll()
            self.iteration(loop, index)
            self.store_waiting()
            return {name: self.scope[name] for name in cells}

        limits = self.evaluate(start, is_lane_zero=True), self.evaluate(stop, is_lane_zero=True)
        before, stored, stem = {name: self.scope[name] for name in cells}, self.stored(loop.body), identifier(loop.index)
        length = None if looks in (0, 1) else looks
        after = self.counted(length, *limits, loop.step, before, body, stored=stored, is_certain=trips is not None, stem=stem)
        self.scope.update(after)

    def looks(self, loop: Loop) -> int:
        """In how many iterations of a loop there is to be a look whether the program is to end; 0: there is none."""
        return look_every(loop, self.known, is_inside=self.is_inside_loop) if self.lanes is None and self.is_watched else 0

    def counted(
        self,
        length: int | None,
        start: Operand,
        stop: Operand,
        step: int,
        carried: Mapping[str, Operand],
        body: Callable[[LinearForm, dict[str, Operand]], Mapping[str, Operand]],
        *,
        stored: frozenset[str],
        is_certain: bool = False,
        stem: str = "i",
    ) -> dict[str, Operand]:
        """`Function.loop`, with a look at the beginning of each block of so many iterations if there is to be one.

        The loop inside counts for nothing else, and from 0: LLVM unrolls none of which it cannot tell how long it is.
        """

        def one(index: Operand, current: dict[str, Operand]) -> Mapping[str, Operand]:
            return body(self.atom(index), current)

        if length is None:
            return self.function.loop(start, stop, step, carried, one, stored=stored, is_certain=is_certain, stem=stem)
        whole = length * step

        def block(first: Operand, current: dict[str, Operand]) -> dict[str, Operand]:
            self.poll()
            left = self.evaluate(self.atom(stop) - self.atom(first), is_lane_zero=True)
            end = self.apply("minimum", (left, self.builder.const(whole, I64)), I64)

            def inner(index: Operand, current: dict[str, Operand]) -> Mapping[str, Operand]:
                return body(self.atom(first) + self.atom(index), current)

            zero = self.builder.const(0, I64)
            return self.function.loop(zero, end, step, current, inner, stored=stored, is_certain=True, stem=stem)

        return self.function.loop(start, stop, whole, carried, block, stored=stored, is_certain=is_certain, stem=f"{stem}.block")

    def _while(self, stmt: While) -> None:
        inside = stmt.test + stmt.body
        course = course_of(stmt) if self.lanes is None and self.is_watched and work(inside) < LONG_ITERATION else None
        if course is None:
            self._run_while(stmt, looks=self.lanes is None)
            return
        distance = self.value(course.distance)
        if distance.is_constant and all(map(_holds, course.conditions)):
            self._run_while(stmt, looks=int(distance.names[0]) >= SHORT_TRIPS)
            return
        cells = self.carried(inside)
        before = {name: self.scope[name] for name in cells}

        def arm(*, looks: bool) -> dict[str, Operand]:
            self.scope.update(before)
            self._run_while(stmt, looks=looks)
            return {name: self.scope[name] for name in cells}

        after = self.function.branch(self._is_short(course), (partial(arm, looks=False), partial(arm, looks=True)))
        self.scope.update(after)

    def _is_short(self, course: BoundedCounter) -> Operand:
        """Whether a while is over before anybody would wait, from where its counter stands."""
        trips = self.builder.define(f"icmp ult i64 {self.value(course.distance).names[0]}, {SHORT_TRIPS}")
        short = self.function.pin(Operand(BOOL, 1, (trips,)), self.function.here.depth)
        for condition in course.conditions:
            short = self.apply("bit_and", (short, self.value(condition)), BOOL)
        return short

    def _run_while(self, stmt: While, *, looks: bool) -> None:
        inside = stmt.test + stmt.body
        cells = self.carried(inside)
        names, indices, buffers = dict(self.scope), dict(self.linears), dict(self.buffers)
        is_counted = looks and self.is_watched and work(inside) < LONG_ITERATION
        left: dict[str, Operand] = {"left": self.builder.const(BLOCK, I64)} if is_counted else {}

        def test(current: dict[str, Operand]) -> Operand:
            left.update({name: current.pop(name) for name in left})
            self.scope.update(current)
            for part in stmt.test:
                self.statement(part)
            return self.value(stmt.condition)

        def body() -> dict[str, Operand]:
            self.block(stmt.body)
            # Not before the test, which LLVM writes once more before the loop, to have one branch in it.
            following = {name: self.poll_at_end(n) for name, n in left.items()}
            if looks and not is_counted:
                self.poll()
            return {name: self.scope[name] for name in cells} | following

        before = {name: self.scope[name] for name in cells} | left
        after = self.function.while_loop(before, test, body, stored=self.stored(inside))
        self.scope = names | {name: after[name] for name in cells}
        self.linears, self.buffers = indices, buffers

    # Overridden by the layers that know how.

    @property
    def is_inside_loop(self) -> bool:
        return any(region.kind == "loop" for region in self.function.regions)

    is_watched = False  # whether the program looks from time to time whether it is to end

    def poll(self) -> None:
        """A place where it does."""

    def poll_at_end(self, left: Operand) -> Operand:
        """One where it does when a counter comes to its end; what is left of it for the next iteration."""
        raise LoweringError("polls need a kernel")

    def is_vectorizable(self, loop: Loop) -> bool:
        return False

    def vector_loop(self, loop: Loop) -> None:
        raise LoweringError("vector loops need the vectorizer")

    def parallel_loop(self, loop: Loop) -> None:
        self.serial_loop(loop)

    def alloc(self, stmt: Alloc) -> None:
        raise LoweringError("scratch needs a kernel")

    def check(self, stmt: Check) -> None:
        raise LoweringError("checks need a kernel")
