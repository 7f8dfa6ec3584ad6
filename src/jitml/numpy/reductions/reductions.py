"""Sums, products, extremes, truth, counts, cumulative scans: one value per row of axes.

NumPy's conventions: small integers widen when they are summed, float16 is summed in float32, NaN is handed on by
extremes, and results without axes are scalars.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import BOOL, F32, I64, DType, is_complex, is_float, is_inexact
from jitml.numpy.support.arguments import (
    astype,
    broadcast_value,
    checked_index,
    common_shape,
    full,
    mask_of,
    nonempty,
    not_compiled,
    one_axis,
    one_element,
    present,
    reduced_axes,
    reshape_value,
    result_of,
    spread_size,
    strict_axis,
    value_of,
    with_axis,
    without_imaginary,
)
from jitml.numpy.support.versions import count_is_a_number, norm_of_nothing_is_zero, picked_are_converted
from jitml.numpy.ufuncs.loops import truth
from jitml.numpy.ufuncs.ufunc import store
from jitml.trace.record.recording import active_trace, user_source
from jitml.trace.storage.strides import kept_strides, largest_stride
from jitml.trace.symbolic.broadcasting import never_equal, require_sizes
from jitml.trace.symbolic.sizes import span
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, fresh_like, layout_of, read, scalar
from jitml.trace.values.registry import call, implements

F16, U64 = np.dtype(np.float16), np.dtype(np.uint64)
Axis = int | Sequence[int] | None
# What NumPy says of an `out=` whose elements are of a lesser kind than what is picked.
_OTHER_KIND = (
    "Implicit casting of output to a different kind is deprecated. In a future version, this will result in an error. "
    "(Deprecated NumPy 2.5)"
)
_NO_VALUE: Any = np._NoValue  # what NumPy's own wrappers pass for "not given"


def is_given(x: object) -> bool:
    return x is not None and x is not _NO_VALUE


def is_set(option: Any) -> bool:
    """Whether `keepdims=` is true, as NumPy asks it: of numbers among the arguments of the jitted function, too."""
    return option is not _NO_VALUE and index(option) != 0


def finish(x: Value, keep: Sequence[int] | None, out: Any, ndim: int) -> Any:
    """A reduction's result as NumPy returns it.

    Args:
        keep: axes that stay with length one (`keepdims=True`), else None.
        out: the array to write to, if any.
        ndim: the operand's number of axes.
    """
    if keep is not None:
        sizes = iter(x.shape)
        x = reshape_value(x, (1 if axis in keep else next(sizes) for axis in range(ndim)))
    if not is_given(out):
        return result_of(x)
    if out.ndim != x.ndim or any(n != m and never_equal(n, m) for n, m in zip(out.sizes, x.shape)):
        raise ShapeError(f"output array has the shape {out.sizes}, the reduction gives {x.shape}", source=user_source())
    return store(out, require_sizes(x, out.sizes), casting="unsafe")


def finish_exactly(x: Value, keep: Sequence[int] | None, out: Any, ndim: int) -> Any:
    """The same where `out` may only have a dtype that is safely converted to the result's, as of positions.

    Raises:
        TypeError: it has another one.
    """
    if is_given(out):
        _must_be_safe(out, x.dtype)
    return finish(x, keep, out, ndim)


def _must_be_safe(out: Any, dtype: DType) -> None:
    if not np.can_cast(out.dtype, dtype):
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to {dtype!r} according to the rule 'safe'")


def finish_picked(x: Value, out: Any) -> Any:
    """Picked elements, or `out` with them: before NumPy 2.5 it is as exact as of positions."""
    if is_given(out) and not picked_are_converted():
        _must_be_safe(out, x.dtype)
    elif is_given(out):
        if not np.can_cast(x.dtype, out.dtype, "same_kind"):
            call(warnings.warn, _OTHER_KIND, DeprecationWarning)
        without_imaginary(read(out), x.dtype)  # NumPy converts what `out` holds, too
    return finish_converted(x, out)


def finish_converted(x: Value, out: Any) -> Any:
    """Elements, or `out` of any dtype with them."""
    return finish(without_imaginary(x, out.dtype) if is_given(out) else x, None, out, x.ndim)


def accumulator(dtype: DType, chosen: Any, out: Any) -> DType:
    """The dtype that sums and products are made in: small integers widen to 64 bits unless `dtype=` or `out=` decide."""
    if is_given(chosen):
        return np.result_type(chosen)
    if isinstance(out, TracedArray):
        return np.result_type(dtype, out.dtype)
    if dtype.kind in "bi":
        return I64
    return U64 if dtype.kind == "u" else dtype


def reduce_values(op: Op, x: Value, axes: Sequence[int]) -> Value:
    """A reducing op with float16 computed in float32, as NumPy's loops do."""
    if not axes:  # what a reduction begins with is there all the same
        if op is ops.reduce_sum and x.dtype.kind in "fc":
            return ops.add(x, 0.0)
        return x * 1 if op is ops.reduce_prod and is_complex(x.dtype) else x
    if x.dtype == F16 and op in (ops.reduce_sum, ops.reduce_prod):
        return astype(op(astype(x, F32), axes=tuple(axes)), F16)
    if x.dtype == BOOL:
        op = {ops.reduce_sum: ops.reduce_any, ops.reduce_max: ops.reduce_any}.get(op, op)
        op = {ops.reduce_prod: ops.reduce_all, ops.reduce_min: ops.reduce_all}.get(op, op)
    return op(x, axes=tuple(axes))


def masked(x: Value, where: Any, identity: int | float | bool) -> Value:
    """x with the identity in the places that `where=` leaves out."""
    if where is True or where is _NO_VALUE:
        return x
    return ops.select(_over(x, where), x, full(x.shape, identity, x.dtype))


def _over(x: Value, where: Any) -> Value:
    """A `where=` stretched over x, never the other way about."""
    mask = mask_of(where)
    shape = common_shape("where", mask.shape, x.shape)
    if len(shape) != x.ndim or any(n == 1 and never_equal(m, 1) for n, m in zip(x.shape, shape)):
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    return broadcast_value(mask, x.shape)


def _in_order(x: Value, axes: Sequence[int], operands: Iterable[Any]) -> Value:
    """x with the axes that are multiplied over as NumPy goes through them: in the order of memory, which bits and errors show."""
    if x.dtype.kind not in "fc":
        return x
    layout = kept_strides([layout_of(a) for a in operands if type(a) in (TracedArray, np.ndarray)], x.shape)
    axes = sorted(axes)
    ordered = sorted(axes, key=lambda axis: -largest_stride(layout[axis]))
    if ordered == axes:
        return x
    places = dict(zip(axes, ordered))
    return ops.transpose(x, perm=tuple(places.get(axis, axis) for axis in range(x.ndim)))


def _multiplied_from(start: Value, x: Value, axes: Sequence[int]) -> Value:
    """The product of floats that begins with a number: that comes first, as bits and errors show."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    sizes = [x.shape[axis] for axis in kept]
    rows = ops.transpose(x, perm=(*kept, *sorted(axes)))
    rows = reshape_value(rows, (*sizes, prod(x.shape[axis] for axis in axes)))
    rows = ops.concat(broadcast_value(start, (*sizes, 1)), rows, axis=len(kept))
    return reduce_values(ops.reduce_prod, rows, (len(kept),))


def _start(initial: Any, dtype: DType) -> Value:
    """An `initial=`, which is one number."""
    return one_element(value_of(initial, dtype))


def _sum_or_product(op: Op, combine: Op, identity: int) -> Callable[..., Any]:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        x = value_of(a)
        x = masked(astype(x, accumulator(x.dtype, dtype, out)), where, identity)
        axes = reduced_axes(axis, x.ndim)
        if op is ops.reduce_prod:
            x = _in_order(x, axes, (a, where))
        if is_given(initial) and op is ops.reduce_prod and axes and is_inexact(x.dtype):
            result = _multiplied_from(_start(initial, x.dtype), x, axes)
        else:
            result = reduce_values(op, x, axes)
            result = combine(result, broadcast_value(_start(initial, x.dtype), result.shape)) if is_given(initial) else result
        return finish(result, axes if is_set(keepdims) else None, out, x.ndim)

    return function


sum_of = implements(np.sum)(_sum_or_product(ops.reduce_sum, ops.add, 0))
product_of = implements(np.prod)(_sum_or_product(ops.reduce_prod, ops.mul, 1))


def _make_extreme(op: Op, combine: Op, name: str) -> Callable[..., Any]:
    def function(
        a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        x = value_of(a)
        axes = reduced_axes(axis, x.ndim)
        keep = axes if is_set(keepdims) else None
        if not is_given(initial):
            if where is not True and where is not _NO_VALUE:
                raise ValueError(
                    f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'"
                )
            x = nonempty(x, axes, f"zero-size array to reduction operation {name} which has no identity")
            return finish(reduce_values(op, x, axes), keep, out, x.ndim)
        start = _start(initial, x.dtype)
        if where is not True and where is not _NO_VALUE:
            x = ops.select(_over(x, where), x, broadcast_value(start, x.shape))
        kept_shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
        first = broadcast_value(start, kept_shape)
        empty = any(x.shape[n] == 0 for n in axes)
        for n in axes:
            if isinstance(x.shape[n], Dim):  # there may be nothing but the start
                edge = tuple(1 if axis == n else size for axis, size in enumerate(x.shape))
                x = ops.concat(x, broadcast_value(start, edge), axis=n)
        return finish(first if empty else combine(reduce_values(op, x, axes), first), keep, out, x.ndim)

    return function


maximum_of = implements(np.max, np.amax)(_make_extreme(ops.reduce_max, ops.maximum, "maximum"))
minimum_of = implements(np.min, np.amin)(_make_extreme(ops.reduce_min, ops.minimum, "minimum"))


def extreme_size(x: Value, axes: Sequence[int], *, greatest: bool) -> Value:
    """The greatest or the least of numbers that are not negative, as norms take it."""
    if not greatest:
        return value_of(minimum_of(fresh(x), tuple(axes)))
    may_be_none = any(span(x.shape[axis])[0] <= 0 for axis in axes)
    return value_of(maximum_of(fresh(x), tuple(axes), initial=0 if may_be_none and norm_of_nothing_is_zero() else None))


@implements(np.ptp)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    x = value_of(a)
    axes = reduced_axes(axis, x.ndim)
    x = nonempty(x, axes, "zero-size array to reduction operation maximum which has no identity")
    spread = ops.sub(reduce_values(ops.reduce_max, x, axes), reduce_values(ops.reduce_min, x, axes))
    return finish(spread, axes if is_set(keepdims) else None, out, x.ndim)


def _quantified(op: Op, identity: bool) -> Callable[..., Any]:
    def function(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
        x = masked(truth(value_of(a)), where, identity)
        axes = reduced_axes(axis, x.ndim)
        return finish(reduce_values(op, x, axes), axes if is_set(keepdims) else None, out, x.ndim)

    return function


all_of = implements(np.all)(_quantified(ops.reduce_all, True))
any_of = implements(np.any)(_quantified(ops.reduce_any, False))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    x = astype(truth(value_of(a)), I64)
    axes = reduced_axes(axis, x.ndim)
    count = reduce_values(ops.reduce_sum, x, axes)
    if count_is_a_number() and axis is None and not keepdims:
        return TracedNumber.of_value(active_trace(), count)
    return finish(count, axes if keepdims else None, None, x.ndim)


def _position(op: Op, name: str) -> Callable[..., Any]:
    def function(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = value_of(a)
        ndim = x.ndim
        if axis is None or (ndim == 0 and axis in (0, -1)):
            x, axis = reshape_value(x, (x.size,)), None
        chosen = 0 if axis is None else strict_axis(axis, ndim)
        x = nonempty(x, (chosen,), f"attempt to get {name} of an empty sequence")
        keep = (range(ndim) if axis is None else (chosen,)) if is_set(keepdims) else None
        return finish_exactly(op(x, axis=chosen), keep, out, ndim)

    return function


argmax = implements(np.argmax)(_position(ops.argmax, "argmax"))
argmin = implements(np.argmin)(_position(ops.argmin, "argmin"))


def _cumulative(op: Op) -> Callable[..., Any]:
    def function(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        x = value_of(a)
        x = astype(x, accumulator(x.dtype, dtype, out))
        if axis is None:
            x, axis = reshape_value(x, (x.size,)), 0
        x = with_axis(x, axis)
        return finish(op(x, axis=strict_axis(axis, x.ndim), reverse=False), None, out, x.ndim)

    return function


cumsum = implements(np.cumsum)(_cumulative(ops.cumsum))
cumprod = implements(np.cumprod)(_cumulative(ops.cumprod))


def _cumulative_from_start(op: Op, identity: int) -> Callable[..., Any]:
    """The Array API's form: one axis, and on request the identity in front."""

    def function(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
        value = with_axis(value_of(x), 0)
        if axis is None and value.ndim != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        value = astype(value, accumulator(value.dtype, dtype, out))
        along = strict_axis(0 if axis is None else axis, value.ndim)
        result = op(value, axis=along, reverse=False)
        if include_initial:
            first = full((1 if n == along else size for n, size in enumerate(value.shape)), identity, value.dtype)
            result = ops.concat(first, result, axis=along)
        return finish(result, None, out, value.ndim)

    return function


implements(*present("cumulative_sum"))(_cumulative_from_start(ops.cumsum, 0))
implements(*present("cumulative_prod"))(_cumulative_from_start(ops.cumprod, 1))


def without_nan(x: Value, instead: float) -> Value:
    """x with every NaN replaced."""
    if not is_inexact(x.dtype):
        return x
    return ops.select(ops.isnan(x), full(x.shape, instead, x.dtype), x)


def _ignoring_nan(function: Callable[..., Any], identity: float) -> Callable[..., Any]:
    def ignoring(a: Any, *args: Any, **kwargs: Any) -> Any:
        x = without_nan(value_of(a), identity)
        return function(fresh_like(x, a) if x.ndim else scalar(x), *args, **kwargs)

    return ignoring


implements(np.nansum)(_ignoring_nan(sum_of, 0.0))
implements(np.nanprod)(_ignoring_nan(product_of, 1.0))
implements(np.nancumsum)(_ignoring_nan(cumsum, 0.0))
implements(np.nancumprod)(_ignoring_nan(cumprod, 1.0))


def _extreme_ignoring_nan(op: Op, worst: float, extreme: Callable[..., Any]) -> Callable[..., Any]:
    def function(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        x = value_of(a)
        if not is_float(x.dtype) or any(map(is_given, options.values())):
            return extreme(result_of(without_nan(x, worst)), axis, out, keepdims, **options)
        axes = reduced_axes(axis, x.ndim)
        x = nonempty(x, axes, "zero-size array to reduction operation which has no identity")
        found = reduce_values(op, without_nan(x, worst), axes)
        only_nan = reduce_values(ops.reduce_all, ops.isnan(x), axes)
        result = ops.select(only_nan, full(found.shape, float("nan"), x.dtype), found)
        enough = ops.bit_not(reduce_values(ops.reduce_any, only_nan, tuple(range(only_nan.ndim))))
        result = ops.check(result, enough, error="RuntimeWarning", message="All-NaN slice encountered")
        return finish(result, axes if is_set(keepdims) else None, out, x.ndim)

    return function


implements(np.nanmax)(_extreme_ignoring_nan(ops.reduce_max, float("-inf"), maximum_of))
implements(np.nanmin)(_extreme_ignoring_nan(ops.reduce_min, float("inf"), minimum_of))


def _position_ignoring_nan(op: Op, worst: float, position: Callable[..., Any]) -> Callable[..., Any]:
    """A row of NaN alone is an error, as in NumPy; it comes as an index out of range."""

    def function(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = value_of(a)
        if is_complex(x.dtype):
            not_compiled(position.__name__, "of complex numbers")
        if not is_float(x.dtype):
            return position(a, axis, out, keepdims=keepdims)
        if axis is None:
            flat = function(fresh(reshape_value(x, (x.size,))), 0)
            return finish_exactly(value_of(flat), range(x.ndim) if is_set(keepdims) else None, out, x.ndim)
        along = one_axis(axis, x.ndim)
        x = nonempty(x, (along,), "attempt to get a position in an empty sequence")
        found = op(without_nan(x, worst), axis=along)
        only_nan = reduce_values(ops.reduce_all, ops.isnan(x), (along,))
        found = ops.select(only_nan, spread_size(x.shape[along], found.shape), found)
        return finish_exactly(checked_index(found, x.shape[along]), (along,) if is_set(keepdims) else None, out, x.ndim)

    return function


implements(np.nanargmax)(_position_ignoring_nan(ops.argmax, float("-inf"), argmax))
implements(np.nanargmin)(_position_ignoring_nan(ops.argmin, float("inf"), argmin))
