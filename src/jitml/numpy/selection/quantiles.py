"""Medians and quantiles: of rows put in order, the element at a place, or what lies between two.

Places are numbers that the graph knows if fractions and sizes are; where fractions are computed, or each row has its own count of
what is not nan, they are found by the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, prod
from typing import Any

import numpy as np

from jitml.errors import UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F64, I64, DType, is_complex, is_float, is_inexact
from jitml.numpy.reductions.reductions import Axis, finish, is_set, reduce_values
from jitml.numpy.reductions.statistics import compute_dtype, of_some
from jitml.numpy.selection.choose import take_along_axis
from jitml.numpy.support.arguments import astype, axes_of, full, not_compiled, reshape_value, spread_size, value_of
from jitml.numpy.support.versions import fractions_take_the_dtype
from jitml.trace.record.recording import active_trace, user_source
from jitml.trace.symbolic.broadcasting import insist
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.symbolic.sizes import larger, number, quotient, remainder, smaller, value_of_size
from jitml.trace.values.boxing import TracedNumber, fresh, is_traced, read
from jitml.trace.values.registry import implements


def _rows(x: Value, axes: Sequence[int]) -> Value:
    """The reduced axes as one last axis."""
    others = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [*(x.shape[axis] for axis in others), prod(x.shape[axis] for axis in axes)]
    return reshape_value(ops.transpose(x, perm=(*others, *axes)), shape)


def _sorted_rows(x: Value, axes: Sequence[int]) -> Value:
    rows: Value = ops.sort(_rows(x, axes), axis=x.ndim - len(axes), kind="quicksort")
    return rows


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
    inner, outer = compute_dtype(x, None, out)
    rows = _sorted_rows(x, axes)
    count = rows.shape[-1]
    if isinstance(count, Dim):
        result = of_some(astype(_unknown_median(rows, inner), outer), x, axes, "Mean of empty slice")
    elif count == 0:
        result = of_some(full(rows.shape[:-1], float("nan"), outer), x, axes, "Mean of empty slice")
    else:
        upper = astype(_pick(rows, count // 2), inner)
        if count % 2:
            middle = ops.div(upper, 1.0) if is_complex(inner) else upper  # NumPy's mean of one, which makes nan of infinities
        else:
            middle = ops.div(astype(_pick(rows, count // 2 - 1), inner) + upper, 2.0)
        result = astype(_or_nan(middle, rows), outer)
    return finish(result, axes if keepdims else None, out, x.ndim)


def _unknown_median(rows: Value, inner: DType) -> Value:
    """Of rows whose length only the running program knows; of nothing it is what lies behind, nan."""
    count = rows.shape[-1]
    none = (0,) * rows.ndim
    rows = ops.pad(astype(rows, inner), full((), float("nan"), inner), low=none, high=(*none[1:], 1), interior=none)
    half = quotient(count, 2)
    assert half is not None
    odd = ops.broadcast(ops.eq(value_of_size(remainder(count, 2)), number(1)), shape=rows.shape[:-1], axes=())
    upper, lower, last = (_pick(rows, at) for at in (half, larger(half - 1, 0), larger(count - 1, 0)))
    return _nan_where_last(ops.select(odd, upper, ops.div(lower + upper, 2.0)), last)


def _or_nan(result: Value, rows: Value) -> Value:
    """nan where a row holds one: sorting has put it last."""
    if not is_inexact(rows.dtype):
        return result
    return _nan_where_last(result, _pick(rows, rows.shape[-1] - 1))


def _nan_where_last(result: Value, last: Value) -> Value:
    return ops.select(ops.isnan(last), full(result.shape, float("nan"), result.dtype), result)


# Where a fraction of the way through n elements in order lies, counted from 0, and between its neighbours; NumPy's formulas.
_CONTINUOUS: dict[str, Callable[[Any, int], Any]] = {
    "linear": lambda q, n: (n - 1) * q,
    "interpolated_inverted_cdf": lambda q, n: _with_plotting_positions(q, n, 0, 1),
    "hazen": lambda q, n: _with_plotting_positions(q, n, 0.5, 0.5),
    "weibull": lambda q, n: _with_plotting_positions(q, n, 0, 0),
    "median_unbiased": lambda q, n: _with_plotting_positions(q, n, 1 / 3.0, 1 / 3.0),
    "normal_unbiased": lambda q, n: _with_plotting_positions(q, n, 3 / 8.0, 3 / 8.0),
}
_STEPS = (
    "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
)  # fmt: skip


def _with_plotting_positions(q: Any, n: int, alpha: float, beta: float) -> Any:
    return n * q + (alpha + q * (1 - alpha - beta)) - 1


def _position(method: str, q: np.generic, n: int) -> tuple[int, Any]:
    """The element before, and how far on to the next, in the fraction's dtype; None takes it as it is."""
    if method in _STEPS:
        # Of the numbers of the places, NumPy's own quantile is the place: an element, or the middle of two.
        at = float(np.quantile(np.arange(n, dtype=float), q, method=method))  # type: ignore[call-overload]  # one of the methods
        return floor(at), None if method not in ("midpoint", "averaged_inverted_cdf") else at - floor(at)
    at = min(max(_CONTINUOUS[method](q, n), 0.0), n - 1.0)
    return floor(at), at - floor(at)


def _make_quantile(name: str, scale: int | None, *, without_nan: bool = False) -> Callable[..., Any]:
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
        if weights is not None or interpolation is not None or not (method in _CONTINUOUS or method in _STEPS):
            not_compiled(name, f"with method={method!r}, weights or interpolation=", "Without weights, NumPy's methods are.")
        x, known = value_of(a), _known_fractions(q)
        if is_complex(x.dtype):
            raise TypeError("a must be an array of real numbers")
        axes = axes_of(axis, x.ndim)
        rows = _sorted_rows(x, axes)
        keep = [1 if n in axes else size for n, size in enumerate(x.shape)] if is_set(keepdims) else rows.shape[:-1]
        given: Any = value_of(q) if known is None else np.asarray(known)
        dtype, inner = _dtypes(q, given.dtype, rows.dtype, scale)
        if known is None or without_nan:
            if method != "linear":
                not_compiled(name, f"with method={method!r}, of traced fractions or of rows with nan", "The method linear is.")
            if without_nan and given.ndim > 1 and 1 < len(axes) < x.ndim:
                not_compiled(name, "of several axes, at fractions of more than one", "NumPy moves the wrong axes to the front.")
            return _at_run_time(name, rows, astype(value_of(given), dtype), inner, scale, keep, out, without_nan)
        fractions = given.astype(dtype) if scale is None else given.astype(dtype) / scale
        if fractions.size and not (fractions.min() >= 0 and fractions.max() <= 1):
            raise ValueError(f"{_plural(name)} must be in the range [0, {scale or 1}]")
        kind = "lower" if method == "linear" and not is_float(dtype) else method
        values = [reshape_value(_at_fraction(rows, f, kind, inner), keep) for f in fractions.flat]
        if fractions.ndim == 0:
            return finish(values[0], None, out, x.ndim)
        if not values:
            return finish(full((*fractions.shape, *keep), 0.0, inner), None, out, x.ndim)
        stacked = ops.concat(*(reshape_value(v, (1, *v.shape)) for v in values), axis=0)
        return finish(reshape_value(stacked, (*fractions.shape, *keep)), None, out, x.ndim)

    return function


def _dtypes(q: Any, given: DType, rows: DType, scale: int | None) -> tuple[DType, DType]:
    """In what NumPy finds the places of fractions `q` of the dtype `given`, and what it has between two elements."""
    is_weak = q.__class__ in (int, float)
    takes_rows = fractions_take_the_dtype() and is_float(rows)
    if takes_rows and (is_weak or (scale is None and isinstance(q, float))):
        given = rows
    if scale is not None:
        given = np.true_divide(np.zeros((), given), rows.type(scale) if takes_rows else scale).dtype
    return given, np.result_type(rows, 0.0) if is_weak else np.result_type(rows, given, 0.0)


def _plural(name: str) -> str:
    return name.removeprefix("nan").capitalize() + "s"


def _at_run_time(
    name: str, rows: Value, fractions: Value, inner: DType, scale: int | None, keep: Sequence[Any], out: Any, without_nan: bool
) -> Any:
    """Of fractions, or of counts of what is no nan, that only the running program knows."""
    if rows.size == 0:
        not_compiled(name, "of nothing", "It is nan.")
    are_places = not is_float(fractions.dtype)  # the first element, or the last
    fractions = astype(fractions, F64) if are_places else fractions
    shape = fractions.shape
    fractions = reshape_value(fractions / float(scale) if scale else fractions, (fractions.size,))
    inside = reduce_values(ops.reduce_all, ops.bit_and(ops.ge(fractions, 0.0), ops.le(fractions, 1.0)), (0,))
    message = f"{_plural(name)} must be in the range [0, {scale or 1}]"
    fractions = ops.check(fractions, inside, error="ValueError", message=message)
    wide = (*rows.shape[:-1], fractions.shape[0])
    counts = _counts(rows, without_nan)
    last = ops.broadcast(counts - 1, shape=wide, axes=tuple(range(rows.ndim - 1)))
    at = ops.broadcast(fractions, shape=wide, axes=(rows.ndim - 1,)) * astype(last, fractions.dtype)
    below = ops.floor(at)
    before = ops.maximum(astype(below, I64), 0)
    low, high = (read(take_along_axis(fresh(rows), fresh(place), -1)) for place in (before, ops.minimum(before + 1, last)))
    found = low if are_places else _between(low, high, at - below, inner)
    front = ops.transpose(found, perm=(found.ndim - 1, *range(found.ndim - 1)))
    parts = reshape_value(front, (*shape, *rows.shape[:-1]))
    return finish(reshape_value(_known_rows(parts, rows, counts, without_nan), (*shape, *keep)), None, out, rows.ndim)


def _counts(rows: Value, without_nan: bool) -> Value:
    """How many elements of each sorted row count."""
    if without_nan and is_inexact(rows.dtype):
        return reduce_values(ops.reduce_sum, astype(ops.bit_not(ops.isnan(rows)), I64), (rows.ndim - 1,))
    return spread_size(rows.shape[-1], rows.shape[:-1])


def _known_rows(result: Value, rows: Value, counts: Value, without_nan: bool) -> Value:
    """nan for a row that holds one, or of those without: for a row that holds nothing else, of which NumPy itself warns."""
    spread = tuple(range(result.ndim - counts.ndim, result.ndim))
    if not without_nan:
        lost = ops.isnan(_pick(rows, rows.shape[-1] - 1)) if is_inexact(rows.dtype) else full(rows.shape[:-1], False, BOOL)
    else:
        lost = ops.eq(counts, 0)
        enough = ops.bit_not(reduce_values(ops.reduce_any, lost, tuple(range(lost.ndim))))
        result = ops.check(result, enough, error="RuntimeWarning", message="All-NaN slice encountered")
    if not is_inexact(result.dtype):
        return result
    nan = full(result.shape, float("nan"), result.dtype)
    return ops.select(ops.broadcast(lost, shape=result.shape, axes=spread), nan, result)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    x = value_of(a)
    if not is_float(x.dtype):
        return median(a, axis, out, overwrite_input, is_set(keepdims))
    axes = axes_of(axis, x.ndim)
    if x.size == 0:
        not_compiled("nanmedian", "of nothing", "It is nan.")
    rows = _sorted_rows(x, axes)
    counts = _counts(rows, True)
    places = (ops.maximum(ops.floor_divide(n, 2), 0) for n in (counts - 1, counts))
    columns = [fresh(reshape_value(ops.minimum(place, rows.shape[-1] - 1), (*place.shape, 1))) for place in places]
    inner, outer = compute_dtype(x, None)
    low, high = (astype(reshape_value(read(take_along_axis(fresh(rows), c, -1)), counts.shape), inner) for c in columns)
    odd = ops.eq(ops.remainder(counts, 2), 1)
    middle = astype(ops.select(odd, low, ops.div(low + high, 2.0)), outer)
    return finish(_known_rows(middle, rows, counts, True), axes if is_set(keepdims) else None, out, x.ndim)


def _known_fractions(q: Any) -> Any:
    """Fractions as plain numbers, which decide once and for all which elements are looked at; None if they are computed."""
    if isinstance(q, TracedNumber):
        if q.slot is not None:
            return q.known()
        found = constant_of(value_of(q))
        return None if found is None else found.item()
    if isinstance(q, (list, tuple)):
        items = [_known_fractions(item) for item in q]
        return None if any(item is None for item in items) else items
    if not is_traced(q) and not isinstance(q, np.ndarray):
        return q
    return constant_of(value_of(q))


def _between(low: Value, high: Value, weight: Any, inner: DType) -> Value:
    """What lies so far from one element to the next; the weight is a number or as many.

    The difference is taken in their own dtype, and the sum from the nearer end, so that both ends are met exactly.
    """
    distance = astype(ops.sub(high, low), inner)
    if not isinstance(weight, Value):
        if weight < 0.5:
            return astype(low, inner) + distance * float(weight)
        return astype(high, inner) - distance * float(1 - weight)
    near = astype(low, inner) + distance * astype(weight, inner)
    return ops.select(ops.lt(weight, 0.5), near, astype(high, inner) - distance * astype(1.0 - weight, inner))


def _at_fraction(rows: Value, fraction: np.generic, method: str, inner: DType) -> Value:
    count = rows.shape[-1]
    if isinstance(count, Dim):
        return _at_unknown_fraction(rows, fraction, method, inner)
    if count == 0:
        raise IndexError("index -1 is out of bounds for axis 0 with size 0")
    at, weight = _position(method, fraction, count)
    low = _pick(rows, at)
    if weight is None:
        return _or_nan(low, rows)
    return _or_nan(_between(low, _pick(rows, min(at + 1, count - 1)), weight, inner), rows)


def _at_unknown_fraction(rows: Value, fraction: Any, method: str, inner: DType) -> Value:
    """The same of rows whose length only the running program knows."""
    if method != "linear":
        raise UnknownSizeError(f"a quantile by the method {method!r} of an array of the shape {rows.shape}", source=user_source())
    count = rows.shape[-1]
    message = f"index {-1 if is_inexact(rows.dtype) else 0} is out of bounds for axis 0 with size 0"
    insist(ops.gt(value_of_size(count), number(0)), error="IndexError", message=message)
    at = ops.mul(astype(value_of_size(count - 1), fraction.dtype), full((), float(fraction), fraction.dtype))
    below = ops.floor(at)
    trace = active_trace()
    first = trace.bind(ops.convert(below, dtype=I64), 0, count - 1)
    low, high = _pick(rows, first), _pick(rows, smaller(first + 1, count - 1))
    weight = ops.broadcast(ops.sub(at, below), shape=low.shape, axes=())
    return _or_nan(_between(low, high, weight, inner), rows)


implements(np.quantile)(_make_quantile("quantile", None))
implements(np.percentile)(_make_quantile("percentile", 100))
implements(np.nanquantile)(_make_quantile("nanquantile", None, without_nan=True))
implements(np.nanpercentile)(_make_quantile("nanpercentile", 100, without_nan=True))
