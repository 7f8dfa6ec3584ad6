"""Scheduling heuristics: which schedule suits a group, on a processor with vectors, caches and a few cores?

Pointwise loops run in the order of what they store, the last loop as vectors; big ones are cut into chunks for threads.
A reduction along contiguous rows keeps a row in cache and makes one pass per dependence (softmax: max, sum, quotient); rows that
hardly fill a vector are lanes of it.
One down columns keeps vectors of columns and walks blocks of rows, so that memory is read in order. Long sums are sums
of block sums, with blocks of a fixed size: more accurate than a straight sum, and the same for any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitml.codegen.llvm.schedule.columns import runs_down_columns, schedule_columns
from jitml.codegen.llvm.schedule.pointwise import schedule_points
from jitml.codegen.llvm.schedule.rows import schedule_rows
from jitml.codegen.llvm.schedule.tiny import is_tiny_inside, schedule_tiny
from jitml.fusion.schedule import GroupNest, Scheduler
from jitml.imports.late import late
from jitml.kernels.ir import Kernel
from jitml.kernels.schedule import Primitive
from jitml.kernels.target import Target

if TYPE_CHECKING:  # they bring the analysis of dependences
    from jitml.codegen.llvm.schedule import op_loops, scalar_loops
else:
    op_loops, scalar_loops = late("jitml.codegen.llvm.schedule.op_loops"), late("jitml.codegen.llvm.schedule.scalar_loops")


def schedule_group(nest: GroupNest) -> tuple[Primitive, ...]:
    """The schedule of one box of a group."""
    if not nest.points.reductions:
        return tuple(schedule_points(nest))
    if is_tiny_inside(nest):
        return tuple(schedule_tiny(nest))
    if runs_down_columns(nest):
        return tuple(schedule_columns(nest))
    return tuple(schedule_rows(nest))


def schedule_op_loops(kernel: Kernel, target: Target, ns: float) -> tuple[Primitive, ...]:
    return op_loops.schedule_op_loops(kernel, target, ns)


def schedule_scalars(kernel: Kernel, target: Target) -> tuple[Primitive, ...]:
    return scalar_loops.schedule_scalars(kernel, target)


SCHEDULER = Scheduler(schedule_group, schedule_op_loops, schedule_scalars)
