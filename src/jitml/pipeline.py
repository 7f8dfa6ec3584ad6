"""The way down, in order: graph -> passes -> kernels -> program -> a back end's code.

Each stage takes the data of the one before and returns its own. `lower` keeps every stage for a reader; `compile_graph`
gives only what can be called. With JITML_CHECK=1 each stage's verifier runs; JITML_DUMP prints stages on their way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jitml.codegen.backend import Backend, CodeOptions, Executable, backend_named, chosen_backend
from jitml.codegen.run.calling import RunNeeds
from jitml.codegen.run.fp_errors import errors_of
from jitml.config import CONFIG
from jitml.errors import UnsupportedError, own_faults
from jitml.fusion.fuse import fuse
from jitml.imports.late import late
from jitml.ir.analysis.generators import generators_in
from jitml.ir.graph import Graph
from jitml.ir.passes import run_passes
from jitml.kernels.schedule import Schedule, show_schedule
from jitml.memory.plan import plan
from jitml.memory.program import Program
from jitml.process import fewer_collections, room_for_nests
from jitml.records import dataclass

if TYPE_CHECKING:
    from jitml.kernels.text import printer
    from jitml.kernels.verify import program as program_verifier
    from jitml.kernels.verify import target as target_verifier
    from jitml.memory import recompute, report
else:  # a first call goes without them
    printer, report = late("jitml.kernels.text.printer"), late("jitml.memory.report")
    program_verifier, target_verifier = late("jitml.kernels.verify.program"), late("jitml.kernels.verify.target")
    recompute = late("jitml.memory.recompute")


@dataclass(frozen=True)
class Lowered:
    """Every stage of one program: `print(lowered.graph)`, `print(lowered.kernels)` and so on.

    Attributes:
        traced: the graph as tracing recorded it.
        graph: the graph after the passes.
        program: kernels and library calls in order, with a place for every buffer, as data.
    """

    traced: Graph
    graph: Graph
    program: Program
    backend: Backend[Any]
    options: CodeOptions

    def __repr__(self) -> str:
        nodes, steps = len(self.graph.nodes), len(self.program.kernels.steps)
        return f"<Lowered: {nodes} nodes, {steps} steps; print its {' '.join(f'.{stage}' for stage in self.stages)}>"

    def _repr_html_(self) -> str:
        html: str = import_module("jitml.notebook.pages").lowered(self)  # few programs run in a notebook
        return html

    @property
    def stages(self) -> tuple[str, ...]:
        """What `text` shows, in order."""
        return ("traced", "graph", "schedules", "kernels", "memory", *self.backend.stages)

    def text(self, stage: str) -> str:
        """A stage as text.

        Raises:
            UnsupportedError: there is no stage of that name.
        """
        if stage not in self.stages:
            message = f"there is no stage {stage} of a program for {self.backend.name}"
            raise UnsupportedError(message, remedy=f"The stages are {', '.join(self.stages)}.")
        if stage in self.backend.stages:
            return self.backend.text(stage, self.module)
        return "\n".join(self.schedules.values()) if stage == "schedules" else str(getattr(self, stage))

    @property
    def schedules(self) -> dict[str, str]:
        """How the loops of kernels run, by the kernels' names: what `jit(schedules=...)` takes. Kernels in regions have paths."""
        there = {step.name for step in self.program.kernels.steps}
        found = self.program.kernels.schedules.items()
        return {name: show_schedule(name, s) for name, s in found if name.partition(".")[0] in there or name in there}

    @property
    def kernels(self) -> str:
        """Fusion groups as loop nests, and library calls, in order."""
        return printer.show_program(self.program.kernels)

    @property
    def memory(self) -> str:
        """The memory plan: arena, lower bound, what was done in place."""
        return report.describe(self.program)

    @cached_property
    @room_for_nests()
    def module(self) -> Any:
        """The back end's code."""
        return self.backend.emit(self.program, self.options)

    @property
    def llvm(self) -> str:
        """The LLVM IR of the whole program."""
        return self.text("llvm")

    @property
    def asm(self) -> str:
        """The machine code, disassembled."""
        return self.text("asm")

    @property
    def python(self) -> str:
        """The kernels as the interpreter runs them."""
        return self.text("python")

    @property
    def cuda(self) -> str:
        """The CUDA C++ of the whole program, if it is for a GPU."""
        return self.text("cuda")

    @property
    def launches(self) -> str:
        """What the program asks of a GPU, in order: launches, with registers and occupancy, and what the host does."""
        return self.text("launches")

    @property
    def ptx(self) -> str:
        """The GPU's portable assembly."""
        return self.text("ptx")

    @property
    def sass(self) -> str:
        """The GPU's instructions, disassembled."""
        return self.text("sass")

    @room_for_nests()
    @fewer_collections()
    def compile(self, *, watch: bool = False) -> Executable:
        """Code that runs; with `watch` it looks for floating-point errors, and raises `FailedCheck` for them."""
        needs = RunNeeds(errors_of(self.traced) if watch else None, generators_in(self.graph))
        if "module" in self.__dict__:
            executable = self.backend.load(self.program, self.module, self.options, needs)
        else:
            self.__dict__["module"], executable = self.backend.compile(self.program, self.options, needs)
        for stage in self.stages[1:]:
            if stage in CONFIG.dump:
                print(f"--- {stage}\n{self.text(stage)}", file=sys.stderr)
        return executable


@own_faults()
@room_for_nests()
@fewer_collections()
def lower(
    graph: Graph,
    backend: Backend[Any] | None = None,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
    schedules: Mapping[str, Schedule] | None = None,
) -> Lowered:
    """Take a graph down to a program with a memory plan.

    Args:
        graph: as traced.
        backend: what is to run it; by default the one that JITML_BACKEND names.
        aliases: output position -> input position, for outputs that must end up in the caller's array.
        strides: input position -> element strides, for inputs that are not C-contiguous.
        threads: the most threads the program may use.
        fastmath: LLVM fast-math flags to allow.
        schedules: how the loops of some kernels are to run, by the kernels' names.

    Raises:
        ScheduleError: a schedule does not fit its kernel.
        CompilerError: a stage has failed.
    """
    optimized = run_passes(graph, check=CONFIG.check)
    backend = backend or chosen_backend()
    target = backend.target

    def planned(optimized: Graph) -> Program:
        kernels = fuse(
            optimized,
            aliases=aliases or {},
            strides=strides or {},
            target=target,
            scheduler=backend.scheduler,
            schedules=schedules,
        )
        if CONFIG.check:
            target_verifier.verify_for(program_verifier.verify_program(kernels), target)
        return plan(kernels, target.limits.alignment)

    program, most = planned(optimized), backend.most_bytes
    if most is not None and recompute.bytes_needed(program) > most:
        optimized, program = recompute.within(most, optimized, program, planned)
    return Lowered(graph, optimized, program, backend, CodeOptions(threads, fastmath))


@own_faults()
def compile_graph(
    graph: Graph,
    backend: Backend[Any] | None = None,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
    schedules: Mapping[str, Schedule] | None = None,
    watch: bool = False,
) -> Executable:
    """All the way down, in one step; the arguments are `lower`'s, and `Lowered.compile`'s."""
    lowered = lower(graph, backend, aliases=aliases, strides=strides, threads=threads, fastmath=fastmath, schedules=schedules)
    return lowered.compile(watch=watch)


__all__ = ["Lowered", "backend_named", "compile_graph", "lower"]
