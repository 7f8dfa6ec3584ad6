"""New arrays: filled, ranged, copied, or gathered from Python's numbers and sequences.

The call converter sends these here even when every argument is concrete, so that the arrays a function makes can be
written with traced values.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np

from jitml.errors import ShapeError, UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import DTYPES, I64, DType
from jitml.numpy.indexing import value_for
from jitml.numpy.operands import (
    Shape,
    as_array,
    as_int,
    astype,
    broadcast_value,
    common_dtype,
    common_shape,
    full,
    present,
    refuses,
    reshape_value,
    spread_size,
    value_of,
)
from jitml.numpy.reshaping import as_length, as_shape, broadcasted, moveaxis, reshaped
from jitml.trace.context import user_source
from jitml.trace.convert import convert
from jitml.trace.numbers import of_size
from jitml.trace.places import unknown_size
from jitml.trace.registry import implements
from jitml.trace.sizes import larger, number, quotient, value_of_size
from jitml.trace.strides import surely_contiguous
from jitml.trace.tracers import TracedArray, TracedNumber, fresh, fresh_like, is_traced, laid_out, read, scalar


def known(x: Any) -> Any:
    """A Python number whose value the trace needs: taken under a guard, or refused."""
    if isinstance(x, TracedNumber):
        return x.known()
    return x.item() if is_traced(x) else x


def _filled(value: int) -> Callable[..., TracedArray]:
    def function(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> TracedArray:
        return fresh(full(_checked(shape), value, np.dtype(float if dtype is None else dtype)))

    return function


def _checked(shape: Any) -> Shape:
    sizes = as_shape(shape)
    if any(type(n) is int and n < 0 for n in sizes):
        raise ValueError("negative dimensions are not allowed")
    return sizes


zeros = implements(np.zeros, np.empty)(_filled(0))
ones = implements(np.ones)(_filled(1))


def _filled_like(value: int) -> Callable[..., TracedArray]:
    def function(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> TracedArray:
        x = value_of(a)
        sizes = x.shape if shape is None else _checked(shape)
        made = full(sizes, value, x.dtype if dtype is None else np.dtype(dtype))
        return fresh_like(made, a) if sizes == x.shape and order == "K" else fresh(made)

    return function


zeros_like = implements(np.zeros_like)(_filled_like(0))
implements(np.ones_like)(_filled_like(1))


@implements(np.empty_like)
def empty_like(
    prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> TracedArray:
    return zeros_like(prototype, dtype, shape=shape)


@implements(np.full)
def full_array(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> TracedArray:
    value = value_of(fill_value, None if dtype is None else np.dtype(dtype))
    return fresh(broadcast_value(value, _checked(shape)))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> TracedArray:
    x = value_of(a)
    result = fresh(full(x.shape if shape is None else _checked(shape), 0, x.dtype if dtype is None else np.dtype(dtype)))
    made = broadcast_value(value_for(fill_value, result), result.sizes)
    return fresh_like(made, a) if result.sizes == x.shape and order == "K" else fresh(made)


@implements(np.array)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> TracedArray:
    """A new array; of an array with `copy=False` or `None`, the array itself where its dtype is right."""
    wanted = None if dtype is None else np.dtype(dtype)
    if isinstance(object, TracedArray) and not copy and wanted in (None, object.dtype) and _lies_in(object, order):
        result = object
    else:
        as_it_is = isinstance(object, (TracedNumber, list, tuple)) or wanted is None or type(object) is int
        value = value_of(object, wanted) if as_it_is else astype(value_of(object), wanted)
        result = laid_out(value, object, order)
    return result if result.ndim >= ndmin else reshaped(result, (1,) * (ndmin - result.ndim) + result.sizes)


@implements(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: Any = -1, *, like: Any = None) -> TracedArray:
    """The items of a list, or of a generator that ends."""
    items = array(iter if isinstance(iter, list) else list(iter), dtype)
    if as_int(count) > items.aval.size:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {items.size} items.")
    return items if as_int(count) < 0 else array(items[: as_int(count)])


@implements(np.fromfunction)
def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any) -> Any:
    """What a function makes of all indices at once."""
    return convert(function)(*indices(shape, dtype), **kwargs)


@implements(np.asarray, np.asanyarray)
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None, like: Any = None
) -> TracedArray:
    return array(a, dtype, copy=copy, order=order or "K")


def _lies_in(x: TracedArray, order: str) -> bool:
    """Whether memory has this order already."""
    if order == "C":
        return x.is_contiguous
    return order != "F" or surely_contiguous(x.sizes[::-1], x.layout[::-1])


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> TracedArray:
    return array(a, dtype, copy=None, order="C", ndmin=1)


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> TracedArray:
    return array(a, dtype, copy=None, order="F", ndmin=1)


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> TracedArray:
    return array(a, order=order)


@implements(*present("astype"))
def cast(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(dtype, copy=copy)


def cast_number(dtype: DType) -> Callable[..., Any]:
    """What `np.float32(x)` and its kin do with a traced value: a scalar of a scalar, an array of an array."""

    def function(x: Any = 0, /) -> Any:
        value = value_of(x)
        must_fit = isinstance(x, (TracedNumber, list, tuple)) or type(x) is int
        result = value_of(x, dtype) if must_fit else astype(value, dtype)
        return fresh(result) if result.ndim else scalar(result)

    return function


for _dtype in DTYPES.values():
    implements(_dtype.type)(cast_number(_dtype))


@implements(np.arange)
def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> TracedArray:
    """np.arange([start,] stop[, step]): its length must be known, so bounds are taken as concrete numbers."""
    places = _unknown_range(args, named)
    if places is not None:
        return _unknown_line(*places, np.dtype(int if dtype is None else dtype))
    start, stop, step = _range_bounds(args, named)
    if step == 0:
        raise ZeroDivisionError("division by zero")
    target = np.dtype(np.result_type(*map(np.asarray, (start, stop, step))) if dtype is None else dtype)
    length = max(0, ceil((stop - start) / step))
    if target.kind in "iu":
        np.array([start, start + step][:length], target)  # as NumPy begins, and where a number may not fit
        return fresh(line(length, int(start), int(step), target))
    # NumPy makes the second element first and multiplies the difference, in the target's dtype.
    first = target.type(start)
    delta = target.type(start + step) - first
    index = ops.iota(shape=(length,), axis=0, dtype=target)
    return fresh(index * float(delta) + float(first))


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
    return start, stop, step  # type: ignore[return-value]  # none is None


def _unknown_line(start: Size, stop: Size, step: Size, dtype: DType) -> TracedArray:
    if type(step) is not int:
        raise UnknownSizeError("the step of a range is known only when the program runs")
    if step == 0:
        raise ZeroDivisionError("division by zero")
    distance = stop - start if step > 0 else start - stop
    length = quotient(larger(distance, 0) + abs(step) - 1, abs(step))
    assert length is not None, "a step is never 0 here"
    index = ops.iota(shape=(as_length(of_size(length)),), axis=0, dtype=I64)
    value = index * step if step != 1 else index
    return fresh(astype(value + spread_size(start, value.shape) if start != 0 else value, dtype))


def line(length: int, start: int, step: int, dtype: DType) -> Value:
    """start + step * index, in integers."""
    index = ops.iota(shape=(length,), axis=0, dtype=I64)
    return astype(index * step + start if (start, step) != (0, 1) else index, dtype)


def _range_bounds(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    given = list(map(known, args))
    if len(given) == 1 and "stop" not in named:
        given = [0, *given]
    for name in ("start", "stop", "step")[len(given) :]:
        given.append(known(named.get(name, 1 if name == "step" else 0)))
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
    count = as_length(num) if unknown_size(num) is not None else as_int(num)
    if type(count) is int and count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    inner = np.result_type(common_dtype(start, stop), 0.0)
    low, high = value_of(start, inner), value_of(stop, inner)
    shape = common_shape("linspace", low.shape, high.shape)
    low, high = broadcast_value(low, shape), broadcast_value(high, shape)
    divisions = count - 1 if endpoint else count
    delta = high - low
    if isinstance(divisions, Dim):
        if retstep:
            raise UnknownSizeError("the step of np.linspace is known only when the program runs")
        return moveaxis(fresh(_unknown_steps(low, high, delta, count, divisions, endpoint, dtype)), 0, axis)
    step = delta / float(divisions) if divisions > 0 else full(shape, float("nan"), inner)
    whole = (count, *shape)
    index = ops.iota(shape=whole, axis=0, dtype=inner)
    steps = broadcast_value(step if divisions > 0 else delta, whole)
    values = index * steps + broadcast_value(low, whole)
    if endpoint and count > 1:
        values = ops.select(ops.eq(index, float(count - 1)), broadcast_value(high, whole), values)
    target = inner if dtype is None else np.dtype(dtype)
    if target.kind in "iu":
        values = ops.floor(values)
    result = fresh(astype(values, target))
    result = moveaxis(result, 0, axis) if axis != 0 else result
    return (result, fresh(step) if shape else scalar(step)) if retstep else result


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
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    result = np.power(base, exponents)
    return result if dtype is None else result.astype(dtype)


refuses(np.geomspace, because="is not compiled yet", remedy="np.exp(np.linspace(np.log(a), np.log(b), n)) is.")


@implements(np.eye)
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> TracedArray:
    rows = as_length(N)
    shape = (rows, rows if M is None else as_length(M))
    return fresh(astype(band(shape, as_int(k), ops.eq), np.dtype(dtype)))


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


def _triangle(compare: Callable[..., Any]) -> Callable[..., TracedArray]:
    def function(m: Any, k: Any = 0) -> TracedArray:
        x = value_of(m)
        if x.ndim < 1:
            raise ShapeError("tril and triu need at least one axis", source=user_source())
        x = broadcast_value(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x
        mask = fresh(band(x.shape[-2:], as_int(k), compare))
        chosen: Value = ops.select(broadcast_value(read(mask), x.shape), x, full(x.shape, 0, x.dtype))
        return fresh_like(chosen, mask, *([m] if x is value_of(m) else []))

    return function


implements(np.tril)(_triangle(ops.le))
implements(np.triu)(_triangle(ops.ge))


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> TracedArray:
    v = as_array(x)
    count = v.sizes[0] if N is None else as_length(N)
    dtype = np.promote_types(v.dtype, int)
    columns = full((v.sizes[0], count), 1, dtype)
    if isinstance(count, Dim) or count > 1:
        ones_and_x = broadcast_value(reshape_value(value_of(v, dtype), (v.sizes[0], 1)), (v.sizes[0], count))
        is_first = ops.eq(ops.iota(shape=columns.shape, axis=1, dtype=I64), 0)
        columns = ops.cumprod(ops.select(is_first, columns, ones_and_x), axis=1, reverse=False)
    return fresh(columns if increasing else ops.flip(columns, axes=(1,)))


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[TracedArray, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    count = len(xi)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    arrays = [as_array(x) for x in xi]
    placed = [reshaped(x, [x.aval.size if place == axis else 1 for axis in range(count)]) for x, place in zip(arrays, order)]
    shape = common_shape("meshgrid", *(x.sizes for x in placed)) if placed else ()
    grids = placed if sparse else [broadcasted(x, shape) for x in placed]
    return tuple(fresh(read(x)) for x in grids) if copy else tuple(grids)


@implements(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = as_shape(dimensions)
    target = np.dtype(dtype)
    if sparse:
        ranges = (ops.iota(shape=(n,), axis=0, dtype=target) for n in shape)
        return tuple(
            reshaped(fresh(r), [n if a == axis else 1 for a in range(len(shape))])
            for axis, (n, r) in enumerate(zip(shape, ranges))
        )
    grids = [ops.iota(shape=(1, *shape), axis=axis + 1, dtype=target) for axis in range(len(shape))]
    return fresh(ops.concat(*grids, axis=0) if grids else full((0,), 0, target))
