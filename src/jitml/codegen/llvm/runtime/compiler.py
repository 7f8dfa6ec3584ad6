"""From a planned program to native code: emitted, made object code meanwhile, and bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from weakref import ref

import numpy as np

from jitml.codegen.llvm.ir.conventions import PARALLEL_FOR, PARALLEL_FOR_WATCHED, ModulePart
from jitml.codegen.llvm.ir.support_functions import SUPPORT, support_ir
from jitml.codegen.llvm.module import Module, emit_program
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.cached_programs import kept_bytes
from jitml.codegen.llvm.runtime.cpu import host_cpu, thread_limit
from jitml.codegen.llvm.runtime.executable import NativeCode, NativeExecutable
from jitml.codegen.llvm.runtime.target import host_target
from jitml.codegen.llvm.runtime.threads import parallel_for_ir
from jitml.codegen.run.background import BACKGROUND
from jitml.codegen.run.calling import NO_NEEDS, RunNeeds
from jitml.codegen.run.describe import interface_of
from jitml.config import CONFIG
from jitml.disk_cache import disk_cache
from jitml.kernels.metrics import has_open_end, kernel_flops, kernel_work, matrix_flops
from jitml.memory.program import Program
from jitml.records import replace

# Seconds that quick code saves for each line of a part, and at the most loses for each operation: measured, see `quickly`.
_USUALLY, _OF_OPTIMIZER = (2e-5, 1.5e-10), (1e-4, 3e-9)
_WORTH = 1.5e-3  # seconds: the full code is linked, too
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
    with jit.Generation(cpu, quickly(program, fastmath)) as generation:
        module = emit_program(program, cpu=cpu, fastmath=fastmath, threads=threads, finished=generation.begin)
        objects = generation.finish(module.parts)
    called = jit.outlines(generation.quick, cpu)
    executable = bind_module(program, module, [*called, *objects], threads, needs)
    if generation.quick:
        executable.tier = "quick"
        if CONFIG.tier != "quick":
            executable.better = Upgrade(executable, [*zip(module.parts, objects)], generation.quick, len(called))
            BACKGROUND.take(executable.better)
    return module, executable


def quickly(program: Program, fastmath: frozenset[str] = frozenset()) -> Callable[[ModulePart], bool]:
    """Which parts of a program are to have quick code at first: where that saves more time than the first call then loses.

    Not so where nobody knows how long a call takes, nor with fast-math flags, for which the same bits are not promised, nor where
    no code may be (`jit.may_be_quick`).
    The architecture page has what is measured of both.
    """
    if CONFIG.tier == "quick":
        return lambda part: True
    if fastmath or has_open_end(program.kernels) or not jit.may_be_quick():
        return lambda part: False
    work = kernel_work(program.kernels, host_target().cost.work_of)

    def pays(part: ModulePart) -> bool:
        saved, lost = _OF_OPTIMIZER if part.effort == "optimizer" else _USUALLY
        seconds = part.text.count("\n") * saved
        return seconds >= _WORTH and work * lost <= seconds

    return pays


class Upgrade:
    """The full code of a program whose code is quick: a job of the background.

    Args:
        parts: with their objects.
        quick: those that are to have others.
        called: how many objects, in front of these, only quick code needs.
    """

    def __init__(
        self,
        executable: NativeExecutable,
        parts: Sequence[tuple[ModulePart, bytes]],
        quick: Collection[ModulePart],
        called: int,
    ) -> None:
        self._executable, self._parts, self._quick, self._called = ref(executable), parts, quick, called
        self.outcome = ""  # "done", or why not

    @property
    def outlasts(self) -> bool:
        return disk_cache().is_used

    def is_to_come(self) -> bool:
        if not self.outcome:
            BACKGROUND.go_on()  # in the child of a fork, say
        return not self.outcome

    def run(self) -> None:
        cpu, objects = host_cpu(), []
        with jit.aside():
            for part, code in self._parts:
                if self._executable() is None:
                    return self.give_up("nobody has the program any more")
                objects.append(jit.full_code(part, cpu) if part in self._quick else code)
        executable = self._executable()
        if executable is not None:
            executable.enter_by((*objects, *executable.native.objects[self._called + len(objects) :]))
            executable.tier = "full"
        self._end("done")

    def give_up(self, why: str) -> None:
        self._end(why)

    def _end(self, outcome: str) -> None:
        self.outcome, self._parts, self._quick = outcome, (), ()


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
