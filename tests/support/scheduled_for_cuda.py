"""The CUDA back end's loops, run by the interpreter: kernels are grouped, scheduled and checked for that target, and need no GPU."""

from __future__ import annotations

from jitml.codegen.cuda.schedule import schedule
from jitml.codegen.cuda.target import cuda_target
from jitml.codegen.interpreted import Interpreter
from jitml.fusion.schedule.nest import GroupNest
from jitml.kernels.schedule import Primitive


class ScheduledForCuda(Interpreter):
    name = "cuda loops"
    target = cuda_target()

    def schedule(self, nest: GroupNest) -> tuple[Primitive, ...]:
        return schedule(nest)


BACKEND = ScheduledForCuda()
