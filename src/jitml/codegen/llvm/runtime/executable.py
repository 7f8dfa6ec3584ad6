"""Native executables: what does a caller hold once a program is compiled?  It is called with arrays, and gives arrays.

Here emitted code is made native, bound to what it calls (the thread pool, BLAS, sorts, draws, the arena) and given a way in.
Guards, conversions and containers of arguments are dispatch's business: an executable takes exactly the arrays it was compiled
for.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from jitml.codegen.llvm.calls.host import ASIDE, CALLS
from jitml.codegen.llvm.entry import CLEAR, ENTRY
from jitml.codegen.llvm.ir.support import SUPPORT, support_ir
from jitml.codegen.llvm.loops.kernel import NO_MEMORY
from jitml.codegen.llvm.loops.safepoints import DUE, ERROR_WORDS, LOOK, PARALLEL_FOR, PARALLEL_FOR_WATCHED
from jitml.codegen.llvm.module import Module, emit_program
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.arena import arenas, release_arena
from jitml.codegen.llvm.runtime.blas import GATES, blas_address, blas_gates
from jitml.codegen.llvm.runtime.cpu import host_cpu, thread_limit
from jitml.codegen.llvm.runtime.host import HostCalls, host_shim
from jitml.codegen.llvm.runtime.native_call import MOST_BYTES, native_calls, native_function
from jitml.codegen.llvm.runtime.once import once
from jitml.codegen.llvm.runtime.random import random_address
from jitml.codegen.llvm.runtime.safepoints import safepoints
from jitml.codegen.llvm.runtime.sorting import sort_address
from jitml.codegen.llvm.runtime.threads import RUNS, parallel_for_ir, pool
from jitml.codegen.llvm.shapes import SHAPES
from jitml.codegen.run.calling import NO_NEEDS, ProgramCall, RunNeeds
from jitml.codegen.run.results import exact_buffers
from jitml.kernels.ir import Buffer
from jitml.kernels.metrics import has_open_end, kernel_flops, matrix_flops
from jitml.memory.program import Program

Array = np.ndarray[Any, Any]

# An arena above this size is given back when the program that needed it goes.
_LARGE_ARENA = 64 << 20
# Work below some 10 us is not worth the release of the GIL: bytes touched, operations in kernels and in products.
_SMALL_BYTES, _SMALL_FLOPS, _SMALL_MATRIX_FLOPS = 1 << 16, 1 << 15, 1 << 18


def compile_program(
    program: Program,
    *,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
    needs: RunNeeds = NO_NEEDS,
) -> NativeExecutable:
    """Native code for a program on this machine, made by a thread of LLVM's while the rest is being written.

    Args:
        program: from `memory.plan`.
        threads: the most threads it may use; default: JITML_NUM_THREADS, or the cores this process may run on.
        fastmath: LLVM's fast-math flags to allow; none means IEEE arithmetic.
        needs: what calls of it need besides the results.
    """
    threads = threads or thread_limit()
    cpu = host_cpu()
    with jit.Generation(cpu) as generation:
        module = emit_program(program, cpu=cpu, fastmath=fastmath, threads=threads, finished=generation.begin)
        objects = generation.finish(module.parts)
    return NativeExecutable(program, module, objects, threads, needs)


class NativeExecutable(ProgramCall):
    """A program as native code."""

    def __init__(
        self, program: Program, module: Module, objects: Sequence[bytes], threads: int, needs: RunNeeds = NO_NEEDS
    ) -> None:
        super().__init__(program, module.checks)
        self.module, self.threads = module, threads
        self._constants = [np.require(x, requirements=("C", "A")) for x in self.kernels.constants.values()]
        self._hosts = HostCalls(module.hosts, watches=needs.errors is not None)
        code = self._link(objects)
        self.surround(self._call_natively(code) if native_calls() else self._call_portably(code), needs)
        if program.arena_size > _LARGE_ARENA:
            weakref.finalize(self, release_arena).atexit = False

    def _call_natively(self, code: jit.Code) -> Any:
        """The program behind the native call, which reads and makes arrays itself."""
        return native_function(
            code,
            self.inputs,
            self.outputs,
            exact=self._places_of_shapes(),
            extents=sum(map(len, self.kernels.exact.values())),
            aliases=self.aliases,
            constants=self._constants,
            arena=self.program.arena_size,
            release_gil=_is_long(self.program),
        )

    def _places_of_shapes(self) -> dict[int, tuple[int, int]]:
        """Outputs whose shapes the program says -> where among the extents it does, and how many they are."""
        exact = self.kernels.exact
        starts = dict(zip(exact, accumulate(map(len, exact.values()), initial=0)))
        return {k: (starts[b.name], len(exact[b.name])) for k, b in enumerate(self.outputs) if b.name in exact}

    def _call_portably(self, code: jit.Code) -> Any:
        """The same in Python, for interpreters whose arrays we cannot read in place."""
        kind = ctypes.PYFUNCTYPE if self.module.hosts else ctypes.CFUNCTYPE  # the former raises what a host call has raised
        entry = kind(ctypes.c_int64, *[ctypes.c_void_p] * 3)(code[ENTRY])

        def run(*args: Any) -> list[Array] | tuple[int, ...]:
            inputs = [np.asarray(x, b.dtype) for x, b in zip(args, self.inputs, strict=True)]
            buffers = exact_buffers(self.kernels, self.outputs, inputs)
            outputs = [inputs[self.aliases[i]] if i in self.aliases else _empty(b) for i, b in enumerate(buffers)]
            pointers = [array.ctypes.data for array in (*inputs, *outputs, *self._constants)]
            table, error = (ctypes.c_void_p * (len(pointers) + 1))(*pointers), error_record()
            arena = np.empty(min(self.program.arena_size, MOST_BYTES), np.uint8)  # not the thread's: Python may be called yet
            status = entry(table, arena.ctypes.data, error)
            return (status, *error[:DUE]) if status else outputs

        run.code = code  # type: ignore[attr-defined]  # the entry's code lives as long as the closure
        return run

    def _link(self, objects: Sequence[bytes]) -> jit.Code:
        """The program's code, bound to what it calls."""
        addresses: dict[str, int] = {}
        objects = list(objects)
        for name in self.module.externals:
            if name in (PARALLEL_FOR, PARALLEL_FOR_WATCHED):
                if "jitml_pool_run" not in addresses:
                    objects.append(_parallel_for(self.threads))
                addresses |= {run: pool()[run] for run in RUNS}
            elif name == LOOK:
                addresses[name] = safepoints()[name]
            elif name == "jitml_host":
                addresses |= {name: host_shim()[name], CALLS: id(self._hosts.run)}
            elif name in (*ASIDE, CLEAR):
                addresses[name] = arenas()[name]
            elif name in GATES:
                addresses[name] = blas_gates()[name]
            elif name.startswith(("jitml_sort_", "jitml_argsort_")):
                addresses[name] = sort_address(name)
            elif name.startswith("jitml_"):
                addresses[name] = random_address(name)
            elif name.endswith("_"):  # a Fortran name
                addresses[name] = blas_address(name)
            # Anything else is libm's: the linker finds it in the process, and says so if it does not.
        if SUPPORT.keys() & set(self.module.externals):
            objects.append(_support())
        code = jit.link(objects, imports=addresses, exports=(ENTRY, SHAPES) if self.kernels.exact else (ENTRY,))
        code.keep(self._hosts)
        return code

    def failure(self, status: int, *values: int) -> BaseException:
        """The exception of a failed check, or of scratch for which there is no memory."""
        if status == NO_MEMORY:
            return MemoryError("no memory for the scratch of a compiled program")
        return super().failure(status, *values)


def error_record() -> ctypes.Array[ctypes.c_int64]:
    """What the entry of a program is handed as `error`, for a run that nobody interrupts."""
    record = (ctypes.c_int64 * ERROR_WORDS)()
    record[DUE] = ctypes.addressof(_NEVER)
    return record


_NEVER = ctypes.c_int64(0)


@cache
def _parallel_for(threads: int) -> bytes:
    return jit.object_code(parallel_for_ir(threads), host_cpu())


@once
def _support() -> bytes:
    return jit.object_code(support_ir(host_cpu()), host_cpu())


def _empty(buffer: Buffer) -> Array:
    """New memory of a buffer's shape and strides."""
    strides = tuple(step * buffer.dtype.itemsize for step in buffer.element_strides)
    return np.ndarray(buffer.shape, buffer.dtype, strides=strides)


def _is_long(program: Program) -> bool:
    """Whether the work is worth letting other Python threads run: a guess by the memory and the operations.

    It is where nobody knows how long it takes: a `while` may run for minutes.
    """
    kernels = program.kernels
    if has_open_end(kernels):
        return True
    touched = sum(kernels.buffers[name].nbytes for name in (*kernels.inputs, *kernels.outputs)) + program.arena_size
    return touched > _SMALL_BYTES or kernel_flops(kernels) > _SMALL_FLOPS or matrix_flops(kernels) > _SMALL_MATRIX_FLOPS
