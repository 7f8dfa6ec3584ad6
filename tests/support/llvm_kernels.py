"""Compile one kernel for this machine and run it on arrays: what tests of the LLVM back end share."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitml.codegen.llvm.ir.conventions import LOOK, PARALLEL_FOR
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.module import Module, emit_program
from jitml.codegen.llvm.runtime.blas import GATES, blas_address, blas_gates
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.executable import error_record
from jitml.codegen.llvm.runtime.jit import generate, link, prepare
from jitml.codegen.llvm.runtime.jit import parse as parse_ir
from jitml.codegen.llvm.runtime.safepoints import safepoints
from jitml.codegen.llvm.runtime.threads import RUNS, parallel_for_ir, pool
from jitml.kernels.ir import Kernel
from jitml.kernels.program import KernelProgram
from jitml.kernels.text.parser import parse
from jitml.memory.program import MemoryReport, Place, Program

Arrays = dict[str, np.ndarray[Any, Any]]


def program_of(kernels: Sequence[Kernel], shared: Mapping[str, str] = {}, outputs: Sequence[str] = ()) -> Program:
    """A program of these kernels: parameters are inputs but for `outputs`; `shared` names buffers that lie where another does."""
    buffers = {b.name: b for kernel in kernels for b in kernel.params}
    inputs = tuple(name for name in buffers if name not in shared and name not in outputs)
    places = {name: Place("input", inputs.index(shared.get(name, name))) for name in buffers if name not in outputs}
    places |= {name: Place("output", n) for n, name in enumerate(outputs)}
    program = KernelProgram(buffers, inputs, tuple(outputs), {}, {}, tuple(kernels))
    return Program(program, places, 0, MemoryReport(0, 0, 0))


def emit_kernel_text(text: str, target: Cpu, fastmath: frozenset[str] = frozenset()) -> Module:
    return emit_program(program_of([parse(text)]), cpu=target, fastmath=fastmath)


def texts_of(module: Module) -> dict[str, str]:
    """The texts of a module's parts, by the effort that each is worth; of some that are worth the same, the last."""
    return {part.effort: part.text for part in module.parts}


def run_program(program: Program, arrays: Arrays, *, target: Cpu | None = None, threads: int = 2) -> tuple[int, list[int]]:
    """Run on `arrays` in place; returns the entry's result and the four words of the error record."""
    target = target or host_cpu()
    module = emit_program(program, cpu=target, threads=threads)
    pooled = pool()
    helper = parse_ir(parallel_for_ir(threads))
    imports = {name: _address(name) for name in module.externals if not name.startswith(PARALLEL_FOR)}
    imports |= {name: pooled[name] for name in RUNS}
    objects = [generate(helper, target, level=1)]
    for ir, level in (prepare(part, target) for part in module.parts):
        ir.verify()
        objects.append(generate(ir, target, level=level))
    code = link(objects, imports=imports, exports=["jitml_run"])
    pointers = [arrays[name].ctypes.data for name in program.kernels.inputs + program.kernels.outputs]
    error = error_record()
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(code["jitml_run"])
    return entry((ctypes.c_void_p * max(1, len(pointers)))(*pointers), None, error), list(error[:4])


def run_kernel(text: str, arrays: Arrays, shared: Mapping[str, str] = {}, **options: Any) -> tuple[int, list[int]]:
    return run_program(program_of([parse(text)], shared), arrays, **options)


def _address(name: str) -> int:
    """Of a function of BLAS (a Fortran name) or the C library."""
    if name == LOOK:
        return safepoints()[name]
    if name in GATES:
        return blas_gates()[name]
    if name.endswith("_"):
        return blas_address(name)
    function = getattr(ctypes.CDLL("libm.so.6" if name not in ("aligned_alloc", "free", "memcpy") else None), name)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def copies(arrays: Arrays) -> Arrays:
    return {name: np.array(x) for name, x in arrays.items()}


def memory_for(kernel: Kernel, seed: int = 0) -> Arrays:
    """Small numbers for every parameter: exact in each dtype, so that sums do not depend on their order."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for b in kernel.params:
        span = sum((n - 1) * abs(s) for n, s in zip(b.shape, b.element_strides)) + 1 if b.size else 0
        low = 0 if b.dtype.kind in "bu" else -8
        arrays[b.name] = rng.integers(low, 2 if b.dtype.kind == "b" else 9, span).astype(b.dtype)
    return arrays
