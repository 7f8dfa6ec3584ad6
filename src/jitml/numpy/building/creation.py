"""New arrays: filled, ranged, copied, or gathered from Python's numbers and sequences.

The call converter sends these here even when every argument is concrete, so that the arrays a function makes can be
written with traced values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.device.convert import asarray as device_asarray
from jitml.ir.graph import Value
from jitml.ir.types import DTYPES, DType
from jitml.numpy.arrays.indexing import value_for
from jitml.numpy.arrays.reshaping import as_shape, reshaped
from jitml.numpy.support.arguments import (
    Shape,
    as_array,
    as_int,
    astype,
    broadcast_value,
    full,
    present,
    through_python,
    value_of,
)
from jitml.numpy.support.versions import flat_is_copied
from jitml.trace.record.device_arrays import device_name
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.storage.strides import copied_strides
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, laid_out, lies_in, named_order, scalar
from jitml.trace.values.registry import implements


def _filled(value: int) -> Callable[..., TracedArray]:
    def function(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> TracedArray:
        filled = full(_checked(shape), value, np.dtype(float if dtype is None else dtype))
        return laid_out(filled, None, by_rows_or_columns(order))

    return function


def by_rows_or_columns(order: str | None) -> str | None:
    """An `order=` argument of a new array like no other.

    Raises:
        ValueError: neither C nor F.
    """
    if order is not None and named_order(order) not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    return order


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
        return _laid_like(full(sizes, value, x.dtype if dtype is None else np.dtype(dtype)), a, order)

    return function


def _laid_like(value: Value, prototype: Any, order: str) -> TracedArray:
    """A new array, perhaps of another shape, whose axes lie in memory as the prototype's do."""
    if order != "K" or type(prototype) is not TracedArray or prototype.ndim != value.ndim:
        return laid_out(value, prototype if order != "K" else None, order)
    return fresh(value, copied_strides((prototype.sizes, prototype.layout), value.shape))


zeros_like = implements(np.zeros_like)(_filled_like(0))
implements(np.ones_like)(_filled_like(1))


@implements(np.empty_like)
def empty_like(
    prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> TracedArray:
    return zeros_like(prototype, dtype, order, shape=shape)


@implements(np.full)
def full_array(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> TracedArray:
    value = value_of(fill_value, None if dtype is None else np.dtype(dtype))
    return laid_out(broadcast_value(value, _checked(shape)), None, by_rows_or_columns(order))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> TracedArray:
    x = value_of(a)
    result = fresh(full(x.shape if shape is None else _checked(shape), 0, x.dtype if dtype is None else np.dtype(dtype)))
    return _laid_like(broadcast_value(value_for(fill_value, result), result.sizes), a, order)


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
    if isinstance(object, np.flatiter):
        object, copy = as_array(object), copy if flat_is_copied() else None
    is_kept = isinstance(object, TracedArray) and (wanted is None or wanted == object.dtype)  # float64 is equal to None
    if is_kept and not copy and (named_order(order) == "A" or lies_in(object, order)):  # only `astype` wants A to be contiguous
        result = object
    elif copy is not None and not copy:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    else:
        as_it_is = isinstance(object, (TracedNumber, list, tuple)) or wanted is None or type(object) in (int, float)
        value = through_python(object, value_of(object, wanted)) if as_it_is else astype(value_of(object), wanted)
        result = laid_out(value, object, order)
    return result if result.ndim >= ndmin else reshaped(result, (1,) * (ndmin - result.ndim) + result.sizes)


@implements(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: Any = -1, *, like: Any = None) -> TracedArray:
    """The items of a list, or of a generator that ends."""
    items = array(iter if isinstance(iter, list) else list(iter), dtype)
    if as_int(count) > items.aval.size:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {items.size} items.")
    return items if as_int(count) < 0 else array(items[: as_int(count)])


@implements(np.asarray, np.asanyarray)
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None, like: Any = None
) -> TracedArray:
    return array(a, dtype, copy=copy, order=order or "K")


@implements(device_asarray)
def asarray_on(x: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> TracedArray:
    """`jitml.asarray`: all arrays of a program are in one place."""
    here = device_name(active_trace())
    if device not in (None, here):
        unsupported(f"an array is taken to {device} in a program that runs on {here}", "Do this outside the jitted function.")
    return array(x, dtype, copy=copy)


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
        must_fit = isinstance(x, (TracedNumber, list, tuple)) or type(x) in (int, float)
        result = through_python(x, value_of(x, dtype)) if must_fit else astype(value, dtype)
        return fresh(result) if result.ndim else scalar(result)

    return function


for _dtype in DTYPES.values():
    implements(_dtype.type)(cast_number(_dtype))
