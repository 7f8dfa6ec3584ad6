"""Evenly spaced numbers: `arange`, `linspace`, `logspace`, `geomspace`."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from jitml.errors import UnknownSizeError
from jitml.ir import ops
from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import F64, I64, DType
from jitml.numpy.arrays.reshaping import as_length, moveaxis
from jitml.numpy.support.arguments import (
    as_int,
    astype,
    broadcast_value,
    common_dtype,
    common_shape,
    kind_of,
    not_compiled,
    one_element,
    require_no_objects,
    spread_size,
    value_of,
)
from jitml.trace.symbolic.broadcasting import insist, require_at_least
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST, larger, number, quotient, span, value_of_size
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, is_traced, read, scalar
from jitml.trace.values.indices import unknown_size
from jitml.trace.values.numbers import combine, of_size
from jitml.trace.values.registry import call, implements
from jitml.trace.values.type_unions import settled


def known(x: Any) -> Any:
    """A number whose value the trace needs, of NumPy's or Python's as it is: taken under a guard, or refused."""
    if isinstance(x, TracedNumber):
        return x.known()
    return x.dtype.type(known(x.item())) if is_traced(x) else x


@implements(np.arange)
def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> TracedArray:
    """np.arange([start,] stop[, step]): its length must be known, so bounds are taken as concrete numbers."""
    args, named = tuple(map(_bound, args)), {name: _bound(n) for name, n in named.items()}
    if dtype is None:
        given = [n for n in (*args, *named.values()) if n is not None]
        require_no_objects(*given)
        # Of uint64 and of float32 it is float64.
        dtype = settled(given, [*map(kind_of, given)], lambda kinds: np.result_type(I64, *map(np.dtype, kinds)))
    target = np.dtype(dtype)
    places = _unknown_range(args, named)
    if places is not None:
        return _unknown_line(*places, target)
    bounds = _range_bounds(args, named)
    if target.kind == "f" and (found := _floats_of_call(bounds)) is not None:
        return _line_of_floats(*found, target)
    start, stop, step = map(known, bounds)
    if step == 0:
        raise ZeroDivisionError("division by zero")
    if any(isinstance(n, complex) for n in (start, stop, step)):
        not_compiled("arange", "of complex numbers", "Multiply a real range.")
    length = max(0, ceil((stop - start) / step))
    # NumPy makes two elements, in the target's dtype, and goes on by their difference.
    if target.kind in "iub":
        ends = np.array([start, start + step][:length], target)  # may not fit
        if target.kind == "b":
            if length > 2:
                raise TypeError("arange() is only supported for booleans when the result has at most length 2.")
            return fresh(value_of(ends))
        first, second = (int(ends[min(k, length - 1)]) if length else 0 for k in (0, 1))
        return fresh(line(length, first, second - first, target))
    if target.kind == "f" and any(map(_may_move, (bounds[0], bounds[2]))):  # the length alone is that of this call
        return _float_line(bounds[0], bounds[2], length, target)
    index = ops.iota(shape=(length,), axis=0, dtype=target)
    first = target.type(start)
    delta = target.type(start + step) - first
    return fresh(index * float(delta) + float(first))


def _floats_of_call(bounds: Sequence[Any]) -> tuple[Any, Any, Any] | None:
    """Start, stop and step as Python numbers, if the call gives one that is a float and none is computed by the program."""
    found = [n.item() if is_traced(n) and type(n) is not TracedNumber and n.dtype == F64 else n for n in bounds]
    given = [n for n in found if type(n) is TracedNumber]
    are_floats = all(type(n) in (int, float) for n in found if type(n) is not TracedNumber)
    is_given = bool(given) and all(n.slot is not None and n.kind is float for n in given)
    return tuple(found) if is_given and are_floats else None


def _line_of_floats(start: Any, stop: Any, step: Any, dtype: DType) -> TracedArray:
    """A range of which the length alone is known: of other calls it must be the same."""
    if step == 0:
        raise ZeroDivisionError("division by zero")
    return _float_line(start, step, max(0, known(combine(ceil, (stop - start) / step))), dtype)


def _float_line(start: Any, step: Any, length: int, dtype: DType) -> TracedArray:
    low = value_of(start, dtype)
    delta = value_of(start + step, dtype) - low
    index = ops.iota(shape=(length,), axis=0, dtype=dtype)
    return fresh(index * _spread(delta, length) + _spread(low, length))


def _may_move(n: Any) -> bool:
    """Whether a number is a float that only the running program computes: it has a slope, perhaps."""
    if isinstance(n, TracedNumber):
        return n.slot is None and n.kind is float
    return is_traced(n) and n.dtype.kind == "f" and constant_of(read(n)) is None


def _spread(value: Value, length: int) -> Value:
    made: Value = ops.broadcast(value, shape=(length,), axes=())
    return made


def _bound(n: Any) -> Any:
    message = "only 0-dimensional arrays can be converted to Python scalars"
    return scalar(one_element(read(n), message)) if type(n) is TracedArray and n.ndim else n


def require_forwards(start: Any, stop: Any, step: Any) -> None:
    """Refuse a range whose step leads away from its end, where NumPy takes its length for a size."""
    message = "negative dimensions are not allowed"
    places = _unknown_range((start, stop, step), {})
    start, stop, step = places or map(known, (start, stop, step))
    distance = stop - start if step > 0 else start - stop
    if places is not None:
        require_at_least(distance, 1 - abs(step), message)
    elif distance <= -abs(step):
        raise ValueError(message)


def _unknown_range(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Size, Size, Size] | None:
    """Start, stop and step as sizes, if all are integers and one is known only to the running program."""
    given = dict(zip(("start", "stop", "step"), args)) | named
    if given.get("stop") is None:
        given = {**given, "start": 0, "stop": given.get("start", 0)}
    ends = [given.get("start", 0), given["stop"], 1 if given.get("step") is None else given["step"]]
    sizes = [n if type(n) is int else unknown_size(n) for n in ends]
    if any(n is None for n in sizes) or all(type(n) is int for n in sizes):
        return None
    start, stop, step = sizes
    distance, difference = stop - start, common_dtype(*ends[:2])  # type: ignore[operator]  # none is None
    if difference.kind in "iu" and difference != I64 and not _lies_in(distance, difference):
        insist(_fits(distance, difference), error="OverflowError", message="overflow encountered in scalar subtract")
    return start, stop, step  # type: ignore[return-value]  # none is None


def _unknown_line(start: Size, stop: Size, step: Size, dtype: DType) -> TracedArray:
    if type(step) is not int:
        raise UnknownSizeError("the step of a range is known only when the program runs")
    if step == 0:
        raise ZeroDivisionError("division by zero")
    distance = as_length(of_size(larger(stop - start if step > 0 else start - stop, 0)))
    length = quotient(distance + abs(step) - 1, abs(step))
    assert length is not None, "what has memory is far from the greatest integer"
    index = ops.iota(shape=(length,), axis=0, dtype=I64)
    if dtype.kind in "iu":
        for place, end in enumerate((start, start + step)):
            _require_first(end, place, length, dtype)
    value = index * step if step != 1 else index
    return fresh(astype(value + spread_size(start, value.shape) if start != 0 else value, dtype))


def _require_first(end: Size, place: int, length: Size, dtype: DType) -> None:
    """The number at one of the first two places of a range, which NumPy makes of a Python integer, has to fit if it is there."""
    if _lies_in(end, dtype):
        return
    is_absent = ops.le(value_of_size(length), number(place))
    fits = ops.bit_or(_fits(end, dtype), is_absent)
    insist(fits, error="OverflowError", message=f"Python integer out of bounds for {dtype}")


def _lies_in(n: Size, dtype: DType) -> bool:
    """Whether a size is known to be a number of an integer dtype."""
    (least, most), (low, high) = dtype_limits(dtype), span(n)
    return least <= low and high <= most


def _fits(n: Size, dtype: DType) -> Value:
    """The same as a claim of the running program."""
    value, (least, most) = value_of_size(n), dtype_limits(dtype)
    fits: Value = ops.bit_and(ops.ge(value, max(least, LOWEST)), ops.le(value, min(most, HIGHEST)))
    return fits


def line(length: int, start: int, step: int, dtype: DType) -> Value:
    """start + step * index, in integers."""
    index = ops.iota(shape=(length,), axis=0, dtype=I64)
    return astype(index * step + start if (start, step) != (0, 1) else index, dtype)


def _range_bounds(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    given = list(args)
    if len(given) == 1 and "stop" not in named:
        given = [0, *given]
    for name in ("start", "stop", "step")[len(given) :]:
        given.append(named.get(name, 1 if name == "step" else 0))
    start, stop, step = given
    if stop is None:
        start, stop = 0, start
    return start, stop, 1 if step is None else step


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """start + index * step, NumPy's own formula, with the last element set to `stop`."""
    if axis != 0:
        made = call(np.linspace, start, stop, num, endpoint, retstep, dtype)
        return (moveaxis(made[0], 0, axis), made[1]) if retstep else moveaxis(made, 0, axis)
    count = as_length(num) if unknown_size(num) is not None else as_int(num)
    if type(count) is int and count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    require_no_objects(start, stop)
    inner = np.result_type(common_dtype(start, stop), 0.0)
    low, high = value_of(start, inner), value_of(stop, inner)
    shape = common_shape("linspace", low.shape, high.shape)
    low, high = broadcast_value(low, shape), broadcast_value(high, shape)
    divisions = count - 1 if endpoint else count
    delta = high - low
    if isinstance(divisions, Dim):
        if retstep:
            raise UnknownSizeError("the step of np.linspace is known only when the program runs")
        return fresh(_unknown_steps(low, high, delta, count, divisions, endpoint, dtype))
    step = delta / float(divisions) if divisions > 0 else delta
    whole = (count, *shape)
    index = ops.iota(shape=whole, axis=0, dtype=inner)
    steps = broadcast_value(step, whole)
    values = index * steps + broadcast_value(low, whole)
    if endpoint and count > 1:
        values = ops.select(ops.eq(index, float(count - 1)), broadcast_value(high, whole), values)
    target = inner if dtype is None else np.dtype(dtype)
    if target.kind in "iu":
        values = ops.floor(values)
    result = fresh(astype(values, target))
    if not retstep:
        return result
    return result, float("nan") if divisions <= 0 else fresh(step) if shape else scalar(step)


def _unknown_steps(low: Value, high: Value, delta: Value, count: Size, divisions: Size, endpoint: bool, dtype: Any) -> Value:
    """np.linspace of a length that only the running program knows."""
    inner = low.dtype
    whole: Any = (count, *low.shape)
    index = ops.iota(shape=whole, axis=0, dtype=inner)
    # With no division at all the only element is the start; what it is divided by does not matter then.
    parts = spread_size(larger(divisions, 1), low.shape, inner)
    values = index * broadcast_value(delta / parts, whole) + broadcast_value(low, whole)
    if endpoint:
        several = ops.gt(value_of_size(count), number(1))
        last = ops.eq(index, spread_size(count - 1, whole, inner))
        last = ops.bit_and(last, ops.broadcast(several, shape=whole, axes=()))
        values = ops.select(last, broadcast_value(high, whole), values)
    target = inner if dtype is None else np.dtype(dtype)
    return astype(ops.floor(values) if target.kind in "iu" else values, target)


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> TracedArray:
    exponents = call(np.linspace, start, stop, num, endpoint, axis=axis)
    if np.ndim(base):
        not_compiled("logspace", "with an array of bases", "np.power(base, np.linspace(...)) is.")
    result = np.power(base, exponents)
    return result if dtype is None else result.astype(dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> TracedArray:
    """NumPy's own steps: signs are taken off before the logarithm, and the ends are what was given."""
    require_no_objects(start, stop)
    count = as_int(num)
    inner = np.result_type(common_dtype(start, stop), 0.0, np.dtype(dtype))  # None is float64 here, too
    first, last = (fresh(value_of(x, inner)) for x in (start, stop))
    for end in (first, last):
        insist(read(call(np.all, call(np.not_equal, end, 0))), message="Geometric sequence cannot include zero")
    sign: Any = call(np.sign, first)
    low, high = first / sign, last / sign
    result: Any = logspace(np.log10(low), np.log10(high), count, endpoint, dtype=inner)
    if count > 0:
        result[0] = low
    if count > 1 and endpoint:
        result[-1] = high
    result *= sign
    moved: TracedArray = moveaxis(result, 0, axis).astype(inner if dtype is None else dtype, copy=False)
    return moved
