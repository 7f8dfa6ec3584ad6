"""Whole texts of programs: kernels, library calls and what the runtime adds, as one source; and what the host does meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import Array, CallPlan, HostWork, Means
from jitml.codegen.cuda.emit.functions import ScalarFunctions
from jitml.codegen.cuda.emit.program import draws, emit_program
from jitml.codegen.cuda.module import CudaModule, Launch
from jitml.kernels.interpret import compile_kernel
from jitml.kernels.ir import Kernel
from jitml.kernels.program import Call, Region
from jitml.memory.program import Program
from jitml.records import dataclass

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
        calls: what becomes of library calls, and of kernels that draw random numbers in loops, by their `id`: the latter run on
            the host, as Python. Those of regions are included.
        steps: the `id` of each, in the order of the program; for a region, those of its bodies.
    """

    source: str
    module: CudaModule
    calls: Mapping[int, CallPlan]
    steps: tuple[int, ...]

    @property
    def error_words(self) -> int:
        """Of the error record, which is there where a function looks at it: checks in loops that never run are not written."""
        own = chain.from_iterable(self.module.launches.values())
        others = chain.from_iterable(plan.work for plan in self.calls.values())
        looks = any(isinstance(work, Launch) and work.has_error for work in chain(own, others))
        return self.module.error_words if looks else 0


def write_text(program: Program, fastmath: frozenset[str] = frozenset()) -> CudaText:
    """The CUDA C++ of a program; no device is needed.

    Args:
        fastmath: flags that mean something to products: "tf32", and those of `calls/epilogues.py`.
    """
    means = Means(ScalarFunctions(), fastmath)
    module = emit_program(program, functions=means.functions)
    written = len(means.functions.definitions)
    calls: dict[int, CallPlan] = {}
    sources: list[str] = []
    checks = [*module.checks]
    for name, step, around in _steps_in(program, "call"):
        if isinstance(step, Call):
            plan = plan_call(step, around.kernels, name, means)
        else:
            plan = CallPlan(work=(_on_host(step),))
        calls[id(step)] = plan
        sources.append(plan.numbered(name, len(checks) + 1))
        checks += plan.checks
    templates = dict.fromkeys(text for plan in calls.values() for text in plan.templates)
    parts = [module.source, *means.functions.definitions[written:], *templates, *sources]
    if _has_index(program):
        parts.append(_SET_INDEX)
    source = "\n".join(part for part in parts if part)
    return CudaText(source, CudaModule(source, module.launches, tuple(checks)), calls, tuple(_in_order(program)))


def _steps_in(program: Program, path: str) -> Iterator[tuple[str, Call | Kernel, Program]]:
    """What is no launch of a kernel, in a program and its regions: a name for each, the step, and the program around it."""
    for n, step in enumerate(program.kernels.steps):
        if isinstance(step, Region):
            for k, body in enumerate(program.bodies[step.name]):
                yield from _steps_in(body, f"{path}_{n}_{k}")
        elif isinstance(step, Call) or draws(step):
            yield f"{path}_{n}_{step.name}", step, program


def _in_order(program: Program) -> Iterator[int]:
    for step in program.kernels.steps:
        if isinstance(step, Region):
            for body in program.bodies[step.name]:
                yield from _in_order(body)
        else:
            yield id(step)


def _on_host(kernel: Kernel) -> HostWork:
    """A kernel that the host runs on copies of all that it touches."""
    function, names = compile_kernel(kernel), kernel.writes

    def run(reads: Sequence[Array], writes: Sequence[Array]) -> Sequence[str]:
        arrays = {b.name: x for b, x in zip(kernel.params, reads, strict=True)}
        function(arrays)
        for name, written in zip(names, writes, strict=True):
            written[...] = arrays[name]
        return names

    params = {b.name: b for b in kernel.params}
    source = kernel.sources[0] if kernel.sources else None
    return HostWork(kernel.name, kernel.params, tuple(params[name] for name in names), run, source)


def _has_index(program: Program) -> bool:
    regions = [step for step in program.kernels.steps if isinstance(step, Region)]
    return any(r.index is not None or any(map(_has_index, program.bodies[r.name])) for r in regions)
