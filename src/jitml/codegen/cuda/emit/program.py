"""Programs: how does a planned program become CUDA C++?  One text for all its kernels, those of regions included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from jitml.codegen.cuda.emit.functions import ScalarFunctions
from jitml.codegen.cuda.emit.launches import KernelMemory, write_kernel
from jitml.codegen.cuda.emit.starts import with_starts
from jitml.codegen.cuda.emit.statements import ModuleText
from jitml.codegen.cuda.module import CudaModule, Launch
from jitml.kernels.ir import Check, Draw, Kernel, walk
from jitml.kernels.program import Region
from jitml.kernels.text.nameless import nameless
from jitml.memory.aliasing import storages
from jitml.memory.program import Program

_WIDEST = 16  # bytes of an access


@cache
def prelude() -> str:
    """What every module begins with."""
    return Path(__file__).with_name("prelude.cuh").read_text()


def emit_program(
    program: Program,
    *,
    functions: ScalarFunctions | None = None,
    failing: frozenset[int] = frozenset(),
    has_barriers: bool = True,
) -> CudaModule:
    """The kernels of a program, but for those that the host runs; its calls are written by `codegen/cuda/calls`.

    Args:
        functions: takes those that the text defines.
        failing: the `id` of each call that checks something.
        has_barriers: False leaves them out, to show that this is noticed.
    """
    writer = _ProgramWriter(functions or ScalarFunctions(), has_barriers, failing)
    writer.alike.update(nameless(with_starts(kernel)[0]) for kernel in _kernels(program))
    writer.steps(program, "", is_body=False)
    return CudaModule(assembled(writer.module, writer.functions), writer.launches, tuple(writer.module.checks))


def assembled(module: ModuleText, functions: Sequence[str]) -> str:
    """The whole text of a module whose `__global__` functions are given."""
    return "\n\n".join([prelude(), *module.functions.definitions, *functions]) + "\n"


def _kernels(program: Program) -> Iterator[Kernel]:
    """Those of regions included."""
    for step in program.kernels.steps:
        if isinstance(step, Kernel):
            yield step
        elif isinstance(step, Region):
            for body in program.bodies[step.name]:
                yield from _kernels(body)


def draws(kernel: Kernel) -> bool:
    """Whether a kernel draws random numbers one by one: the host has the generators, and runs it."""
    return any(isinstance(s, Draw) for s in walk(kernel.body))


class _ProgramWriter:
    def __init__(self, functions: ScalarFunctions, has_barriers: bool, failing: frozenset[int]) -> None:
        self.module = ModuleText(functions)
        self.functions: list[str] = []
        self.launches: dict[int, tuple[Launch, ...]] = {}
        self.has_barriers, self.failing = has_barriers, failing
        self.may_have_failed = False
        self.known: dict[Hashable, tuple[tuple[Launch, ...], list[str]]] = {}  # launches, and the names of parameters
        self.alike: Counter[str] = Counter()  # kernels, by their texts over pointers that begin later

    def steps(self, program: Program, path: str, *, is_body: bool) -> None:
        """The steps of a program; `path` leads to it from outside."""
        if is_body:  # what has failed in an iteration, the next ones must not go on from
            self.may_have_failed |= self._has_check(program)
        for step in program.kernels.steps:
            if isinstance(step, Kernel) and draws(step):
                continue
            if isinstance(step, Kernel):
                self.kernel(step, program, path)
            elif isinstance(step, Region):
                for body in program.bodies[step.name]:
                    self.steps(body, f"{path}{step.name}_", is_body=True)
            self.may_have_failed |= id(step) in self.failing

    def kernel(self, kernel: Kernel, program: Program, path: str) -> None:
        """The functions of a kernel, unless another one has the same."""
        names = [b.name for b in kernel.params]
        groups = {name: place.group for name, place in storages(program, names).items()}
        step, (moved, starts) = id(kernel), with_starts(kernel)
        kernel, starts = (moved, starts) if starts and self.alike[nameless(moved)] > 1 else (kernel, {})
        aligned = frozenset(name for name in names if _is_aligned(program, name) and starts.get(name, 0) % _WIDEST == 0)
        memory = KernelMemory(groups, aligned)
        has_checks = any(isinstance(s, Check) for s in walk(kernel.body))
        shapes = [(b.dtype, b.shape, b.strides, names.index(groups[b.name]), b.name in memory.aligned) for b in kernel.params]
        key = (tuple(shapes), self.may_have_failed, nameless(kernel))
        twin = self.known.get(key)
        if twin is not None and not has_checks:  # each of those says where it stands
            launches, params = twin
            renamed = dict(zip(params, names))
            own = [replace(launch, buffers=tuple(renamed[name] for name in launch.buffers)) for launch in launches]
            self.launches[step] = tuple(_from_starts(launch, starts) for launch in own)
            return
        functions, launches = write_kernel(
            *(self.module, kernel, f"{path}{kernel.name}", memory), looks=self.may_have_failed, has_barriers=self.has_barriers
        )
        self.launches[step] = tuple(_from_starts(launch, starts) for launch in launches)
        self.known.setdefault(key, (launches, names))
        self.functions += functions
        self.may_have_failed |= has_checks

    def _has_check(self, program: Program) -> bool:
        steps = program.kernels.steps
        own = any(isinstance(step, Kernel) and any(isinstance(s, Check) for s in walk(step.body)) for step in steps)
        own |= any(id(step) in self.failing for step in steps)
        return own or any(self._has_check(body) for bodies in program.bodies.values() for body in bodies)


def _from_starts(launch: Launch, starts: Mapping[str, int]) -> Launch:
    """The launch whose pointers begin so many bytes later."""
    return replace(launch, starts=tuple(starts.get(name, 0) for name in launch.buffers)) if starts else launch


def _is_aligned(program: Program, name: str) -> bool:
    """Whether a buffer begins where the widest access may: in the arena; the caller's arrays may begin anywhere."""
    place = program.places[name]
    return place.space == "arena" and place.offset % _WIDEST == 0
