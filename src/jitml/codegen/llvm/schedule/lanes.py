"""Schedules of rows as lanes: rows that fill no vector run side by side in one, each written out inside.

A matrix of points in space, colours or the odds of three classes has rows of two to four elements. A vector along such a row is
mostly idle, and starts anew for each; one across rows is full, though its loads are strided.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.llvm.schedule.pointwise import share, share_chunks
from jitml.fusion.schedule.memory_views import Axis
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.schedule import Primitive, Reorder, Vector

CHUNK = 512  # rows; threads take some multiple of them at once


def across(nest: GroupNest, rows: Sequence[Axis], row: Sequence[Axis]) -> list[Primitive]:
    """Loops over rows of which the last is a vector.

    Threads share an axis that has steps enough for all of them, or chunks of the last one: that loop comes first.
    """
    *lead, last = rows
    found: list[Primitive] = []
    if nest.time > nest.target.cost.parallel_ns:
        size = max(CHUNK, nest.target.blocks.chunk // max(1, nest.size(row)) // CHUNK * CHUNK)
        shared = max(lead, key=nest.extent, default=None)
        if nest.extent(last) > size and (shared is None or nest.extent(shared) < 4 * nest.target.limits.cores):
            found += share_chunks(nest, last, size, rows)
        elif shared is not None:
            if shared is not lead[0]:
                found.append(Reorder((shared.name, *(axis.name for axis in lead[: lead.index(shared)]))))
            found.append(share(nest, shared))
    return [*found, Vector(last.name)]
