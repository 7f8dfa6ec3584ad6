"""Launches: how is a kernel cut into `__global__` functions, and what grid does each run on?

Each outermost block loop is a launch of its own, since blocks cannot wait for each other; the `Let`s before it are written
again. Its iterations are dealt out to blocks, or, where there is nothing inside that the threads of a block could share out,
to single threads. All else runs in one block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from jitml.codegen.cuda.emit.blocks import SIDE_BY_SIDE, SPREAD, has_thread_loop
from jitml.codegen.cuda.emit.expressions import CudaBuffer, CudaIndex, bare
from jitml.codegen.cuda.emit.spelling import identifier, literal, memory_type_of
from jitml.codegen.cuda.emit.statements import ModuleText
from jitml.codegen.cuda.emit.wide import WideStatements
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import PROCESSORS, THREADS, WARP
from jitml.errors import UnsupportedError
from jitml.ir.types import I64
from jitml.kernels.ir import (
    Alloc,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    loaded_by,
    stored_by,
    sub,
    touched_by,
    variables_of,
    walk,
    walk_expressions,
)
from jitml.kernels.metrics import known_trips, most_trips
from jitml.records import dataclass

MOST_BLOCKS = 1 << 20  # beyond, blocks take turns
MOST_RESIDENT = 32, 2048  # blocks and threads of a processor
STATIC_BYTES = 48 * 1024  # that a kernel has without asking for more
SHARED_OF_PROCESSOR = 227 * 1024
ENOUGH_BLOCKS = 4  # of THREADS each, so that a processor always waits for some of their loads
MOST_THREADS = 1024
LOCAL_BYTES = 64 * 1024  # of scratch that a thread has for itself


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """Where the parameters of a kernel lie: of each, what it shares bytes with, and whether its address is a multiple of 16."""

    groups: Mapping[str, str]
    aligned: frozenset[str]


def write_kernel(
    module: ModuleText, kernel: Kernel, stem: str, memory: KernelMemory, *, looks: bool = False, has_barriers: bool = True
) -> tuple[list[str], tuple[Launch, ...]]:
    """The functions of a kernel, and how they are launched.

    Args:
        stem: what their names begin with.
        looks: whether a check may have failed before, so that there is nothing to be done any more.
        has_barriers: False leaves them out, to show that this is noticed.
    """
    functions, launches = [], []
    for part in _cut(kernel, memory.groups):
        writer = _LaunchWriter(module, kernel, memory, looks=looks, has_barriers=has_barriers)
        text, launch = writer.write(part, module.entry(identifier(stem)))
        functions.append(text)
        launches.append(launch)
    return functions, tuple(launches)


@dataclass(frozen=True, slots=True)
class _Part:
    """Statements of a kernel that are one launch; `is_grid`: the last is a block loop for many blocks, after `Let`s."""

    body: tuple[Stmt, ...]
    is_grid: bool = False


def _cut(kernel: Kernel, groups: Mapping[str, str]) -> list[_Part]:
    """The parts of a kernel's body that are launched one after the other; one, if a name would have to be handed on.

    A `Let` is written again in each launch, if what it reads is not stored by the kernel and has the same value there.

    Args:
        groups: what parameters share bytes with.
    """
    body = kernel.body
    written = {groups[name] for name in kernel.writes}
    parts: list[_Part] = []
    ahead: list[Stmt] = []  # what each launch may begin with
    rest: list[Stmt] = []
    own: set[str] = set()  # names that only the launch knows that `rest` will be
    gone: set[str] = set()  # names that only earlier launches knew
    for stmt in body:
        mentioned = _mentioned(stmt)
        if mentioned & gone:
            return [_Part(body)]
        if isinstance(stmt, Let) and not mentioned & own and not written & {groups[name] for name in loaded_by(stmt.value)}:
            ahead.append(stmt)
            rest.append(stmt)
        elif _is_grid(stmt):
            if mentioned & own:
                return [_Part(body)]
            parts += [*_unless_empty(rest), _Part((*ahead, stmt), is_grid=True)]
            rest, own, gone = [*ahead], set(), gone | own
        else:
            rest.append(stmt)
            if isinstance(stmt, (Let, Cell, Draw)):
                own.add(stmt.name)
    return parts + _unless_empty(rest)


def _mentioned(stmt: Stmt) -> set[str]:
    """The names of scalars that a statement, and what is in it, asks for or changes."""
    names = {e.name for e in walk_expressions((stmt,)) if isinstance(e, Var)}
    return names | {s.cell for s in walk((stmt,)) if isinstance(s, Update)}


def _unless_empty(body: Sequence[Stmt]) -> list[_Part]:
    return [_Part(tuple(body))] if any(not isinstance(s, Let) for s in body) else []


def _is_grid(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind in SPREAD


class _LaunchWriter:
    """Writes one `__global__` function."""

    def __init__(self, module: ModuleText, kernel: Kernel, memory: KernelMemory, *, looks: bool, has_barriers: bool) -> None:
        self.module, self.kernel, self.memory, self.looks = module, kernel, memory, looks
        self.text = WideStatements(module, has_barriers=has_barriers)
        self.blocks = 1

    def write(self, part: _Part, entry: str) -> tuple[str, Launch]:
        body = part.body
        touched = touched_by(body)
        params = [b for b in self.kernel.params if b.name in touched]
        has_error = self.looks or any(isinstance(s, Check) for s in walk(body))
        heads = self._parameters(params, body)
        threads = self._body(part)
        threads = max(threads, 1)
        lines = self._whole()
        if self.blocks == 1:  # where many are at work, calls would cost more than they save
            lines = self.module.functions.called_if_often(lines)
        if has_error:
            heads.append("i64* error")
        # One block is all that has to be resident: left alone, the compiler spills registers to make room for more.
        signature = f'extern "C" __global__ void __launch_bounds__({threads}, 1) {entry}({", ".join(heads)}) {{'
        sources = [f"// {source}: {source.text}".rstrip() for source in self.kernel.sources]
        shared = self._shared_lines()
        text = "\n".join([*sources, signature, *shared, *lines, "}"])
        dynamic = sum(_padded(n) for *_, n in self.text.shared) if self._is_dynamic else 0
        return text, Launch(entry, self.blocks, threads, dynamic, tuple(b.name for b in params), has_error)

    def _parameters(self, params: Sequence[object], body: tuple[Stmt, ...]) -> list[str]:
        """Declarations of the pointers: what is only read, and what nothing else may be, says so.

        What is read and written is not said to be nothing else's: compilers then take it that other threads do not write it
        either, and keep what they have read across barriers.
        """
        stored, loaded = stored_by(body), _loaded(body) | {s.buffer for s in walk(body) if isinstance(s, Store) and s.combine}
        groups = self.memory.groups
        written = {groups[name] for name in stored if name in groups}
        names = [b.name for b in self.kernel.params if b in params]
        heads = []
        for buffer in (b for b in self.kernel.params if b in params):
            word, group = self.text.name(buffer.name), groups[buffer.name]
            is_lone = [groups[name] for name in names].count(group) == 1 and not (buffer.name in stored and buffer.name in loaded)
            kind = memory_type_of(buffer.dtype)
            const = "" if buffer.name in stored else "const "
            heads.append(f"{const}{kind}* {'__restrict__ ' if is_lone or group not in written else ''}{word}")
            is_aligned = buffer.name in self.memory.aligned
            self.text.buffers[buffer.name] = CudaBuffer(buffer, word, group, is_aligned)
        return heads

    # ---------------------------------------------------------------------------------------------------- body

    def _body(self, part: _Part) -> int:
        """Write the statements; returns how many threads a block needs."""
        *ahead, last = body = part.body
        is_together = any(has_thread_loop(s) for s in body)
        if part.is_grid:
            assert isinstance(last, Loop)
            if self.looks:
                self._look()
            self.text.threads = _threads_for(_nest(last)[1])
            for stmt in ahead:
                self.text.statement(stmt)
            return self._grid(last, is_together=is_together)
        is_together = is_together or any(isinstance(s, Loop) and s.kind in SPREAD for s in walk(body))
        if self.looks:
            self._look()
        self.text.threads = _threads_for(body) if is_together else 1
        self.text.is_alone, self.text.is_single = not is_together, not is_together
        for stmt in body:
            self.text.statement(stmt)
        return self.text.threads

    def _look(self) -> None:
        """Leave if a check has failed before; how, is known when the rest is written (`_whole`)."""
        self.text.emit(_LOOK)

    def _grid(self, loop: Loop, *, is_together: bool) -> int:
        """The iterations of a block loop, and of those that stand right in it, dealt out."""
        loops, body = _nest(loop)
        counts = [self._count(x) for x in loops]
        known = [known_trips(x) for x in loops]
        total = None if None in known else prod(n for n in known if n is not None)
        if total == 0:
            return WARP
        threads = self.text.threads if is_together else self._threads_alone(total, body)
        per_block = 1 if is_together else threads
        self.blocks = max(1, min(MOST_BLOCKS, -(-total // per_block))) if total is not None else _resident(threads)
        if is_together and sum(s.buffer.nbytes for s in walk(body) if isinstance(s, Alloc)) > _MOST_SHARED:
            raise UnsupportedError(f"{self.kernel.name} needs more scratch than the shared memory of a block has")
        place = "blockIdx.x" if is_together else "blockIdx.x * blockDim.x + threadIdx.x"
        stride = "gridDim.x" if is_together else "gridDim.x * blockDim.x"
        narrow = all(n.is_narrow for n in counts) and (total is not None and total < 1 << 30)
        kind = "int" if narrow else "i64"
        place = (
            f"({kind}){place}"
            if is_together
            else f"({kind})({place})"
            if narrow
            else "(i64)blockIdx.x * blockDim.x + threadIdx.x"
        )
        whole = " * ".join(n.at(narrow=narrow) for n in counts) if total is None else literal(total, I64)
        text = self.text
        is_index = len(loops) == 1 and loop.step == 1 and text.index(loop.start).text == "0"
        word = text.name(loop.index if is_index else "n")
        index = CudaIndex(word, text.index(Const(0)).bounds, narrow)
        is_exact = total is not None and self.blocks * per_block >= total
        if is_exact:
            text.emit(f"const {kind} {word} = {place};")
            if not is_together and self.blocks * per_block > (total or 0):
                text.emit(f"if ({word} >= {whole}) return;")
            self._iteration(loops, counts, body, index, is_together=is_together, is_index=is_index)
        else:
            with text.braces(f"for ({kind} {word} = {place}; {word} < {whole}; {word} += ({kind}){stride})"):
                self._iteration(loops, counts, body, index, is_together=is_together, is_index=is_index)
                if is_together:
                    text.is_alone = False
                    text.end_iteration(body)
                    text.is_alone = True
        return threads

    def _count(self, loop: Loop) -> CudaIndex:
        """How many iterations a loop has; none if it ends before it begins."""
        trips = known_trips(loop)
        if trips is not None:
            return self.text.index(Const(trips))
        distance: Expr = sub(loop.stop, loop.start)
        index = self.text.index(distance)
        text = index.text if loop.step == 1 else f"(({index.text} + {loop.step - 1}) / {loop.step})"
        low = f"ji_most({bare(text)}, {'0' if index.is_narrow else '0LL'})"
        word = self.text.name(f"{loop.index}_count")
        self.text.emit(f"const {'int' if index.is_narrow else 'i64'} {word} = {low};")
        return CudaIndex(word, index.bounds.most(self.text.index(Const(0)).bounds), index.is_narrow)

    def _iteration(
        self,
        loops: Sequence[Loop],
        counts: Sequence[CudaIndex],
        body: Sequence[Stmt],
        index: CudaIndex,
        *,
        is_together: bool,
        is_index: bool,
    ) -> None:
        """The indices of iteration number `index`, and what it does."""
        text = self.text
        rest = index.text
        for k in range(len(loops) - 1, -1, -1):
            loop, limits = loops[k], text.limits(loops[k], loops[k].step)
            narrow = limits.is_narrow and index.is_narrow
            if is_index:
                text.scope[loop.index] = CudaIndex(index.text, limits.bounds, narrow)
                continue
            number = rest
            if k:
                number, following = f"{rest} % {counts[k].text}", f"({rest} / {counts[k].text})"
                rest = following
            if loop.step != 1:
                number = f"({number}) * {loop.step}" if k else f"{number} * {loop.step}"
            start = text.index(loop.start)
            if start.text != "0":
                number = f"{start.at(narrow=narrow)} + {number}"
            kind = "int" if narrow else "i64"
            text.emit(f"const {kind} {limits.text} = {number};")
            text.scope[loop.index] = CudaIndex(limits.text, limits.bounds, narrow, limits.factor)
        text.is_alone = not is_together
        text.block(body)
        text.is_alone = True

    def _threads_alone(self, total: int | None, body: Sequence[Stmt]) -> int:
        """Threads of a block where each has iterations of its own: fewer where there is too little to do for all processors."""
        if sum(s.buffer.nbytes for s in walk(tuple(body)) if isinstance(s, Alloc)) > LOCAL_BYTES:
            raise UnsupportedError(f"{self.kernel.name} needs more scratch than a thread has")
        if total is None:
            return THREADS
        return max(WARP, min(THREADS, _whole_warps(-(-total // PROCESSORS))))

    # ------------------------------------------------------------------------------------------------- memory

    @property
    def _is_dynamic(self) -> bool:
        return sum(n for *_, n in self.text.shared) > STATIC_BYTES - 256

    def _shared_lines(self) -> list[str]:
        rows, lines = max(self.text.rows_taken), []
        if rows:
            lines.append(f"  __shared__ u64 parts[2][{rows}][{self.text.threads // WARP}];")
        if not self._is_dynamic:
            return lines + [f"  __shared__ __align__(16) {kind} {word}[{n}];" for kind, word, n, _ in self.text.shared]
        lines.append("  extern __shared__ __align__(16) u8 scratch[];")
        offset = 0
        for kind, word, _, size in self.text.shared:
            lines.append(f"  {kind}* {word} = ({kind}*)(scratch + {offset});")
            offset += _padded(size)
        return lines

    def _whole(self) -> list[str]:
        """The body; what depends on where arrays begin, and all behind that, is there twice."""
        text = self.text
        # Threads that meet must not come to see it one by one, while another block is failing.
        meets = any(word in line for line in text.lines for word in ("__syncthreads", "ji_warp_"))
        sees = "__syncthreads_or(threadIdx.x == 0 && *error != 0)" if meets else "*error != 0"
        lines = [line.replace(_LOOK, f"if ({sees}) return;") for line in text.lines]
        if not text.unproven:
            return lines
        test = " && ".join(f"ji_aligned({name})" for name in text.unproven)
        first = _first_wide(lines)
        ahead, lines = lines[:first], lines[first:]
        inner = [line if line.startswith("#") else f"  {line}" for line in lines]
        other = [re.sub(r"\bleft_(\d+)\b", r"left_other_\1", line).replace(SIDE_BY_SIDE, "#pragma unroll 1") for line in inner]
        return [
            *ahead,
            *(f"  if ({test}) {{", "    constexpr bool wide = true;", *inner),
            *("  } else {", "    constexpr bool wide = false;", *other, "  }"),
        ]


def _first_wide(lines: Sequence[str]) -> int:
    """The line where the first statement begins that depends on `wide`, or jumps, or is jumped to."""
    wide = next((n for n, line in enumerate(lines) if re.search(r"\bwide\b|\bleft_\d+\b", line)), 0)
    begin = next((n for n in range(wide, -1, -1) if re.match(r"  [^ }]", lines[n])), 0)
    while begin and (lines[begin - 1].lstrip().startswith("#") or lines[begin].startswith("  } ")):
        begin -= 1
    return begin


_LOOK = "// look"
_MOST_SHARED = 220 * 1024


def _resident(threads: int) -> int:
    """Blocks that the device runs at once: so many there are for a loop whose length only the run knows."""
    blocks, most = MOST_RESIDENT
    return PROCESSORS * min(blocks, most // threads)


def _padded(size: int) -> int:
    return -(-size // 16) * 16


def _loaded(body: Sequence[Stmt]) -> set[str]:
    return {e.buffer for e in walk_expressions(body) if isinstance(e, Load)}


def _nest(loop: Loop) -> tuple[list[Loop], tuple[Stmt, ...]]:
    """Block loops that hold nothing but each other, and do not depend on each other; and what stands in the innermost."""
    loops = [loop]
    while len(loop.body) == 1:
        (inner,) = loop.body
        if not isinstance(inner, Loop) or inner.kind not in SPREAD:
            break
        if variables_of(inner.start, inner.stop) & {x.index for x in loops}:
            break
        loops.append(inner)
        loop = inner
    return loops, loop.body


def _threads_for(body: Sequence[Stmt]) -> int:
    """Threads of a block that shares loops out: as many as the longest of them can use.

    Where scratch leaves a processor few blocks, each has more.
    """
    scratch = sum(s.buffer.nbytes for s in walk(tuple(body)) if isinstance(s, Alloc))
    limit = min(MOST_THREADS, THREADS * -(-ENOUGH_BLOCKS // max(1, SHARED_OF_PROCESSOR // max(1, scratch))))
    most = WARP
    for loop in walk(tuple(body)):
        if isinstance(loop, Loop) and loop.kind in ("thread", *SPREAD):
            trips, grain = most_trips(loop), loop.grain if loop.kind == "thread" else 1
            most = max(most, limit if trips is None else _whole_warps(-(-trips // max(1, grain))))
    return min(limit, most)


def _whole_warps(threads: int) -> int:
    return -(-threads // WARP) * WARP
