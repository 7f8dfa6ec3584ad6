"""Statements: how does one thread run a loop nest?  As C++ writes one; what threads share out stands in `blocks.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from math import gcd

from jitml.codegen.cuda.emit.builder import CudaValue
from jitml.codegen.cuda.emit.expressions import (
    Bounds,
    CudaBuffer,
    CudaIndex,
    ScalarText,
    bare,
)
from jitml.codegen.cuda.emit.functions import COMBINES, ScalarFunctions
from jitml.codegen.cuda.emit.spelling import memory_type_of, type_of
from jitml.errors import UnsupportedError
from jitml.ir.types import I64
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
    affine,
    children,
    expressions,
    sub,
    walk,
    walk_expression,
    walk_expressions,
)
from jitml.kernels.metrics import known_trips, most_trips
from jitml.kernels.target import WORK
from jitml.records import dataclass, field, replace

_FAR = 1 << 30  # an `int` that counts up to here, in steps of up to half of it, does not wrap around
MOST_UNROLLED = 256  # statements that a loop may become
COPIES = (8, 4, 2)  # of the body of a loop that is longer, or of unknown length
MOST_COPIED = 64  # operations of all copies
MOST_ALONE = 32  # where one thread does all, and nothing is won by long code that takes seconds to compile


@dataclass
class ModuleText:
    """What the kernels of a module share: functions, checks by their number, names."""

    functions: ScalarFunctions = field(default_factory=ScalarFunctions)
    checks: list[Check] = field(default_factory=list)
    entries: set[str] = field(default_factory=set)

    def check_number(self, check: Check) -> int:
        for number, known in enumerate(self.checks):
            if known is check:
                return number
        self.checks.append(check)
        return len(self.checks) - 1

    def entry(self, stem: str) -> str:
        """A name for a `__global__` function."""
        name, number = stem, 0
        while name in self.entries:
            number += 1
            name = f"{stem}_{number}"
        self.entries.add(name)
        return name


class SerialStatements(ScalarText):
    """Statements of one function, as its threads run them each for itself."""

    def __init__(self, module: ModuleText) -> None:
        super().__init__(module.functions)
        self.module = module
        self.lines: list[str] = []
        self.depth = 1
        self.cells: set[str] = set()
        self.is_single = False  # whether there is but one thread at all
        self.leave = "return;"  # what a thread does whose check has failed

    # --------------------------------------------------------------------------------------------------- text

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        self.emit(f"{head} {{")
        self.depth += 1
        yield
        self.close()

    def close(self) -> None:
        self.depth -= 1
        self.emit("}")

    def otherwise(self) -> None:
        """After the braces of an `if`: those of its `else`, to be closed."""
        self.lines[-1] += " else {"
        self.depth += 1

    # ------------------------------------------------------------------------------------------------- blocks

    def block(self, body: Sequence[Stmt]) -> None:
        """Statements in a scope of their own."""
        scope, buffers = dict(self.scope), dict(self.buffers)
        for stmt in body:
            self.statement(stmt)
        self.scope, self.buffers = scope, buffers

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let(name, value):
                self.let(name, value)
            case Cell(name, init):
                self.cell(name, init)
            case Update():
                self.update(stmt)
            case Store():
                self.store(stmt)
            case Loop():
                self.loop(stmt)
            case If(condition, then, orelse):
                with self.braces(f"if ({bare(self.value(condition).text)})"):
                    self.block(then)
                if orelse:
                    self.otherwise()
                    self.block(orelse)
                    self.close()
            case While():
                self.repeat(stmt)
            case Alloc():
                self.alloc(stmt)
            case Check():
                self.check(stmt)
            case Observe():
                pass  # a GPU has no flags for floating-point errors
            case Draw():
                raise UnsupportedError(
                    "numbers drawn one by one inside of a loop are not written for the GPU yet",
                    remedy="Draw an array of them before the loop.",
                )

    def let(self, name: str, value: Expr) -> None:
        if value.dtype == I64:
            index = self.index(value)
            if not isinstance(value, Const):
                word = self.name(name)
                self.emit(f"const {'int' if index.is_narrow else 'i64'} {word} = {bare(index.text)};")
                index = replace(index, text=word)
            self.scope[name] = index
            return
        known = self.value(value)
        if known.number is None:
            word = self.name(name)
            self.emit(f"const {type_of(value.dtype)} {word} = {bare(known.text)};")
            known = CudaValue(value.dtype, word)
        self.scope[name] = known

    def cell(self, name: str, init: Expr) -> None:
        word = self.name(name)
        self.emit(f"{type_of(init.dtype)} {word} = {bare(self.value(init).text)};")
        self.bind_cell(name, CudaValue(init.dtype, word))

    def bind_cell(self, name: str, variable: CudaValue) -> None:
        self.cells.add(name)
        self.scope[name] = CudaIndex(variable.text) if variable.dtype == I64 else variable

    def variable(self, name: str) -> CudaValue:
        """A cell."""
        found = self.scope[name]
        return found if isinstance(found, CudaValue) else CudaValue(I64, found.text)

    def update(self, stmt: Update) -> None:
        cell, value = self.variable(stmt.cell), self.value(stmt.value)
        if stmt.combine is not None:
            value = self.functions.apply(COMBINES[stmt.combine], (cell, value), cell.dtype)
        self.emit(f"{cell.text} = {bare(value.text)};")

    def store(self, stmt: Store) -> None:
        value = self.value(stmt.value)
        if stmt.combine is not None:
            value = self.functions.apply(
                COMBINES[stmt.combine], (self.load(Load(stmt.buffer, stmt.at, value.dtype)), value), value.dtype
            )
        self.emit(f"{self.element(stmt.buffer, stmt.at)} = {bare(value.text)};")

    def repeat(self, stmt: While) -> None:
        scope, buffers = dict(self.scope), dict(self.buffers)
        with self.braces("while (true)"):
            for part in stmt.test:
                self.statement(part)
            self.emit(f"if (!{self.value(stmt.condition).text}) break;")
            self.block(stmt.body)
        self.scope, self.buffers = scope, buffers

    def alloc(self, stmt: Alloc) -> None:
        """Scratch of one thread."""
        buffer, word = stmt.buffer, self.name(stmt.buffer.name)
        self.emit(f"__align__(16) {memory_type_of(buffer.dtype)} {word}[{max(1, buffer.reach)}];")
        saved = self.buffers.get(buffer.name)
        self.buffers[buffer.name] = CudaBuffer(buffer, word, word, is_aligned=True)
        self.block(stmt.body)
        if saved is not None:
            self.buffers[buffer.name] = saved

    def check(self, stmt: Check) -> None:
        with self.braces(f"if (!{self.value(stmt.condition).text})"):
            self.fail(stmt)
            self.emit(self.leave)

    def fail(self, stmt: Check) -> None:
        claims = f"ji_claims(error, {self.module.check_number(stmt) + 1})"
        if not stmt.values:
            self.emit(f"{claims};")
            return
        with self.braces(f"if ({claims})"):
            for k, value in enumerate(stmt.values):
                self.emit(f"error[{k + 1}] = {bare(self.value(value).text)};")

    # -------------------------------------------------------------------------------------------------- loops

    def loop(self, loop: Loop) -> None:
        trips = known_trips(loop)
        if trips == 0:
            return
        if trips == 1:
            self.scope[loop.index] = self.index(loop.start)
            self.block(loop.body)
            return
        if loop.kind == "vector" and self.wide_loop(loop):
            return
        size = _unrolled_size(loop)
        if loop.kind in ("vector", "unroll") and size <= MOST_UNROLLED and not self.is_single:
            self.emit("#pragma unroll")
        elif size > (MOST_ALONE if self.is_single else MOST_UNROLLED):
            self.emit(f"#pragma unroll {1 if self.is_single else _copies(loop)}")
        self.counted(loop, "", "1", 1)

    def wide_loop(self, loop: Loop) -> bool:
        """Write a loop with accesses of several elements, if that can be done; `wide.py` does."""
        return False

    def counted(self, loop: Loop, first: str, stride: str, most: int) -> None:
        """The loop from iteration number `first` on, in so many iterations at once, which are `most` at the most.

        Args:
            first: an expression of type int; "" is the first.
        """
        index = self.limits(loop, most * loop.step)
        kind, word = "int" if index.is_narrow else "i64", index.text
        start, stop = self.index(loop.start), self.stop(loop, index)
        begin = start.at(narrow=index.is_narrow)
        if first:
            ahead = first if loop.step == 1 else f"{first} * {loop.step}"
            begin = ahead if begin == "0" else f"{begin} + {ahead}"
        step = stride if loop.step == 1 else str(loop.step) if stride == "1" else f"{stride} * {loop.step}"
        with self.braces(f"for ({kind} {word} = {bare(begin)}; {word} < {stop}; {word} += {step})"):
            self.iteration(loop, index)

    def iteration(self, loop: Loop, index: CudaIndex) -> None:
        self.scope[loop.index] = index
        self.block(loop.body)

    def limits(self, loop: Loop, stride: int) -> CudaIndex:
        """The loop's variable, with its bounds; narrow if it may be so wide a step further."""
        start, stop = self.index(loop.start), self.index(loop.stop)
        high = None if stop.bounds.high is None else stop.bounds.high - 1
        bounds = Bounds(start.bounds.low, high)
        ends = (start.bounds.low, stop.bounds.high)
        near = all(x is not None and -_FAR <= x <= _FAR for x in ends) and stride <= _FAR // 2
        narrow = near and start.is_narrow and stop.is_narrow
        return CudaIndex(self.name(loop.index), bounds, narrow, gcd(start.factor, loop.step))

    def stop(self, loop: Loop, index: CudaIndex) -> str:
        """Where a loop ends; a name for it if it could change meanwhile."""
        text = bare(self.index(loop.stop).at(narrow=index.is_narrow))
        parts = [*walk_expression(loop.stop)]
        if any(isinstance(x, Load) or (isinstance(x, Var) and x.name in self.cells) for x in parts):
            word = self.name(f"{loop.index}_stop")
            self.emit(f"const {'int' if index.is_narrow else 'i64'} {word} = {text};")
            return word
        return text


def earlier_end(loop: Loop) -> Expr:
    """What may end a loop before it has its most iterations: of `minimum(start + n, m)`, m."""
    if isinstance(loop.stop, Apply) and loop.stop.fn == "minimum":
        most = most_trips(loop)
        for end, other in (loop.stop.args, loop.stop.args[::-1]):
            if most is not None and affine(sub(end, loop.start)) == {"": most * loop.step}:
                return other
    return loop.stop


def weight_of(body: Sequence[Stmt]) -> float:
    """About how much code statements are, in operations."""
    own = sum(WORK.get(e.fn, 1.0) for s in body for x in expressions(s) for e in walk_expression(x) if isinstance(e, Apply))
    for stmt in body:
        times = most_trips(stmt) if isinstance(stmt, Loop) else 1
        own += weight_of(children(stmt)) * (4 if times is None else times)
    return own + len(body)


def _copies(loop: Loop) -> int:
    """How often the body of a loop is written, that many iterations apart: so many loads are under way at once."""
    if not all(isinstance(s, (Let, Update, Store)) for s in loop.body) or not any(
        isinstance(e, Load) for e in walk_expressions(loop.body)
    ):
        return 1
    return next((n for n in COPIES if n * weight_of(loop.body) <= MOST_COPIED), 1)


def _unrolled_size(stmt: Stmt) -> float:
    trips = known_trips(stmt) if isinstance(stmt, Loop) else 1
    if trips is None or isinstance(stmt, While):
        return float("inf")
    return max(1, trips * sum(map(_unrolled_size, children(stmt))))


def updated_outside(body: Sequence[Stmt], scope: Collection[str]) -> list[str]:
    """Cells of a scope around that statements update, in order."""
    inside = {s.name for s in walk(tuple(body)) if isinstance(s, Cell)}
    names = dict.fromkeys(s.cell for s in walk(tuple(body)) if isinstance(s, Update))
    return [name for name in names if name in scope and name not in inside]
