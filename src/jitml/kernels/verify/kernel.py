"""What makes a kernel valid: names, dtypes and ranks, every access inside its buffer, no races.

Run after scheduling when `JITML_CHECK=1`, and always in tests. An index is inside if its bounds follow from loops,
branches and checks (`analysis/ranges.py`). One that depends on data is trusted once a `Check` has looked at the buffers that it
depends on, or at what is made of them; the check may stand in an earlier kernel. So is one that counts from a place of a window.
"""

from __future__ import annotations

from collections.abc import Sequence

import jitml.ir.ops  # noqa: F401  # fills OPS
from jitml.errors import JitmlError, VerificationError, bare_message
from jitml.ir.op import OPS
from jitml.ir.ops.random import DISTRIBUTIONS, routine
from jitml.ir.ops.regions import exception_named
from jitml.ir.types import BOOL, I64, Aval, DType, dtype_name, is_inexact, is_integer
from jitml.kernels.analysis.affine_sums import within
from jitml.kernels.analysis.buffer_contents import NOTHING, BufferContents, KnownContents
from jitml.kernels.analysis.monotone import Cells
from jitml.kernels.analysis.races import races
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Buffer,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    While,
    affine,
    expressions,
    loaded_by,
    sub,
    variables_of,
    walk,
)
from jitml.kernels.text.printer import show_expr
from jitml.kernels.verify.threads import misplaced


def verify(kernel: Kernel, known: KnownContents = NOTHING) -> KnownContents:
    """Check a kernel, given what is known before it; returns what is known after it.

    Raises:
        VerificationError: names the first thing that is wrong.
    """
    verifier = _Verifier(kernel, known)
    verifier.run()
    for reason in (*misplaced(kernel.body), *races(kernel)):
        raise verifier.error(reason)
    return verifier.contents.known


class _Verifier:
    def __init__(self, kernel: Kernel, known: KnownContents) -> None:
        self.kernel = kernel
        self.contents = BufferContents(known)
        self.ranges = Ranges(self.contents.values)
        self.buffers: dict[str, Buffer] = {}
        self.dtypes: dict[str, DType] = {}  # of every variable in scope
        self.cells: set[str] = set()
        self.places: set[str] = set()  # numbers that the kernel begins by loading
        self.sizes: set[str] = set()  # those that it clamps to limits
        self.bounded = Cells(kernel.body, self.ranges)
        self.is_reached = True  # not in a loop that certainly runs no iteration

    def error(self, message: str) -> VerificationError:
        source = self.kernel.sources[0] if self.kernel.sources else None
        return VerificationError(f"kernel {self.kernel.name}: {message}", source=source)

    def run(self) -> None:
        for buffer in self.kernel.params:
            self.declare(buffer)
        for written, read in self.kernel.updates.items():
            if written not in self.buffers:
                raise self.error(f"updates {written}, which is no parameter")
            if written == read:
                raise self.error(f"{written} updates itself")
            self.contents.values[written] = self.contents.values.get(read)
        if not self.body(self.kernel.body, ()):
            self.contents.ended = True

    def declare(self, buffer: Buffer) -> None:
        if buffer.name in self.buffers:
            raise self.error(f"the buffer {buffer.name} is declared twice")
        if buffer.strides is not None and len(buffer.strides) != len(buffer.shape):
            raise self.error(f"{buffer.name} has {len(buffer.shape)} axes but {len(buffer.strides)} strides")
        self.buffers[buffer.name] = buffer

    def name(self, name: str, dtype: DType, origins: frozenset[str]) -> None:
        if name in self.dtypes:
            raise self.error(f"{name} is defined twice")
        self.dtypes[name] = dtype
        self.contents.origins[name] = origins

    # ------------------------------------------------------------------------------------------------- statements

    def body(self, statements: Sequence[Stmt], around: tuple[Loop, ...]) -> bool:
        """A block: what is named or learned in it ends with it. Whether its end is reached."""
        dtypes, cells = dict(self.dtypes), set(self.cells)
        with self.ranges.scope():
            ends = self.statements(statements, around)
        self.dtypes, self.cells = dtypes, cells
        return ends

    def statements(self, statements: Sequence[Stmt], around: tuple[Loop, ...]) -> bool:
        for stmt in statements:
            if not isinstance(stmt, While):  # its condition stands after its test
                for expr in expressions(stmt):
                    self.expr(expr)
            if isinstance(stmt, (Loop, While)):
                self.forget_updated(stmt)
            never = isinstance(stmt, Check) and self.ranges.refutes(stmt.condition)
            self.statement(stmt, around)
            if never:
                return False  # nothing after it is reached
            self.forget_updated(stmt)
            if isinstance(stmt, If):
                self.ranges.learn(stmt)
        return True

    def forget_updated(self, stmt: Stmt) -> None:
        """What was known of cells that a statement changes holds no longer."""
        for inner in walk((stmt,)):
            if isinstance(inner, Update) and inner.cell in self.cells:
                self.bounded.forget(inner.cell)

    def statement(self, stmt: Stmt, around: tuple[Loop, ...]) -> None:
        match stmt:
            case Loop():
                self.loop(stmt, around)
            case Store(buffer, at, value):
                self.access(buffer, at)
                self.expect(value, self.buffers[buffer].dtype, f"the value stored to {buffer}")
                self.combine(stmt)
                if self.is_reached:
                    self.contents.store(stmt, self.stored(stmt))
            case Let(name, value):
                self.name(name, value.dtype, self.contents.origin(value))
                self.ranges.define(name, value)
                if not around:
                    match value:
                        case Load(at=()):
                            self.places.add(name)
                        case Apply("minimum", (Apply("maximum", (Load(at=()), Const())), Const())):
                            self.sizes.add(name)
                        case Apply("minimum", (start, Const())) if variables_of(start) and variables_of(start) <= self.places:
                            self.places.add(name)  # as far as the axis goes
            case Draw(name, method, args, dtype):
                if method not in (routine(d, legacy, dtype) for d in DISTRIBUTIONS for legacy in (False, True)):
                    raise self.error(f"{method} draws no {dtype_name(dtype)}")
                for arg in args:
                    self.expect(arg, I64, "what a draw takes")
                self.name(name, dtype, frozenset())
                self.ranges.draw(stmt)
            case Cell(name, init):
                self.name(name, init.dtype, self.contents.origin(init))
                self.cells.add(name)
                self.bounded.begin(stmt)
            case Update(cell, value):
                if cell not in self.cells:
                    raise self.error(f"{cell} is updated but is no cell in scope")
                self.expect(value, self.dtypes[cell], f"the update of {cell}")
                self.combine(stmt)
                self.contents.origins[cell] |= self.contents.origin(value)
            case If(condition, then, orelse):
                self.expect(condition, BOOL, "a condition")
                for holds, branch in ((True, then), (False, orelse)):
                    with self.ranges.scope():
                        self.ranges.assume(condition, holds)
                        self.body(branch, around)
            case While():
                self.while_loop(stmt, around)
            case Alloc(buffer, body):
                self.declare(buffer)
                self.body(body, around)
                del self.buffers[buffer.name]
            case Check(condition, error, _, values):
                self.expect(condition, BOOL, "a check")
                try:
                    exception_named(error)
                except JitmlError as problem:
                    raise self.error(bare_message(problem)) from problem
                for value in values:
                    self.expect(value, I64, "a check's value")
                if self.is_reached:
                    self.contents.check(condition)
                self.ranges.assume(condition)

    def combine(self, stmt: Store | Update) -> None:
        if stmt.combine in ("or", "and") and is_inexact(stmt.value.dtype):
            raise self.error(f"there is no {stmt.combine} of {dtype_name(stmt.value.dtype)}")

    def stored(self, store: Store) -> tuple[int | None, int | None]:
        """The limits of what a store makes of an element."""
        if store.combine is None and is_integer(store.value.dtype):
            return self.ranges.bounds(store.value)
        known = self.ranges.decided(store.value) if store.combine is None and store.value.dtype == BOOL else None
        return (None, None) if known is None else (int(known), int(known))

    def loop(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        self.expect(loop.start, I64, "a loop's start")
        self.expect(loop.stop, I64, "a loop's stop")
        if loop.step < 1:
            raise self.error(f"the loop over {loop.index} has the step {loop.step}")
        if loop.kind == "parallel" and around:
            raise self.error(f"the parallel loop over {loop.index} stands inside the loop over {around[-1].index}")
        for outer in around:
            if outer.kind == "vector" and (loop.kind == "vector" or self.varies(loop, outer)):
                raise self.error(f"the loop over {loop.index} cannot run in the lanes of {outer.index}")
        dtypes, is_reached = dict(self.dtypes), self.is_reached
        self.is_reached &= not self.ranges.is_empty(loop)
        with self.ranges.scope():
            self.name(loop.index, I64, frozenset())
            self.ranges.enter(loop)
            self.body(loop.body, (*around, loop))
        self.dtypes, self.is_reached = dtypes, is_reached

    def while_loop(self, stmt: While, around: tuple[Loop, ...]) -> None:
        if any(outer.kind == "vector" for outer in around):
            raise self.error("a while loop cannot run in lanes")
        dtypes, cells = dict(self.dtypes), set(self.cells)
        with self.ranges.scope():
            self.statements(stmt.test, around)
            self.expr(stmt.condition)
            self.expect(stmt.condition, BOOL, "a condition")
            self.ranges.assume(stmt.condition)
            self.body(stmt.body, around)
        self.dtypes, self.cells = dtypes, cells

    def varies(self, loop: Loop, outer: Loop) -> bool:
        """Whether a loop's limits differ between the lanes of an outer one."""
        varying = {outer.index}
        for stmt in walk(outer.body):
            match stmt:
                case Let(name, value) if variables_of(value) & varying or loaded_by(value):
                    varying.add(name)
                case Cell(name) | Draw(name):
                    varying.add(name)
        return bool(variables_of(loop.start, loop.stop) & varying)

    # ------------------------------------------------------------------------------------------------ expressions

    def expect(self, expr: Expr, dtype: DType, what: str) -> None:
        if expr.dtype != dtype:
            raise self.error(f"{what}, {show_expr(expr)}, is {dtype_name(expr.dtype)}, not {dtype_name(dtype)}")

    def expr(self, expr: Expr) -> None:
        match expr:
            case Var(name, dtype):
                if name not in self.dtypes:
                    raise self.error(f"{name} is not in scope")
                if self.dtypes[name] != dtype:
                    raise self.error(f"{name} is {dtype_name(self.dtypes[name])} but read as {dtype_name(dtype)}")
            case Load(buffer, at, dtype):
                for e in at:
                    self.expr(e)
                self.access(buffer, at)
                if dtype != self.buffers[buffer].dtype:
                    raise self.error(f"{buffer} is read as {dtype_name(dtype)}")
            case Apply():
                self.apply(expr)
            case Const(value, dtype):
                if is_integer(dtype) and not (isinstance(value, int) and within(value, value, dtype)):
                    raise self.error(f"the constant {value} is no {dtype_name(dtype)}")

    def apply(self, expr: Apply) -> None:
        op = OPS.get(expr.fn)
        if op is None or not op.is_pointwise:
            raise self.error(f"there is no scalar function {expr.fn}")
        for arg in expr.args:
            self.expr(arg)  # both sides of a select: a load there must be inside whatever the condition says
        params = {"dtype": expr.dtype} if expr.fn == "convert" else {}
        try:
            result = op.aval(*(Aval((), arg.dtype) for arg in expr.args), **params)
        except (JitmlError, TypeError) as error:
            raise self.error(f"{show_expr(expr)}: {bare_message(error)}") from error
        if result != Aval((), expr.dtype):
            raise self.error(f"{show_expr(expr)} is {result}, not {dtype_name(expr.dtype)}")

    def access(self, name: str, at: Sequence[Expr]) -> None:
        buffer = self.buffers.get(name)
        if buffer is None:
            raise self.error(f"no buffer is named {name}")
        if len(at) != len(buffer.shape):
            raise self.error(f"{name} has {len(buffer.shape)} axes but {len(at)} indices")
        for axis, (index, n) in enumerate(zip(at, buffer.shape)):
            self.expect(index, I64, f"an index of {name}")
            if not self.is_reached:
                continue
            least, greatest = self.ranges.bounds(index)
            if least is not None and least >= 0 and greatest is not None and greatest < n:
                continue
            if self.contents.is_checked(index):
                continue
            if self.contents.origin(index) and (self.is_window(index) or self.is_in_window(index, n)):
                continue
            raise self.error(
                f"{name}: the index {show_expr(index)} may be {_shown(least)}..{_shown(greatest)} on axis {axis} of {n}"
            )

    def is_window(self, index: Expr) -> bool:
        """Whether an index counts from a place that the kernel begins by loading: such were made good (`ir/ops/dynamic.py`).

        A place may itself be counted from a size (`x[-1 - n]`), where no loop counts down from that.
        """
        names = {name for name in variables_of(index) if self.contents.origins.get(name)}
        if not names.isdisjoint(self.sizes):
            steps = affine(index)
            if steps is None or any(step < 0 for name, step in steps.items() if name and name not in names):
                return False
            return not names.isdisjoint(self.places) and names <= self.places | self.sizes
        return names <= self.places and not loaded_by(index)

    def is_in_window(self, index: Expr, n: int) -> bool:
        """Whether an index is a place of a window and what is known to be at most the axis itself."""
        for place in variables_of(index) & self.places:
            least, most = self.ranges.bounds(sub(index, Var(place)))
            if least is not None and least >= 0 and most is not None and most < n:
                return True
        return False


def _shown(bound: int | None) -> str:
    return "anything" if bound is None else str(bound)
