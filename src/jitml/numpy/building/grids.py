"""Matrices and grids of a pattern: `eye`, triangles, `vander`, `meshgrid`, `indices`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import I64
from jitml.numpy.arrays.reshaping import all_broadcasted, as_length, as_shape, reshaped
from jitml.numpy.building.creation import by_rows_or_columns
from jitml.numpy.support.arguments import (
    Shape,
    as_array,
    as_int,
    astype,
    broadcast_value,
    full,
    no_truth,
    reshape_value,
    value_of,
)
from jitml.numpy.support.versions import grids_are_a_tuple
from jitml.trace.hooks.convert import convert
from jitml.trace.record.recording import user_source
from jitml.trace.symbolic.sizes import larger
from jitml.trace.values.boxing import TracedArray, fresh, fresh_like, laid_out, read
from jitml.trace.values.registry import implements


@implements(np.eye)
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> TracedArray:
    shape = as_shape((N, N if M is None else M))
    return laid_out(astype(band(shape, as_int(k), ops.eq), np.dtype(dtype)), None, by_rows_or_columns(order))


@implements(np.identity)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> TracedArray:
    return eye(n, dtype=float if dtype is None else dtype)


def band(shape: Shape, k: int, compare: Callable[..., Any]) -> Value:
    """Where `column - row` compares with k, as bool; over the last two axes."""
    column = ops.iota(shape=shape, axis=len(shape) - 1, dtype=I64)
    row = ops.iota(shape=shape, axis=len(shape) - 2, dtype=I64)
    return compare(column - row, k)


@implements(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> TracedArray:
    rows = as_length(N)
    shape: Any = tuple(larger(n, 0) for n in (rows, rows if M is None else as_length(M)))
    return fresh(astype(band(shape, as_int(k), ops.le), np.dtype(dtype)))


def _make_triangle(compare: Callable[..., Any]) -> Callable[..., TracedArray]:
    def function(m: Any, k: Any = 0) -> TracedArray:
        x = value_of(m)
        if x.ndim < 1:
            raise ShapeError("tril and triu need at least one axis", source=user_source())
        x = broadcast_value(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x
        mask = fresh(band(x.shape[-2:], as_int(k), compare))
        chosen: Value = ops.select(broadcast_value(read(mask), x.shape), x, full(x.shape, 0, x.dtype))
        return fresh_like(chosen, mask, *([m] if x is value_of(m) else []))

    return function


implements(np.tril)(_make_triangle(ops.le))
implements(np.triu)(_make_triangle(ops.ge))


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> TracedArray:
    v = as_array(x)
    count = v.sizes[0] if N is None else as_length(no_truth(N))
    dtype = np.promote_types(v.dtype, int)
    columns = full((v.sizes[0], count), 1, dtype)
    if isinstance(count, Dim) or count > 1:
        ones_and_x = broadcast_value(reshape_value(value_of(v, dtype), (v.sizes[0], 1)), (v.sizes[0], count))
        is_first = ops.eq(ops.iota(shape=columns.shape, axis=1, dtype=I64), 0)
        columns = ops.cumprod(ops.select(is_first, columns, ones_and_x), axis=1, reverse=False)
    return fresh(columns if increasing else ops.flip(columns, axes=(1,)))


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Sequence[TracedArray]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    count = len(xi)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    arrays = [as_array(x) for x in xi]
    placed = [reshaped(x, [x.aval.size if place == axis else 1 for axis in range(count)]) for x, place in zip(arrays, order)]
    grids = placed if sparse else all_broadcasted("meshgrid", placed)
    if copy:
        return tuple(fresh(read(x)) for x in grids)
    return tuple(grids) if grids_are_a_tuple() else grids


@implements(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = as_shape(tuple(dimensions))
    target = np.dtype(dtype)
    if sparse:
        ranges = (ops.iota(shape=(n,), axis=0, dtype=target) for n in shape)
        return tuple(
            reshaped(fresh(r), [n if a == axis else 1 for a in range(len(shape))])
            for axis, (n, r) in enumerate(zip(shape, ranges))
        )
    grids = [ops.iota(shape=(1, *shape), axis=axis + 1, dtype=target) for axis in range(len(shape))]
    return fresh(ops.concat(*grids, axis=0) if grids else full((0,), 0, target))


@implements(np.fromfunction)
def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any) -> Any:
    """What a function makes of all indices at once."""
    return convert(function)(*indices(shape, dtype), **kwargs)
