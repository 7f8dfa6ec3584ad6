"""Kernels of many blocks on the device: the functions that are measured, and a few more, at sizes beside the round ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpu.cases import Cases, Setting
from gpu.memory_bound import KERNELS, Kernel
from gpu.running import check_function, require_backend

SIZES = (100_003, 5_000, 1_050_000)


def histogram(x):
    return np.bincount((np.abs(x) * 7).astype(np.int64), minlength=50)


def scattered(x):
    y = np.zeros(97, x.dtype)
    np.add.at(y, np.arange(x.size) % 97, x)
    return y


def collatz(x):
    k, steps = np.floor(np.abs(x) * 100).astype(np.int64) + 1, np.zeros(x.shape, np.int64)
    while (k > 1).any():
        steps += k > 1
        k = np.where(k > 1, np.where(k % 2 == 0, k // 2, 3 * k + 1), k)
    return steps


OTHERS: dict[str, Callable[..., Any]] = {
    "sort": lambda x: np.sort(x)[::-1],
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "unique values": lambda x: np.unique(np.floor(x * 8)),
    "median": lambda x: np.median(x) * 2,
    "a product": lambda x: x[:40_000].reshape(200, 200) @ x[40_000:80_000].reshape(200, 200),
    "a batched product": lambda x: np.matmul(x[:60_000].reshape(15, 20, 200), x[:60_000].reshape(15, 200, 20)),
    "cumsum": lambda x: np.cumsum(x) - 1,
    "histogram": histogram,
    "scattered sums": scattered,
    "a mask": lambda x: x[x > 0.5],
    "a while": collatz,
    "fft": lambda x: np.abs(np.fft.rfft(x[:4096])),
    "solve": lambda x: np.linalg.solve(x[:10_000].reshape(100, 100) + 30 * np.eye(100), x[:100]),
    "integers": lambda x: (x * 1000).astype(np.int32) // 7 % 5 + ((x * 1000).astype(np.int64) >> 2),
    "flags": lambda x: ((x > 0).all(), (x > 3).any(), np.isnan(x).sum(), (x > 0).astype(np.uint8).sum()),
}


def cases(setting: Setting) -> Cases:
    require_backend(setting.backend)
    for size in SIZES:
        for name, kernel in KERNELS.items():
            for dtype in kernel.dtypes:
                yield f"{name}, {dtype}, {size}", partial(check_kernel, kernel, size, dtype)
    for name, function in OTHERS.items():
        yield name, partial(check_function, function, partial(argument, 100_003))


def check_kernel(kernel: Kernel, size: int, dtype: str) -> None:
    check_function(kernel.function, partial(kernel.arguments, size, dtype), calls=1)


def argument(size: int) -> tuple[Any, ...]:
    return (np.random.default_rng(0).standard_normal(size),)
