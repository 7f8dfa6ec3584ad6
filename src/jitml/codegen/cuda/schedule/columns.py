"""Schedules of reductions down columns: threads across columns, so that a warp reads a stretch of one row after the other.

Where there are too few columns to fill the device, chunks of rows are summed side by side, and a second nest adds up their sums.
"""

from __future__ import annotations

from jitml.codegen.cuda.schedule.spread import NEIGHBOURS, Span, lanes, spans, spread
from jitml.codegen.cuda.target import PROCESSORS, THREADS, WARP
from jitml.fusion.schedule.nest import GroupNest
from jitml.fusion.schedule.reduction_passes import in_order, passes_of
from jitml.kernels.schedule import BindLoop, Primitive, RFactor, Split, Unroll, Vector

ROWS = 32  # that are summed one after the other before their sum joins a longer one
MOST_ROWS = 4096  # of one chunk
FEW_COLUMNS = 8  # a warp that reads so few columns leaves the rest of each line to others
BUSY = PROCESSORS * 2048  # threads that keep the device busy
SHORT_ROW = 128  # bytes of a row that one thread takes
WRITTEN_OUT = 16  # elements of a row that is written out, so that what several passes need stays in registers


def runs_down_columns(nest: GroupNest) -> bool:
    """Whether memory is contiguous across the results rather than along what is reduced, or must be taken in order."""
    if not nest.outer:
        return False
    if not nest.inner or any(map(in_order, nest.points.reductions)) or _is_short(nest):
        return True
    columns, row = nest.outer[-1], nest.inner[-1]
    down, along = (nest.contiguous_along(x, y, NEIGHBOURS) for x, y in ((columns, row), (row, columns)))
    return nest.extent(columns) >= FEW_COLUMNS and down > along


def _is_short(nest: GroupNest) -> bool:
    """Whether rows are so short that a thread takes each."""
    widest = max((s.dtype.itemsize for s in nest.loads), default=1)
    return nest.size(nest.inner) * widest <= SHORT_ROW and nest.size(nest.outer) >= THREADS


def schedule_columns(nest: GroupNest) -> list[Primitive]:
    """One thread for each result."""
    outer = spans(nest, nest.outer)
    if not nest.is_apart:
        return []
    if not nest.inner:
        return spread(outer)
    passes, _ = passes_of(nest)
    ordered = any(map(in_order, nest.points.reductions))
    first, size = nest.inner[0], nest.size(nest.inner)
    if ordered or len(passes) > 1 or size <= ROWS:
        return [*_sums_of_sums(nest, nest.extent(first)), *spread(outer), *_written_out(nest)]
    columns, rows = nest.size(nest.outer), nest.extent(first)
    chunks = max(BUSY // columns, -(-rows // MOST_ROWS))
    chunk = max(1, -(-rows // max(1, chunks) // ROWS) * ROWS if rows > ROWS else 1)
    most = -(-rows // chunk)
    if most < 2:
        return [*_sums_of_sums(nest, rows), *spread(outer)]
    stores = bool(passes[0].stores)
    across = [Span("c0.0", most, isinstance(first.size, int), not stores), *spans(nest, nest.outer, ".0", stores=stores)]
    chunked = RFactor(first.name, chunk, "c0", scope="memory")
    # Loops of the second nest come first: those of the first one may be fused, and names count the loops that are left.
    return [chunked, *totals(nest, most), *_sums_of_sums(nest, chunk), *spread(across)]


def _written_out(nest: GroupNest) -> list[Primitive]:
    """Short rows without a loop, in whole vectors where they are made of such."""
    if not all(isinstance(axis.size, int) for axis in nest.inner):
        return []
    last, size = nest.inner[-1], nest.size(nest.inner)
    width = lanes(nest, last, alone=False)
    if len(nest.inner) == 1 and width > 1 and _is_short(nest) and not any(map(in_order, nest.points.reductions)):
        piece = f"{last.name}v"
        return [Split(last.name, width, piece), Unroll(piece), Vector(last.name)]
    return [Unroll(axis.name) for axis in nest.inner] if size <= WRITTEN_OUT else []


def _sums_of_sums(nest: GroupNest, rows: int) -> list[Primitive]:
    """Long sums are sums of the sums of a few rows."""
    first, rest = nest.inner[0], nest.size(nest.inner[1:])
    if any(map(in_order, nest.points.reductions)) or rows * rest <= 2 * ROWS:
        return []
    return [RFactor(first.name, max(1, ROWS // rest), f"{first.name}b")]


def totals(nest: GroupNest, chunks: int) -> list[Primitive]:
    """The second nest, which adds up what chunks have come to: a thread for each result if there are many, else a block."""
    if nest.size(nest.outer) >= PROCESSORS * WARP or chunks <= min(2 * ROWS, nest.size(nest.outer)):
        return spread(spans(nest, nest.outer, ".1"), tag="t")
    return [*(BindLoop(f"{axis.name}.1", "block") for axis in nest.outer), BindLoop("c0.1", "thread")]
