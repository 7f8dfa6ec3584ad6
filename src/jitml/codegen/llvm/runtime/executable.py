"""Native executables: what does a caller hold once a program is compiled?  It is called with arrays, and gives arrays.

Here object code is bound to what it calls (the thread pool, BLAS, sorts, draws, the arena) and given a way in.
Guards, conversions and containers of arguments are dispatch's business: an executable takes exactly the arrays it was compiled
for.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.codegen.llvm.ir.conventions import (
    ASIDE,
    CALLS,
    CLEAR,
    DUE,
    ENTRY,
    ERROR_WORDS,
    HEARD,
    LOOK,
    NO_MEMORY,
    PARALLEL_FOR,
    PARALLEL_FOR_WATCHED,
    RAISED,
    SHAPES,
    HostStep,
)
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.arena import arenas, release_arena
from jitml.codegen.llvm.runtime.blas import GATES, blas_address, blas_gates
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.codegen.llvm.runtime.host import HostCalls, host_shim
from jitml.codegen.llvm.runtime.native_call import MOST_BYTES, Record, enter_by, native_function
from jitml.codegen.llvm.runtime.safepoints import safepoints
from jitml.codegen.llvm.runtime.threads import RUNS, pool
from jitml.codegen.run.calling import ProgramCall, RunNeeds
from jitml.codegen.run.fp_errors import ErrorWatch, failure_of
from jitml.codegen.run.interface import ProgramInterface
from jitml.codegen.run.results import exact_buffers
from jitml.imports.late import late
from jitml.kernels.ir import Buffer
from jitml.records import dataclass, replace

if TYPE_CHECKING:
    from jitml.codegen.llvm.runtime import random, sorting
    from jitml.codegen.llvm.runtime.compiler import Upgrade
    from jitml.memory.program import Program
else:
    random, sorting = late("jitml.codegen.llvm.runtime.random"), late("jitml.codegen.llvm.runtime.sorting")

Array = np.ndarray[Any, Any]

# An arena above this size is given back when the program that needed it goes.
_LARGE_ARENA = 64 << 20


@dataclass(frozen=True, slots=True)
class NativeCode:
    """What of a program is linked, and how it is called.

    Args:
        objects: object code, all but the runtime's own.
        externals: functions that the runtime must supply.
        constants: C-contiguous.
        hosts: the calls into Python, by the numbers that the code gives them.
        is_long: whether it is worth letting other Python threads run.
        threads: the most that it may use.
    """

    objects: tuple[bytes, ...]
    externals: tuple[str, ...]
    constants: tuple[Array, ...]
    hosts: tuple[HostStep, ...]
    is_long: bool
    threads: int


class NativeExecutable(ProgramCall):
    """A program as native code.

    Args:
        planned: gives the program as data, for who looks into it.

    Attributes:
        is_plain: whether the native call is all of a run, so that a native entry may make it.
        better: what makes its full code, if that is not there yet.
    """

    better: Upgrade | None

    def __init__(self, interface: ProgramInterface, native: NativeCode, needs: RunNeeds, planned: Callable[[], Program]) -> None:
        super().__init__(interface)
        self.native, self._planned = native, planned
        self._hosts = HostCalls(native.hosts, watches=needs.errors is not None)
        errors, code = needs.errors, self._link()
        self._watch = ErrorWatch(self.aliases.values(), errors) if errors is not None and errors.possible else None
        run: Any = self._call_natively(code) if native_calls() else _PortableRun(self, code)
        self._bare, self.better = run, None
        self.surround(run, needs)
        # What a host call raises is told of in Python.
        self.is_plain = native_calls() and self._run is run and not native.hosts
        if interface.arena > _LARGE_ARENA:
            weakref.finalize(self, release_arena).atexit = False

    @property
    def descriptor(self) -> int:
        """Where the native call finds what it has to know of the program."""
        record: Record = self._bare.__self__
        return int(record.ctypes.data)

    @cached_property
    def program(self) -> Program:
        """What has been compiled."""
        return self._planned()

    def _call_natively(self, code: jit.Code) -> Any:
        """The program behind the native call, which reads and makes arrays itself."""
        watch = self._watch
        return native_function(
            code,
            self.inputs,
            self.outputs,
            exact=self._places_of_shapes(),
            extents=sum(map(len, self.interface.exact.values())),
            aliases=self.aliases,
            constants=self.native.constants,
            arena=self.interface.arena,
            release_gil=self.native.is_long,
            save=watch.save if watch is not None and self.aliases else None,
            judge=None if watch is None else watch.judge,
        )

    def _places_of_shapes(self) -> dict[int, tuple[int, int]]:
        """Outputs whose shapes the program says -> where among the extents it does, and how many they are."""
        exact = self.interface.exact
        starts = dict(zip(exact, accumulate(map(len, exact.values()), initial=0)))
        return {k: (starts[b.name], len(exact[b.name])) for k, b in enumerate(self.outputs) if b.name in exact}

    @property
    def is_made_better(self) -> bool:
        return self.better is not None and self.better.is_to_come()

    def enter_by(self, objects: tuple[bytes, ...]) -> None:
        """Have calls that begin from now on run these objects' code of the same program."""
        self.native = replace(self.native, objects=objects)
        code = self._link()
        if native_calls():
            enter_by(self._bare.__self__, code)
        else:
            self._bare.enter_by(code)

    def _link(self) -> jit.Code:
        """The program's code, bound to what it calls."""
        addresses: dict[str, int] = {}
        for name in self.native.externals:
            if name in (PARALLEL_FOR, PARALLEL_FOR_WATCHED):
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
                addresses[name] = sorting.sort_address(name)
            elif name.startswith("jitml_"):
                addresses[name] = random.random_address(name)
            elif name.endswith("_"):  # a Fortran name
                addresses[name] = blas_address(name)
            # Anything else is libm's: the linker finds it in the process, and says so if it does not.
        exports = (ENTRY, SHAPES) if self.interface.exact else (ENTRY,)
        code = jit.link(self.native.objects, imports=addresses, exports=exports)
        code.keep(self._hosts)
        return code

    def failure(self, status: int, *values: Any) -> BaseException:
        """What was raised, or stands for a failed check, floating-point errors, or scratch for which there is no memory."""
        if status == NO_MEMORY:
            return MemoryError("no memory for the scratch of a compiled program")
        if status == RAISED:
            return values[0]
        if status == HEARD:
            return failure_of(values[0])
        return super().failure(status, *values)


class _PortableRun:
    """The native call in Python, for interpreters whose arrays we cannot read in place."""

    def __init__(self, executable: NativeExecutable, code: jit.Code) -> None:
        self._interface, self._constants = executable.interface, executable.native.constants
        # The former raises what a host call has raised.
        self._kind = (ctypes.PYFUNCTYPE if executable.native.hosts else ctypes.CFUNCTYPE)(ctypes.c_int64, *[ctypes.c_void_p] * 3)
        self._codes: list[jit.Code] = []  # calls may be under way in each
        self.enter_by(code)

    def enter_by(self, code: jit.Code) -> None:
        self._codes.append(code)
        self._entry = self._kind(code[ENTRY])

    def __call__(self, *args: Any) -> list[Array] | tuple[int, ...]:
        interface, aliases = self._interface, self._interface.aliases
        inputs = [np.asarray(x, b.dtype) for x, b in zip(args, interface.inputs, strict=True)]
        buffers = exact_buffers(interface, inputs)
        outputs = [inputs[aliases[i]] if i in aliases else _empty(b) for i, b in enumerate(buffers)]
        pointers = [array.ctypes.data for array in (*inputs, *outputs, *self._constants)]
        table, error = (ctypes.c_void_p * (len(pointers) + 1))(*pointers), error_record()
        arena = np.empty(min(interface.arena, MOST_BYTES), np.uint8)  # not the thread's: Python may be called yet
        status = self._entry(table, arena.ctypes.data, error)
        return (status, *error[:DUE]) if status else outputs


def error_record() -> ctypes.Array[ctypes.c_int64]:
    """What the entry of a program is handed as `error`, for a run that nobody interrupts."""
    record = (ctypes.c_int64 * ERROR_WORDS)()
    record[DUE] = ctypes.addressof(_NEVER)
    return record


_NEVER = ctypes.c_int64(0)


def _empty(buffer: Buffer) -> Array:
    """New memory of a buffer's shape and strides."""
    strides = tuple(step * buffer.dtype.itemsize for step in buffer.element_strides)
    return np.ndarray(buffer.shape, buffer.dtype, strides=strides)
