"""Whole texts of programs: kernels, library calls and what the runtime adds, as one source; and what runs it step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import CallPlan
from jitml.codegen.cuda.emit.program import emit_program
from jitml.codegen.cuda.module import CudaModule
from jitml.kernels.program import Call, Region
from jitml.memory.program import Program

SET_INDEX = "ji_set_index"
_SET_INDEX = f"""// The runtime's: the number of a loop's iteration.
extern "C" __global__ void {SET_INDEX}(long long* index, long long value) {{ *index = value; }}
"""


@dataclass(frozen=True, slots=True)
class CudaText:
    """
    Args:
        source: all of it.
        module: the kernels' part.
        calls: what becomes of library calls, those of regions included, by their `id`.
    """

    source: str
    module: CudaModule
    calls: Mapping[int, CallPlan]


def write_text(program: Program) -> CudaText:
    """The CUDA C++ of a program; no device is needed."""
    module = emit_program(program)
    calls = {id(call): plan_call(call, around.kernels, name) for name, call, around in calls_in(program, "call")}
    templates = dict.fromkeys(text for plan in calls.values() for text in plan.templates)
    parts = [module.source, *templates, *(plan.source for plan in calls.values())]
    if _has_index(program):
        parts.append(_SET_INDEX)
    return CudaText("\n".join(part for part in parts if part), module, calls)


def calls_in(program: Program, path: str) -> Iterator[tuple[str, Call, Program]]:
    """Library calls of a program and its regions: a name for each, the call, and the program that it stands in."""
    for n, step in enumerate(program.kernels.steps):
        if isinstance(step, Call):
            yield f"{path}_{n}_{step.name}", step, program
        elif isinstance(step, Region):
            for k, body in enumerate(program.bodies[step.name]):
                yield from calls_in(body, f"{path}_{n}_{k}")


def _has_index(program: Program) -> bool:
    regions = [step for step in program.kernels.steps if isinstance(step, Region)]
    return any(r.index is not None or any(map(_has_index, program.bodies[r.name])) for r in regions)
