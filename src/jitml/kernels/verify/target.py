"""What a target can run: kinds of loops and library calls that it has."""

from __future__ import annotations

from jitml.errors import VerificationError
from jitml.kernels.ir import Kernel, Loop, walk
from jitml.kernels.program import Call, KernelProgram, Region
from jitml.kernels.target import Target

EVERYWHERE = ("copy", "zeros", "empty", "host")  # calls that every target has


def verify_for(program: KernelProgram, target: Target) -> KernelProgram:
    """
    Raises:
        VerificationError: a step is nothing for this target.
    """
    for step in program.steps:
        if isinstance(step, Region):
            for body in step.bodies:
                verify_for(body, target)
        elif isinstance(step, Kernel):
            for loop in walk(step.body):
                if isinstance(loop, Loop) and loop.kind not in target.kinds:
                    has = ", ".join(sorted(target.kinds))
                    raise VerificationError(f"{step.name}: the loop over {loop.index} is {loop.kind}; {target.name} has {has}")
        elif isinstance(step, Call) and step.name not in (*target.calls, *EVERYWHERE):
            raise VerificationError(f"{target.name} has no library call {step.name}; it has {', '.join(target.calls)}")
    return program
