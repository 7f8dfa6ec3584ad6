"""Schedules of reductions along rows: a row at a time, in cache, in as many passes as it needs.

What a later pass would compute again at a price waits in the output or in a row of scratch. What is made of the sums of short
rows at a price is done for a block of rows at once; rows that hardly fill a vector are its lanes (`lanes.py`). A few long rows
are cut into chunks of a fixed size for threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.codegen.llvm.schedule.lanes import across
from jitml.codegen.llvm.schedule.pointwise import SHORT_ROW, share
from jitml.fusion.grouping.scalarize import Stored
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest, all_scalars, reachable
from jitml.fusion.schedule.reduction_passes import Pass, in_order, passes_of, rounds, visits
from jitml.fusion.schedule.staging import Plan, staged, work_of, work_on
from jitml.kernels.schedule import Jam, Parallel, Primitive, RFactor, Split, Stage, StageCells, Unroll, Vector

FOLDED = 16.0  # work of an extreme of a vector's lanes, NaNs included
COSTLY = 8.0  # work that is worth a place in memory rather than to be done again, or in one lane only
MEDIUM_ROW = 24  # elements of a row that begins several passes, or costly ones: lanes across rows are faster up to there
LONG_ROW = 1024  # beyond, what is done once a row does not matter
TOGETHER = 8  # rows side by side: as many streams of memory
ROWS = 64  # that are summed before their sums are used


def schedule_rows(nest: GroupNest) -> list[Primitive]:
    passes, per_row = passes_of(nest)
    if _are_lanes(nest, passes):
        # What a later pass computes again is the same value, kept in registers.
        written_out = [Unroll(nest.inner[-1].name)] if any(step.stores for step in passes) else []
        return [*across(nest, nest.outer, nest.inner), *written_out]
    rows = nest.size(nest.outer)
    is_shared = nest.time > nest.target.cost.parallel_ns
    in_chunks = rows < 4 * nest.target.limits.cores and len(passes) == 1 and not any(map(in_order, passes[0].reductions))
    if is_shared and nest.inner and in_chunks:
        return [*_partial_rows(nest), *_row(nest, passes)]
    found: list[Primitive] = [*_staged(nest, passes)]
    if _is_worth_vectors(nest, per_row):
        return [*found, *_block_of_rows(nest, is_shared and rows > 1), *_row(nest, passes), *_jammed(nest, passes, ".0")]
    if is_shared and nest.outer and rows > 1:
        found.append(share(nest, nest.outer[0]))
    return [*found, *_row(nest, passes), *_jammed(nest, passes)]


def _are_lanes(nest: GroupNest, passes: Sequence[Pass]) -> bool:
    """Whether vectors run across rows: rows too short to fill one, or little longer.

    What begins anew in each row takes its time: a second pass, an extreme that is found among lanes, a function of a vector that
    is not full. Rows with such are lanes up to MEDIUM_ROW elements.

    What is stored along a row of more than `dense_stride` elements is stored lane by lane then, which must be made up for: by
    work on its elements, or by an extreme that would have to be found among the lanes of each row.
    """
    if not nest.outer or not nest.inner or not all(isinstance(axis.size, int) for axis in nest.inner):
        return False
    extremes = sum(REDUCTIONS[r.node.op].combine in ("max", "min") for step in passes for r in step.reductions)
    work = work_of(s for step in passes for s in step.roots) + FOLDED * extremes
    most = float(MEDIUM_ROW if len(passes) > 1 or work >= COSTLY else SHORT_ROW)
    if any(step.stores for step in passes):
        widest = max(s.dtype.itemsize for s in all_scalars(nest.points))
        most = min(SHORT_ROW, max(nest.target.limits.dense_stride, work / 2), nest.target.limits.vector_bytes // widest - 1)
    return nest.size(nest.inner) <= most and nest.extent(nest.outer[-1]) >= 2 * SHORT_ROW


def _jammed(nest: GroupNest, passes: Sequence[Pass], which: str = "") -> list[Primitive]:
    """Rows side by side: products, each of one element after the other, or what loads or computes the same for every row."""
    if len(passes) > 1 or not nest.inner or not nest.outer:
        return []
    (step,) = passes
    rows = nest.extent(nest.outer[-1])
    if rows > 1 and _shared_work(nest, step) >= COSTLY:
        return [Jam(f"{nest.outer[-1].name}{which}", min(rows, TOGETHER))]
    pays = rows >= TOGETHER if any(map(in_order, step.reductions)) else rows >= 4 * TOGETHER and _shares_loads(nest, step)
    return [Jam(f"{nest.outer[-1].name}{which}", TOGETHER)] if pays else []


def _shares_loads(nest: GroupNest, step: Pass) -> bool:
    """Whether rows are sums of cheap terms of which some are the same in every row: a matrix times a vector."""
    row, along = nest.outer[-1].name, nest.inner[-1].name
    steps = [s for s in nest.load_steps() if s is not None and s.get(along)]
    shared = sum(not s.get(row) for s in steps)
    return 0 < shared < len(steps) <= 3 and not step.stores and work_of(r.operand for r in step.reductions) < COSTLY


def _shared_work(nest: GroupNest, step: Pass) -> float:
    """The work on an element of a row that is the same in every row: the weights of the coordinates of a force."""
    row, inside = set(nest.outer[-1].members), {name for axis in nest.inner for name in axis.members}
    shared = (s for s in reachable(r.operand for r in step.reductions) if s.variables & inside and not s.variables & row)
    return 0.0 if step.stores else work_on(shared)


def _row(nest: GroupNest, passes: Sequence[Pass]) -> list[Primitive]:
    """One loop over the row for each pass: vectors, with the sums of blocks, and then their sum."""
    if not nest.inner:
        return []
    last, block = nest.inner[-1], nest.target.blocks.reduction
    reductions = [r for step in passes for r in step.reductions]
    found: list[Primitive] = []
    if any(map(rounds, reductions)) and nest.extent(last) > 4 * block:
        found.append(RFactor(last.name, block, f"{last.name}b"))
    elif len(nest.inner) > 1 and not all(map(in_order, reductions)):
        found.append(RFactor(last.name))
    return [*found, Vector(last.name)]


def _is_worth_vectors(nest: GroupNest, per_row: Sequence[Stored]) -> bool:
    """Whether what is made of each row's sums, one number a row, takes long beside the sums: an exponential, say."""
    if not nest.outer or nest.extent(nest.outer[-1]) < 2 * SHORT_ROW or not SHORT_ROW // 2 < nest.size(nest.inner) <= LONG_ROW:
        return False
    return work_of(s.scalar for s in per_row) >= COSTLY


def _block_of_rows(nest: GroupNest, is_shared: bool) -> list[Primitive]:
    """The sums of a few rows first, then what is made of them, in vectors."""
    first, rows = nest.outer[0], nest.outer[-1]
    block = f"{rows.name}b"
    found: list[Primitive] = [Split(rows.name, ROWS, block), StageCells(block), Vector(f"{rows.name}.1")]
    if is_shared:
        grain = nest.grain(first)
        found.append(Parallel(block, -(-grain // ROWS)) if first is rows else Parallel(first.name, grain))
    return found


def _partial_rows(nest: GroupNest) -> list[Primitive]:
    """A few long rows: threads sum chunks of a fixed size, and a second nest sums their sums."""
    first = nest.inner[0]
    extent = nest.extent(first)
    row = nest.size(nest.inner) // extent
    chunk = max(1, 4 * nest.target.blocks.chunk // row)
    return [
        RFactor(first.name, chunk, "c0", scope="memory"),
        Parallel("c0.0", nest.grain(first, chunk)),
        Vector("c0.1"),
    ]


# --------------------------------------------------------------------------------------------------------- staging


def _staged(nest: GroupNest, passes: Sequence[Pass]) -> list[Stage]:
    """What later passes over a row would compute again at a price."""

    def home(s: Scalar, work: float, now: int, plan: Plan, known: Mapping[Scalar, str]) -> str:
        return _home(nest, s, now, plan, known) if work >= COSTLY else ""

    return staged(nest, passes, home)


def _home(nest: GroupNest, s: Scalar, now: int, plan: Plan, known: Mapping[Scalar, str]) -> str:
    """Where a staged scalar waits for later passes: where it is stored anyway, in an output that will replace it when
    it has been read for the last time, or in a row of scratch."""
    for name in nest.names_of(plan.passes[now].stores):
        if nest.stored[name].scalar is s:
            return name
    loaded = {t.value for t in nest.loads}
    inside = {name for axis in nest.inner for name in axis.members}
    for name in nest.names_of(store for step in plan.passes[plan.last[s] :] for store in step.stores):
        store = nest.stored[name]
        if store.buffer not in loaded and name not in known.values() and store.scalar.dtype == s.dtype and visits(store, inside):
            return name
    return "row"
