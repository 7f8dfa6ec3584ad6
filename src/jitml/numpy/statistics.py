"""Means, variances, medians, quantiles, correlations, in the numerically stable form that NumPy uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, prod
from typing import Any

import numpy as np

from jitml.errors import ShapeError, UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F32, F64, I64, DType, is_complex, is_inexact, part_dtype
from jitml.numpy.layouts import keeps_rest, lay_out_rest
from jitml.numpy.loops import conjugate
from jitml.numpy.operands import (
    as_array,
    astype,
    axes_of,
    broadcast_value,
    full,
    not_compiled,
    reshape_value,
    result_of,
    spread_size,
    value_of,
)
from jitml.numpy.reductions import F16, Axis, finish, is_given, masked, reduce_values, without_nan
from jitml.numpy.versions import check_argument
from jitml.trace.broadcasting import insist_differ, never_equal, require_sizes
from jitml.trace.context import active_trace, user_source
from jitml.trace.known import constant_of
from jitml.trace.registry import implements
from jitml.trace.sizes import larger, number, quotient, remainder, smaller, span, value_of_size
from jitml.trace.tracers import TracedArray, TracedNumber, fresh, is_traced, read


def _compute_dtype(x: Value, dtype: Any) -> tuple[DType, DType]:
    """The dtype that a mean is computed in, and the result's: float64 of integers, float32 inside of float16."""
    chosen = np.dtype(dtype) if is_given(dtype) else x.dtype if is_inexact(x.dtype) else F64
    return (F32 if chosen == F16 else chosen), chosen


def _count(x: Value, axes: Sequence[int], where: Any, dtype: DType) -> Value:
    """How many elements each result is made of, shaped like the result."""
    kept = [n for axis, n in enumerate(x.shape) if axis not in axes]
    if where is True or where is np._NoValue:
        return count_value(prod(x.shape[axis] for axis in axes), kept, dtype)
    mask = broadcast_value(value_of(where, BOOL), x.shape)
    return reduce_values(ops.reduce_sum, astype(mask, dtype), axes)


def count_value(count: Size, shape: Sequence[int], dtype: DType) -> Value:
    """A number of elements in every place of a shape."""
    return spread_size(count, shape, dtype) if isinstance(count, Dim) else full(shape, float(count), dtype)


def mean_value(x: Value, axes: Sequence[int], where: Any = True) -> Value:
    """The mean in x's own dtype."""
    total = reduce_values(ops.reduce_sum, masked(x, where, 0), axes)
    return ops.div(total, _count(x, axes, where, x.dtype))


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


def variance_value(x: Value, axes: Sequence[int], ddof: Any, where: Any = True, mean: Value | None = None) -> Value:
    """The mean of squared distances from the mean: two passes, which E[x²] - E[x]² is no match for."""
    center = mean_value(x, axes, where) if mean is None else mean
    squares = squared_size(ops.sub(x, _spread(x, center, axes)))
    total = reduce_values(ops.reduce_sum, masked(squares, where, 0), axes)
    count = _count(x, axes, where, squares.dtype)
    freedom = ops.maximum(ops.sub(count, broadcast_value(value_of(ddof, squares.dtype), count.shape)), 0.0)
    return ops.div(total, freedom)


def _of_some(result: Value, x: Value, axes: Sequence[int], warning: str, least: int = 1) -> Value:
    """The result over some axes of x; NumPy itself is to answer, and to warn, where there are fewer elements than it takes."""
    count = prod(x.shape[axis] for axis in axes)
    low, high = span(count)
    if low >= least:
        return result
    enough = full((), False, BOOL) if high < least else ops.ge(value_of_size(count), number(least))
    checked: Value = ops.check(result, enough, error="RuntimeWarning", message=warning)
    return checked


@implements(np.mean)
@keeps_rest
def mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    x = value_of(a)
    inner, outer = _compute_dtype(x, dtype)
    axes = axes_of(axis, x.ndim)
    result = astype(_of_some(mean_value(astype(x, inner), axes, where), x, axes, "Mean of empty slice"), outer)
    return finish(result, axes if keepdims is True else None, out, x.ndim)


def _variance(finally_: Callable[[Value], Value]) -> Callable[..., Any]:
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
        x = value_of(a)
        inner, outer = _compute_dtype(x, dtype)
        axes = axes_of(axis, x.ndim)
        freedom = correction if is_given(correction) else ddof
        x = astype(x, inner)
        center = None
        if is_given(mean):
            kept = [n for n_axis, n in enumerate(x.shape) if n_axis not in axes]
            center = reshape_value(value_of(mean, inner), kept)
        variance = variance_value(x, axes, freedom, where, center)
        if type(freedom) is int:
            variance = _of_some(variance, x, axes, "Degrees of freedom <= 0 for slice", freedom + 1)
        result = astype(finally_(variance), part_dtype(outer))
        return finish(result, axes if keepdims is True else None, out, x.ndim)

    return keeps_rest(function)


implements(np.var)(_variance(lambda variance: variance))
implements(np.std)(_variance(ops.sqrt))


def _not_nan(x: Value) -> Any:
    return ops.bit_not(ops.isnan(x)) if is_inexact(x.dtype) else True


@implements(np.nanmean)
@keeps_rest
def nanmean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    x = value_of(a)
    kept = (
        _not_nan(x)
        if where is True or where is np._NoValue
        else ops.bit_and(_not_nan(x), broadcast_value(value_of(where, BOOL), x.shape))
    )
    return mean(without_nan(x, 0.0), axis, dtype, out, keepdims, where=kept)


def _nan_variance(variance: np.ufunc | Callable[..., Any], finally_: Callable[[Value], Value]) -> Callable[..., Any]:
    def function(
        a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **options: Any
    ) -> Any:
        if any(map(is_given, options.values())):
            not_compiled(variance.__name__, f"with {', '.join(options)}", "Use np.where and np.nanmean.")
        x = value_of(a)
        inner, outer = _compute_dtype(x, dtype)
        axes = axes_of(axis, x.ndim)
        x = astype(x, inner)
        kept = _not_nan(x)
        x = without_nan(x, 0.0)
        result = variance_value(x, axes, ddof, kept)
        if kept is not True:
            # With no more elements than ddof NumPy gives nan here, where the plain function may give inf.
            freedom = _count(x, axes, kept, result.dtype) - float(ddof)
            result = ops.select(ops.gt(freedom, 0.0), result, full(result.shape, float("nan"), result.dtype))
        return finish(astype(finally_(result), part_dtype(outer)), axes if keepdims is True else None, out, x.ndim)

    return keeps_rest(function)


implements(np.nanvar)(_nan_variance(np.nanvar, lambda variance: variance))
implements(np.nanstd)(_nan_variance(np.nanstd, ops.sqrt))


@implements(np.average)
@keeps_rest
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    x = value_of(a)
    axes = axes_of(axis, x.ndim)
    keep = axes if keepdims is True else None
    if weights is None:
        inner, outer = _compute_dtype(x, None)
        result = astype(mean_value(astype(x, inner), axes), outer)
        total = _count(x, axes, True, outer)
    else:
        w = value_of(weights)
        dtype = np.result_type(x.dtype, w.dtype, *([] if is_inexact(x.dtype) else ["f8"]))
        x, w = astype(x, dtype), _weights(astype(w, dtype), x, axes)
        total = reduce_values(ops.reduce_sum, w, axes)
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


def _rows(x: Value, axes: Sequence[int]) -> Value:
    """The reduced axes as one last axis."""
    others = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [*(x.shape[axis] for axis in others), prod(x.shape[axis] for axis in axes)]
    return reshape_value(ops.transpose(x, perm=(*others, *axes)), shape)


def _pick(rows: Value, at: Size) -> Value:
    """One column of the sorted rows."""
    n = rows.ndim - 1
    if isinstance(at, Dim) or isinstance(rows.shape[-1], Dim):
        place = ops.reshape(value_of_size(at), shape=(1,))
        return reshape_value(ops.gather(rows, place, axis=n), rows.shape[:-1])
    start, stop = (0,) * n + (at,), (*rows.shape[:-1], at + 1)
    return reshape_value(ops.slice(rows, start=start, stop=stop, step=(1,) * rows.ndim), rows.shape[:-1])


@implements(np.median)
def median(a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    x = value_of(a)
    axes = axes_of(axis, x.ndim)
    inner, outer = _compute_dtype(x, None)
    rows = ops.sort(_rows(x, axes), axis=x.ndim - len(axes), kind="quicksort")
    count = rows.shape[-1]
    if isinstance(count, Dim):
        result = astype(_or_nan(_unknown_median(rows, inner), rows), outer)
    elif count == 0:
        result = full(rows.shape[:-1], float("nan"), outer)
    else:
        upper = astype(_pick(rows, count // 2), inner)
        middle = upper if count % 2 else ops.div(astype(_pick(rows, count // 2 - 1), inner) + upper, 2.0)
        result = astype(_or_nan(middle, rows), outer)
    finished = finish(result, axes if keepdims else None, out, x.ndim)
    if len(axes) == 1 and type(finished) is TracedArray and not is_given(out):
        lay_out_rest(finished, a, axes)
    return finished


def _unknown_median(rows: Value, inner: DType) -> Value:
    """Of rows whose length only the running program knows: it must not be 0."""
    count = rows.shape[-1]
    insist_differ(count, 0)
    half = quotient(count, 2)
    assert half is not None
    odd = ops.broadcast(ops.eq(value_of_size(remainder(count, 2)), number(1)), shape=rows.shape[:-1], axes=())
    upper = astype(_pick(rows, half), inner)
    lower = astype(_pick(rows, larger(half - 1, 0)), inner)
    return ops.select(odd, upper, ops.div(lower + upper, 2.0))


def _or_nan(result: Value, rows: Value) -> Value:
    """nan where a row holds one: sorting has put it last."""
    if not is_inexact(rows.dtype):
        return result
    last = _pick(rows, rows.shape[-1] - 1)
    return ops.select(ops.isnan(last), full(result.shape, float("nan"), result.dtype), result)


# Where a fraction of the way through a row lies: the element before, and how far on to the next; None takes it as it is.
_POSITIONS: dict[str, Callable[[float], tuple[int, float | None]]] = {
    "linear": lambda at: (floor(at), at - floor(at)),
    "midpoint": lambda at: (floor(at), 0.0 if at == floor(at) else 0.5),
    "lower": lambda at: (floor(at), None),
    "higher": lambda at: (ceil(at), None),
    "nearest": lambda at: (round(at), None),
}


def _quantile(name: str, scale: int | None) -> Callable[..., Any]:
    def function(
        a: Any,
        q: Any,
        axis: Axis = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
        interpolation: Any = None,
    ) -> Any:
        if method not in _POSITIONS or weights is not None or interpolation is not None:
            not_compiled(name, f"with method={method!r} or weights", f"The methods {', '.join(_POSITIONS)} are, without weights.")
        x, known = value_of(a), _known_fractions(name, q)
        if is_complex(x.dtype):
            raise TypeError("a must be an array of real numbers")
        is_weak = type(known) in (int, float)
        fractions = np.asarray(known) if scale is None else np.asarray(known) / scale
        if fractions.size and not (fractions.min() >= 0 and fractions.max() <= 1):
            raise ValueError(f"{name.capitalize()}s must be in the range [0, {scale or 1}]")
        axes = axes_of(axis, x.ndim)
        rows = ops.sort(_rows(x, axes), axis=x.ndim - len(axes), kind="quicksort")
        kind = "lower" if method == "linear" and fractions.dtype.kind in "iu" else method
        inner = np.result_type(rows.dtype, 0.0) if is_weak else np.result_type(rows.dtype, fractions.dtype, 0.0)
        values = [_at_fraction(rows, float(f), kind, inner) for f in fractions.flat]
        keep = [1 if n in axes else size for n, size in enumerate(x.shape)] if keepdims else rows.shape[:-1]
        values = [reshape_value(v, keep) for v in values]
        if fractions.ndim == 0:
            return finish(values[0], None, out, x.ndim)
        stacked = ops.concat(*(reshape_value(v, (1, *v.shape)) for v in values), axis=0)
        return finish(reshape_value(stacked, (*fractions.shape, *keep)), None, out, x.ndim)

    return function


def _known_fractions(name: str, q: Any) -> Any:
    """Fractions as plain numbers: they decide which elements are looked at."""
    if isinstance(q, TracedNumber):
        return q.known()
    if isinstance(q, (list, tuple)):
        return [_known_fractions(name, item) for item in q]
    if not is_traced(q) and not isinstance(q, np.ndarray):
        return q
    known = constant_of(value_of(q))
    if known is None:
        not_compiled(name, "with traced fractions", "Give q as a Python number or a list of them.")
    return known


def _at_fraction(rows: Value, fraction: float, method: str, inner: DType) -> Value:
    count = rows.shape[-1]
    if isinstance(count, Dim):
        return _at_unknown_fraction(rows, fraction, method, inner)
    if count == 0:
        return full(rows.shape[:-1], float("nan"), inner)
    at, weight = _POSITIONS[method](fraction * (count - 1))
    low = _pick(rows, at)
    if weight is None:
        return _or_nan(low, rows)
    high = _pick(rows, min(at + 1, count - 1))
    # The difference is taken in the row's own dtype, and the sum from the nearer end, so that both ends are met exactly.
    distance = astype(ops.sub(high, low), inner)
    result = astype(low, inner) + distance * weight if weight < 0.5 else astype(high, inner) - distance * (1 - weight)
    return _or_nan(result, rows)


def _at_unknown_fraction(rows: Value, fraction: float, method: str, inner: DType) -> Value:
    """The same of rows whose length only the running program knows: it must not be 0."""
    if method != "linear":
        raise UnknownSizeError(f"a quantile by the method {method!r} of an array of the shape {rows.shape}", source=user_source())
    count = rows.shape[-1]
    insist_differ(count, 0)
    at = ops.mul(ops.convert(value_of_size(count - 1), dtype=F64), full((), fraction, F64))
    below = ops.floor(at)
    trace = active_trace()
    first = trace.bind(ops.convert(below, dtype=I64), 0, count - 1)
    low, high = astype(_pick(rows, first), inner), astype(_pick(rows, smaller(first + 1, count - 1)), inner)
    weight = ops.broadcast(astype(ops.sub(at, below), inner), shape=low.shape, axes=())
    distance = ops.sub(high, low)
    near = ops.lt(weight, 0.5)
    return _or_nan(ops.select(near, low + distance * weight, high - distance * (1.0 - weight)), rows)


implements(np.quantile)(_quantile("quantile", None))
implements(np.percentile)(_quantile("percentile", 100))


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
    if fweights is not None or aweights is not None:
        not_compiled("cov", "with weights", "Weight the centred data by hand: (w * d) @ d.T / w.sum().")
    return fresh(_covariance(m, y, rowvar, (0 if bias else 1) if ddof is None else ddof, dtype))


def _covariance(m: Any, y: Any, rowvar: bool, ddof: Any, dtype: Any) -> Value:
    parts = [as_array(m)] if y is None else [as_array(m), as_array(y)]
    target = np.result_type(*(p.dtype for p in parts), np.float64) if dtype is None else np.dtype(dtype)
    rows = []
    for part in parts:
        value = astype(read(part), target)
        value = reshape_value(value, (1, value.size)) if value.ndim < 2 else value
        rows.append(ops.transpose(value, perm=(1, 0)) if not rowvar and part.ndim == 2 else value)
    x = rows[0] if len(rows) == 1 else ops.concat(*rows, axis=0)
    centred = ops.sub(x, _spread(x, mean_value(x, (1,)), (1,)))
    products = ops.dot_general(centred, conjugate(centred), batch=((), ()), contract=((1,), (1,)))
    inner = part_dtype(target)
    freedom = ops.maximum(ops.sub(count_value(x.shape[1], (), inner), value_of(ddof, inner)), 0.0)
    result = ops.div(products, broadcast_value(astype(freedom, target), products.shape))
    return reshape_value(result, [n for n in result.shape if n != 1])


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, bias: Any = None, ddof: Any = None, *, dtype: Any = None) -> Any:
    check_argument(np.corrcoef, "bias", bias)  # without effect, and gone since NumPy 2.4
    check_argument(np.corrcoef, "ddof", ddof)
    c = _covariance(x, y, rowvar, 1, dtype)
    if is_complex(c.dtype):
        not_compiled("corrcoef", "of complex numbers")
    if c.ndim == 0:
        return result_of(ops.div(c, c))
    deviations = ops.sqrt(_diagonal(c))
    result = ops.div(c, ops.broadcast(deviations, shape=c.shape, axes=(0,)))
    result = ops.div(result, ops.broadcast(deviations, shape=c.shape, axes=(1,)))
    return result_of(ops.minimum(ops.maximum(result, -1.0), 1.0))


def _diagonal(c: Value) -> Value:
    index = ops.iota(shape=(c.shape[0],), axis=0, dtype=np.dtype(np.int64))
    return ops.gather(c, index, index, axis=0)
