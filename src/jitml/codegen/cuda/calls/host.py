"""Host calls: how does a program on a GPU call Python?  What is read is copied out, what comes back is copied in.

Where the function is a routine that the GPU has, too, nothing is copied, and Python is not called.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.cuda.calls.fft import plan_fft
from jitml.codegen.cuda.calls.linalg import plan_linalg
from jitml.codegen.cuda.calls.plan import Array, CallPlan, HostWork
from jitml.codegen.cuda.calls.solvers import plan_solver
from jitml.errors import FailedCheck, Source
from jitml.interrupts import pass_on
from jitml.ir.ops.host import HostFunction
from jitml.kernels.program import Call, KernelProgram, seen_as
from jitml.records import dataclass


def plan_host(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes = function(reads)."""
    function: HostFunction = call.params["function"]
    if function.routine is not None:
        plan = plan_linalg(call, program, name) or plan_fft(call, program, name)
        if plan is not None:
            return plan
    solver = plan_solver(call, program, name) if function.routine is not None else None
    reads = [seen_as(program.buffers[read], shape) for read, shape in zip(call.reads, call.params["shapes"], strict=True)]
    source = call.sources[0] if call.sources else None
    run = _CallOfPython(function, call.writes, source)
    work = (HostWork(function.name, tuple(reads), tuple(program.buffers[n] for n in call.writes), run, source),)
    if solver is None:
        return CallPlan(work=work)
    return CallPlan(solver.source, solver.templates, work, library=solver.work, checks=solver.checks)


@dataclass(frozen=True, slots=True)
class _CallOfPython:
    function: HostFunction
    names: tuple[str, ...]
    source: Source | None

    def __call__(self, reads: Sequence[Array], writes: Sequence[Array]) -> Sequence[str]:
        """
        Raises:
            FailedCheck: whatever Python has raised, for which the call is left to the plain function.
        """
        function = self.function
        try:
            if function.fills:
                function.call(*reads, out=tuple(writes))
                return self.names
            for written, result in zip(writes, function.call(*reads)):
                written[...] = result
        except FailedCheck:
            raise
        except Exception as error:
            pass_on(error)
            raise FailedCheck(f"{function.name} raised {type(error).__name__}: {error}", source=self.source) from error
        return self.names
