"""Modules: how does a program become LLVM IR?  A function per kernel and call, and an entry that runs them (`entry.py`).

The entry is `i64 @jitml_run(ptr table, ptr arena, ptr error)`. `table` holds the data pointers of inputs, outputs and
constants, in this order; a buffer of the arena lies at its offset. It returns 0, 1 + an index into `Module.checks`,
-1 where memory for scratch could not be had, or -2 where a call of Python has raised.
"""

from __future__ import annotations

from collections.abc import Callable

from jitml.codegen.llvm.entry import Entry
from jitml.codegen.llvm.ir.conventions import HostStep, ModulePart
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.ir.translation_unit import Unit
from jitml.codegen.llvm.loops.access import STREAMED_BYTES, Extents
from jitml.codegen.llvm.loops.safepoints import is_long
from jitml.codegen.llvm.shapes import write_shapes
from jitml.kernels.ir import Check
from jitml.memory.program import Program
from jitml.records import dataclass

FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")


@dataclass(frozen=True, slots=True)
class Module:
    """LLVM IR of a whole program.

    Args:
        parts: the IR, in modules that LLVM may take one by one.
        checks: what the entry's non-zero results stand for.
        externals: functions that the runtime must supply.
        hosts: the calls into Python, by the numbers that the code gives them.
    """

    parts: tuple[ModulePart, ...]
    checks: tuple[Check, ...]
    externals: tuple[str, ...]
    hosts: tuple[HostStep, ...] = ()

    @property
    def text(self) -> str:
        """All of it, for people."""
        return "\n".join(part.text for part in self.parts)


def emit_program(
    program: Program,
    *,
    cpu: Cpu,
    fastmath: frozenset[str] = frozenset(),
    threads: int = 8,
    finished: Callable[[ModulePart], None] | None = None,
) -> Module:
    """Write a program as LLVM IR.

    Args:
        cpu: the processor to write for; nothing of the running one is used.
        fastmath: LLVM's flags for floating-point arithmetic, of `FLAGS`; none for IEEE results.
        threads: how many it may use.
        finished: is given each part but the last ones as soon as it is written.

    Raises:
        ValueError: a flag that LLVM does not know.
    """
    if unknown := fastmath - set(FLAGS):
        raise ValueError(f"fastmath: {', '.join(sorted(unknown))} is not one of {', '.join(FLAGS)}")
    unit = Unit(cpu, " ".join(flag for flag in FLAGS if flag in fastmath), threads, finished, is_long=is_long(program.kernels))
    # Elsewhere the hint would not be enough: LLVM writes such stores element by element.
    streamed = streamed_buffers(program) if cpu.is_x86 else {}
    Entry(unit, program, streamed)
    if program.kernels.exact:
        write_shapes(unit, program.kernels)
    return Module(unit.finish(), tuple(unit.checks), unit.declarations.symbols, tuple(unit.hosts))


def streamed_buffers(program: Program) -> dict[str, Extents]:
    """Buffers to store past the caches: new outputs that may be too large for them, and are read by no step.

    With the shape that is used, of which only the run may tell whether it is too large.
    """
    read = {name for step in program.kernels.steps for name in step.reads}
    kernels = program.kernels
    own = [n for n in kernels.outputs if program.places[n].space == "output" and n not in read]
    return {n: kernels.extents.get(n, ()) for n in own if kernels.buffers[n].nbytes >= STREAMED_BYTES}
