"""Device arrays on the CUDA back end, whose device is emulated: programs, results in memory of their own, checks that fail."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from device.device_cases import CASES, require_numpys
from jitml.device.operations import forget_operations
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
x = np.arange(24, dtype=np.float64).reshape(4, 6) / 7 + 0.1


@pytest.fixture
def gpu() -> Iterator[EmulatedDevice]:
    with emulated() as gpu:
        yield gpu
        forget_operations()
        gc.collect()
        assert gpu.used == 0


def change(x: Any) -> Any:
    x += 1
    x[0] = 0
    return x[1:], x.T, x.sum(axis=0), float(x.max()), x[x > 3]


@pytest.mark.parametrize("name", CASES)
def test_answers_and_changes_are_numpys_and_are_checked(gpu: EmulatedDevice, name: str) -> None:
    require_numpys(name, "first")


def test_results_and_changes_are_numpys(gpu: EmulatedDevice) -> None:
    f, a, expected = jitml.jit(change, verify="always"), jitml.asarray(x, device="cuda"), x.copy()
    results, wanted = f(a), change(expected)
    for got, want in zip(results, wanted):
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert not isinstance(want, np.ndarray) or got.strides == want.strides
    np.testing.assert_allclose(a, expected, rtol=1e-12)
    assert results[0].device == "cuda" and np.shares_memory(results[0]._view, a._view)


def test_arrays_stay_and_host_arrays_are_copied(gpu: EmulatedDevice) -> None:
    def add_into(v: Any, total: Any) -> Any:
        total += v.sum(axis=0)
        return v * 2

    f, a, total = jitml.jit(add_into, verify="never"), jitml.asarray(x, device="cuda"), np.zeros(6)
    copied_in, copied_out = gpu.copied_in, gpu.copied_out
    doubled = f(a, total)
    np.testing.assert_allclose(total, x.sum(axis=0), rtol=1e-12)
    assert (gpu.copied_in - copied_in, gpu.copied_out - copied_out) == (total.nbytes, total.nbytes)
    np.testing.assert_allclose(doubled, 2 * x, rtol=1e-15)


def test_a_check_that_fails_leaves_arguments_to_plain_python(gpu: EmulatedDevice) -> None:
    def raised(v: Any, i: Any) -> Any:
        v += 1
        return v[i] * 2

    f, v = jitml.jit(raised, verify="never"), jitml.asarray(np.arange(5.0), device="cuda")
    assert float(f(v, 2)) == 6.0
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        f(v, 7)
    assert v.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]  # as in NumPy, which had added before it looked


def test_numpys_arrays_go_there_and_back(gpu: EmulatedDevice) -> None:
    f, mine, expected = jitml.jit(change, device="cuda", verify="always"), x.copy(), x.copy()
    for got, want in zip(f(mine), change(expected)):
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert type(got) is type(want)
    np.testing.assert_allclose(mine, expected, rtol=1e-12)
    assert "copied to cuda, and back: x, 192 B" in f.explain(mine)
    assert "blockIdx" in f.lower(mine).cuda


def test_derivatives_of_arrays_that_are_there(gpu: EmulatedDevice) -> None:
    slope = jitml.jit(jitml.grad(lambda v: (np.sin(v) * v).sum()))(jitml.asarray(x, device="cuda"))
    np.testing.assert_allclose(slope, np.cos(x) * x + np.sin(x), rtol=1e-12)
