"""Memory-bound kernels: functions whose time on a GPU is that of the bytes they must read and write, as plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """One function.

    Args:
        shapes: of the arguments, at a number of elements.
        dtypes: that it is measured with; arguments of other kinds are in `makers`.
        makers: position -> a maker of that argument, where it is no array of normal numbers.
        rereads: arrays that have to be read twice where a row is too long for a block; counted once.
    """

    name: str
    function: Callable[..., Any]
    shapes: Callable[[int], tuple[Shape, ...]]
    dtypes: tuple[str, ...] = ("f4", "f8", "f2")
    makers: tuple[tuple[int, Callable[[np.random.Generator, int], Array]], ...] = ()

    def arguments(self, elements: int, dtype: str, seed: int = 0) -> tuple[Array, ...]:
        """Fresh ones; random, since a device may be faster with zeros."""
        rng, special = np.random.default_rng(seed), dict(self.makers)
        drawn = enumerate(self.shapes(elements))
        return tuple(special[k](rng, elements) if k in special else normal(rng, shape, dtype) for k, shape in drawn)

    def least_bytes(self, elements: int, dtype: str, results: list[tuple[Shape, int]]) -> int:
        """Each argument read once, and each result (shape, bytes of an element) written once."""
        sizes = [np.dtype(dtype).itemsize] * len(self.shapes(elements))
        for k, make in self.makers:
            sizes[k] = make(np.random.default_rng(0), 4).itemsize
        read = sum(prod(shape) * size for shape, size in zip(self.shapes(elements), sizes))
        return read + sum(prod(shape) * size for shape, size in results)


def normal(rng: np.random.Generator, shape: Shape, dtype: str) -> Array:
    """Normal numbers; of many, a stretch again and again, since drawing them would take longer than what is measured."""
    size = prod(shape)
    few = rng.standard_normal(min(size, 1_000_003)).astype(dtype)
    return np.resize(few, size).reshape(shape)


def flat(n: int) -> tuple[Shape, ...]:
    return ((n,),)


def pair(n: int) -> tuple[Shape, ...]:
    return ((n,), (n,))


def matrix(n: int) -> tuple[Shape, ...]:
    """Four times as wide as high, nearly: neither extent is a power of two."""
    rows = max(1, int((n / 4) ** 0.5) // 8 * 8 + 3)
    return ((rows, n // rows // 8 * 8 or 1),)


def wide(n: int) -> tuple[Shape, ...]:
    """Rows of 1000, as scores and activations have."""
    return ((max(1, n // 1000), min(n, 1000)),)


def rows_of_matrix(n: int) -> tuple[Shape, ...]:
    ((rows, columns),) = matrix(n)
    return ((rows, columns), (columns,), (columns,))


def chain(x, y):
    return np.where(x > 0, x, 0.01 * x) * y + np.maximum(x, y) - 0.5 * np.minimum(x, 1.0)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def logsumexp(x):
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


def layernorm(x, scale, shift):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def blocks_moved(x):
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))


def four_axes(n: int) -> tuple[Shape, ...]:
    """Batch, length, heads, width: as attention has them."""
    return ((max(1, n // (64 * 12 * 64)), 64, 12, 64),)


def stencil(x):
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def table_and_indices(n: int) -> tuple[Shape, ...]:
    rows = max(4, n // 64)
    return ((rows, 64), (rows,))


def some_rows(rng: np.random.Generator, n: int) -> Array:
    rows = max(4, n // 64)
    return rng.integers(0, rows, rows)


REAL = ("f4", "f8")
KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("scale", lambda x: 2 * x + 1, flat),
        Kernel("chain", chain, pair),
        Kernel("gelu", gelu, flat),
        Kernel("sum of all", lambda x: x.sum(), flat),
        Kernel("sum of rows", lambda x: x.sum(axis=1), matrix),
        Kernel("sum of columns", lambda x: x.sum(axis=0), matrix),
        Kernel("mean and variance", lambda x: (x.mean(axis=1), x.var(axis=1)), matrix, REAL),
        Kernel("max of all", lambda x: x.max(), flat),
        Kernel("argmax of rows", lambda x: x.argmax(axis=1), matrix, REAL),
        Kernel("softmax, rows of 1000", softmax, wide),
        Kernel("softmax, long rows", softmax, matrix, REAL),
        Kernel("logsumexp", logsumexp, wide, REAL),
        Kernel("layernorm", layernorm, rows_of_matrix),
        Kernel("transpose", lambda x: np.ascontiguousarray(x.T), matrix),
        Kernel("transpose of middle axes", blocks_moved, four_axes, REAL),
        Kernel("gather of rows", lambda x, k: x[k], table_and_indices, REAL, ((1, some_rows),)),
        Kernel("cumsum of rows", lambda x: x.cumsum(axis=1), matrix, REAL),
        Kernel("five-point stencil", stencil, matrix, REAL),
        Kernel("broadcast sum", lambda x, a, b: x * a + b, rows_of_matrix, REAL),
    )
}
