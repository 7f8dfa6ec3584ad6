"""Fuse a graph, plan its memory, run it by the interpreter of programs, and compare with the graph's own answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitml.codegen.interpreter import run
from jitml.codegen.llvm.schedule import SCHEDULER
from jitml.fusion import fuse as fusion
from jitml.fusion.fuse import DEFAULT
from jitml.fusion.schedule import Scheduler
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.text.parser import parse
from jitml.kernels.program import Call, KernelProgram
from jitml.kernels.schedule import Schedule
from jitml.kernels.target import Cost, Target
from jitml.kernels.text.printer import show
from jitml.kernels.verify.program import verify_program
from jitml.kernels.verify.target import verify_for
from jitml.memory.plan import plan

Array = np.ndarray[Any, Any]


def fuse(graph: Graph, **options: Any) -> KernelProgram:
    """`fusion.fuse` with the loops that the CPU's back end chooses."""
    return fusion.fuse(graph, **{"scheduler": SCHEDULER, **options})


def draw(graph: Graph, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for v in graph.inputs:
        if v.dtype.kind == "f":
            arrays.append(rng.normal(size=v.shape).astype(v.dtype))
        elif v.dtype.kind == "b":
            arrays.append(np.asarray(rng.random(v.shape) < 0.5))
        else:
            arrays.append(np.asarray(rng.integers(0, 5, v.shape)).astype(v.dtype))
    return arrays


# Everything is big to this target: small graphs take the paths of large ones.
TINY = Target(cost=Cost(close_bytes=256, parallel_ns=1.0, grain_ns=0.1, memory_bandwidth=0.5, cache_bandwidth=1.0))


def fuse_and_check(
    source: str | Graph,
    args: Sequence[Array] | None = None,
    *,
    rtol: float = 1e-12,
    target: Target = DEFAULT,
    scheduler: Scheduler = SCHEDULER,
    schedules: Mapping[str, Schedule] | None = None,
) -> KernelProgram:
    """The fused program, after its answer was compared with the graph's."""
    graph = parse(source) if isinstance(source, str) else source
    args = draw(graph) if args is None else args
    program = verify_for(verify_program(fuse(graph, target=target, scheduler=scheduler, schedules=schedules)), target)
    with np.errstate(all="ignore"):
        got = run(plan(program), [np.array(a, order="C") for a in args])
    for g, expected in zip(got, interpret(graph, args), strict=True):
        assert g.dtype == expected.dtype
        assert g.shape == expected.shape
        np.testing.assert_allclose(g, expected, rtol=rtol, atol=4e-3 if g.dtype == np.float16 else 1e-12)
    return program


def text(program: KernelProgram) -> str:
    return "\n".join(str(s.name) if isinstance(s, Call) else show(s) for s in program.steps)
