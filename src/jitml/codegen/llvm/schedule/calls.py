"""Schedules of library calls that are kernels of our own: copies, fills, and products that are too small for BLAS."""

from __future__ import annotations

from math import prod

from jitml.fusion.schedule.primitives.statements import with_schedule
from jitml.kernels.ir import Buffer, Kernel, Loop, walk
from jitml.kernels.metrics import known_trips
from jitml.kernels.schedule import Parallel, Primitive, Schedule, Split, Unroll, Vector
from jitml.kernels.target import Target

PARALLEL_BYTES = 1 << 20  # copies from this size on are shared among threads
PARALLEL_WORK = 100_000  # multiply-adds that are worth a thread
WRITTEN_OUT = 8  # elements of a sum that needs no loop
CPU = Target()


def scheduled_fill(kernel: Kernel, filled: Buffer) -> Kernel:
    """Loops in the order of the memory that they fill: the last one is vectors, and threads share the first one of many bytes."""
    found: list[Primitive] = []
    names = [loop.index for loop in _loops(kernel)]
    if len(names) > 1 and filled.nbytes >= PARALLEL_BYTES:
        _, rows = max(zip(map(abs, filled.element_strides), filled.shape))
        found = [Parallel(names[0], max(1, PARALLEL_BYTES // 4 // max(1, filled.nbytes // rows)))]
    elif names and filled.nbytes >= PARALLEL_BYTES:
        found = [Split(names[0], PARALLEL_BYTES // 4 // filled.dtype.itemsize, "chunk"), Parallel("chunk")]
    return _scheduled(kernel, *found, *map(Vector, names[-1:]))


def scheduled_product(kernel: Kernel) -> Kernel:
    """Columns are vectors, each with its sum in a register; threads share the outermost loop."""
    first, *inside, columns, along = _loops(kernel)
    work = prod(known_trips(loop) or 1 for loop in (*inside, columns, along))
    unrolled = [Unroll(along.index)] if (known_trips(along) or 0) <= WRITTEN_OUT else []
    return _scheduled(kernel, Parallel(first.index, max(1, PARALLEL_WORK // work)), Vector(columns.index), *unrolled)


def scheduled_sums(kernel: Kernel) -> Kernel:
    """Sums of pieces: columns are vectors."""
    _, columns, _ = _loops(kernel)
    return _scheduled(kernel, Vector(columns.index))


def scheduled_mirror(kernel: Kernel, elements: int) -> Kernel:
    """Blocks of rows of so many elements: threads share them."""
    first, *_ = _loops(kernel)
    return _scheduled(kernel, Parallel(first.index, max(1, PARALLEL_WORK // elements)))


def _loops(kernel: Kernel) -> list[Loop]:
    return [s for s in walk(kernel.body) if isinstance(s, Loop)]


def _scheduled(kernel: Kernel, *primitives: Primitive) -> Kernel:
    return with_schedule(kernel, Schedule((primitives,)), CPU, kernel.name)
