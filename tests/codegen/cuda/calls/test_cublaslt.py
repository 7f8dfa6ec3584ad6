"""Products by cuBLASLt: what the library is told of them, as a strict stand-in for it reads that on the host's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.libraries import cublaslt
from jitml.codegen.cuda.libraries.cublaslt import CublasLt, library_product
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.product import Matrix, Product
from jitml.kernels.ir import Buffer
from jitml.pipeline import lower
from support.cuda_emulation.host_library import shared_library

SOURCE = Path(__file__).parents[3] / "support" / "fake_cublaslt.cpp"
WORK = cublaslt.LEAST_WORK


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[CublasLt]:
    found = CublasLt(str(shared_library(SOURCE, "-O2")))
    found.open()
    monkeypatch.setattr(cublaslt, "cublaslt", lambda: found)
    yield found


def _matrix(
    name: str, dtype: str, rows: int, columns: int, batch: tuple[int, ...], turned: bool, offset: int, gap: int
) -> Matrix:
    """Rows are dense, or if `turned` columns; `gap` elements lie between them."""
    row, col = (1, rows + gap) if turned else (columns + gap, 1)
    size, steps = (columns * col if turned else rows * row), list[int]()
    for n in reversed(batch):
        steps.insert(0, size)
        size *= n
    return Matrix(Buffer(name, np.dtype(dtype), (offset + size,)), offset, tuple(steps), row, col)


def _view(memory: np.ndarray[Any, Any], matrix: Matrix, batch: tuple[int, ...], rows: int, columns: int) -> np.ndarray[Any, Any]:
    strides = [step * memory.itemsize for step in (*matrix.batch, matrix.row, matrix.col)]
    return np.lib.stride_tricks.as_strided(memory[matrix.offset :], (*batch, rows, columns), strides)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("turned", ["", "x", "y", "xy"])
@pytest.mark.parametrize(("batch", "offset", "gap", "adds"), [((), 0, 0, False), ((), 3, 5, True), ((2, 3), 4, 4, False)])
def test_products_are_told_as_they_are(
    dtype: str, turned: str, batch: tuple[int, ...], offset: int, gap: int, adds: bool, library: CublasLt
) -> None:
    m, n, k = 60, 72, 64
    extents = {"x": (m, k), "y": (k, n), "z": (m, n)}
    x, y, z = (_matrix(a, dtype, *extents[a], batch, a in turned, offset, gap) for a in "xyz")
    p = Product(batch, m, n, k, x, y, z, adds=adds)
    call = library_product(p)
    assert call is not None and call.is_ready()
    rng = np.random.default_rng(0)
    memory = {a.buffer.name: rng.standard_normal(a.buffer.shape).astype(dtype) for a in (x, y, z)}
    wanted = memory["z"].copy()
    left, right, result = (
        _view(of, a, batch, *extents[a.buffer.name]) for of, a in ((memory["x"], x), (memory["y"], y), (wanted, z))
    )
    product = left.astype(np.float64) @ right
    result[...] = result + product if adds else product
    space = np.zeros(256, np.uint8)
    call(0x57, [memory[name].ctypes.data for name in call.buffers] + [space.ctypes.data])
    np.testing.assert_allclose(memory["z"], wanted, rtol=1e-5, atol=1e-5)


def test_what_the_library_does_not_take_is_left_to_functions_of_our_own() -> None:
    x, y, z = (_matrix(a, "f4", 64, 64, (), False, 0, 0) for a in "xyz")
    whole = Product((), 64, 64, 64, x, y, z)
    assert library_product(whole) is not None
    apart = Matrix(x.buffer, 0, (), 64, 2)
    assert library_product(Product((), 64, 64, 64, apart, y, z)) is None
    assert library_product(Product((), 8, 8, 8, x, y, z)) is None
    assert library_product(Product((), 4096, 1, 4096, x, y, z)) is None
    assert library_product(Product((), 64, 64, 64, x, y, z, values="n", sizes=(0, 1, 2))) is None
    uneven = Matrix(x.buffer, 0, (5000, 4096), 64, 1)
    assert library_product(Product((2, 2), 64, 64, 64, uneven, uneven, uneven)) is None


def test_without_a_gpu_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    cublaslt.cublaslt.cache_clear()
    monkeypatch.setattr(cublaslt, "find_cublaslt", lambda: None)
    assert cublaslt.cublaslt() is None
    cublaslt.cublaslt.cache_clear()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("rounding", "largest"), [("tf32", 1e-3), ("bf16", 1e-2)])
def test_rounding_is_for_those_who_ask(dtype: str, rounding: str, largest: float, library: CublasLt) -> None:
    x, y, z = (_matrix(a, dtype, 64, 64, (), False, 0, 0) for a in "xyz")
    exact = library_product(Product((), 64, 64, 64, x, y, z))
    assert exact is not None and not exact.rounding
    coarse = exact.rounded_to(rounding)
    assert coarse.rounding == (rounding if dtype == "f4" else "")
    rng = np.random.default_rng(1)
    memory = {a.buffer.name: rng.random(64 * 64).astype(dtype) for a in (x, y)}
    wanted = memory["x"].reshape(64, 64).astype(np.float64) @ memory["y"].reshape(64, 64)
    errors = []
    for call in (exact, coarse):
        assert call.is_ready()
        memory["z"] = np.zeros(64 * 64, dtype)
        space = np.zeros(256, np.uint8)
        call(0x57, [memory[name].ctypes.data for name in call.buffers] + [space.ctypes.data])
        errors.append(float((abs(memory["z"].reshape(64, 64) / wanted - 1)).max()))
    assert errors[0] < 1e-6 and (largest / 1000 < errors[1] < largest) == (dtype == "f4")


def test_the_flag_reaches_the_library_of_a_program() -> None:
    x = np.ones((128, 128), np.float32)

    def product(x: Any) -> Any:
        return x @ x + 1

    def rounding(**options: Any) -> list[str]:
        lowered = jitml.jit(product, **options).lower(x)
        made = lower(lowered.traced, BACKEND, fastmath=lowered.options.fastmath)
        plans = [plan for plan in made.module.calls.values() if plan.library is not None]
        assert len(plans) == 1
        found: str = plans[0].library.calls[0].rounding
        assert [f"in {kind}" in made.launches for kind in ("TF32", "BF16")] == [found == "tf32", found == "bf16"]
        return [found]

    assert rounding() == rounding(fastmath=True) == rounding(fastmath=["contract"]) == [""]
    assert rounding(fastmath="tf32") == rounding(fastmath=["tf32", "nnan"]) == ["tf32"]
    assert rounding(fastmath="bf16") == rounding(fastmath=["bf16", "tf32"]) == ["bf16"]
    for flag in ("tf32", "bf16"):  # for the CPU they are nothing
        np.testing.assert_array_equal(jitml.jit(product, fastmath=flag, verify="never")(x), product(x))


HALF, SINGLE = np.ones((128, 128), np.float16), np.ones((128, 128), np.float32)


def _network(x: Any, w: Any) -> Any:
    hidden = np.maximum(x @ w + x[0], 0)
    return np.tanh(hidden @ w.T) * x


@pytest.mark.parametrize(
    ("function", "arguments", "is_half"),
    [
        (lambda x, y: x @ y, (HALF, HALF), [True]),
        (lambda x, y: x.T @ x, (HALF, HALF), [True]),
        (lambda x, y: (2 * x + 1) @ np.exp(y) + y, (HALF, HALF), [True]),
        (_network, (HALF, HALF), [True, True]),
        (lambda x, y: np.einsum("bij,bjk->bik", x[None] * 2, y[None]), (HALF, HALF), [True]),
        # Nothing of f16, or not all of it.
        (lambda x, y: x @ y, (SINGLE, SINGLE), [False]),
        (lambda x, y: x @ y, (HALF, SINGLE), [False]),
        (lambda x, y: x.astype(np.float32) @ y.astype(np.float32), (HALF, HALF), [False]),
        (lambda x, y: (x.astype(np.float32) @ y).astype(np.float16), (HALF, SINGLE), [False]),
        (lambda x, y: ((x.astype(np.float32) / 3) @ y.astype(np.float32)).astype(np.float16), (HALF, HALF), [False]),
        (lambda x, y: ((x @ y.astype(np.float32)) ** 2).astype(np.float16), (HALF, HALF), [False]),
        (lambda x, y: x @ y, (HALF.astype(np.float64), HALF), [False]),
    ],
)
def test_products_of_half_precision_are_told_from_those_of_single(
    function: Any, arguments: tuple[Any, ...], is_half: list[bool]
) -> None:
    made = lower(jitml.jit(function).lower(*arguments).traced, BACKEND)
    found = [plan.library.calls[0].itemsize == 2 for plan in made.module.calls.values() if plan.library is not None]
    assert found == is_half, made.kernels
    assert made.launches.count("in f16") == sum(is_half)


def _run(call: Any, memory: dict[str, np.ndarray[Any, Any]]) -> None:
    assert call.is_ready()
    space = np.zeros(256, np.uint8)
    call(0x57, [memory[name].ctypes.data for name in call.buffers] + [space.ctypes.data])


def test_halves_are_multiplied_as_they_are(library: CublasLt) -> None:
    x, y, z = (_matrix(a, "f2", 64, 64, (), False, 0, 0) for a in "xyz")
    call = library_product(Product((), 64, 64, 64, x, y, z))
    assert call is not None and not call.rounded_to("bf16").rounding
    bits = np.arange(1 << 16, dtype=np.uint16)
    every = bits.view(np.float16)[np.isfinite(bits.view(np.float16))]
    memory = {"y": np.eye(64, dtype=np.float16).ravel(), "z": np.zeros(64 * 64, np.float16)}
    for start in range(0, every.size - 4096, 4096):
        memory["x"] = every[start : start + 4096].copy()
        _run(call, memory)
        np.testing.assert_array_equal(memory["z"], memory["x"])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("turned", ["", "xy"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_epilogues_are_told_as_they_are(dtype: str, turned: str, batch: tuple[int, ...], library: CublasLt) -> None:
    m, n, k = 60, 72, 64
    extents = {"x": (m, k), "y": (k, n), "z": (m, n)}
    x, y, z = (_matrix(a, dtype, *extents[a], batch, a in turned, 0, 0) for a in "xyz")
    product = library_product(Product(batch, m, n, k, x, y, z))
    assert product is not None
    rng = np.random.default_rng(0)
    memory = {a.buffer.name: rng.standard_normal(a.buffer.shape).astype(dtype) for a in (x, y, z)}
    memory["bias"] = rng.standard_normal(n).astype(dtype)
    left, right, result = (_view(memory[a.buffer.name], a, batch, *extents[a.buffer.name]) for a in (x, y, z))
    sums = left.astype(np.float64) @ right
    gelu = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))  # noqa: E731
    for code, bias, wanted in (
        (4, "bias", sums + memory["bias"]),
        (2, None, np.maximum(sums, 0)),
        (6, "bias", np.maximum(sums + memory["bias"], 0)),
        (32, None, gelu(sums)),
        (36, "bias", gelu(sums + memory["bias"])),
    ):
        _run(product.with_epilogue(code, bias), memory)
        np.testing.assert_allclose(result, wanted, rtol=2e-3 if dtype == "f2" else 1e-5, atol=2e-3 if dtype == "f2" else 1e-5)
    assert memory["bias"].size == n
