"""Library calls: every orientation of a product against NumPy, and copies between layouts."""

from __future__ import annotations

import ctypes
import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from jitml.codegen.interpreter import run as interpret
from jitml.codegen.llvm.calls.blas import ProductPieces
from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime import blas
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.product import Matrix, Product
from jitml.errors import UnsupportedError
from jitml.ir.types import F32, F64, I64, DType
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from jitml.memory.program import MemoryReport, Place, Program
from support.llvm_kernels import run_program

Array = np.ndarray[Any, Any]


def call_program(call: Call, buffers: dict[str, Buffer]) -> Program:
    names = tuple(dict.fromkeys((*call.reads, *call.writes)))
    places = {name: Place("input", n) for n, name in enumerate(names)}
    return Program(KernelProgram(buffers, names, (), {}, {}, (call,)), places, 0, MemoryReport(0, 0, 0))


def layout(rows: int, columns: int, order: str) -> tuple[int, int]:
    """Row and column strides of a matrix with some slack between its lines."""
    return (columns + 3, 1) if order == "C" else (1, rows + 3)


def gemm(
    m: int,
    n: int,
    k: int,
    orders: str,
    batch: tuple[int, ...],
    dtype: DType,
    extents: tuple[int, int, int] | None = None,
    starts: tuple[int, ...] = (0, 0, 0),
) -> None:
    """Args:
    batch: the last axis of it is the outer one in memory.
    extents: m, n and k of this run, if the program has m, n and k for the largest only.
    starts: where the matrices begin, if only the run knows.
    """
    rng = np.random.default_rng(m * 100 + n * 10 + k)
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    params, arrays, buffers = {"batch": batch, "m": m, "n": n, "k": k}, {}, {}
    values = [] if extents is None else list(extents)
    for (name, (rows, columns)), order, start in zip(shapes.items(), orders, starts):
        row, col = layout(rows, columns, order)
        steps = tuple((rows + 3) * (columns + 3) * math.prod(batch[:level]) for level in range(len(batch)))
        arrays[name] = rng.integers(-4, 5, 2 + start + math.prod(batch) * (rows + 3) * (columns + 3)).astype(dtype)
        buffers[name] = Buffer(name, dtype, arrays[name].shape)
        params |= {f"{name}_offset": 2, f"{name}_batch": steps, f"{name}_row": row, f"{name}_col": col}
        if start:
            params[f"{name}_start"] = len(values)
            values.append(start)

    if extents is not None:
        params["sized"] = True
        (m, n, k) = extents
        shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    if values:
        arrays["values"] = np.array(values)
        buffers["values"] = Buffer("values", I64, (len(values),))

    def matrices(name: str, of: Array) -> Array:
        strides = tuple(
            step * dtype.itemsize for step in (*params[f"{name}_batch"], params[f"{name}_row"], params[f"{name}_col"])
        )
        offset = 2 + starts["abc".index(name)]
        return np.ndarray((*batch, *shapes[name]), dtype, of, offset * dtype.itemsize, strides)

    expected = matrices("a", arrays["a"]) @ matrices("b", arrays["b"])
    program = call_program(Call("gemm", ("a", "b", *(["values"] if values else [])), ("c",), params), buffers)
    by_interpreter, inputs = arrays["c"].copy(), [arrays[name] for name in program.kernels.inputs]
    interpret(program, [by_interpreter if x is arrays["c"] else x for x in inputs])
    np.testing.assert_array_equal(matrices("c", by_interpreter), expected)
    outside = arrays["c"].copy()
    assert run_program(program, arrays)[0] == 0
    np.testing.assert_array_equal(matrices("c", arrays["c"]), expected)
    matrices("c", arrays["c"])[...] = matrices("c", outside)
    np.testing.assert_array_equal(arrays["c"], outside, err_msg="written outside the result")


@pytest.mark.parametrize("shape", [(), (0,), (7,), (5, 6), (400, 700)])
def test_zeros_in_memory_that_is_not_the_programs_own(shape: tuple[int, ...]) -> None:
    for dtype in (F32, I64):
        arrays = {"x": np.full(shape, 7, dtype)}
        assert run_program(call_program(Call("zeros", (), ("x",), {}), {"x": Buffer("x", dtype, shape)}), arrays)[0] == 0
        assert not arrays["x"].any()


@pytest.mark.parametrize("orders", ["".join(o) for o in product("CF", repeat=3)])
def test_gemm_in_every_layout(orders: str) -> None:
    gemm(13, 17, 19, orders, (2,), F64)
    gemm(3, 5, 4, orders, (3,), F32)


@pytest.mark.parametrize(("m", "n", "k"), [(13, 17, 19), (3, 5, 4), (1, 30, 20), (30, 1, 20), (1, 1, 40), (200, 200, 60)])
def test_batches_of_several_axes_and_starts_that_the_run_tells(m: int, n: int, k: int) -> None:
    for batch in ((2, 3), (3, 2, 2), ()):
        for starts in ((0, 0, 0), (5, 0, 0), (7, 9, 4)):
            gemm(m, n, k, "CFC", batch, F64, starts=starts)
    gemm(40, 30, 20, "CCF", (2, 3), F64, extents=(33, 9, 11), starts=(7, 0, 4))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 40), (1, 30, 20), (30, 1, 20), (30, 20, 1), (1, 1, 1), (20, 30, 0), (1, 30, 2), (9, 1, 3)]
)
def test_degenerate_products(m: int, n: int, k: int, dtype: DType) -> None:
    for orders in ("CCC", "FFC", "CFF"):
        gemm(m, n, k, orders, (2,), dtype)


@pytest.mark.parametrize(
    ("m", "n", "k", "batch"),
    [(700, 130, 60, ()), (90, 500, 200, ()), (303, 310, 200, ()), (64, 64, 500, (3,)), (900, 1, 900, ())],
)
def test_products_in_pieces(m: int, n: int, k: int, batch: tuple[int, ...]) -> None:
    for orders in ("CCC", "FCC", "CFC", "CFF"):
        gemm(m, n, k, orders, batch, F64)


# The operand that BLAS has to turn as it packs it is packed least often; eight threads have work where there is enough.
@pytest.mark.parametrize(
    ("extents", "orders", "grid"),
    [
        ((512, 512, 128), "CC", (8, 1)),
        ((512, 512, 128), "CF", (2, 4)),
        ((512, 128, 512), "CC", (8, 1)),
        ((512, 128, 512), "FC", (8, 1)),
        ((512, 128, 512), "CF", (4, 2)),
        ((128, 512, 512), "FC", (2, 4)),
        ((128, 128, 512), "FC", (2, 1)),
        ((256, 256, 512), "FC", (4, 1)),
        ((256, 256, 512), "CF", (1, 4)),
        ((4096, 4096, 4096), "CF", (4, 8)),
        ((50_000, 60, 100), "FC", (8, 1)),
        ((5000, 5000, 2500), "CC", (29, 1)),
        ((60, 60, 60), "CC", (1, 1)),
        ((512, 1, 4096), "CC", (8, 1)),
    ],
)
def test_where_products_are_cut(extents: tuple[int, int, int], orders: str, grid: tuple[int, int]) -> None:
    m, n, k = extents
    x, y = (
        Matrix(Buffer(name, F64, shape), 0, (), *((shape[1], 1) if order == "C" else (1, shape[0])))
        for name, shape, order in zip("xy", ((m, k), (k, n)), orders)
    )
    pieces = ProductPieces.of(Product((), m, n, k, x, y, Matrix(Buffer("z", F64, (m, n)), 0, (), n, 1)), threads=8)
    assert (pieces.rows.count, pieces.columns.count) == grid


@pytest.mark.parametrize("threads, count", [(1, 1), (2, 2), (4, 4), (8, 8), (16, 8)])
def test_products_are_cut_for_the_threads_that_there_may_be(threads: int, count: int) -> None:
    x, y, z = (Matrix(Buffer(name, F64, (512, 512)), 0, (), 512, 1) for name in "xyz")
    assert ProductPieces.of(Product((), 512, 128, 512, x, y, z), threads).count == count


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("m, k, threads", [(70, 2100, 2), (13, 20, 2), (300, 130, 1), (300, 130, 3), (531, 300, 4)])
def test_a_matrix_times_its_own_transpose(m: int, k: int, threads: int, order: str, dtype: DType) -> None:
    row, col = layout(k, m, order)
    x = np.random.default_rng(0).integers(-4, 5, (k + 3) * (m + 3)).astype(dtype)
    tall = np.ndarray((k, m), dtype, x, 0, (row * dtype.itemsize, col * dtype.itemsize))
    params = {"batch": (), "m": m, "n": m, "k": k} | {f"{a}_offset": 0 for a in "abc"} | {f"{a}_batch": () for a in "abc"}
    params |= {"a_row": col, "a_col": row, "b_row": row, "b_col": col, "c_row": m + 1, "c_col": 1}
    buffers = {"x": Buffer("x", dtype, x.shape), "z": Buffer("z", dtype, (m, m + 1))}
    arrays = {"x": x, "z": np.full((m, m + 1), 9, dtype)}
    program = call_program(Call("gemm", ("x",), ("z",), params), buffers)
    assert "syrk" in emit_program(program, cpu=host_cpu(), threads=threads).text
    assert run_program(program, arrays, threads=threads)[0] == 0
    np.testing.assert_array_equal(arrays["z"][:, :m], tall.T @ tall)
    assert (arrays["z"][:, m] == 9).all()


@pytest.mark.parametrize("n", [3, 60])
def test_a_matrix_times_some_rows_of_itself_is_not_symmetric(n: int) -> None:
    x = np.random.default_rng(0).integers(-4, 5, (70, 400)).astype(F64)
    params = {"batch": (), "m": 70, "n": n, "k": 400} | {f"{a}_offset": 0 for a in "abc"} | {f"{a}_batch": () for a in "abc"}
    params |= {"a_row": 400, "a_col": 1, "b_row": 1, "b_col": 400, "c_row": n, "c_col": 1}
    arrays = {"x": x, "z": np.zeros((71, n))}
    program = call_program(Call("gemm", ("x",), ("z",), params), {"x": Buffer("x", F64, x.shape), "z": Buffer("z", F64, (71, n))})
    assert run_program(program, arrays)[0] == 0
    np.testing.assert_array_equal(arrays["z"], np.vstack([x @ x[:n].T, np.zeros(n)]))


def test_products_are_numpys_librarys_where_it_tells_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    library = blas._numpys()
    if library is None:
        pytest.skip("this NumPy brings no OpenBLAS that tells of its routines")
    ours = blas.blas_address("dgemm_")
    assert ours == ctypes.cast(library.scipy_dgemm_64_, ctypes.c_void_p).value
    with pytest.raises(KeyError):
        blas.blas_address("dgemmy_")
    monkeypatch.setattr(blas, "_numpys", lambda: None)
    assert blas.blas_address("dgemm_") != ours  # SciPy's, which reads the first half of each integer
    gemm(13, 17, 19, "CFC", (2,), F64)
    gemm(40, 30, 20, "CCF", (2,), F32, extents=(33, 9, 11))
    gemm(1, 30, 20, "CCC", (), F64)


def test_sizes_beyond_32_bits_are_refused() -> None:
    n = 2**31
    params = {"batch": (), "m": 2, "n": 2, "k": n} | {f"{x}_offset": 0 for x in "abc"} | {f"{x}_batch": () for x in "abc"}
    params |= {"a_row": n, "a_col": 1, "b_row": 2, "b_col": 1, "c_row": 2, "c_col": 1}
    buffers = {name: Buffer(name, F64, (4,)) for name in "abc"}
    with pytest.raises(UnsupportedError, match="does not fit BLAS"):
        emit_program(call_program(Call("gemm", ("a", "b"), ("c",), params), buffers), cpu=host_cpu())


@pytest.mark.parametrize("shape", [(), (0,), (7,), (5, 6), (3, 4, 5), (400, 700)])
def test_copies(shape: tuple[int, ...]) -> None:
    buffers = {name: Buffer(name, F64, shape) for name in "xy"}
    backwards = tuple(reversed(Buffer("", F64, shape[::-1]).element_strides))
    for target in (buffers["y"], Buffer("y", F64, shape, backwards)):
        arrays = {"x": np.arange(float(np.prod(shape))).reshape(shape), "y": np.zeros(int(np.prod(shape)))}
        program = call_program(Call("copy", ("x",), ("y",), {}), {"x": buffers["x"], "y": target})
        assert run_program(program, arrays)[0] == 0
        strides = tuple(8 * s for s in target.element_strides)
        np.testing.assert_array_equal(np.ndarray(shape, F64, arrays["y"], 0, strides), arrays["x"])


@pytest.mark.parametrize("orders", ["".join(o) for o in product("CF", repeat=3)])
@pytest.mark.parametrize("extents", [(13, 17, 19), (40, 30, 20), (0, 5, 6), (5, 0, 6), (7, 6, 0), (1, 1, 1), (9, 1, 20)])
def test_gemm_of_sizes_that_the_run_tells(extents: tuple[int, int, int], orders: str) -> None:
    gemm(40, 30, 20, orders, (2,), F64, extents)


def test_a_large_gemm_of_sizes_that_the_run_tells() -> None:
    for extents in ((700, 300, 300), (400, 10, 200), (1, 300, 300)):
        gemm(700, 300, 300, "CCC", (), F64, extents)
