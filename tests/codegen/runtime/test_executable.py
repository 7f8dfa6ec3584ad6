"""The way in: programs written by hand in LLVM IR, called with arrays."""

from __future__ import annotations

import gc
import math
import os
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import jitml
import jitml.codegen.llvm.runtime.executable as executable_module
from jitml.codegen.llvm.ir.conventions import ModulePart
from jitml.codegen.llvm.module import Module
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.codegen.llvm.runtime.compiler import bind_module
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.executable import NativeExecutable
from jitml.codegen.llvm.runtime.jit import generate, parse
from jitml.errors import JitmlError, Source
from jitml.ir.types import BOOL, F64, I64
from jitml.kernels.ir import Buffer, Check, Const
from jitml.kernels.program import KernelProgram
from jitml.memory.program import MemoryReport, Place, Program


def program(inputs, outputs, *, constants=None, aliases=None, arena=0) -> Program:
    constants = constants or {}
    buffers = {b.name: b for b in (*inputs, *outputs)} | {n: Buffer(n, a.dtype, a.shape) for n, a in constants.items()}
    names = [tuple(b.name for b in group) for group in (inputs, outputs)]
    kernels = KernelProgram(buffers, names[0], names[1], constants, aliases or {}, ())
    places = {b.name: Place("input", i) for i, b in enumerate(inputs)} | {
        b.name: Place("output", i) for i, b in enumerate(outputs)
    }
    return Program(kernels, places, arena, MemoryReport(arena, arena, arena))


# Copies n doubles from entry `source` of the table to entry `sink`, by way of the arena if there is one.
COPY = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @jitml_run(ptr %table, ptr %arena, ptr %error) {{
  %pi = getelementptr ptr, ptr %table, i64 {source}
  %po = getelementptr ptr, ptr %table, i64 {sink}
  %i = load ptr, ptr %pi
  %o = load ptr, ptr %po
  {body}
  ret i64 0
}}
"""
DIRECT = "call void @llvm.memcpy.p0.p0.i64(ptr %o, ptr %i, i64 {bytes}, i1 false)"
THROUGH = DIRECT.replace("%o", "%arena") + "\n  " + DIRECT.replace("%i", "%arena")


def copy(bytes: int, source: int = 0, sink: int = 1, through: bool = False) -> Module:
    text = COPY.format(source=source, sink=sink, body=(THROUGH if through else DIRECT).format(bytes=bytes))
    return Module((ModulePart("usual", text),), (), ())


def compiled(program: Program, module: Module) -> NativeExecutable:
    (part,) = module.parts
    return bind_module(program, module, [generate(parse(part.text), host_cpu(), level=1)], 1)


@pytest.fixture(params=["native", "portable"])
def layout(request, monkeypatch) -> str:
    """Both ways in: reading arrays in place, and through their Python attributes."""
    if request.param == "portable":
        monkeypatch.setattr(executable_module, "native_calls", lambda: False)
    elif not native_calls():
        pytest.skip("this interpreter's arrays cannot be read in place")
    return request.param


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0,), (2, 0, 3), (100_000,)])
def test_arrays_in_and_out(layout: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    run = compiled(program([Buffer("x", F64, shape)], [Buffer("y", F64, shape)]), copy(x.nbytes))
    (y,) = run(x)
    assert type(y) is np.ndarray and y.dtype == F64 and y.shape == shape and y.flags.c_contiguous and y.flags.writeable
    np.testing.assert_array_equal(x, y)


def test_results_may_be_in_another_order(layout: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    run = compiled(program([Buffer("x", F64, (2, 3))], [Buffer("y", F64, (3, 2), (1, 3))]), copy(48))
    (y,) = run(x)
    assert y.strides == (8, 24)
    np.testing.assert_array_equal(x.T, y)


@pytest.mark.parametrize(
    "dtype, value", [(F64, 1.5), (F64, np.float64(2.5)), (I64, -7), (I64, -1), (I64, np.int64(3)), (BOOL, True)]
)
def test_numbers(layout: str, dtype: np.dtype, value: object) -> None:
    run = compiled(program([Buffer("x", dtype, ())], [Buffer("y", dtype, ())]), copy(dtype.itemsize))
    assert run(value)[0] == value


def test_a_number_that_does_not_fit(layout: str) -> None:
    run = compiled(program([Buffer("x", I64, ())], [Buffer("y", I64, ())]), copy(8))
    with pytest.raises(OverflowError):
        run(2**70)


def test_subclasses_are_read_as_arrays(layout: str) -> None:
    x = np.arange(4.0).view(np.recarray)
    (y,) = compiled(program([Buffer("x", F64, (4,))], [Buffer("y", F64, (4,))]), copy(32))(x)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(x, y)


def test_the_wrong_number_of_arguments(layout: str) -> None:
    with pytest.raises(ValueError):
        compiled(program([Buffer("x", F64, ())], []), copy(0, sink=0))()


def test_an_aliased_output_is_the_callers_array(layout: str) -> None:
    x, y = np.arange(5.0), np.zeros(5)
    inputs, outputs = [Buffer("x", F64, (5,)), Buffer("y", F64, (5,))], [Buffer("z", F64, (5,))]
    run = compiled(program(inputs, outputs, aliases={"z": "y"}), copy(40, sink=2))
    count = sys.getrefcount(y)
    (z,) = run(x, y)
    assert z is y and y[4] == 4.0
    del z
    assert sys.getrefcount(y) == count


def test_constants(layout: str) -> None:
    run = compiled(program([], [Buffer("y", F64, (3,))], constants={"c": np.array([1.0, 2.0, 3.0])}), copy(24, source=1, sink=0))
    gc.collect()
    assert run()[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("n", [8, 100_000, 1_000_000])
def test_the_arena_serves_threads_at_once(layout: str, n: int) -> None:
    run = compiled(program([Buffer("x", F64, (n,))], [Buffer("y", F64, (n,))], arena=8 * n), copy(8 * n, through=True))
    wrong = []

    def work(seed: int) -> None:
        for step in range(20):
            if not (run(np.full(n, float(seed + step)))[0] == seed + step).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_too_large(layout: str) -> None:
    with pytest.raises(MemoryError):
        compiled(program([], [Buffer("y", F64, (2**56,))]), copy(0, source=0, sink=0))()
    with pytest.raises(MemoryError):
        compiled(program([], [Buffer("y", F64, (1,))], arena=2**60), copy(0, source=0, sink=0))()


def test_a_failed_check_says_where(layout: str) -> None:
    check = Check(
        Const(False, BOOL),
        "IndexError",
        "index {} is out of bounds for axis 0 with size {}",
        (Const(7), Const(3)),
        Source("a.py", 3, "f"),
    )
    text = """
    define i64 @jitml_run(ptr %table, ptr %arena, ptr %error) {
      store i64 7, ptr %error
      %e = getelementptr i64, ptr %error, i64 1
      store i64 3, ptr %e
      ret i64 1
    }"""
    run = compiled(program([], [Buffer("y", F64, (3,))]), Module((ModulePart("usual", text),), (check,), ()))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3") as caught:
        run()
    assert isinstance(caught.value, JitmlError) and "a.py:3 in f" in str(caught.value)


def test_libraries_are_bound() -> None:
    text = """
    declare double @cosh(double)
    declare double @ddot_(ptr, ptr, ptr, ptr, ptr)
    @n = private constant i64 3
    @one = private constant i64 1
    define i64 @jitml_run(ptr %table, ptr %arena, ptr %error) {
      %x = load ptr, ptr %table
      %p = getelementptr ptr, ptr %table, i64 1
      %y = load ptr, ptr %p
      %d = call double @ddot_(ptr @n, ptr %x, ptr @one, ptr %x, ptr @one)
      %c = call double @cosh(double %d)
      store double %c, ptr %y
      ret i64 0
    }"""
    run = compiled(
        program([Buffer("x", F64, (3,))], [Buffer("y", F64, ())]), Module((ModulePart("usual", text),), (), ("cosh", "ddot_"))
    )
    assert run(np.array([0.5, 0.25, 1.0]))[0] == math.cosh(1.3125)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_nothing_leaks() -> None:
    statm = Path("/proc/self/statm")
    x = np.zeros(1000)
    run = compiled(program([Buffer("x", F64, (1000,))], [Buffer("y", F64, (1000,))]), copy(8000))
    x_count, dtype_count = sys.getrefcount(x), sys.getrefcount(F64)
    for _ in range(20_000):
        run(x)
    before = int(statm.read_text().split()[1])
    for _ in range(20_000):
        run(x)
    after = int(statm.read_text().split()[1])
    assert sys.getrefcount(x) == x_count and abs(sys.getrefcount(F64) - dtype_count) < 5
    assert after - before < 100


def test_code_is_unloaded_with_its_executable() -> None:
    run = compiled(program([Buffer("x", F64, (3,))], [Buffer("y", F64, (3,))]), copy(24))
    function = run._run
    del run
    gc.collect()
    assert function(np.arange(3.0))[0].tolist() == [0.0, 1.0, 2.0]  # the function alone keeps its code


def test_functions_that_are_dropped_leave_nothing_in_memory() -> None:
    def compile_some(count: int) -> int:
        for k in range(count):
            jitml.jit(lambda x, k=k: np.exp(x) * k + x.sum())(np.arange(3.0))
        gc.collect()
        return sum(type(x) is not weakref.ref for x in gc.get_objects())  # references to locks are cleared by the hundred

    compile_some(5)
    before = compile_some(5)
    assert compile_some(20) - before < 20
