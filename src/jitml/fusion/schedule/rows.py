"""Row reductions: how does a reduction along rows run?  A row at a time, in cache, in as many passes as it needs.

What a later pass would compute again at a price waits in the output or in a row of scratch. What is made of the sums of short
rows at a price is done for a block of rows at once; rows that hardly fill a vector are its lanes (`lanes.py`). A few long rows
are cut into chunks of a fixed size for threads.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import ExitStack

from jitml.fusion.grouping.scalarize import Stored
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.jam import jam
from jitml.fusion.schedule.lanes import across
from jitml.fusion.schedule.nest import SHORT_ROW, GroupNest, all_scalars, chunk_count, chunk_stop, reachable, write_stores
from jitml.fusion.schedule.passes import (
    Pass,
    identity,
    in_order,
    passes_of,
    visits,
    write_pass_at_point,
    write_sum_of_partials,
    write_updates,
)
from jitml.fusion.schedule.views import Axis
from jitml.fusion.schedule.writer import LoopWriter
from jitml.kernels import metrics
from jitml.kernels.ir import Apply, Buffer, Expr, Kind, Load, Loop, Store, Update, Var, add, mul

FOLDED = 16.0  # work of an extreme of a vector's lanes, NaNs included
COSTLY = 8.0  # work that is worth a place in memory rather than to be done again, or in one lane only
LONG_ROW = 1024  # beyond, what is done once a row does not matter
TOGETHER = 8  # rows side by side: as many streams of memory
ROWS = 64  # that are summed before their sums are used


def write_rows(nest: GroupNest) -> None:
    w, target = nest.writer, nest.target
    passes, per_row = passes_of(nest)
    if _are_lanes(nest, passes):
        with across(nest, nest.outer, nest.inner):
            _write_row_of_lanes(nest, passes)
            write_stores(nest, per_row)
        return
    rows = nest.size(nest.outer)
    parallel = nest.time > target.cost.parallel_ns
    in_chunks = rows < 4 * target.limits.cores and len(passes) == 1 and not any(map(in_order, passes[0].reductions))
    if parallel and nest.inner and in_chunks:
        _write_partial_rows(nest, passes[0], per_row)
        return
    blocked = _is_worth_vectors(nest, per_row)
    with ExitStack() as loops:
        for axis in nest.outer:
            kind: Kind = "parallel" if parallel and axis is nest.outer[0] and rows > 1 else "serial"
            grain = nest.grain(nest.extent(axis)) if kind == "parallel" else 1
            if blocked and axis is nest.outer[-1]:
                _write_block_of_rows(nest, passes, per_row, kind, -(-grain // ROWS))
                return
            if axis is nest.outer[-1] and _is_jammed(nest, passes):
                loops.callback(_jam_last, w)
            loops.enter_context(w.loop(axis.name, *nest.span(axis), kind, grain=grain, binds=axis.members))
        _write_row(nest, passes)
        write_stores(nest, per_row)


def _are_lanes(nest: GroupNest, passes: Sequence[Pass]) -> bool:
    """Whether vectors run across rows, each of them written out: rows too short to fill one, or little longer.

    What is stored along a row of more than `dense_stride` elements is stored lane by lane then, which must be made up for: by
    work on its elements, or by an extreme that would have to be found among the lanes of each row.
    """
    if not nest.outer or not nest.inner or not all(isinstance(axis.size, int) for axis in nest.inner):
        return False
    most = float(SHORT_ROW)
    if any(step.stores for step in passes):
        extremes = sum(REDUCTIONS[r.node.op].combine in ("max", "min") for step in passes for r in step.reductions)
        work = work_of(s for step in passes for s in _roots(step)) + FOLDED * extremes
        widest = max(s.dtype.itemsize for s in all_scalars(nest.points))
        most = min(most, max(nest.target.limits.dense_stride, work / 2), nest.target.limits.vector_bytes // widest - 1)
    return nest.size(nest.inner) <= most and nest.extent(nest.outer[-1]) >= 2 * SHORT_ROW


def _is_jammed(nest: GroupNest, passes: Sequence[Pass]) -> bool:
    """Whether rows run side by side: products, each of one element after the other, or what loads the same for every row."""
    if len(passes) > 1 or not nest.inner:
        return False
    (step,) = passes
    rows = nest.extent(nest.outer[-1])
    return rows >= TOGETHER if any(map(in_order, step.reductions)) else rows >= 4 * TOGETHER and _shares_loads(nest, step)


def _shares_loads(nest: GroupNest, step: Pass) -> bool:
    """Whether rows are sums of cheap terms of which some are the same in every row: a matrix times a vector."""
    row, along = nest.outer[-1].name, nest.inner[-1].name
    steps = [s for s in nest.load_steps() if s is not None and s.get(along)]
    shared = sum(not s.get(row) for s in steps)
    return 0 < shared < len(steps) <= 3 and not step.stores and work_of(r.operand for r in step.reductions) < COSTLY


def _jam_last(w: LoopWriter) -> None:
    """Put the rows of the loop that was written last side by side."""
    statements = w.levels[-1].block.statements
    loop = statements[-1]
    assert isinstance(loop, Loop)
    if (together := jam(loop, TOGETHER)) is not None:
        statements[-1:] = together


def _write_row(nest: GroupNest, passes: Sequence[Pass]) -> None:
    plan = Plan(passes)
    for k, step in enumerate(passes):
        for r in step.reductions:
            nest.writer.cell(r.cell, identity(r))
        staged = _to_stage(nest, k, plan)
        homes = [_stage_home(nest, s, k, plan) for s in staged]
        _write_pass(nest, step, staged, homes, nest.inner, None)


def _write_row_of_lanes(nest: GroupNest, passes: Sequence[Pass]) -> None:
    """One element after the other, written out: what a later pass computes again is the same value, kept in registers."""
    for step in passes:
        for r in step.reductions:
            nest.writer.cell(r.cell, identity(r))
        with nest.all_loops(nest.inner, "unroll"):
            write_updates(nest, step)


class Plan:
    """In which passes over a row are scalars computed, if nothing is kept from one to the next?

    first, last: of each scalar, a pass.
    ends: the last pass that stores or sums it, and not only what is made of it.
    users: what is made of it.
    """

    def __init__(self, passes: Sequence[Pass]) -> None:
        self.passes = passes
        self.first: dict[Scalar, int] = {}
        self.last: dict[Scalar, int] = {}
        self.users: dict[Scalar, list[Scalar]] = {}
        self.ends = {s: k for k, step in enumerate(passes) for s in _roots(step)}
        for k, step in enumerate(passes):
            for s in reachable(_roots(step), self.first):
                self.first[s] = k
                for a in s.args:
                    self.users.setdefault(a, []).append(s)
        for k, step in reversed([*enumerate(passes)]):
            self.last |= dict.fromkeys(reachable(_roots(step), self.last), k)


def _is_worth_vectors(nest: GroupNest, per_row: Sequence[Stored]) -> bool:
    """Whether what is made of each row's sums, one number a row, takes long beside the sums: an exponential, say."""
    if not nest.outer or nest.extent(nest.outer[-1]) < 2 * SHORT_ROW or not SHORT_ROW // 2 < nest.size(nest.inner) <= LONG_ROW:
        return False
    return work_of(s.scalar for s in per_row) >= COSTLY


def _write_block_of_rows(nest: GroupNest, passes: Sequence[Pass], per_row: Sequence[Stored], kind: Kind, grain: int) -> None:
    """The sums of a few rows first, then what is made of them, in vectors."""
    w, rows = nest.writer, nest.outer[-1]
    first, stop = nest.span(rows)
    reductions = [r for step in passes for r in step.reductions]
    with w.loop(f"{rows.name}b", first, stop, kind, step=ROWS, grain=grain) as b:
        limits = b, chunk_stop(b, ROWS, nest.limits(rows)[0], stop)
        sums = [Buffer(w.fresh("sums"), r.dtype, (ROWS,)) for r in reductions]
        for buffer in sums:
            w.scratch(buffer)
        at = (Var(rows.name) - b,)
        with w.loop(rows.name, *limits, "serial", binds=rows.members):
            _write_row(nest, passes)
            for r, buffer in zip(reductions, sums):
                w.add(Store(buffer.name, at, Var(r.cell, r.dtype)))
        if _is_jammed(nest, passes):
            _jam_last(w)
        with w.loop(rows.name, *limits, "vector", binds=rows.members):
            for r, buffer in zip(reductions, sums):
                w.cell(r.cell, Load(buffer.name, at, r.dtype))
            write_stores(nest, per_row)


def _to_stage(nest: GroupNest, now: int, plan: Plan) -> list[Scalar]:
    """What a later pass over the row would compute again at a price: the topmost such scalars."""
    if not nest.inner:
        return []
    inside = {name for axis in nest.inner for name in axis.members}
    known = nest.writer.known
    here = reachable(_roots(plan.passes[now]), known)
    again = [s for s in here if plan.ends.get(s, 0) > now or any(plan.first[user] > now for user in plan.users.get(s, ()))]
    return [s for s in again if s.variables & inside and work_of([s], known) >= COSTLY]


def work_of(scalars: Iterable[Scalar], known: Container[Scalar] = ()) -> float:
    return sum(metrics.WORK.get(a.value, 1.0) for a in reachable(scalars, known) if a.kind == "apply")


def _roots(step: Pass) -> list[Scalar]:
    return [r.operand for r in step.reductions] + [s.scalar for s in step.stores]


def _write_pass(
    nest: GroupNest,
    step: Pass,
    staged: Sequence[Scalar],
    homes: Sequence[tuple[str, tuple[Expr, ...]]],
    inner: Sequence[Axis],
    limits: tuple[Expr, Expr] | None,
) -> None:
    """One loop over the row (or over `limits` of its first axis): the sums of blocks, then their sum."""
    w = nest.writer
    if not inner:
        write_pass_at_point(nest, step, staged, homes, [r.cell for r in step.reductions])
    else:
        *outer, last = inner
        block = nest.target.blocks.reduction
        with ExitStack() as loops:
            for axis in outer:
                bounds = nest.span(axis) if limits is None or axis is not inner[0] else limits
                loops.enter_context(w.loop(axis.name, *bounds, "serial", binds=axis.members))
            first, stop = nest.span(last) if limits is None or outer else limits
            blocked = bool(step.reductions) and nest.extent(last) > 4 * block
            if blocked:
                b = loops.enter_context(w.loop(f"{last.name}b", first, stop, "serial", step=block))
                first, stop = b, Apply("minimum", (add(b, block), stop))
            apart = [r for r in step.reductions if (blocked or outer) and not in_order(r)]
            for r in apart:
                w.cell(f"{r.cell}b", identity(r))
            cells = [f"{r.cell}b" if r in apart else r.cell for r in step.reductions]
            with w.loop(last.name, first, stop, "vector", binds=last.members):
                write_pass_at_point(nest, step, staged, homes, cells)
            for r in apart:
                w.add(Update(r.cell, Var(f"{r.cell}b", r.dtype), REDUCTIONS[r.node.op].combine))
    for s, (buffer, at) in zip(staged, homes):
        w.stage(s, Load(buffer, at, s.dtype))


def _stage_home(nest: GroupNest, s: Scalar, now: int, plan: Plan) -> tuple[str, tuple[Expr, ...]]:
    """Where a staged scalar waits for later passes: where it is stored anyway, in an output that will replace it when
    it has been read for the last time, or in a row of scratch."""
    w = nest.writer
    for store in plan.passes[now].stores:
        if store.scalar is s:
            return store.buffer, tuple(e for e in nest.views.at(store.buffer, store.at) if e is not None)
    taken = {e.buffer for e, _ in w.known.values() if isinstance(e, Load)}
    loaded = {t.value for t in all_scalars(nest.points) if t.kind == "load"}
    inside = {name for axis in nest.inner for name in axis.members}
    for store in (store for step in plan.passes[plan.last[s] :] for store in step.stores):
        free = store.buffer not in taken | loaded | w.homes
        if free and store.scalar.dtype == s.dtype and visits(store, inside):
            w.homes.add(store.buffer)
            at = nest.views.at(store.buffer, store.at)
            return store.buffer, tuple(e for e in at if e is not None)
    name = w.fresh("row")
    w.scratch(Buffer(name, s.dtype, tuple(axis.extent for axis in nest.inner)))
    return name, tuple(Var(axis.name) for axis in nest.inner)


def _write_partial_rows(nest: GroupNest, step: Pass, per_row: Sequence[Stored]) -> None:
    """A few long rows: threads sum chunks of a fixed size, and a second nest sums their sums."""
    w, first = nest.writer, nest.inner[0]
    (low, high), stop = nest.limits(first), nest.stop(first)
    row = nest.size(nest.inner) // (high - low)
    chunk = max(1, 4 * nest.target.blocks.chunk // row)
    count, most = chunk_count(chunk, low, stop), -(-(high - low) // chunk)
    partial = [nest.temporary(r.dtype, (most, *map(nest.extent, nest.outer))) for r in nest.points.reductions]
    at = tuple(Var(axis.name) - nest.limits(axis)[0] for axis in nest.outer)
    with w.loop("c0", 0, count, "parallel", grain=nest.grain(most)) as c, nest.all_loops(nest.outer):
        start = add(mul(c, chunk), low)
        for r in nest.points.reductions:
            w.cell(r.cell, identity(r))
        _write_pass(nest, step, (), (), nest.inner, (start, chunk_stop(start, chunk, low, stop)))
        for r, buffer in zip(nest.points.reductions, partial):
            w.add(Store(buffer, (c, *at), Var(r.cell, r.dtype)))
    with nest.all_loops(nest.outer):
        write_sum_of_partials(nest, partial, count, at, "vector")
        write_stores(nest, per_row)
