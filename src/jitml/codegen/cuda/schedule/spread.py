"""Spreading: how are loops that hold nothing but each other dealt out to blocks and threads?

The innermost loops become one loop over threads, as many of them as make a full block; those outside are the blocks'.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.cuda.target import PROCESSORS, THREADS
from jitml.fusion.schedule.memory_views import Axis
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.schedule import BindLoop, Fuse, Jam, Primitive, Split, Vector
from jitml.records import dataclass

FULL = 4 * THREADS  # iterations that are work enough for one block, however they are cut
TRIPS = 4  # iterations of a thread, so that it waits for several loads at once
NEIGHBOURS = (1, 2)  # steps: parts of complex numbers take turns
RESIDENT = 2 * PROCESSORS  # blocks that there should be before a thread takes more than one iteration


@dataclass(frozen=True, slots=True)
class Span:
    """A loop to be dealt out.

    Args:
        extent: the most iterations.
        is_known: whether that is how many there are.
        joins: whether what is stored goes on from the loop inside it as from one iteration of that to the next.
    """

    name: str
    extent: int
    is_known: bool = True
    joins: bool = True


def spans(nest: GroupNest, axes: Sequence[Axis], suffix: str = "", *, stores: bool = True) -> list[Span]:
    """Axes as loops to be dealt out.

    Args:
        stores: whether the group's stores stand in them, and not only partial results.
    """
    steps = [nest.views.steps(s.buffer, s.at) or {} for s in nest.points.stores] if stores else []
    found = []
    for axis, inner in zip(axes, (*axes[1:], None)):
        joins = inner is None or all(s.get(axis.name, 0) == s.get(inner.name, 0) * nest.extent(inner) for s in steps)
        found.append(Span(axis.name + suffix, nest.extent(axis), isinstance(axis.size, int), joins))
    return found


def spread(loops: Sequence[Span], width: int = 1, tag: str = "") -> list[Primitive]:
    """Deal out loops, from the outermost in.

    Args:
        width: elements of the last loop that a thread takes at once, as a vector.
        tag: of new loops' names, where loops are dealt out in several places.
    """
    *outer, last = loops
    count, thread, found = -(-last.extent // width), last.name, list[Primitive]()
    joins = outer and outer[-1].is_known and outer[-1].joins and last.is_known
    if count < FULL and joins:
        if width > 1:
            thread = f"{_index(last)}v{tag}"
            found.append(Split(last.name, width, thread))
        while count < FULL and outer and outer[-1].is_known and outer[-1].joins:
            fused = f"f{len(outer) - 1}{tag}"
            found.append(Fuse(outer[-1].name, thread, fused))
            count, thread = count * outer.pop().extent, fused
    found += [BindLoop(loop.name, "block") for loop in outer]
    if thread == last.name:
        found += _tiles(last, width, _size(outer), tag)
    else:
        found += _tiles(Span(thread, count), 1, _size(outer), tag)
    found += [] if width == 1 else [Vector(last.name)]
    if not joins and outer and count < THREADS and outer[-1].extent >= TRIPS * RESIDENT:
        rows = outer[-1]  # short ones that do not go on in each other: some at a time
        if len(outer) == 1 or (rows.is_known and rows.extent % TRIPS == 0):
            found.append(Jam(rows.name, TRIPS))
    return found


def _tiles(loop: Span, width: int, blocks: int, tag: str) -> list[Primitive]:
    """Blocks take pieces of a loop, unless it is short."""
    count, name = -(-loop.extent // width), _index(loop)
    trips = next((n for n in (TRIPS, 2) if blocks * -(-count // (THREADS * n)) >= RESIDENT), 1)
    found: list[Primitive] = []
    if count > max(THREADS * trips, FULL if blocks >= RESIDENT else 0):
        found += [Split(loop.name, THREADS * trips * width, f"{name}b{tag}"), BindLoop(f"{name}b{tag}", "block")]
    if width > 1:
        return [*found, Split(loop.name, width, f"{name}v{tag}"), BindLoop(f"{name}v{tag}", "thread")]
    return [*found, BindLoop(loop.name, "thread")]


def _index(loop: Span) -> str:
    return loop.name.partition(".")[0]


def _size(loops: Sequence[Span]) -> int:
    size = 1
    for loop in loops:
        size *= loop.extent
    return size


def lanes(nest: GroupNest, axis: Axis, *, alone: bool) -> int:
    """Elements along an axis that a thread takes at once: 16 bytes of the widest array that is contiguous there.

    Args:
        alone: whether there is one row, whose tail may be shorter; else rows must be made of whole vectors.
    """
    accesses = [(nest.views.steps(s.value, s.places), s.dtype) for s in nest.loads]
    accesses += [(nest.views.steps(s.buffer, s.at), s.scalar.dtype) for s in nest.points.stores]
    dense = [dtype.itemsize for steps, dtype in accesses if steps is not None and steps.get(axis.name) == 1]
    width = min(MOST_LANES, nest.target.limits.vector_bytes // max(dense, default=nest.target.limits.vector_bytes))
    while width > 1 and not alone and (not isinstance(axis.size, int) or nest.extent(axis) % width):
        width //= 2
    while width > 1 and nest.limits(axis)[0] % width:  # the inside of an array, of which no vector is aligned
        width //= 2
    return width if width <= nest.extent(axis) else 1


MOST_LANES = 16
