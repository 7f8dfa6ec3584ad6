"""Means, variances, correlations, in the numerically stable form that NumPy uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F32, F64, I64, DType, is_complex, is_inexact, is_integer, part_dtype
from jitml.numpy.reductions.reductions import F16, Axis, finish, is_given, is_set, masked, reduce_values, without_nan
from jitml.numpy.support.arguments import (
    as_array,
    astype,
    axes_of,
    broadcast_value,
    full,
    mask_of,
    not_compiled,
    reshape_value,
    result_of,
    spread_size,
    summed_axes,
    value_of,
)
from jitml.numpy.support.versions import check_argument
from jitml.numpy.ufuncs.loops import conjugate
from jitml.trace.record.recording import user_source
from jitml.trace.symbolic.broadcasting import is_single, never_equal, require_sizes
from jitml.trace.symbolic.sizes import number, span, value_of_size
from jitml.trace.values.boxing import fresh, is_traced, read
from jitml.trace.values.registry import implements


def compute_dtype(x: Value, dtype: Any, out: Any = None) -> tuple[DType, DType]:
    """The dtype that a mean is computed in, and the result's: float64 of integers, float32 inside of float16.

    An `out=` of higher precision is what NumPy adds and divides in.
    """
    chosen = np.dtype(dtype) if is_given(dtype) else x.dtype if is_inexact(x.dtype) else F64
    if not is_inexact(chosen):
        not_compiled("mean", f"with dtype={chosen}", "Divide the sum by the number of elements.")
    inner = F32 if chosen == F16 else chosen
    if is_given(out) and is_inexact(out.dtype) and not is_given(dtype):
        return np.result_type(inner, out.dtype), np.result_type(chosen, out.dtype)
    return inner, chosen


def _count(x: Value, axes: Sequence[int], where: Any, dtype: DType) -> Value:
    """How many elements each result is made of, shaped like the result."""
    kept = [n for axis, n in enumerate(x.shape) if axis not in axes]
    if where is True or where is np._NoValue:
        return count_value(prod(x.shape[axis] for axis in axes), kept, dtype)
    mask_of(where)  # which array may be one
    counted = value_of(where)  # NumPy sums what it was given: where=2 counts every element twice
    counted = counted if counted.dtype == BOOL else astype(counted, I64)
    return reduce_values(ops.reduce_sum, astype(broadcast_value(counted, x.shape), dtype), axes)


def count_value(count: Size, shape: Sequence[int], dtype: DType) -> Value:
    """A number of elements in every place of a shape."""
    return spread_size(count, shape, dtype) if isinstance(count, Dim) else full(shape, float(count), dtype)


def mean_value(x: Value, axes: Sequence[int], where: Any = True) -> Value:
    """The mean in x's own dtype."""
    total = reduce_values(ops.reduce_sum, masked(x, where, 0), axes)
    wide = _dividing(x.dtype)
    return astype(ops.div(astype(total, wide), _count(x, axes, where, wide)), x.dtype)


def _dividing(dtype: DType) -> DType:
    """The dtype in which a sum is divided by a count, an integer of 64 bits."""
    return F64 if dtype == F16 else dtype


def _spread(x: Value, kept: Value, axes: Sequence[int]) -> Value:
    """A reduction's result along x's axes again."""
    shape = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
    return broadcast_value(reshape_value(kept, shape), x.shape)


def squared_size(x: Value) -> Value:
    """|x|², of complex numbers without a square root."""
    if not is_complex(x.dtype):
        square: Value = x * x
        return square
    re, im = ops.real(x), ops.imag(x)
    size: Value = re * re + im * im
    return size


def where_nonzero(root: Callable[[Value], Any], total: Value) -> Any:
    """A root of which 0 is 0, without its infinite slope there: like |x|, a norm or deviation of 0 has the slope 0."""
    is_zero = ops.eq(total, 0.0)
    return ops.select(is_zero, total, root(ops.select(is_zero, full(total.shape, 1.0, total.dtype), total)))


def _deviation(variance: Value) -> Value:
    found: Value = where_nonzero(ops.sqrt, variance)
    return found


def variance_value(
    x: Value, axes: Sequence[int], ddof: Any, where: Any = True, mean: Value | None = None, out: Any = None
) -> Value:
    """The mean of squared distances from the mean: two passes, which E[x²] - E[x]² is no match for."""
    center = mean_value(x, axes, where) if mean is None else mean
    squares = squared_size(ops.sub(x, _spread(x, center, axes)))
    if is_given(out) and is_inexact(out.dtype):
        squares = astype(squares, np.result_type(squares.dtype, out.dtype))
    total = reduce_values(ops.reduce_sum, masked(squares, where, 0), axes)
    wide = _dividing(squares.dtype)
    count = _count(x, axes, where, wide)
    freedom = ops.maximum(ops.sub(count, broadcast_value(value_of(ddof, wide), count.shape)), 0.0)
    return astype(ops.div(astype(total, wide), freedom), squares.dtype)


def of_some(result: Value, x: Value, axes: Sequence[int], warning: str, least: int = 1) -> Value:
    """The result over some axes of x; NumPy itself is to answer, and to warn, where there are fewer elements than it takes."""
    count = prod(x.shape[axis] for axis in axes)
    low, high = span(count)
    if low >= least:
        return result
    enough = full((), False, BOOL) if high < least else ops.ge(value_of_size(count), number(least))
    checked: Value = ops.check(result, enough, error="RuntimeWarning", message=warning)
    return checked


@implements(np.mean)
def mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    x = value_of(a)
    inner, outer = compute_dtype(x, dtype, out)
    axes = summed_axes(axis, x.ndim)
    result = astype(of_some(mean_value(astype(x, inner), axes, where), x, axes, "Mean of empty slice"), outer)
    return finish(result, axes if is_set(keepdims) else None, out, x.ndim)


def _make_variance(finally_: Callable[[Value], Value]) -> Callable[..., Any]:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        *,
        where: Any = True,
        mean: Any = np._NoValue,
        correction: Any = np._NoValue,
    ) -> Any:
        if is_given(correction) and ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        x = value_of(a)
        inner, outer = compute_dtype(x, dtype)
        inner = outer if outer == F16 else inner  # NumPy's mean has float32 inside, its variance has not
        axes = summed_axes(axis, x.ndim)
        freedom = correction if is_given(correction) else ddof
        x = astype(x, inner)
        center = None
        if is_given(mean):
            kept = [n for n_axis, n in enumerate(x.shape) if n_axis not in axes]
            center = reshape_value(value_of(mean, inner), kept)
        variance = variance_value(x, axes, freedom, where, center, None if is_given(dtype) else out)
        if type(freedom) is int:
            variance = of_some(variance, x, axes, "Degrees of freedom <= 0 for slice", freedom + 1)
        result = finally_(variance) if is_given(out) else astype(finally_(variance), part_dtype(outer))
        return finish(result, axes if is_set(keepdims) else None, out, x.ndim)

    return function


implements(np.var)(_make_variance(lambda variance: variance))
implements(np.std)(_make_variance(_deviation))


def _not_nan(x: Value) -> Any:
    return ops.bit_not(ops.isnan(x)) if is_inexact(x.dtype) else True


@implements(np.nanmean)
def nanmean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    x = value_of(a)
    kept = (
        _not_nan(x)
        if where is True or where is np._NoValue
        else ops.bit_and(_not_nan(x), broadcast_value(mask_of(where), x.shape))
    )
    return mean(without_nan(x, 0.0), axis, dtype, out, keepdims, where=kept)


def _nan_variance(variance: np.ufunc | Callable[..., Any], finally_: Callable[[Value], Value]) -> Callable[..., Any]:
    def function(
        a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **options: Any
    ) -> Any:
        if any(map(is_given, options.values())):
            not_compiled(variance.__name__, f"with {', '.join(options)}", "Use np.where and np.nanmean.")
        x = value_of(a)
        inner, outer = compute_dtype(x, dtype)
        axes = summed_axes(axis, x.ndim)
        x = astype(x, inner)
        kept = _not_nan(x)
        x = without_nan(x, 0.0)
        result = variance_value(x, axes, ddof, kept)
        if kept is not True:
            # With no more elements than ddof NumPy gives nan here, where the plain function may give inf.
            freedom = _count(x, axes, kept, result.dtype) - float(ddof)
            enough = ops.gt(freedom, 0.0)
            result = ops.select(enough, result, full(result.shape, float("nan"), result.dtype))
            every = reduce_values(ops.reduce_all, enough, tuple(range(enough.ndim)))
            result = ops.check(result, every, error="RuntimeWarning", message="Degrees of freedom <= 0 for slice.")
        return finish(astype(finally_(result), part_dtype(outer)), axes if is_set(keepdims) else None, out, x.ndim)

    return function


implements(np.nanvar)(_nan_variance(np.nanvar, lambda variance: variance))
implements(np.nanstd)(_nan_variance(np.nanstd, _deviation))


@implements(np.average)
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    x = value_of(a)
    axes = axes_of(axis, x.ndim)
    keep = axes if is_set(keepdims) else None
    if weights is None:
        inner, outer = compute_dtype(x, None)
        result = astype(of_some(mean_value(astype(x, inner), axes), x, axes, "Mean of empty slice"), outer)
        total = _count(x, axes, True, outer)
    else:
        w = value_of(weights)
        dtype = np.result_type(x.dtype, w.dtype, *([] if is_inexact(x.dtype) else ["f8"]))
        x, w = astype(x, dtype), _weights(astype(w, dtype), x, axes)
        total = reduce_values(ops.reduce_sum, w, axes)
        some = ops.ne(total, full(total.shape, 0, total.dtype))
        every = reduce_values(ops.reduce_all, some, tuple(range(some.ndim)))
        total = ops.check(total, every, error="ZeroDivisionError", message="Weights sum to zero, can't be normalized")
        result = ops.div(reduce_values(ops.reduce_sum, x * w, axes), total)
    average_ = finish(result, keep, None, x.ndim)
    return (average_, finish(total, keep, None, x.ndim)) if returned else average_


def _weights(w: Value, x: Value, axes: Sequence[int]) -> Value:
    if w.shape == x.shape:
        return w
    along = tuple(x.shape[axis] for axis in axes)
    if w.ndim == x.ndim != len(axes):
        along = x.shape
    if w.ndim != len(along) or any(n != m and never_equal(n, m) for n, m in zip(w.shape, along)):
        message = f"Shape of weights must be consistent with shape of a along specified axis: {w.shape} and {x.shape}"
        raise ShapeError(message, source=user_source())
    w = require_sizes(w, along)
    return (
        w
        if w.ndim == x.ndim
        else broadcast_value(reshape_value(w, (n if axis in axes else 1 for axis, n in enumerate(x.shape))), x.shape)
    )


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    if is_traced(ddof):
        not_compiled("cov", "with a computed ddof", "Make it a Python integer.")
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    weights = [_weights_of(name, w) for name, w in (("fweights", fweights), ("aweights", aweights)) if w is not None]
    return fresh(_covariance(m, y, rowvar, (0 if bias else 1) if ddof is None else ddof, dtype, weights, aweights is not None))


def _weights_of(name: str, given: Any) -> Value:
    w = value_of(given)
    if name == "fweights" and not is_integer(w.dtype):
        not_compiled("cov", f"with fweights of {w.dtype}", "Convert them with .astype(int).")
    if w.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    w = astype(w, F64)
    positive = reduce_values(ops.reduce_all, ops.ge(w, 0.0), (0,))
    checked: Value = ops.check(w, positive, error="ValueError", message=f"{name} cannot be negative")
    return checked


def _covariance(
    m: Any, y: Any, rowvar: bool, ddof: Any, dtype: Any, weights: Sequence[Value] = (), by_weight: bool = False
) -> Value:
    """Args: by_weight: the last weights are `aweights`, whose degrees of freedom count by their squares."""
    parts = [as_array(m)] if y is None else [as_array(m), as_array(y)]
    for name, part in zip("my", parts):
        if part.ndim > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
    target = np.result_type(*(p.dtype for p in parts), np.float64) if dtype is None else np.dtype(dtype)
    rows = []
    for part in parts:
        value = astype(read(part), target)
        value = reshape_value(value, (1, value.size)) if value.ndim < 2 else value
        rows.append(ops.transpose(value, perm=(1, 0)) if not rowvar and part.ndim == 2 else value)
    x = rows[0] if len(rows) == 1 else ops.concat(*rows, axis=0)
    inner = part_dtype(target)
    if not weights:
        centred = scaled = ops.sub(x, _spread(x, mean_value(x, (1,)), (1,)))
        freedom = ops.sub(count_value(x.shape[1], (), inner), value_of(ddof, inner))
    else:
        w = require_sizes(reduce(ops.mul, weights), x.shape[1:], "incompatible numbers of samples and weights")
        total = reduce_values(ops.reduce_sum, w, (0,))
        whole = broadcast_value(astype(w, target), x.shape)
        sums = reduce_values(ops.reduce_sum, x * whole, (1,))
        centred = ops.sub(x, _spread(x, ops.div(sums, broadcast_value(astype(total, target), sums.shape)), (1,)))
        scaled = centred * whole
        lost = reduce_values(ops.reduce_sum, w * weights[-1], (0,)) / total if by_weight else full((), 1.0, F64)
        freedom = astype(ops.sub(total, lost * value_of(ddof, F64)), inner)
    products = ops.dot_general(centred, conjugate(scaled), batch=((), ()), contract=((1,), (1,)))
    result = ops.div(products, broadcast_value(astype(ops.maximum(freedom, 0.0), target), products.shape))
    enough = ops.gt(freedom, 0.0)
    result = ops.check(result, enough, error="RuntimeWarning", message="Degrees of freedom <= 0 for slice")
    drop = [is_single(n) for n in result.shape]
    result = require_sizes(result, [1 if is_one else n for n, is_one in zip(result.shape, drop)])
    return reshape_value(result, [n for n, is_one in zip(result.shape, drop) if not is_one])


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, bias: Any = None, ddof: Any = None, *, dtype: Any = None) -> Any:
    check_argument(np.corrcoef, "bias", bias)  # without effect, and gone since NumPy 2.4
    check_argument(np.corrcoef, "ddof", ddof)
    c = _covariance(x, y, rowvar, 1, dtype)
    if c.ndim == 0:
        return result_of(ops.div(c, c))
    diagonal = _diagonal(c)
    deviations = astype(ops.sqrt(ops.real(diagonal) if is_complex(c.dtype) else diagonal), c.dtype)
    result = ops.div(c, ops.broadcast(deviations, shape=c.shape, axes=(0,)))
    result = ops.div(result, ops.broadcast(deviations, shape=c.shape, axes=(1,)))
    if is_complex(c.dtype):
        return result_of(ops.complex(*(_clipped(part(result)) for part in (ops.real, ops.imag))))
    return result_of(_clipped(result))


def _clipped(x: Value) -> Any:
    return ops.minimum(ops.maximum(x, -1.0), 1.0)


def _diagonal(c: Value) -> Value:
    index = ops.iota(shape=(c.shape[0],), axis=0, dtype=np.dtype(np.int64))
    return ops.gather(c, index, index, axis=0)
