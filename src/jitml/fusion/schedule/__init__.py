"""Scheduling: how do a group's loops run?  Order, chunks, tiles, vectors and threads, chosen by a few rules from the machine.

Pointwise loops run in the order of what they store, the last loop as vectors; big ones are cut into chunks for threads.
A reduction along contiguous rows keeps a row in cache and makes one pass per dependence (softmax: max, sum, quotient); rows that
hardly fill a vector are lanes of it.
One down columns keeps vectors of columns and walks blocks of rows, so that memory is read in order. Long sums are sums
of block sums, with blocks of a fixed size: more accurate than a straight sum, and the same for any number of threads.
"""

from __future__ import annotations

from jitml.fusion.schedule.columns import runs_down_columns, write_columns
from jitml.fusion.schedule.nest import GroupNest, all_scalars
from jitml.fusion.schedule.pointwise import write_points
from jitml.fusion.schedule.rows import write_rows
from jitml.fusion.schedule.tiny import is_tiny_inside, write_unrolled

__all__ = ["GroupNest", "all_scalars", "write"]


def write(nest: GroupNest) -> None:
    """Write one box of a group."""
    if not nest.points.reductions:
        write_points(nest)
    elif is_tiny_inside(nest):
        write_unrolled(nest)
    elif runs_down_columns(nest):
        write_columns(nest)
    else:
        write_rows(nest)
