"""Scheduling heuristics for GPUs: which loops do blocks of threads take, and which the threads of a block?

Neighbouring threads touch neighbouring elements, or the same one, wherever one axis of a loop nest is contiguous: across
columns, along rows, or along what is stored. Each thread accesses 16 bytes at a time where rows allow it. A row that is reduced
has a block, or one thread if it is short; a few long ones are cut into chunks of fixed size, and a second nest adds up what these
have come to. So the order of a sum depends on its shape alone, and no thread adds up more than some hundred elements one by one.
"""

from __future__ import annotations

from jitml.codegen.cuda.schedule.columns import runs_down_columns, schedule_columns
from jitml.codegen.cuda.schedule.pointwise import schedule_points
from jitml.codegen.cuda.schedule.rows import schedule_rows
from jitml.codegen.cuda.schedule.statements import schedule_statements
from jitml.fusion.schedule import GroupNest, Scheduler
from jitml.kernels.schedule import Primitive


def schedule_group(nest: GroupNest) -> tuple[Primitive, ...]:
    """The schedule of one box of a group."""
    if not nest.size(nest.axes):
        return ()
    if not nest.points.reductions:
        return tuple(schedule_points(nest))
    if runs_down_columns(nest):
        return tuple(schedule_columns(nest))
    return tuple(schedule_rows(nest))


SCHEDULER = Scheduler(schedule_group, schedule_statements, schedule_statements)
