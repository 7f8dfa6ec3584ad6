"""jitml: the workloads as they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jitml
from autodiff.workload import Workload

Function = Callable[..., Any]


class Transforms:
    """See `tasks.Transforms`."""

    def grad(self, f: Function, argnums: int | Sequence[int]) -> Function:
        return jitml.grad(f, argnums=argnums if isinstance(argnums, int) else tuple(argnums))

    def jacobian(self, f: Function, argnums: int) -> Function:
        return jitml.jacobian(f, argnums=argnums)

    def rows_jacobian(self, f: Function, argnums: Sequence[int]) -> Function:
        return jitml.vmap(jitml.jacobian(f, argnums=tuple(argnums)))

    def hessian(self, f: Function, argnums: int) -> Function:
        return jitml.hessian(f, argnums=argnums)


def jitted(workload: Workload) -> tuple[Function, Function]:
    """The primal and its derivative, compiled."""
    return jitml.jit(workload.function), jitml.jit(workload.task.of(Transforms(), workload.function))


def compiled_again(workload: Workload, args: tuple[Any, ...]) -> int:
    """From function to machine code; the bytes of intermediate values and results."""
    lowered = jitml.jit(workload.task.of(Transforms(), workload.function)).lower(*args)
    lowered.compile()
    return lowered.program.arena_size + sum(v.aval.nbytes for v in lowered.graph.outputs)
