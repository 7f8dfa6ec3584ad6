"""Schedules of reductions along rows: a block for each row, and a thread loop for each pass over it.

What a later pass would load again, or compute again at a price, waits in memory that the threads of a block share, if it fits
there. A few long rows are cut into chunks of a fixed size, which blocks take.
"""

from __future__ import annotations

from collections.abc import Mapping

from jitml.codegen.cuda.schedule.columns import totals
from jitml.codegen.cuda.schedule.spread import RESIDENT, lanes
from jitml.codegen.cuda.target import PROCESSORS, SHARED_BYTES, THREADS
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.reduction_passes import in_order, passes_of
from jitml.fusion.schedule.staging import Plan, staged
from jitml.kernels.schedule import BindLoop, Fuse, Jam, Primitive, Reorder, RFactor, Split, Stage, Vector

TRIPS = 4  # iterations of a thread: a shorter row has a smaller block
STRAIGHT = 64  # elements that a thread adds up one after the other
LEAST_CHUNK = 4096
MOST_ROW = 1 << 22  # elements that one block adds up
TOGETHER = 4  # rows that a block takes side by side
JAMMED_BYTES = 2048  # of such a row, at most
COSTLY = 8.0  # work that is worth a place in shared memory
WIDE = 128  # elements of a last axis that is long enough for the threads of a block


def schedule_rows(nest: GroupNest) -> list[Primitive]:
    passes, _ = passes_of(nest)
    if any(map(in_order, nest.points.reductions)) or not nest.inner:
        return []  # without axes outside: one thread, one element after the other
    if not nest.is_apart:
        return _threads(nest)
    first, size, rows = nest.inner[0], nest.size(nest.inner), nest.size(nest.outer)
    if len(passes) == 1 and (rows < RESIDENT or size > MOST_ROW) and size > 4 * LEAST_CHUNK:
        rest = size // nest.extent(first)
        wanted = _power_of_two(size * rows // (PROCESSORS * 8))
        chunk = max(1, min(max(wanted, LEAST_CHUNK), nest.target.blocks.chunk) // rest)
        chunked = RFactor(first.name, chunk, "c0", scope="memory")
        blocks = [BindLoop("c0.0", "block"), *(BindLoop(f"{axis.name}.0", "block") for axis in nest.outer)]
        most = -(-nest.extent(first) // chunk)
        return [chunked, *totals(nest, most), *blocks, *_threads(nest, is_chunk=True)]
    blocks = [BindLoop(axis.name, "block") for axis in nest.outer]
    if _are_jammed(nest, len(passes)):
        return [*blocks, *_threads(nest), Jam(nest.outer[-1].name, TOGETHER)]
    return [*_staged(nest), *blocks, *_threads(nest)]


def _are_jammed(nest: GroupNest, passes: int) -> bool:
    """Whether a block takes several rows side by side: of short ones a thread has too little to wait for otherwise.

    What several passes over them read stays in the first cache, without scratch.
    """
    nbytes = nest.size(nest.inner) * max((s.dtype.itemsize for s in nest.loads), default=1)
    if not nest.outer or nbytes > (JAMMED_BYTES if passes == 1 else JAMMED_BYTES // 4):
        return False
    rows = nest.outer[-1]
    is_whole = isinstance(rows.size, int) and nest.extent(rows) % TOGETHER == 0
    return is_whole and nest.size(nest.outer) >= 32 * TOGETHER * PROCESSORS


def _power_of_two(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1)


def _threads(nest: GroupNest, *, is_chunk: bool = False) -> list[Primitive]:
    """The passes over a row as thread loops."""
    *others, last = nest.inner
    if others:
        return _threads_over_axes(nest, is_chunk=is_chunk)
    width = lanes(nest, last, alone=not nest.outer)
    found: list[Primitive] = []
    if not is_chunk and nest.extent(last) > 2 * STRAIGHT * THREADS:
        found.append(RFactor(last.name, STRAIGHT * THREADS, f"{last.name}b"))
    if width == 1:
        return [*found, BindLoop(last.name, "thread", TRIPS)]
    return [*found, Split(last.name, width, f"{last.name}v"), BindLoop(f"{last.name}v", "thread", TRIPS), Vector(last.name)]


def _threads_over_axes(nest: GroupNest, *, is_chunk: bool) -> list[Primitive]:
    """One thread loop over several axes; over the last or longest one, with the others inside, where sizes are open."""
    *others, last = nest.inner
    if not is_chunk and all(isinstance(axis.size, int) for axis in nest.inner):
        width = lanes(nest, last, alone=False)
        thread = last.name
        found: list[Primitive] = []
        if width > 1:
            thread = f"{last.name}v"
            found.append(Split(last.name, width, thread))
        for k, axis in reversed([*enumerate(others)]):
            found.append(Fuse(axis.name, thread, f"f{k}"))
            thread = f"f{k}"
        if nest.size(nest.inner) > 2 * STRAIGHT * THREADS:
            found.append(RFactor(thread, STRAIGHT * THREADS // width, f"{thread}b"))
        found.append(BindLoop(thread, "thread", TRIPS))
        return [*found, Vector(last.name)] if width > 1 else found
    chosen = last if nest.extent(last) >= WIDE else max(nest.inner, key=nest.extent)
    before = [axis.name for axis in nest.inner[: nest.inner.index(chosen)]]
    order: list[Primitive] = [Reorder((chosen.name, *before))] if before else []
    return [*order, BindLoop(chosen.name, "thread", 1)]


def _staged(nest: GroupNest) -> list[Stage]:
    """What later passes would load again, or compute again at a price, as long as it fits in shared memory.

    What is loaded may have most of it, if rows are known to be so long: a block with more threads has a processor for itself.
    """
    passes, _ = passes_of(nest)
    is_known = all(isinstance(axis.size, int) for axis in nest.inner)
    room, whole = SHARED_BYTES, nest.target.limits.row_bytes if is_known else SHARED_BYTES

    def home(s: Scalar, work: float, now: int, plan: Plan, known: Mapping[Scalar, str]) -> str:
        nonlocal room, whole
        nbytes = nest.size(nest.inner) * s.dtype.itemsize
        if nbytes > (whole if s.kind == "load" else room) or (s.kind != "load" and work < COSTLY):
            return ""
        room, whole = room - nbytes, whole - nbytes
        return "row"

    return staged(nest, passes, home)
