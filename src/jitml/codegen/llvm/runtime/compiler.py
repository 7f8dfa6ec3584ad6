"""From a planned program to native code: emitted, made object code meanwhile, and bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jitml.codegen.llvm.ir.conventions import PARALLEL_FOR, PARALLEL_FOR_WATCHED
from jitml.codegen.llvm.ir.support_functions import SUPPORT, support_ir
from jitml.codegen.llvm.module import Module, emit_program
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.cached_programs import kept_bytes
from jitml.codegen.llvm.runtime.cpu import host_cpu, thread_limit
from jitml.codegen.llvm.runtime.executable import NativeCode, NativeExecutable
from jitml.codegen.llvm.runtime.threads import parallel_for_ir
from jitml.codegen.run.calling import NO_NEEDS, RunNeeds
from jitml.codegen.run.describe import interface_of
from jitml.kernels.metrics import has_open_end, kernel_flops, matrix_flops
from jitml.memory.program import Program
from jitml.records import replace

# Work below some 10 us is not worth the release of the GIL: bytes touched, operations in kernels and in products.
_SMALL_BYTES, _SMALL_FLOPS, _SMALL_MATRIX_FLOPS = 1 << 16, 1 << 15, 1 << 18


def compile_program(
    program: Program,
    *,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
    needs: RunNeeds = NO_NEEDS,
) -> NativeExecutable:
    """Native code for a program on this machine.

    Args:
        program: from `memory.plan`.
        threads: the most threads it may use; default: JITML_NUM_THREADS, or the cores this process may run on.
        fastmath: LLVM's fast-math flags to allow; none means IEEE arithmetic.
        needs: what calls of it need besides the results.
    """
    return compile_module(program, threads=threads, fastmath=fastmath, needs=needs)[1]


def compile_module(
    program: Program, *, threads: int | None, fastmath: frozenset[str], needs: RunNeeds
) -> tuple[Module, NativeExecutable]:
    """The same with the module, of which a thread makes object code while the rest is being written."""
    threads = threads or thread_limit()
    cpu = host_cpu()
    with jit.Generation(cpu) as generation:
        module = emit_program(program, cpu=cpu, fastmath=fastmath, threads=threads, finished=generation.begin)
        objects = generation.finish(module.parts)
    return module, bind_module(program, module, objects, threads, needs)


def bind_module(
    program: Program, module: Module, objects: Sequence[bytes], threads: int, needs: RunNeeds = NO_NEEDS
) -> NativeExecutable:
    """An executable of the object code of a module's parts."""
    beside = (jit.shared_code(text, host_cpu()) for text in _beside(module, threads))
    native = NativeCode(
        (*objects, *beside),
        module.externals,
        tuple(np.require(x, requirements=("C", "A")) for x in program.kernels.constants.values()),
        module.hosts,
        _is_worth_the_gil(program),
        threads,
    )
    return NativeExecutable(interface_of(program, module.checks), native, needs, lambda: program)


def _beside(module: Module, threads: int) -> Iterator[str]:
    """Modules that are linked beside that of a program."""
    if not {PARALLEL_FOR, PARALLEL_FOR_WATCHED}.isdisjoint(module.externals):
        yield parallel_for_ir(threads)
    if not SUPPORT.keys().isdisjoint(module.externals):
        yield support_ir(host_cpu())


def kept_form(executable: NativeExecutable, module: Module) -> bytes | None:
    """What a later process makes the executable of again (`kept.load`); None if it calls functions of this process."""
    native, cpu = executable.native, host_cpu()
    if native.hosts:
        return None
    keys = [jit.part_key(part, cpu) for part in module.parts]
    keys += [jit.object_key(text, cpu) for text in _beside(module, native.threads)]
    return kept_bytes(executable.interface, replace(native, objects=()), keys, executable.needs)


def _is_worth_the_gil(program: Program) -> bool:
    """Whether the work is worth letting other Python threads run: a guess by the memory and the operations.

    It is where nobody knows how long it takes: a `while` may run for minutes.
    """
    kernels = program.kernels
    if has_open_end(kernels):
        return True
    touched = sum(kernels.buffers[name].nbytes for name in (*kernels.inputs, *kernels.outputs)) + program.arena_size
    return touched > _SMALL_BYTES or kernel_flops(kernels) > _SMALL_FLOPS or matrix_flops(kernels) > _SMALL_MATRIX_FLOPS
