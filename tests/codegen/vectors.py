"""Compiles one scalar function as a loop over arrays, for the tests of the builder and of vector math."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from jitml.codegen.llvm.ir.builder import Builder, Operand, llvm_type
from jitml.codegen.llvm.ir.declarations import Declarations, mentioned

KEEP: list[Any] = []  # execution engines live as long as their code


@cache
def host() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
    )


def loop_text(
    write: Callable[..., Operand],
    inputs: tuple[np.dtype, ...],
    output: np.dtype,
    lanes: int,
    copies: int = 1,
    has_fma: bool = True,
) -> str:
    """`void f(ptr x0, ..., ptr out, i64 n)`: out[i] = write(builder, x0[i], ...) for blocks of lanes * copies elements."""
    module = Declarations()
    b = Builder(module, has_fma=has_fma)
    for line in ("br label %head",):
        b.emit(line)
    b.start_block("head")
    b.emit("%i = phi i64 [ 0, %entry ], [ %next, %latch ]")

    def address(pointer: str, dtype: np.dtype, copy: int) -> str:
        offset = b.define(f"add i64 %i, {copy * lanes}")
        return b.define(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {offset}")

    args = []
    for k, dtype in enumerate(inputs):
        names = []
        for copy in range(copies):
            kind = memory_type(dtype, lanes)
            name = b.define(f"load {kind}, ptr {address(f'%x{k}', dtype, copy)}, align 1")
            if dtype == np.bool_:
                name = b.define(f"trunc {kind} {name} to {llvm_type(dtype, lanes)}")
            names.append(name)
        args.append(Operand(dtype, lanes, tuple(names)))
    result = b.splat(write(b, *args), lanes)
    assert result.dtype == output
    for copy in range(copies):
        name = result.names[copy if len(result.names) > 1 else 0]
        kind = memory_type(output, lanes)
        if output == np.bool_:
            name = b.define(f"zext {result.type} {name} to {kind}")
        b.emit(f"store {kind} {name}, ptr {address('%out', output, copy)}, align 1")
    b.emit("br label %latch")
    b.start_block("latch")
    b.emit(f"%next = add i64 %i, {lanes * copies}")
    more = b.define("icmp ult i64 %next, %n")
    b.emit(f"br i1 {more}, label %head, label %exit")
    b.start_block("exit")
    b.emit("ret void")
    params = "".join(f"ptr noalias %x{k}, " for k in range(len(inputs)))
    header = f'define void @f({params}ptr noalias %out, i64 %n) "prefer-vector-width"="512" {{\nentry:\n'
    body = "\n".join(b.lines)
    cold = list(module.functions.values())
    names = set(mentioned("\n".join([body, *cold]))) - module.functions.keys()
    return "\n".join([f"{header}{body}\n}}", *cold, module.text_for(names), 'attributes #0 = { "prefer-vector-width"="512" }\n'])


def memory_type(dtype: np.dtype, lanes: int = 1) -> str:
    return llvm_type(np.dtype(np.uint8) if dtype == np.bool_ else dtype, lanes)


def compile_vector(
    write: Callable[..., Operand], inputs: tuple[Any, ...], output: Any, lanes: int = 1, copies: int = 1, has_fma: bool = True
) -> Callable[..., np.ndarray]:
    """The loop as a Python function on arrays of any length (padded to whole blocks with the last element)."""
    dtypes, out_dtype = tuple(np.dtype(d) for d in inputs), np.dtype(output)
    module = llvm.parse_assembly(loop_text(write, dtypes, out_dtype, lanes, copies, has_fma))
    module.verify()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host_copy())
    engine.add_module(module)
    engine.finalize_object()
    KEEP.append(engine)
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(dtypes) + 1), ctypes.c_int64)(engine.get_function_address("f"))
    block = lanes * copies

    def run(*arrays: Any) -> np.ndarray:
        xs = np.broadcast_arrays(*(np.asarray(a, dtype=d) for a, d in zip(arrays, dtypes, strict=True)))
        n = xs[0].size
        padded = [np.ascontiguousarray(np.pad(x.ravel(), (0, -n % block), mode="edge")) for x in xs]
        out = np.empty(len(padded[0]), out_dtype)
        native(*(x.ctypes.data for x in padded), out.ctypes.data, len(out))
        return out[:n].reshape(xs[0].shape)

    run.native = native  # type: ignore[attr-defined]
    return run


def host_copy() -> llvm.TargetMachine:
    """An engine owns its target machine, so each gets a new one."""
    host()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
    )
