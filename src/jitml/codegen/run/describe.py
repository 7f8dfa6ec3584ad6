"""The interface of a planned program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitml.codegen.run.interface import ProgramInterface
from jitml.ir.ops.host import HostFunction
from jitml.kernels.ir import Check
from jitml.kernels.program import Call, KernelProgram, Region
from jitml.memory.program import Program


def interface_of(program: Program, checks: Sequence[Check] = ()) -> ProgramInterface:
    """What a caller needs to know of a program, and of the checks in its code."""
    kernels = program.kernels
    inputs = tuple(port.buffer for port in kernels.ports(kernels.inputs))
    outputs = tuple(port.buffer for port in kernels.ports(kernels.outputs))
    places = {b.name: k for k, b in enumerate(inputs)}
    return ProgramInterface(
        inputs,
        outputs,
        aliases={k: places[kernels.aliases[b.name]] for k, b in enumerate(outputs) if b.name in kernels.aliases},
        measured=tuple(kernels.measured.get(b.name) for b in outputs[:-1]) if kernels.measured else None,
        exact=dict(kernels.exact),
        sizes={name: places[source.buffer] for name, source in kernels.sizes.items() if source.buffer in places},
        arena=program.arena_size,
        checks=tuple(checks),
        functions=tuple(host_functions(kernels)),
    )


def host_functions(program: KernelProgram) -> Iterator[HostFunction]:
    """The Python functions that a program calls, bodies of regions included."""
    for step in program.steps:
        if isinstance(step, Call) and step.name == "host":
            yield step.params["function"]
        for body in step.bodies if isinstance(step, Region) else ():
            yield from host_functions(body)


__all__ = ["host_functions", "interface_of"]
