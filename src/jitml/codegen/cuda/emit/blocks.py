"""Thread blocks: how do the threads of a block run statements together?  Loops shared out, reductions, barriers.

A statement outside of thread loops is run by all threads alike: they compute the same values, and one of them stores. What
only one can do, a loop that stores for instance, thread 0 does alone, and hands the others the cells that it has changed. Between
statements stands a barrier where one touches memory that another has written, and a thread could be ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from jitml.codegen.cuda.emit.builder import CudaValue
from jitml.codegen.cuda.emit.expressions import CudaBuffer, bare
from jitml.codegen.cuda.emit.functions import COMBINES, identity_of
from jitml.codegen.cuda.emit.spelling import memory_type_of, type_of
from jitml.codegen.cuda.emit.statements import ModuleText, SerialStatements, updated_outside
from jitml.kernels.ir import (
    Alloc,
    Cell,
    Check,
    Combine,
    Draw,
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
    expressions,
    is_ordered,
    walk,
    walk_expression,
    walk_expressions,
)

THREADS = "blockDim.x"
SPREAD = ("block", "parallel")  # loops whose iterations are independent


@dataclass
class Touched:
    """Memory that threads have read and written since the last barrier, by its groups."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def conflicts(self, other: Touched) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)

    def add(self, other: Touched) -> None:
        self.reads |= other.reads
        self.writes |= other.writes

    def copy(self) -> Touched:
        return Touched(set(self.reads), set(self.writes))


def has_thread_loop(stmt: Stmt) -> bool:
    return any(isinstance(s, Loop) and s.kind == "thread" for s in walk((stmt,)))


class BlockStatements(SerialStatements):
    """Statements of one function, as the threads of a block run them together.

    Args:
        has_barriers: False leaves them out: for tests, which have to notice.
    """

    def __init__(self, module: ModuleText, *, has_barriers: bool = True) -> None:
        super().__init__(module)
        self.has_barriers = has_barriers
        self.is_alone = True  # whether what is being written is one thread's own
        self.pending = Touched()
        self.shared: list[tuple[str, str, int, int]] = []  # type, name, elements, bytes
        self.needs_parts = False
        self._labels = 0

    # --------------------------------------------------------------------------------------------- statements

    def statement(self, stmt: Stmt) -> None:
        if self.is_alone:
            super().statement(stmt)
            return
        match stmt:
            case Loop() if self.is_shared_out(stmt):
                self.shared_loop(stmt)
            case Loop() if has_thread_loop(stmt):
                self.uniform_loop(stmt)
            case If() if has_thread_loop(stmt):
                self.uniform_branch(stmt)
            case While() if has_thread_loop(stmt):
                self.uniform_while(stmt)
            case Alloc():
                self.alloc_shared(stmt)
            case Check():
                self.meet(self.touched((stmt,)))
                super().statement(stmt)
            case Store() | Loop() | If() | While() | Draw() if any(isinstance(s, (Store, Check, Draw)) for s in walk((stmt,))):
                self.solo(stmt)
            case Let() | Cell() | Update() | Observe() | Loop() | If() | While():
                self.meet(self.touched((stmt,)))
                with self.alone():
                    super().statement(stmt)

    @contextmanager
    def alone(self) -> Iterator[None]:
        self.is_alone = True
        yield
        self.is_alone = False

    def solo(self, stmt: Stmt) -> None:
        """What thread 0 does for all."""
        self.meet(self.touched((stmt,)))
        has_checks = any(isinstance(s, Check) for s in walk((stmt,)))
        with self.checked(has_checks), self.braces("if (threadIdx.x == 0)"), self.alone():
            super().statement(stmt)
        for cell in map(self.variable, updated_outside((stmt,), self.scope)):
            self.needs_parts = True
            self.emit(f"{cell.text} = ji_share({cell.text}, parts);")
            self.pending = Touched()

    @contextmanager
    def checked(self, has_checks: bool) -> Iterator[None]:
        """Around what some threads run, and leave where a check fails: then all of the block leave together."""
        if not has_checks:
            yield
            return
        self._labels += 1
        flag, label, saved = self.name("failed"), f"left_{self._labels}", self.leave
        self.emit(f"bool {flag} = false;")
        self.leave = f"{{ {flag} = true; goto {label}; }}"
        yield
        self.leave = saved
        self.emit(f"{label}:")
        self.emit(f"if (__syncthreads_or({flag})) return;")
        self.pending = Touched()

    # ------------------------------------------------------------------------------------------------- memory

    def touched(self, body: Sequence[Stmt]) -> Touched:
        """What statements touch of the memory that the threads of the block share."""
        reads: set[str] = {e.buffer for e in walk_expressions(body) if isinstance(e, Load)}
        writes: set[str] = {s.buffer for s in walk(body) if isinstance(s, Store)}
        return Touched(self._groups(reads), self._groups(writes))

    def _groups(self, names: Iterable[str]) -> set[str]:
        return {self.buffers[name].group for name in names if name in self.buffers}

    def meet(self, touched: Touched) -> None:
        """A barrier, if threads could get into each other's way at what comes next."""
        if self.pending.conflicts(touched):
            self.barrier()
        self.pending.add(touched)

    def barrier(self) -> None:
        if self.has_barriers:
            self.emit("__syncthreads();")
        self.pending = Touched()

    def alloc_shared(self, stmt: Alloc) -> None:
        """Scratch of the block."""
        buffer, word = stmt.buffer, self.name(stmt.buffer.name)
        count = max(1, buffer.reach)
        self.shared.append((memory_type_of(buffer.dtype), word, count, count * buffer.dtype.itemsize))
        saved = self.buffers.get(buffer.name)
        self.buffers[buffer.name] = CudaBuffer(buffer, word, word, is_aligned=True, is_shared=True)
        self.block(stmt.body)
        if saved is not None:
            self.buffers[buffer.name] = saved

    # ------------------------------------------------------------------------------------------- shared loops

    def is_shared_out(self, loop: Loop) -> bool:
        """Whether the threads of the block take turns with a loop's iterations.

        What it updates outside must be a sum of any order, that the loop itself does not ask for.
        """
        if loop.kind != "thread" and (loop.kind not in SPREAD or has_thread_loop(loop)):
            return False
        updates = [s for s in walk(loop.body) if isinstance(s, Update)]
        for name in updated_outside(loop.body, self.scope):
            dtype = self.variable(name).dtype
            own = [s for s in updates if s.cell == name]
            if any(s.combine is None or s.combine != own[0].combine or is_ordered(s.combine, dtype) for s in own):
                return False
            if any(isinstance(e, Var) and e.name == name for e in walk_expressions(loop.body)):
                return False
        return True

    def shared_loop(self, loop: Loop) -> None:
        """Thread t of T takes iterations t, t + T, ...; what they add up is combined afterwards."""
        self.meet(self.touched((loop,)))
        cells = {name: self.scope[name] for name in updated_outside(loop.body, self.scope)}
        combines: dict[str, Combine] = {
            s.cell: s.combine for s in walk(loop.body) if isinstance(s, Update) and s.combine is not None and s.cell in cells
        }
        totals = {name: self.variable(name) for name in cells}
        for name, total in totals.items():
            word = self.name(f"{name}_own")
            self.emit(f"{type_of(total.dtype)} {word} = {identity_of(combines[name], total.dtype)};")
            self.bind_cell(name, CudaValue(total.dtype, word))
        with self.checked(any(isinstance(s, Check) for s in walk(loop.body))), self.alone():
            self.counted(loop, "(int)threadIdx.x", f"(int){THREADS}", 1024)
        for name, total in totals.items():
            own, self.scope[name] = self.variable(name), cells[name]
            self.needs_parts = True
            reduce = self.functions.reduction(combines[name], total.dtype)
            part = CudaValue(total.dtype, f"{reduce}({own.text}, parts)")
            combined = self.functions.apply(COMBINES[combines[name]], (total, part), total.dtype)
            self.emit(f"{total.text} = {bare(combined.text)};")
            self.pending = Touched()

    # ------------------------------------------------------------------------------------------- uniform flow

    def uniform_loop(self, loop: Loop) -> None:
        """All threads run each iteration together."""
        self.meet(self._asked(loop))
        before = self.pending.copy()
        index = self.limits(loop, loop.step)
        kind, narrow = ("int", True) if index.is_narrow else ("i64", False)
        start = bare(self.index(loop.start).at(narrow=narrow))
        stop = self.stop(loop, index)
        with self.braces(f"for ({kind} {index.text} = {start}; {index.text} < {stop}; {index.text} += {loop.step})"):
            self.iteration(loop, index)
            self.end_iteration(loop.body)
        self.pending.add(before)

    def end_iteration(self, body: Sequence[Stmt]) -> None:
        """A barrier, if the next iteration could get into this one's way."""
        touched = self.touched(body)
        touched.add(self._scratch_of(body))
        if touched.conflicts(touched):
            self.barrier()

    def _scratch_of(self, body: Sequence[Stmt]) -> Touched:
        """What the iterations of a loop use one after the other, and is declared in them."""
        stored = {s.buffer for s in walk(tuple(body)) if isinstance(s, Store)}
        names = {s.buffer.name for s in walk(tuple(body)) if isinstance(s, Alloc) and s.buffer.name in stored}
        return Touched(set(), {f"scratch {name}" for name in names})

    def _asked(self, stmt: Stmt) -> Touched:
        """What the expressions of a statement itself read."""
        found: set[str] = {e.buffer for x in expressions(stmt) for e in walk_expression(x) if isinstance(e, Load)}
        return Touched(self._groups(found))

    def uniform_branch(self, stmt: If) -> None:
        self.meet(self._asked(stmt))
        before = self.pending.copy()
        with self.braces(f"if ({bare(self.value(stmt.condition).text)})"):
            self.block(stmt.then)
        after, self.pending = self.pending, before.copy()
        if stmt.orelse:
            self.otherwise()
            self.block(stmt.orelse)
            self.close()
        self.pending.add(after)
        self.pending.add(before)

    def uniform_while(self, stmt: While) -> None:
        before = self.pending.copy()
        scope, buffers = dict(self.scope), dict(self.buffers)
        with self.braces("while (true)"):
            for part in stmt.test:
                self.statement(part)
            self.meet(self._asked(stmt))
            self.emit(f"if (!{self.value(stmt.condition).text}) break;")
            self.block(stmt.body)
            self.end_iteration(stmt.test + stmt.body)
        self.scope, self.buffers = scope, buffers
        self.pending.add(before)
