"""Schedules of loops that an op has written itself: a sort, a scan, a scatter, a copy.

Innermost loops whose iterations are proven to run in any order are vectors. Threads share the one loop that is all of a kernel,
if that is worth it.
"""

from __future__ import annotations

from jitml.fusion.schedule.primitives.statements import loop_names
from jitml.kernels.analysis.dependence import accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.ir import Alloc, Check, Kernel, Let, Loop, While, walk
from jitml.kernels.schedule import Parallel, Primitive, Vector
from jitml.kernels.target import Target


def schedule_op_loops(kernel: Kernel, target: Target, ns: float) -> tuple[Primitive, ...]:
    """
    Args:
        ns: how long the loops take, or so, one iteration after the other.
    """
    known = accesses(kernel)
    names = loop_names(known)
    whole = [(k,) for k, stmt in enumerate(kernel.body) if not isinstance(stmt, Let)]
    found: list[Primitive] = []
    for path, loop in known.loops.items():
        if not isinstance(loop, Loop):
            continue
        is_innermost = not any(isinstance(s, (Loop, While, Alloc, Check)) for s in walk(loop.body))
        pays = [path] == whole and ns > target.cost.parallel_ns and known.last[path] != 0
        if not (is_innermost or pays) or any(loop_races(loop, path, known)):
            continue
        if is_innermost:
            found.append(Vector(names[path]))
        else:
            most = known.last[path] or 0
            found.append(Parallel(names[path], max(1, round(target.cost.grain_ns * (most + 1) / ns))))
    return tuple(found)
