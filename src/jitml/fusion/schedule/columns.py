"""Column reductions: how does a reduction down columns run?

Vectors of columns, blocks of rows in registers, memory read in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from jitml.fusion.grouping.scalarize import Stored
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.schedule.lanes import across
from jitml.fusion.schedule.nest import SHORT_ROW, GroupNest, all_scalars, chunk_count, chunk_stop, least, write_stores
from jitml.fusion.schedule.passes import Pass, identity, in_order, passes_of, write_sum_of_partials, write_updates
from jitml.kernels.ir import Buffer, Const, Expr, Kind, Load, Store, Var, add, mul

ROW_BLOCK = 16  # rows that a column reduction adds up in registers before it touches its partial sums


def runs_down_columns(nest: GroupNest) -> bool:
    """Whether memory is contiguous across the results rather than along what is reduced."""
    if not nest.outer or not nest.inner:
        return False
    if len(passes_of(nest)[0]) > 1:
        return False
    columns, row = nest.outer[-1], nest.inner[-1]
    if nest.extent(row) <= SHORT_ROW and nest.size(nest.inner) <= 4 * SHORT_ROW and nest.extent(columns) >= 2 * SHORT_ROW:
        return True
    return nest.extent(columns) >= 4 and nest.contiguous_along(columns, row) > nest.contiguous_along(row, columns)


def write_columns(nest: GroupNest) -> None:
    (step,), per_column = passes_of(nest)
    rows = nest.size(nest.inner)
    if rows <= ROW_BLOCK or (rows <= 3 * ROW_BLOCK and not _meet_in_cache(nest)):
        _write_short_columns(nest, step, per_column)
    else:
        _write_long_columns(nest, step, per_column)


def _meet_in_cache(nest: GroupNest) -> bool:
    """Whether the rows of something that is read lie so that one column of all of them is too much for the first cache."""
    for s in all_scalars(nest.points):
        steps = (nest.views.steps(s.value, s.places) or {}) if s.kind == "load" else {}
        apart = [steps.get(axis.name, 0) * s.dtype.itemsize for axis in nest.inner]
        if any(step and step % nest.target.limits.set_bytes == 0 for step in apart):
            return True
    return False


def _write_short_columns(nest: GroupNest, step: Pass, per_column: Sequence[Stored]) -> None:
    """A vector of columns at a time, each summed straight down."""
    with across(nest, nest.outer, nest.inner):
        for r in nest.points.reductions:
            nest.writer.cell(r.cell, identity(r))
        with nest.all_loops(nest.inner):
            write_updates(nest, step)
        write_stores(nest, per_column)


def _write_long_columns(nest: GroupNest, step: Pass, per_column: Sequence[Stored]) -> None:
    """Blocks of rows are added up in registers, then to a row of sums that stays in cache.

    Where there are many separate matrices (axes before the columns), or rows are to be taken in order, threads take those. Else
    they take chunks of rows, each with a row of sums of its own, and a second nest adds up these.
    """
    w, rows, lead = nest.writer, nest.inner[0], nest.outer[:-1]
    (low, high), stop = nest.limits(rows), nest.stop(rows)
    parallel = nest.time > nest.target.cost.parallel_ns
    if nest.size(lead) >= 4 * nest.target.limits.cores or any(map(in_order, step.reductions)):
        columns = nest.outer[-1]
        sums = [Buffer(w.fresh("row"), r.dtype, (columns.extent,)) for r in nest.points.reductions]
        at: tuple[Expr, ...] = (Var(columns.name),)
        with ExitStack() as loops:
            for axis in lead:
                kind: Kind = "parallel" if parallel and axis is lead[0] and nest.extent(axis) > 1 else "serial"
                grain = nest.grain(nest.extent(axis)) if kind == "parallel" else 1
                loops.enter_context(w.loop(axis.name, *nest.span(axis), kind, grain=grain, binds=axis.members))
            for buffer in sums:
                w.scratch(buffer)
            _write_row_blocks(nest, step, [b.name for b in sums], at, Const(low), stop)
            with nest.all_loops([columns], "vector"):
                for r, buffer in zip(nest.points.reductions, sums):
                    w.cell(r.cell, Load(buffer.name, at, r.dtype))
                write_stores(nest, per_column)
        return
    row = nest.size(nest.axes) // (high - low)
    chunk = -(-max(ROW_BLOCK, nest.target.blocks.chunk // row) // ROW_BLOCK) * ROW_BLOCK
    count, most = chunk_count(chunk, low, stop), -(-(high - low) // chunk)
    partial = [nest.temporary(r.dtype, (most, *map(nest.extent, nest.outer))) for r in nest.points.reductions]
    place = tuple(Var(axis.name) - nest.limits(axis)[0] for axis in nest.outer)
    kind = "parallel" if parallel and most > 1 else "serial"
    with w.loop("c0", 0, count, kind, grain=nest.grain(most) if kind == "parallel" else 1) as c, nest.all_loops(lead):
        start = add(mul(c, chunk), low)
        _write_row_blocks(nest, step, partial, (c, *place), start, chunk_stop(start, chunk, low, stop))
    with nest.all_loops(nest.outer, "vector"):
        write_sum_of_partials(nest, partial, count, place, "serial")
        write_stores(nest, per_column)


def _write_row_blocks(nest: GroupNest, step: Pass, sums: Sequence[str], at: tuple[Expr, ...], start: Expr, stop: Expr) -> None:
    """Add up rows start:stop of every column into `sums[at]`, a block of rows in registers at a time."""
    w, rows, columns = nest.writer, nest.inner[0], nest.outer[-1]
    first, end = nest.span(columns)
    with w.loop(columns.name, first, end, "vector", binds=columns.members):
        for r, buffer in zip(nest.points.reductions, sums):
            w.add(Store(buffer, at, identity(r)))
    with (
        w.loop(f"{rows.name}b", start, stop, "serial", step=ROW_BLOCK) as b,
        w.loop(columns.name, first, end, "vector", binds=columns.members),
    ):
        for r, buffer in zip(nest.points.reductions, sums):
            w.cell(r.cell, Load(buffer, at, r.dtype) if in_order(r) else identity(r))
        upper = least(add(b, ROW_BLOCK), nest.stop(rows))
        with w.loop(rows.name, b, upper, "serial", binds=rows.members), nest.all_loops(nest.inner[1:]):
            write_updates(nest, step)
        for r, buffer in zip(nest.points.reductions, sums):
            combine = None if in_order(r) else REDUCTIONS[r.node.op].combine
            w.add(Store(buffer, at, Var(r.cell, r.dtype), combine))
