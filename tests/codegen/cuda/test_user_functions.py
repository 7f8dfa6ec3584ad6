"""Users' functions as CUDA C++: translated from LLVM's text, run by emulation and compiled by NVRTC."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.backend import backend_named
from jitml.codegen.cuda.compiler import compile_cubin
from jitml.device.operations import forget_operations
from jitml.pipeline import lower
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

numba = pytest.importorskip("numba")
pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
NUMBERS = np.concatenate([np.random.default_rng(0).standard_normal(40) * 5, [0.0, -0.0, np.nan, np.inf, -np.inf, 1e300]])


@pytest.fixture
def gpu() -> Iterator[EmulatedDevice]:
    with emulated() as gpu:
        yield gpu
        forget_operations()
        gc.collect()
        assert gpu.used == 0


def bend(x: Any, y: Any) -> Any:
    if x > y:
        return x - y
    if x == y:
        return 0.0 * x
    return y * y


def collatz(n: Any) -> Any:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def escape(x: Any, y: Any) -> Any:
    a, b, n = 0.0, 0.0, 0
    for n in range(50):
        if a * a + b * b > 4.0:
            return n
        a, b = a * a - b * b + x, 2 * a * b + y
    return n + 1


def mathematics(x: Any) -> Any:
    return math.floor(x) + math.fabs(x) + math.copysign(1.0, x) + math.sqrt(math.fabs(x)) + min(x, 1.0) + max(x, 2.0)


def bits(n: Any) -> Any:
    return (n ^ (n >> 3)) + (n << 2) - (n & 5 | 8) + abs(n) % 7 + min(n, 3) * max(n, -2)


def quotients(a: Any, b: Any) -> Any:
    return a // b + a % b if b != 0 else -a


def narrow(a: Any) -> Any:
    return np.float32(a) * np.float32(0.1) + np.int8(3) * np.uint8(200)


def truth(a: Any, b: Any) -> Any:
    return not (a and b > 1) or a == (b < 3)


def chosen(n: Any) -> Any:
    if n == 3:
        return 10
    if n == 5:
        return 20
    if n == 6:
        return -1
    if n == 9:
        return 4
    return n


N = np.arange(-20, 26)
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "bend": (bend, (NUMBERS, NUMBERS[::-1].copy())),
    "collatz": (collatz, (np.arange(1, 40),)),
    "escape": (escape, (np.linspace(-2, 1, 46), np.linspace(-1.5, 1.5, 46))),
    "mathematics": (mathematics, (NUMBERS[np.isfinite(NUMBERS)],)),
    "bits": (bits, (N,)),
    "bits of i32": (bits, (N.astype("i4"),)),
    "quotients": (quotients, (N, N[::-1].copy() - 3)),
    "quotients of floats": (quotients, (NUMBERS[:40], NUMBERS[:40][::-1].copy())),
    "narrow": (narrow, (NUMBERS[:40],)),
    "truth": (truth, (N > 0, N.astype("i2"))),
    "chosen": (chosen, (N,)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_gives_the_same_bits(gpu: EmulatedDevice, name: str) -> None:
    plain, args = CASES[name]
    f = jitml.elementwise(plain)
    wanted = f(*args)
    there = [jitml.asarray(x, device="cuda") for x in args]
    compiled = jitml.jit(strict=True)(f)
    for found in (compiled(*there), f(*there)):
        assert isinstance(found, jitml.Array) and found.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_exceptions_come_from_a_gpu_too(gpu: EmulatedDevice) -> None:
    @jitml.elementwise
    def root(x: Any) -> Any:
        if x < 0:
            raise ValueError("negative")
        return math.sqrt(x)

    f = jitml.jit(lambda x: root(x) + 1, device="cuda")
    np.testing.assert_array_equal(f(np.arange(9.0)), np.sqrt(np.arange(9.0)) + 1)
    with pytest.raises(ValueError, match=r"^negative$"):
        f(np.array([1.0, -1.0]))


@pytest.mark.parametrize("name", ["bend", "escape", "quotients of floats", "truth"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_nvrtc_takes_it_and_nothing_is_spilled(name: str, arch: str) -> None:
    plain, args = CASES[name]
    f = jitml.elementwise(plain)
    text = lower(jitml.jit(f).lower(*args).traced, backend_named("cuda")).cuda
    assert "JI_INLINE" in text and plain.__name__ in text
    kernels = compile_cubin(text, arch).resources
    assert kernels and all(kernel.frame == 0 for kernel in kernels.values())
