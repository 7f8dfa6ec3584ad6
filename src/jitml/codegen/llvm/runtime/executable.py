"""Executables: what does a caller hold once a program is compiled?  An `Executable`: call it with arrays, get arrays.

Here emitted code is made native, bound to what it calls (the thread pool, BLAS, sorts, draws, the arena) and given a way in.
Guards, conversions and containers of arguments are dispatch's business: an executable takes exactly the arrays it was compiled
for.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
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
from jitml.codegen.llvm.runtime.drawing import Drawing
from jitml.codegen.llvm.runtime.fp_errors import Errors, ErrorWatch
from jitml.codegen.llvm.runtime.host import HostCalls, host_shim, run_or_restore, run_then_show
from jitml.codegen.llvm.runtime.native_call import MOST_BYTES, native_calls, native_function
from jitml.codegen.llvm.runtime.random import random_address
from jitml.codegen.llvm.runtime.safepoints import safepoints
from jitml.codegen.llvm.runtime.sorting import sort_address
from jitml.codegen.llvm.runtime.threads import RUNS, parallel_for_ir, pool
from jitml.codegen.llvm.shapes import SHAPES
from jitml.errors import FailedCheck
from jitml.ir.ops.regions import exception_named
from jitml.kernels.ir import Buffer, Check
from jitml.kernels.metrics import has_open_end, kernel_flops, matrix_flops
from jitml.kernels.program import KernelProgram
from jitml.kernels.sizes import evaluate
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
    errors: Errors | None = None,
    generators: Sequence[int] = (),
) -> Executable:
    """Native code for a program on this machine.

    Args:
        program: from `memory.plan`.
        threads: the most threads it may use; default: JITML_NUM_THREADS, or the cores this process may run on.
        fastmath: LLVM's fast-math flags to allow; none means IEEE arithmetic.
        errors: what is known of the program's floating-point errors, if it is to look for them; else none are reported.
        generators: positions of the inputs that are addresses of generators of random numbers.
    """
    threads = threads or thread_limit()
    cpu = host_cpu()
    with jit.Generation(cpu) as generation:
        module = emit_program(program, cpu=cpu, fastmath=fastmath, threads=threads, finished=generation.begin)
        objects = generation.finish(module.parts)
    return Executable(program, module, objects, threads, errors, generators)


class Executable:
    """A compiled program.

    `executable(*inputs)` takes one ndarray per input, of exactly its dtype, shape and strides, or a Python number for a 0-d
    input; it returns the outputs as a list of new arrays, with the caller's own array for an aliased output.
    """

    def __init__(
        self,
        program: Program,
        module: Module,
        objects: Sequence[bytes],
        threads: int,
        errors: Errors | None = None,
        generators: Sequence[int] = (),
    ) -> None:
        kernels = program.kernels
        self.program, self.module, self.threads = program, module, threads
        inputs, outputs = kernels.ports(kernels.inputs), kernels.ports(kernels.outputs)
        self._inputs, self._outputs = [port.buffer for port in inputs], [port.buffer for port in outputs]
        self._constants = [np.require(x, requirements=("C", "A")) for x in kernels.constants.values()]
        self._aliases = {
            k: [b.name for b in self._inputs].index(kernels.aliases[b.name])
            for k, b in enumerate(self._outputs)
            if b.name in kernels.aliases
        }
        self._measured = [kernels.measured.get(b.name) for b in self._outputs[:-1]] if kernels.measured else None
        self._cpu = host_cpu()
        self._hosts = HostCalls(module.hosts, watches=errors is not None)
        code = self._link(objects)
        run = self._call_natively(code) if native_calls() else self._call_portably(code)
        written = {k: self._inputs[k].nbytes for k in self._aliases.values()}
        self._watch = ErrorWatch(run, written, errors) if errors is not None and errors.possible else None
        # Flags cost a look after the call; only arrays that are written need care before it.
        draws = bool(generators) or self._hosts.draws
        self._run: Callable[..., Any] = self._watch if self._watch and (self._aliases or draws or self._hosts.postpones) else run
        if draws:
            self._run = Drawing(self._run, generators, locks=not module.hosts)
        if self._hosts.postpones:
            self._run = partial(run_then_show, self._run)
        if self._hosts.is_given_objects:
            self._run = partial(run_or_restore, self._run)
        if program.arena_size > _LARGE_ARENA:
            weakref.finalize(self, release_arena).atexit = False

    def __call__(self, *args: Any) -> list[Array]:
        try:
            result = self._run(*args)
        except FailedCheck:
            raise
        except (MemoryError, ValueError) as error:  # of taking memory, of which NumPy may need less: nothing has run yet
            message = str(error) or f"no memory for {self.program.arena_size} bytes"
            raise _failed_check(type(error).__name__)(message) from None
        if type(result) is tuple and len(result) == 2:
            outputs, flags = result
            result = self._watch.judge(outputs, flags, []) if self._watch is not None else outputs
        if type(result) is list:
            return result if self._measured is None else shrunk(result, self._measured)
        if result is not None:
            raise result if isinstance(result, FailedCheck) else self._error(*result)
        # Something was no plain array: a subclass, a NumPy scalar.
        arrays = [np.array(x, b.dtype, copy=None, ndmin=0) for x, b in zip(args, self._inputs, strict=True)]
        return self(*[x if type(x) is np.ndarray else x.view(np.ndarray) for x in arrays])

    @property
    def llvm(self) -> str:
        """The LLVM IR of the program, as emitted."""
        return self.module.text

    @cached_property
    def asm(self) -> str:
        """The machine code, as text."""
        modules = (jit.prepare(part, self._cpu) for part in self.module.parts)
        return "\n".join(jit.assembly(module, self._cpu, level=level) for module, level in modules)

    def _call_natively(self, code: jit.Code) -> Any:
        """The program behind the native call, which reads and makes arrays itself."""
        return native_function(
            code,
            self._inputs,
            self._outputs,
            exact=self._places_of_shapes(),
            extents=sum(map(len, self.program.kernels.exact.values())),
            aliases=self._aliases,
            constants=self._constants,
            arena=self.program.arena_size,
            release_gil=_is_long(self.program),
        )

    def _places_of_shapes(self) -> dict[int, tuple[int, int]]:
        """Outputs whose shapes the program says -> where among the extents it does, and how many they are."""
        exact = self.program.kernels.exact
        starts = dict(zip(exact, accumulate(map(len, exact.values()), initial=0)))
        return {k: (starts[b.name], len(exact[b.name])) for k, b in enumerate(self._outputs) if b.name in exact}

    def _call_portably(self, code: jit.Code) -> Any:
        """The same in Python, for interpreters whose arrays we cannot read in place."""
        kind = ctypes.PYFUNCTYPE if self.module.hosts else ctypes.CFUNCTYPE  # the former raises what a host call has raised
        entry = kind(ctypes.c_int64, *[ctypes.c_void_p] * 3)(code[ENTRY])

        def run(*args: Any) -> list[Array] | tuple[int, ...]:
            inputs = [np.asarray(x, b.dtype) for x, b in zip(args, self._inputs, strict=True)]
            buffers = exact_buffers(self.program.kernels, self._outputs, inputs)
            outputs = [inputs[self._aliases[i]] if i in self._aliases else _empty(b) for i, b in enumerate(buffers)]
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
        code = jit.link(objects, imports=addresses, exports=(ENTRY, SHAPES) if self.program.kernels.exact else (ENTRY,))
        code.keep(self._hosts)
        return code

    def _error(self, status: int, *values: int) -> BaseException:
        """The exception of a failed check, worded by it and pointing at the user's line."""
        if status == NO_MEMORY:
            return MemoryError("no memory for the scratch of a compiled program")
        check: Check = self.module.checks[status - 1]
        message = check.message.format(*values[: len(check.values)])
        failure: FailedCheck = _failed_check(check.error)(message, source=check.source)
        return failure


def error_record() -> ctypes.Array[ctypes.c_int64]:
    """What the entry of a program is handed as `error`, for a run that nobody interrupts."""
    record = (ctypes.c_int64 * ERROR_WORDS)()
    record[DUE] = ctypes.addressof(_NEVER)
    return record


_NEVER = ctypes.c_int64(0)


def exact_buffers(program: KernelProgram, outputs: Sequence[Buffer], inputs: Sequence[Array]) -> list[Buffer]:
    """The outputs' buffers; those whose shape follows from the inputs have their true shape."""
    buffers = list(outputs)
    if not program.exact:
        return buffers
    given = {port.buffer.name: x for port, x in zip(program.ports(program.inputs), inputs, strict=True)}
    values = {name: int(given[source.buffer]) for name, source in program.sizes.items() if source.buffer in given}
    for k, buffer in enumerate(outputs):
        if buffer.name in program.exact:
            buffers[k] = replace(buffer, shape=tuple(evaluate(e, values) for e in program.exact[buffer.name]))
    return buffers


def shrunk(outputs: list[Array], measured: Sequence[tuple[int | None, ...] | None]) -> list[Array]:
    """Outputs without the elements beyond their true shape.

    Args:
        outputs: of the largest shapes; the last one holds the true extents.
        measured: for each output and axis, where its extent stands there.
    """
    extents: list[int] = outputs.pop().tolist()
    for k, places in enumerate(measured):
        if places is not None:
            whole = outputs[k]
            shape = tuple(n if place is None else extents[place] for n, place in zip(whole.shape, places))
            outputs[k] = _first(whole, shape)
    return outputs


def _first(whole: Array, shape: tuple[int, ...]) -> Array:
    """The leading part of a new array: where it lies if much of it is kept and its elements are neighbours, else a copy."""
    if whole.shape == shape:
        return whole
    if whole.shape[1:] == shape[1:] and 4 * shape[0] >= whole.shape[0] and whole.flags.c_contiguous:
        whole.resize(shape, refcheck=False)
        return whole
    return whole[tuple(map(slice, shape))].copy()


@cache
def _failed_check(name: str) -> Any:
    """A failed check that is also the exception of that name, so that `except IndexError` works as in NumPy."""
    kind = exception_named(name)
    if issubclass(kind, FailedCheck):
        return kind
    return type(kind.__name__, (FailedCheck, kind), {"__module__": "jitml.errors"})


@cache
def _parallel_for(threads: int) -> bytes:
    return jit.generate(jit.parse(parallel_for_ir(threads)), host_cpu(), level=1)


@cache
def _support() -> bytes:
    return jit.generate(jit.parse(support_ir(host_cpu())), host_cpu(), level=1)


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
