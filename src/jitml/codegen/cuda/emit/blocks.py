"""Thread blocks: how do the threads of a block run statements together?  Loops shared out, reductions, barriers.

A statement outside of thread loops is run by all threads alike: they compute the same values, and one of them stores. What
only one can do, a loop that stores for instance, thread 0 does alone, and hands the others the cells that it has changed. Between
statements stands a barrier where one touches memory that another has written, and a thread could be ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from jitml.codegen.cuda.emit.barriers import SinceBarrier, Touched
from jitml.codegen.cuda.emit.builder import CudaValue
from jitml.codegen.cuda.emit.expressions import CudaBuffer, bare
from jitml.codegen.cuda.emit.functions import COMBINES, identity_of
from jitml.codegen.cuda.emit.spelling import memory_type_of, type_of
from jitml.codegen.cuda.emit.statements import (
    ModuleText,
    SerialStatements,
    earlier_end,
    updated_outside,
    weight_of,
)
from jitml.kernels.ir import (
    Alloc,
    Cell,
    Check,
    Combine,
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
    add,
    expressions,
    is_ordered,
    loaded_by,
    stored_by,
    variables_of,
    walk,
    walk_expression,
    walk_expressions,
)
from jitml.kernels.metrics import known_trips, most_trips

MOST_WEIGHT = 160  # operations that rounds may come to, to be written side by side: more code takes long to compile
SIDE_BY_SIDE = "#pragma unroll  // rounds"
MOST_ROUNDS = 8  # of a thread loop, that are written one after the other
SPREAD = ("block", "parallel")  # loops whose iterations are independent


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
        self.threads = 1  # of the block
        self.pending = SinceBarrier()
        self.shared: list[tuple[str, str, int, int]] = []  # type, name, elements, bytes
        self.rows_taken = [0, 0]  # rows of shared memory, of a number for each warp, that reductions use in turn
        self._turn = 0
        self._labels = 0
        self._end_of_solo = -1  # the line after what thread 0 has done alone

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
    def alone(self, *, is_single: bool = False) -> Iterator[None]:
        self.is_alone, self.is_single = True, is_single
        yield
        self.is_alone = self.is_single = False

    def solo(self, stmt: Stmt) -> None:
        """What thread 0 does for all."""
        if any(isinstance(s, Check) for s in walk((stmt,))):
            self.meet(self.touched((stmt,)), is_first=True)
            with self.checked(True), self.braces("if (threadIdx.x == 0)"), self.alone(is_single=True):
                super().statement(stmt)
        else:
            self.meet(self.touched((stmt,)), is_first=True)
            if self._end_of_solo == len(self.lines):  # it goes on
                self.lines.pop()
                self.depth += 1
            else:
                self.emit("if (threadIdx.x == 0) {")
                self.depth += 1
            with self.alone(is_single=True):
                super().statement(stmt)
            self.close()
            self._end_of_solo = len(self.lines)
        self.hand_out([self.variable(name) for name in updated_outside((stmt,), self.scope)])

    def hand_out(self, cells: Sequence[CudaValue]) -> None:
        """Give all threads the values that thread 0 has."""
        if not cells:
            return
        rows = self.take_shared_rows(len(cells))
        for cell, row in zip(cells, rows):
            self.emit(f"ji_put<{type_of(cell.dtype)}>({cell.text}, {row});")
        self.barrier_before_rows()
        for cell, row in zip(cells, rows):
            self.emit(f"{cell.text} = ji_get<{type_of(cell.dtype)}>({row}, 0);")

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
        self.emit("{")  # a jump must not pass by declarations
        self.depth += 1
        yield
        self.close()
        self.leave = saved
        self.emit(f"{label}:")
        self.emit(f"if (__syncthreads_or({flag})) return;")
        self.pending = SinceBarrier()

    # ------------------------------------------------------------------------------------------------- memory

    def touched(self, body: Sequence[Stmt]) -> Touched:
        """What statements touch of the memory that the threads of the block share."""
        reads: set[str] = {e.buffer for e in walk_expressions(body) if isinstance(e, Load)}
        writes: set[str] = stored_by(body)
        return Touched(self._groups(reads), self._groups(writes))

    def _groups(self, names: Iterable[str]) -> set[str]:
        return {self.buffers[name].group for name in names if name in self.buffers}

    def meet(self, touched: Touched, *, is_first: bool = False) -> None:
        """A barrier, if threads could get into each other's way at what comes next.

        Args:
            is_first: only thread 0 does it.
        """
        if self.pending.conflicts(touched, is_first=is_first):
            self.barrier()
        self.pending.add(touched, is_first=is_first)

    def barrier(self) -> None:
        if self.has_barriers:
            self.emit("__syncthreads();")
        self.pending = SinceBarrier()

    def take_shared_rows(self, count: int) -> list[str]:
        """Rows of shared memory that nobody reads any more: the other ones than last time, so that this needs no barrier."""
        self._turn = 1 - self._turn
        self.meet(Touched(writes={f"parts {self._turn}"}))
        self.rows_taken[self._turn] = max(self.rows_taken[self._turn], count)
        return [f"parts[{self._turn}][{n}]" if n else f"parts[{self._turn}][0]" for n in range(count)]

    def barrier_before_rows(self) -> None:
        """A barrier of the block's threads: what stands in the rows taken last may be read after it."""
        self.barrier()
        self.pending.add(Touched(reads={f"parts {self._turn}"}), is_first=False)

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
        if most_trips(loop) == 0:
            return
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
            self.dealt_out(loop)
        own = {name: self.variable(name) for name in cells}
        self.scope |= cells
        self.combine_all([(combines[name], total, own[name]) for name, total in totals.items()])

    def dealt_out(self, loop: Loop) -> None:
        """The iterations of one thread; if they are few, written side by side, so that all their loads are under way."""
        most, threads = most_trips(loop), self.threads
        rounds = 0 if most is None else -(-most // threads)
        is_long = rounds > MOST_ROUNDS or (rounds > 1 and rounds * weight_of(loop.body) > MOST_WEIGHT)
        if most is None or is_long or loaded_by(loop.stop) or variables_of(loop.stop) & self.cells:
            self.emit("#pragma unroll 1")
            self.counted(loop, "(int)threadIdx.x", str(threads), threads)
            return
        if known_trips(loop) is not None:
            whole = most // threads
            if whole:
                self.rounds(loop, 0, whole)
            if most % threads:
                self.rounds(loop, whole, 1, end=loop.stop)
            return
        end = earlier_end(loop)
        last = self.index(add(loop.start, most * loop.step)), self.index(end)
        if rounds == 1 or most % threads:
            self.rounds(loop, 0, rounds, end=end if rounds * threads == most else loop.stop)
            return
        narrow = all(x.is_narrow for x in last)
        with self.braces(f"if ({bare(last[0].at(narrow=narrow))} <= {bare(last[1].at(narrow=narrow))})"):
            self.rounds(loop, 0, rounds)
        self.otherwise()
        self.counted(loop, "(int)threadIdx.x", str(threads), threads)
        self.close()

    def rounds(self, loop: Loop, first: int, count: int, *, end: Expr | None = None) -> None:
        """Some rounds, in each of which every thread takes one iteration; where there may be fewer, none from `end` on."""
        index, start = self.limits(loop, loop.step * self.threads * MOST_ROUNDS), self.index(loop.start)
        narrow, place = index.is_narrow, "(int)threadIdx.x"
        if count > 1:
            counter = self.name("round")
            place = f"({counter} * {self.threads} + {place})"
            self.emit(SIDE_BY_SIDE)
            self.emit(f"for (int {counter} = 0; {counter} < {count}; {counter} += 1) {{")
            self.depth += 1
        elif first:
            place = f"({first * self.threads} + {place})"
        ahead = bare(place) if loop.step == 1 else f"{place} * {loop.step}"
        begin = ahead if start.text == "0" else f"{start.at(narrow=narrow)} + {ahead}"
        self.emit(f"const {'int' if narrow else 'i64'} {index.text} = {begin};")
        if end is None:
            self.iteration(loop, index)
        else:
            stop = bare(self.index(end).at(narrow=narrow and self.index(end).is_narrow))
            with self.braces(f"if ({index.text} < {stop})"):
                self.iteration(loop, index)
        if count > 1:
            self.close()

    def combine_all(self, sums: Sequence[tuple[Combine, CudaValue, CudaValue]]) -> None:
        """Combine into each total what every thread has of its own: lanes of a warp in a tree, then the warps in order."""
        if not sums:
            return
        parts = []
        for combine, _, own in sums:
            parts.append(f"{self.functions.across_lanes(combine, own.dtype)}({own.text})")
        warps = self.threads // 32
        if warps > 1:
            rows = self.take_shared_rows(len(sums))
            for (_, _, own), part, row in zip(sums, parts, rows):
                self.emit(f"ji_put<{type_of(own.dtype)}>({part}, {row});")
            self.barrier_before_rows()
            parts = [
                f"{self.functions.across_warps(combine, own.dtype)}<{warps}>({row})" for (combine, _, own), row in zip(sums, rows)
            ]
        for (combine, total, own), part in zip(sums, parts):
            value = self.functions.apply(COMBINES[combine], (total, CudaValue(own.dtype, part)), total.dtype)
            self.emit(f"{total.text} = {bare(value.text)};")

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
        self.pending.merge(before)

    def end_iteration(self, body: Sequence[Stmt]) -> None:
        """A barrier, if the next iteration could get into this one's way."""
        touched = self.touched(body)
        touched.add(self._scratch_of(body))
        in_turn = self.pending.several.reads & {"parts 0", "parts 1"}
        if in_turn or touched.conflicts(touched):
            self.barrier()

    def _scratch_of(self, body: Sequence[Stmt]) -> Touched:
        """What the iterations of a loop use one after the other, and is declared in them."""
        stored = stored_by(body)
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
        self.pending.merge(after)
        self.pending.merge(before)

    def uniform_while(self, stmt: While) -> None:
        before = self.pending.copy()
        scope, buffers = dict(self.scope), dict(self.buffers)
        with self.braces("while (true)"):
            for part in stmt.test:
                self.statement(part)
            self.meet(self._asked(stmt))
            self.emit(f"if (!{self.value(stmt.condition).text}) break;")
            before.merge(self.pending)
            self.block(stmt.body)
            self.end_iteration(stmt.test + stmt.body)
        self.scope, self.buffers = scope, buffers
        self.pending.merge(before)
