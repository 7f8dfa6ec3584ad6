"""Memory-bound kernels: functions, with shapes of their arguments and the bytes that they must read and write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpu import functions

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


def planes(n: int) -> tuple[Shape, ...]:
    """Images, which are no multiple of a tile."""
    return ((max(1, n // (50 * 100)), 50, 100),)


def four_axes(n: int) -> tuple[Shape, ...]:
    """Batch, length, heads, width: as attention has them."""
    return ((max(1, n // (64 * 12 * 64)), 64, 12, 64),)


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
        Kernel("scale", functions.scale, flat),
        Kernel("chain", functions.chain, pair),
        Kernel("gelu", functions.gelu, flat),
        Kernel("sum of all", functions.sum_of_all, flat),
        Kernel("sum of rows", functions.sum_of_rows, matrix),
        Kernel("sum of columns", functions.sum_of_columns, matrix),
        Kernel("mean and variance", functions.mean_and_variance, matrix, REAL),
        Kernel("max of all", functions.max_of_all, flat),
        Kernel("argmax of rows", functions.argmax_of_rows, matrix, REAL),
        Kernel("softmax, rows of 1000", functions.softmax, wide),
        Kernel("softmax, long rows", functions.softmax, matrix, REAL),
        Kernel("logsumexp", functions.logsumexp, wide, REAL),
        Kernel("layernorm", functions.layernorm, rows_of_matrix),
        Kernel("transpose", functions.transposed, matrix),
        Kernel("transpose of planes", functions.planes_turned, planes, REAL),
        Kernel("transposed operand", functions.plus_transposed, matrix, REAL),
        Kernel("normalized columns", functions.normalized_columns, matrix, REAL),
        Kernel("transpose of middle axes", functions.middle_axes_swapped, four_axes, REAL),
        Kernel("gather of rows", functions.rows_at, table_and_indices, REAL, ((1, some_rows),)),
        Kernel("cumsum of rows", functions.running_sums, matrix, REAL),
        Kernel("five-point stencil", functions.stencil, matrix, REAL),
        Kernel("broadcast sum", functions.broadcast_sum, rows_of_matrix, REAL),
    )
}
