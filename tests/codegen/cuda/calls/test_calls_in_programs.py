"""Functions whose steps are library calls, under `jit` on an emulated device: NumPy's answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG
from support.cuda_emulation import ORDERS, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device


def _add_at(x: Any, k: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, k, v)
    return x


def _put(x: Any, k: Any, v: Any) -> Any:
    x = x.copy()
    x[k] = v
    return x


RNG = np.random.default_rng(0)
F32 = RNG.standard_normal((70, 90), np.float32)
F64 = RNG.standard_normal((90, 40))
K = RNG.integers(-70, 70, 300)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "product": (lambda x, y: x @ y, (F32, F64.astype(np.float32))),
    "product of a transposed matrix": (lambda x, y: x.T @ y.T + 1, (F64, F32.astype(np.float64))),
    "product with a vector": (lambda x, y: x @ y[:, 0] - y[0, 0], (F32.astype(np.float64), F64)),
    "batch": (lambda x, y: np.einsum("bij,bjk->bik", x, y), (RNG.random((3, 20, 30)), RNG.random((3, 30, 17)))),
    "sort": (lambda x: np.sort(x, axis=0), (F32,)),
    "argsort": (lambda x: np.argsort(x, axis=1, kind="stable"), (np.round(F32),)),
    "cumsum": (lambda x: np.cumsum(x, axis=0), (F64,)),
    "cumsum of a row": (lambda x: np.cumsum(x.astype(np.int64)), (K,)),
    "cumprod": (lambda x: np.cumprod(1 + x / 100, axis=1), (F64,)),
    "extremes": (lambda x: np.maximum.accumulate(x, axis=1), (F32,)),
    "add.at": (_add_at, (F64[:70], K, RNG.random((300, 40)))),
    "add.at of integers": (_add_at, (np.zeros(70, np.int64), K, np.arange(300))),
    "put": (_put, (F32[:, 0].copy(), K, np.arange(300, dtype=np.float32))),
    "bincount": (lambda k: np.bincount(k) + 1, (abs(K),)),
    "weighted": (lambda k, w: np.bincount(k, w, 100), (abs(K), RNG.random(300))),
    "histogram": (lambda x: np.histogram(x, 10)[0], (F32,)),
    "mask": (lambda x: np.sort(x[x > 0]), (F32,)),
    "unique": (lambda k: np.unique(k) + 1, (K,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_give_numpys_answers(name: str, device: EmulatedDevice) -> None:
    function, arguments = PROGRAMS[name]
    jitted, expected = jitml.jit(function, verify="never", host_calls="error"), function(*arguments)
    for device.order in ORDERS:
        got = jitted(*arguments)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=2e-5 if expected.dtype == np.float32 else 1e-12, atol=1e-5)
    (variant,) = jitted.variants
    assert not variant.replays and device.launches


def test_calls_that_do_the_same_share_functions(device: EmulatedDevice) -> None:
    def program(x: Any, w: Any, a: Any, b: Any) -> Any:
        return x @ w[0], x @ w[1], x[:65] @ w[0, :, :19], np.argsort(a, kind="stable"), np.argsort(b, kind="stable")

    arguments = (F32, RNG.random((2, 90, 20), np.float32), RNG.integers(0, 50, 9000), RNG.integers(0, 50, 9000))
    expected = program(*arguments)
    jitted = jitml.jit(program, verify="never", host_calls="error")
    text = jitted.lower(*arguments).cuda
    functions = re.findall(r'^extern "C" __global__ .* (call_\w+)\(', text, re.MULTILINE)
    assert len(functions) == 3, "a product, pieces that are sorted, and runs that are merged by two stages and the last one"
    assert "const long long m," in text and "const long long k = 90;" in text, "what products differ in they are told"
    for device.order in ORDERS:
        for got, wanted in zip(jitted(*arguments), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_generators_go_on_as_numpys(device: EmulatedDevice) -> None:
    def program(rng: Any) -> Any:
        return rng.random(500), rng.random((3, 5), np.float32), rng.standard_normal(4), rng.integers(0, 10, 20)

    ours, numpys = np.random.default_rng(3), np.random.default_rng(3)
    jitted = jitml.jit(program, verify="never", host_calls="error")
    for _ in range(2):
        for got, expected in zip(jitted(ours), program(numpys), strict=True):
            np.testing.assert_array_equal(got, expected)
    assert ours.bit_generator.state == numpys.bit_generator.state
    assert device.launches


def test_an_index_out_of_bounds_is_numpys_error(device: EmulatedDevice) -> None:
    with pytest.raises(IndexError, match="index 70 is out of bounds"):
        jitml.jit(_add_at, verify="never")(np.zeros(70, np.int64), np.full(300, 70), np.arange(300))


def _solved(x: Any) -> Any:
    return np.linalg.solve(x, x[:, :2]), np.linalg.inv(x.T) @ x, *np.linalg.slogdet(x), np.linalg.cholesky(x @ x.T)


def test_linear_algebra_stays_on_the_device(device: EmulatedDevice) -> None:
    jitted, x = jitml.jit(_solved, verify="never", host_calls="error"), F64[:20, :20] + np.eye(20)
    expected = _solved(x)
    for _ in range(3):
        copied = device.copied_out
        for got, wanted in zip(jitted(x), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9, strict=True)
        # The results and the error record are all that leaves it.
        assert device.copied_out - copied == sum(wanted.nbytes for wanted in expected) + 8
    (variant,) = jitted.variants
    assert not variant.replays
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        jitted(np.zeros((20, 20)))
    assert variant.replays == {"np.linalg: a matrix is singular": 1}


def _filtered(x: Any, z: Any) -> Any:
    spectrum = np.fft.rfft(x, axis=0)
    smooth = np.fft.irfft(spectrum * (np.arange(spectrum.shape[0]) < 6)[:, None], x.shape[0], axis=0)
    return smooth, abs(np.fft.fft2(x)), np.fft.ifft(z * 1j, norm="ortho"), np.fft.fft(z[::-1]).imag


def test_fourier_transforms_stay_on_the_device(device: EmulatedDevice) -> None:
    jitted, x, z = jitml.jit(_filtered, verify="never", host_calls="error"), F64[:40, :15], F64[:66, 0] + 1j * F64[:66, 1]
    expected = _filtered(x, z)
    for _ in range(3):
        copied = device.copied_out
        for got, wanted in zip(jitted(x, z), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12, strict=True)
        assert device.copied_out - copied == sum(wanted.nbytes for wanted in expected)
    (variant,) = jitted.variants
    assert not variant.replays and device.graphs
