"""The way down, in order: graph -> passes -> kernels -> program -> machine code.

Each stage takes the data of the one before and returns its own. `lower` keeps every stage for a reader; `compile_graph`
gives only what can be called. With JITML_CHECK=1 each stage's verifier runs; JITML_DUMP prints stages on their way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from jitml.codegen.llvm.module import Module, emit_program
from jitml.codegen.llvm.runtime.cpu import host_cpu, thread_limit
from jitml.codegen.llvm.runtime.executable import Executable, compile_program
from jitml.codegen.llvm.runtime.fp_errors import errors_of
from jitml.codegen.llvm.runtime.target import host_target
from jitml.config import CONFIG
from jitml.errors import UnsupportedError, own_faults
from jitml.fusion.fuse import fuse
from jitml.ir.analysis.generators import generators_in
from jitml.ir.graph import Graph
from jitml.ir.passes import run_passes
from jitml.kernels.text.printer import show_program
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from jitml.memory.program import Program
from jitml.memory.report import describe
from jitml.process import fewer_collections, room_for_nests


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
    threads: int | None = None
    fastmath: frozenset[str] = field(default=frozenset())

    def __repr__(self) -> str:
        nodes, steps = len(self.graph.nodes), len(self.program.kernels.steps)
        return f"<Lowered: {nodes} nodes, {steps} steps; print its .traced .graph .kernels .memory .llvm .asm>"

    @property
    def kernels(self) -> str:
        """Fusion groups as loop nests, and library calls, in order."""
        return show_program(self.program.kernels)

    @property
    def memory(self) -> str:
        """The memory plan: arena, lower bound, what was done in place."""
        return describe(self.program)

    @cached_property
    @room_for_nests()
    def module(self) -> Module:
        return emit_program(self.program, cpu=host_cpu(), fastmath=self.fastmath, threads=self.threads or thread_limit())

    @property
    def llvm(self) -> str:
        """The LLVM IR of the whole program."""
        return self.module.text

    @property
    def asm(self) -> str:
        """The machine code, disassembled."""
        return self.compile().asm

    @property
    def cuda(self) -> str:
        raise UnsupportedError("there is no CUDA back end yet", remedy="`.llvm` and `.asm` show the CPU's code.")

    @room_for_nests()
    @fewer_collections()
    def compile(self, *, watch: bool = False) -> Executable:
        """Machine code for the program; with `watch` it looks for floating-point errors, and raises `FailedCheck` for them."""
        errors = errors_of(self.traced) if watch else None
        executable = compile_program(
            self.program,
            threads=self.threads,
            fastmath=self.fastmath,
            errors=errors,
            generators=generators_in(self.graph),
        )
        self._dump(executable)
        return executable

    def _dump(self, executable: Executable) -> None:
        for stage in ("graph", "kernels", "memory", "llvm", "asm"):
            if stage in CONFIG.dump:
                text = getattr(executable if stage == "asm" else self, stage)
                print(f"--- {stage}\n{text}", file=sys.stderr)


@own_faults()
@room_for_nests()
@fewer_collections()
def lower(
    graph: Graph,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
) -> Lowered:
    """Take a graph down to a program with a memory plan.

    Args:
        graph: as traced.
        aliases: output position -> input position, for outputs that must end up in the caller's array.
        strides: input position -> element strides, for inputs that are not C-contiguous.
        threads: the most threads the program may use.
        fastmath: LLVM fast-math flags to allow.

    Raises:
        CompilerError: a stage has failed.
    """
    optimized = run_passes(graph, check=CONFIG.check)
    target = host_target()
    kernels = fuse(optimized, aliases=aliases or {}, strides=strides or {}, target=target)
    if CONFIG.check:
        verify_program(kernels)
    return Lowered(graph, optimized, plan(kernels, target.limits.alignment), threads, fastmath)


@own_faults()
def compile_graph(
    graph: Graph,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
    watch: bool = False,
) -> Executable:
    """All the way down, in one step; the arguments are `lower`'s, and `Lowered.compile`'s."""
    return lower(graph, aliases=aliases, strides=strides, threads=threads, fastmath=fastmath).compile(watch=watch)
