"""Norms, powers and chains of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import inf
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import bound
from jitml.ir.graph import Value
from jitml.ir.types import F64, I64, DType, is_inexact
from jitml.numpy.arrays.reshaping import reshaped
from jitml.numpy.linear_algebra.factorizations import inv, spectral_norm
from jitml.numpy.linear_algebra.products import as_dot, finish_in, matmul
from jitml.numpy.reductions.reductions import extreme_size, finish, reduce_values
from jitml.numpy.reductions.statistics import squared_size, where_nonzero
from jitml.numpy.support.arguments import as_array, as_int, astype, axes_of, full, one_axis, reshape_value, value_of
from jitml.trace.symbolic.broadcasting import insist_equal, never_equal
from jitml.trace.values.boxing import TracedArray, fresh, read
from jitml.trace.values.registry import implements


def _float_dtype(dtype: DType) -> DType:
    return dtype if is_inexact(dtype) else F64


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    value = value_of(x)
    value = astype(value, _float_dtype(value.dtype))
    ndim = value.ndim
    if isinstance(axis, list):
        raise TypeError("'axis' must be None, an integer or a tuple of integers")
    axes = axes_of(axis, ndim)
    given = axes if not isinstance(axis, tuple) else tuple(one_axis(n, ndim) for n in axis)
    if (axis is None and ord is None) or len(axes) == 1 or (len(axes) == 2 and ord in (None, "fro", "f")):
        if len(axes) == 2:
            ord = 2
        with as_dot() if axis is None and ord in (None, 2) else nullcontext():
            result = _vector_norm(value, ord, axes)
    elif len(axes) == 2:
        result = _matrix_norm(value, ord, given)
    else:
        raise ValueError("Improper number of dimensions to norm.")
    return finish(result, axes if keepdims else None, None, ndim)


def _vector_norm(x: Value, ord: Any, axes: Sequence[int]) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    if ord in (None, 2):
        return where_nonzero(ops.sqrt, reduce_values(ops.reduce_sum, squared_size(x), axes))
    size = ops.abs(x)
    if ord in (inf, -inf):
        return extreme_size(size, axes, greatest=ord > 0)
    if ord == 0:
        return reduce_values(ops.reduce_sum, astype(ops.ne(x, 0.0), size.dtype), axes)
    if ord == 1:
        return reduce_values(ops.reduce_sum, size, axes)
    if ord < 0:
        total = reduce_values(ops.reduce_sum, _inverse_powers(size, float(ord)), axes)
        return ops.pow(total, 1.0 / float(ord))
    total = reduce_values(ops.reduce_sum, ops.pow(size, float(ord)), axes)
    return where_nonzero(lambda total: ops.pow(total, 1.0 / float(ord)), total)


def _inverse_powers(size: Value, ord: float) -> Value:
    """Infinite where the size is 0, without a slope: the norm is 0 whatever the other elements are."""
    is_zero = ops.eq(size, 0.0)
    powers = ops.pow(ops.select(is_zero, full(size.shape, 1.0, size.dtype), size), ord)
    result: Value = ops.raise_divide(ops.select(is_zero, full(size.shape, inf, size.dtype), powers), is_zero)
    return result


def _matrix_norm(x: Value, ord: Any, axes: tuple[int, ...]) -> Any:
    rows, columns = axes
    if ord not in (1, -1, inf, -inf):
        if ord in (2, -2, "nuc"):
            return spectral_norm(x, ord, axes)
        raise ValueError("Invalid norm order for matrices.")
    along, other = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = reduce_values(ops.reduce_sum, ops.abs(x), (along,))
    return extreme_size(sums, (other - (along < other),), greatest=ord > 0)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    value = value_of(x)
    value = astype(value, _float_dtype(value.dtype))
    axes = axes_of(axis, value.ndim)
    return finish(_vector_norm(value, ord, axes), axes if keepdims else None, None, value.ndim)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """Repeated squaring, in NumPy's order."""
    x, exponent = as_array(a), as_int(n)
    if x.ndim < 2 or (x.sizes[-1] != x.sizes[-2] and never_equal(x.sizes[-1], x.sizes[-2])):
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    insist_equal(x.sizes[-1], x.sizes[-2])
    if exponent < 0:
        x, exponent = inv(x), -exponent
    if exponent == 0:
        rows, columns = (ops.iota(shape=x.sizes, axis=x.ndim - k, dtype=I64) for k in (2, 1))
        return fresh(astype(ops.eq(rows, columns), x.dtype))
    if exponent <= 3:
        return [x, x @ x, (x @ x) @ x][exponent - 1] if exponent > 1 else x  # type: ignore[operator]  # arrays have @
    power: Any = None
    result: Any = None
    while exponent:
        power = x if power is None else power @ power
        exponent, bit = divmod(exponent, 2)
        if bit:
            result = power if result is None else result @ power
    return result


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """A chain of products, in the order that costs least (the textbook's dynamic programme)."""
    chain = [as_array(a) for a in arrays]
    if len(chain) < 2:
        raise ValueError("Expecting at least two arrays.")
    ends = (chain[0].ndim == 1, chain[-1].ndim == 1)
    if ends[0]:
        chain[0] = reshaped(chain[0], (1, chain[0].aval.size))
    if ends[1]:
        chain[-1] = reshaped(chain[-1], (chain[-1].aval.size, 1))
    sizes = [bound(n) for n in (*(x.sizes[0] for x in chain), chain[-1].sizes[-1])]
    product = _multiply_chain(chain, _best_splits(sizes), 0, len(chain) - 1)
    shape = [n for n, is_vector in zip(product.sizes, ends) if not is_vector]
    return finish_in(out, reshape_value(read(product), shape))


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of matrices i..j, for every i < j."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(costs)
    return split


def _multiply_chain(chain: list[TracedArray], split: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return chain[i]
    k = split[i, j]
    return matmul(_multiply_chain(chain, split, i, k), _multiply_chain(chain, split, k + 1, j))
