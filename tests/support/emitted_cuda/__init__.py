"""Emitted CUDA C++, run by emulation: each kernel under every order of threads, against the interpreter of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitml.codegen.cuda.emit.launches import KernelMemory, write_kernel
from jitml.codegen.cuda.emit.program import assembled, emit_program
from jitml.codegen.cuda.emit.statements import ModuleText
from jitml.codegen.cuda.module import CudaModule
from jitml.ir.ops.regions import failed_check
from jitml.kernels.interpret import KernelFunction, compile_kernel
from jitml.kernels.ir import Kernel
from jitml.memory.program import Program
from support.cuda_emulation import ORDERS, EmulatedModule, arguments_of, build, guarded

Array = np.ndarray[Any, Any]

# How far sums in another order, and polynomials, may be from NumPy's.
CLOSE = {2: (4e-3, 4e-3), 4: (3e-6, 1e-6), 8: (1e-12, 1e-13)}


def module_of(kernel: Kernel, *, is_aligned: bool = False, has_barriers: bool = True) -> CudaModule:
    """A kernel by itself, whose parameters share no memory."""
    module = ModuleText()
    names = [b.name for b in kernel.params]
    memory = KernelMemory({name: name for name in names}, frozenset(names if is_aligned else ()))
    functions, launches = write_kernel(module, kernel, kernel.name, memory, has_barriers=has_barriers)
    return CudaModule(assembled(module, functions), {id(kernel): launches}, tuple(module.checks))


@dataclass
class EmulatedKernel:
    """A kernel that emulation runs.

    Args:
        is_guarded: whether arrays are put where accesses beside them fault, if they are C-contiguous and share no memory.
    """

    kernel: Kernel
    module: CudaModule
    code: EmulatedModule
    is_guarded: bool = True

    def run(self, arrays: Mapping[str, Array], order: int = 0) -> None:
        """Run it on arrays of the parameters' shapes."""
        error = np.zeros(self.module.error_words, np.int64)
        homes = {name: self._home(name, arrays) for name in arrays}
        for launch in self.module.launches[id(self.kernel)]:
            given = arguments_of(launch, homes, error)
            self.code.launch(launch.entry, launch.blocks, launch.threads, *given, shared=launch.shared, order=order)
        for name, home in homes.items():
            if home is not arrays[name] and name in self.kernel.writes:
                arrays[name][...] = home
        if error[0]:
            check = self.module.checks[error[0] - 1]
            raise failed_check(check.error)(check.message.format(*error[1 : 1 + len(check.values)]))

    def _home(self, name: str, arrays: Mapping[str, Array]) -> Array:
        array = arrays[name]
        lone = not any(np.may_share_memory(array, x) for other, x in arrays.items() if other != name)
        return guarded(array) if self.is_guarded and lone and array.size and array.flags.c_contiguous else array

    def compare(self, arrays: Mapping[str, Array], *, is_exact: bool = False) -> None:
        """Leave in the arrays what the interpreter of kernels answers; the emulation has to give the same under every order."""
        before = {name: arrays[name].copy() for name in self.kernel.writes}
        results = []
        for order in ORDERS:
            self.run(arrays, order)
            results.append({name: arrays[name].copy() for name in before})
            _restore(arrays, before)
        compile_kernel(self.kernel)(arrays)
        for found in results:
            for name, x in found.items():
                agree(x, results[0][name], self.kernel.name, is_exact=True)
                agree(x, arrays[name], self.kernel.name, is_exact=is_exact)


def _restore(arrays: Mapping[str, Array], before: Mapping[str, Array]) -> None:
    for name, x in before.items():
        arrays[name][...] = x


def agree(found: Array, expected: Array, where: str, *, is_exact: bool) -> None:
    if is_exact or expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, where)
        return
    rtol, atol = CLOSE[expected.dtype.itemsize]
    np.testing.assert_allclose(found, expected, rtol, atol, err_msg=where)


def kernels_of(program: Program) -> list[Kernel]:
    found = [step for step in program.kernels.steps if isinstance(step, Kernel)]
    return found + [kernel for bodies in program.bodies.values() for body in bodies for kernel in kernels_of(body)]


def emulated(programs: Sequence[Program], *, interprets: bool = True) -> list[dict[int, KernelFunction]]:
    """For each program its kernels, as what the interpreter of programs runs instead of its own; built in one go.

    Args:
        interprets: whether each run compares every order of threads, and the interpreter of kernels; else one is run.
    """
    modules = [emit_program(program) for program in programs]
    codes = build([module.source for module in modules])
    found = []
    for program, module, code in zip(programs, modules, codes, strict=True):
        kernels = [EmulatedKernel(kernel, module, code, is_guarded=False) for kernel in kernels_of(program)]
        found.append({id(k.kernel): k.compare if interprets else k.run for k in kernels})
    return found
