"""Whole texts of programs: kernels, library calls and what the runtime adds, as one source; and what the host does meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import Array, CallPlan, HostWork, Means, agreed_numbers
from jitml.codegen.cuda.emit.functions import ScalarFunctions
from jitml.codegen.cuda.emit.program import draws, emit_program
from jitml.codegen.cuda.module import CudaModule
from jitml.codegen.cuda.runtime.run import NO_CONDITION
from jitml.kernels.interpret import compile_kernel
from jitml.kernels.ir import Kernel
from jitml.kernels.program import Call, Region
from jitml.memory.program import Program
from jitml.records import dataclass

SET_INDEX, MOVE, DECIDE, COUNT = "ji_set_index", "ji_move", "ji_decide", "ji_count"
_REGIONS = f"""// The runtime's: the number of a loop's iteration.
extern "C" __global__ void {SET_INDEX}(long long* index, long long value) {{ *index = value; }}

// The runtime's: what a loop has carried to its own memory. Nothing moves once a check has failed.
extern "C" __global__ void __launch_bounds__(256, 1) {MOVE}(u8* y, const u8* x, i64 size, const i64* error) {{
  if (error && *error) return;
  const i64 first = (i64)blockIdx.x * 256 + threadIdx.x, step = (i64)gridDim.x * 256;
  const i64 words = ((u64)y | (u64)x) % 16 ? 0 : size / 16;
  for (i64 n = first; n < words; n += step) ((uint4*)y)[n] = ((const uint4*)x)[n];
  for (i64 n = 16 * words + first; n < size; n += step) y[n] = x[n];
}}

#if __CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4
// The runtime's: how a graph goes on. Once a check has failed, nothing does.
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned);
__device__ void ji_set(u64 condition, bool value) {{
  if (condition != {NO_CONDITION}ULL) cudaGraphSetConditional(condition, value);
}}
__device__ void ji_set_all(bool value, const i64* error, u64 yes, u64 also, u64 no) {{
  const bool is_good = !error || !*error;
  ji_set(yes, is_good && value);
  ji_set(also, is_good && value);
  ji_set(no, is_good && !value);
}}
extern "C" __global__ void {DECIDE}(const bool* value, const i64* error, u64 yes, u64 also, u64 no) {{
  ji_set_all(*value, error, yes, also, no);
}}
extern "C" __global__ void {COUNT}(i64* count, i64* index, const i64* trips, i64 known, const i64* error, u64 yes, u64 also,
                                   u64 no) {{
  const i64 k = *count;
  *index = k;
  *count = k + 1;
  ji_set_all(k < (trips ? *trips : known), error, yes, also, no);
}}
#endif
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
        others = chain.from_iterable(plan.launches for plan in self.calls.values())
        looks = any(launch.has_error for launch in chain(own, others))
        return self.module.error_words if looks else 0


def write_text(program: Program, fastmath: frozenset[str] = frozenset()) -> CudaText:
    """The CUDA C++ of a program; no device is needed.

    Args:
        fastmath: flags that mean something to library calls: "tf32", "bf16", "atomics", and those of `calls/epilogues.py`.
    """
    means = Means(ScalarFunctions(), fastmath)
    plans = {id(step): (_plan(step, around, name, means), name, callers) for name, step, around, callers in _calls_in(program)}
    failing = frozenset(step for step, (plan, *_) in plans.items() if plan.checks)
    module = emit_program(program, functions=means.functions, failing=failing)
    may_fail = bool(failing) or any(launch.has_error for launches in module.launches.values() for launch in launches)
    calls: dict[int, CallPlan] = {}
    sources: list[str] = []
    known: dict[str, str] = {}
    checks = [*module.checks]
    for step, (plan, name, callers) in plans.items():
        plan = plan.guarded(callers) if may_fail else plan
        twin = known.setdefault(plan.nameless(name), name)
        calls[step] = plan if twin == name or plan.checks else plan.by_functions_of(twin, name)
    constants = agreed_numbers(calls.values())
    for step, (_, name, _) in plans.items():
        calls[step] = plan = calls[step].with_constants(constants)
        sources.append(plan.numbered(name, len(checks) + 1))
        checks += plan.checks
    templates = dict.fromkeys(text for plan in calls.values() for text in plan.templates)
    parts = [module.source, *templates, *sources]
    if any(isinstance(step, Region) for step in program.kernels.steps):
        parts.append(_REGIONS)
    source = "\n".join(part for part in parts if part)
    return CudaText(source, CudaModule(source, module.launches, tuple(checks)), calls, tuple(_in_order(program)))


def _plan(step: Call | Kernel, around: Program, name: str, means: Means) -> CallPlan:
    return plan_call(step, around.kernels, name, means) if isinstance(step, Call) else CallPlan(work=(_on_host(step),))


def _calls_in(program: Program) -> Iterator[tuple[str, Call | Kernel, Program, frozenset[str]]]:
    callers = frozenset(name for name, place in program.places.items() if place.space == "input")
    return _steps_in(program, "call", callers)


def _steps_in(
    program: Program, path: str, callers: frozenset[str]
) -> Iterator[tuple[str, Call | Kernel, Program, frozenset[str]]]:
    """What is no launch of a kernel, in a program and its regions.

    A name for each, the step, the program around it, and the buffers of that which are in memory of the caller's.
    """
    for n, step in enumerate(program.kernels.steps):
        if isinstance(step, Region):
            for k, body in enumerate(program.bodies[step.name]):
                yield from _steps_in(body, f"{path}_{n}_{k}", _handed_on(step, k, body, callers))
        elif isinstance(step, Call) or draws(step):
            yield f"{path}_{n}_{step.name}", step, program, callers


def _handed_on(region: Region, k: int, body: Program, callers: frozenset[str]) -> frozenset[str]:
    """Buffers of a body that are in memory of the caller's, at any time: some change places."""
    moved = {*region.moves, *region.moves.values()}
    outside = callers | (moved if moved & callers else set())
    given = {"input": region.arguments[k], "output": region.results[k]}
    return frozenset(
        name for name, place in body.places.items() if place.space in given and given[place.space][place.index] in outside
    )


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
