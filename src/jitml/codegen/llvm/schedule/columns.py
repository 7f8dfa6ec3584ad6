"""Schedules of reductions down columns: vectors of columns, blocks of rows in registers, memory read in order."""

from __future__ import annotations

from jitml.codegen.llvm.schedule.lanes import across
from jitml.codegen.llvm.schedule.pointwise import SHORT_ROW, share
from jitml.fusion.schedule.nest import GroupNest, all_scalars
from jitml.fusion.schedule.reduction_passes import Pass, in_order, passes_of
from jitml.kernels.schedule import Jam, Parallel, Primitive, RFactor, Vector

ROW_BLOCK = 16  # rows that a column reduction adds up in registers before it touches its partial sums
SUMS = 24  # vectors of sums, of 32 registers
MOST_JAMMED = 4
MOST_CHUNKS = 16  # of rows, each with a row of sums that is written and read again


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


def schedule_columns(nest: GroupNest) -> list[Primitive]:
    (step,), _ = passes_of(nest)
    rows = nest.size(nest.inner)
    if rows <= ROW_BLOCK or (rows <= 3 * ROW_BLOCK and not _meet_in_cache(nest)):
        # a vector of columns at a time, each summed straight down
        return [*across(nest, nest.outer, nest.inner), *_jammed(nest, step)]
    return _long_columns(nest, step)


def _jammed(nest: GroupNest, step: Pass) -> list[Primitive]:
    """Rows of columns side by side, as many as registers hold sums of, where all of them read the same matrix."""
    if len(nest.outer) < 2 or not step.reductions:
        return []
    rows, columns = nest.outer[-2], nest.outer[-1]
    widest = max(r.dtype.itemsize for r in step.reductions)
    vectors = -(-nest.extent(columns) * widest // nest.target.limits.vector_bytes)
    count = min(MOST_JAMMED, SUMS // (vectors * len(step.reductions)))
    along = [s for s in nest.loads if (nest.views.steps(s.value, s.places) or {}).get(columns.name)]
    is_shared = any(s.variables.isdisjoint(rows.members) for s in along)
    return [Jam(rows.name, count)] if is_shared and 1 < count <= nest.extent(rows) // 4 else []


def _meet_in_cache(nest: GroupNest) -> bool:
    """Whether the rows of something that is read lie so that one column of all of them is too much for the first cache."""
    for s in all_scalars(nest.points):
        steps = (nest.views.steps(s.value, s.places) or {}) if s.kind == "load" else {}
        if any(
            (step := steps.get(axis.name, 0)) and step * s.dtype.itemsize % nest.target.limits.set_bytes == 0
            for axis in nest.inner
        ):
            return True
    return False


def _long_columns(nest: GroupNest, step: Pass) -> list[Primitive]:
    """Blocks of rows are added up in registers, then to a row of sums that stays in cache.

    Where there are many separate matrices (axes before the columns), or rows are to be taken in order, threads take those. Else
    they take chunks of rows, each with a row of sums of its own, and a second nest adds up these.
    """
    rows, columns, lead = nest.inner[0], nest.outer[-1], nest.outer[:-1]
    is_shared = nest.time > nest.target.cost.parallel_ns
    blocks = RFactor(rows.name, ROW_BLOCK, f"{rows.name}b", columns.name)
    found: list[Primitive] = []
    if nest.size(lead) >= 4 * nest.target.limits.cores or any(map(in_order, step.reductions)):
        found.append(blocks)
        if is_shared and lead and nest.extent(lead[0]) > 1:
            found.append(share(nest, lead[0]))
        return [*found, Vector(columns.name)]
    row = nest.size(nest.axes) // nest.extent(rows)
    chunk = max(ROW_BLOCK, nest.target.blocks.chunk // row, -(-nest.extent(rows) // MOST_CHUNKS))
    chunk = -(-chunk // ROW_BLOCK) * ROW_BLOCK
    most = -(-nest.extent(rows) // chunk)
    found.append(RFactor(rows.name, chunk, "c0", scope="memory"))
    if is_shared and most > 1:
        found.append(Parallel("c0.0", nest.grain(rows, chunk)))
    return [*found, RFactor(rows.name, ROW_BLOCK, f"{rows.name}b", f"{columns.name}.0"), Vector(columns.name)]
