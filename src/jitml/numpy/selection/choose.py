"""Choosing elements: by conditions (`where`, `select`, `clip`) and by index arrays (`take`, `take_along_axis`, `put`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, I64, DType, is_complex, is_integer
from jitml.numpy.arrays.indexing import broadcast_assigned, getitem, setitem, value_for
from jitml.numpy.arrays.masks import fitted
from jitml.numpy.arrays.reshaping import broadcasted, moveaxis, reshaped
from jitml.numpy.reductions.reductions import finish_converted, finish_picked, is_given
from jitml.numpy.selection.nonzero import nonzero
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    broadcast_value,
    checked_index,
    common_dtype,
    common_shape,
    full,
    holds_traced,
    index_in_mode,
    integers,
    kind_of,
    mask_of,
    not_compiled,
    one_axis,
    reshape_value,
    result_of,
    strict_axis,
    value_of,
    with_axis,
)
from jitml.numpy.support.versions import choices_wrap
from jitml.numpy.ufuncs.loops import truth
from jitml.numpy.ufuncs.ufunc import call_ufunc
from jitml.trace.record.recording import active_trace
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, laid_out, read
from jitml.trace.values.registry import implements


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return nonzero(condition)
    return fresh(where_value(condition, x, y))


def where_value(condition: Any, x: Any, y: Any) -> Value:
    """np.where with weak Python numbers, as a Value."""
    dtype = common_dtype(x, y)
    choice = _wrapped if choices_wrap() else value_of
    mask, values = truth(value_of(condition)), [choice(v, dtype) for v in (x, y)]
    shape = common_shape("where", mask.shape, *(v.shape for v in values))
    return ops.select(*(broadcast_value(v, shape) for v in (mask, *values)))


def _wrapped(x: Any, dtype: DType) -> Value:
    """A choice, in the dtype of all: a Python integer that does not fit wraps around."""
    return astype(value_of(x), dtype) if kind_of(x) is int and dtype.kind in "iu" else value_of(x, dtype)


@implements(np.clip)
def clip(a: Any, *limits: Any, **options: Any) -> Any:
    """min(max(a, a_min), a_max); NaN in any of the three is handed on."""
    given = [len(limits) > n or options.get(name, np._NoValue) is not np._NoValue for n, name in enumerate(("a_min", "a_max"))]
    if any(given) and not all(given):
        raise TypeError(f"clip() missing 1 required positional argument: '{'a_max' if given[0] else 'a_min'}'")
    if any(given) and not {"min", "max"}.isdisjoint(options):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return clipped(a, *limits, **options)


@implements(np.ndarray.clip)
def clipped(
    a: Any,
    a_min: Any = np._NoValue,
    a_max: Any = np._NoValue,
    out: Any = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
    **options: Any,
) -> Any:
    """The method, which leaves out what it likes."""
    low, high = (b if is_given(b) else a for a, b in ((a_min, min), (a_max, max)))
    x = value_of(a)  # a number is strong here, for NumPy makes an array of it
    low, high = _unless_beyond(low, x, np.less_equal, "min"), _unless_beyond(high, x, np.greater_equal, "max")
    options = {k: v for k, v in options.items() if v is not None}
    if low is None and high is None:
        return call_ufunc(np.positive, x, out=out, **options)
    if low is None or high is None:
        return call_ufunc(np.minimum if low is None else np.maximum, x, high if low is None else low, out=out, **options)
    dtype = common_dtype(x, low, high)
    raised = call_ufunc(np.maximum, value_of(x, dtype), value_of(low, dtype))
    return call_ufunc(np.minimum, raised, value_of(high, dtype), out=out, **options)


def _unless_beyond(bound: Any, x: Value, compare: np.ufunc, limit: str) -> Any:
    """A bound of np.clip; None for none, and for a Python integer that no element of an integer array lies beyond."""
    if not is_given(bound):
        return None
    if is_integer(x.dtype) and (type(bound) is int or (isinstance(bound, TracedNumber) and bound.kind is int)):
        if compare(getattr(bound, "concrete", bound), getattr(np.iinfo(x.dtype), limit)):  # type: ignore[type-var]  # integer
            # The index of a traced number is guarded. NumPy 2.0 refuses a bound beyond the dtype, whatever the array holds.
            n, nothing = operator.index(bound), np.empty(0, x.dtype)
            np.clip(nothing, n, None) if limit == "min" else np.clip(nothing, None, n)
            return None
    return bound


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> TracedArray:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    dtype = common_dtype(*choicelist, default)
    result = _wrapped(default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        mask = value_of(condition)
        if mask.dtype != BOOL:
            raise TypeError(f"invalid entry in condlist: should be boolean ndarray, not {mask.dtype}")
        result = where_value(mask, _wrapped(choice, dtype), result)
    return fresh(result)


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> TracedArray:
    """Every function is computed everywhere, and the last condition that holds chooses."""
    array = as_array(x)
    is_list = isinstance(condlist, (list, tuple)) or np.ndim(condlist)
    are_several = is_list and (array.ndim == 0 or np.ndim(condlist[0]))
    masks = [truth(value_of(c)) for c in (list(condlist) if are_several else [condlist])]
    if any(mask.shape != array.sizes for mask in masks):
        masks = [fitted(mask, array.sizes) for mask in masks]
    functions = list(funclist)
    if len(functions) == len(masks) + 1:
        rest = ops.bit_not(_any_of(masks))
        masks.append(rest)
    if len(functions) != len(masks):
        raise ValueError(f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected")
    result = full(array.sizes, 0, array.dtype)
    for mask, function in zip(masks, functions):
        if callable(function):  # of a number too it sees an array
            line = fresh(reshape_value(read(array), array.sizes or (1,)))
            value = value_for(_elementwise(function, line, *args, **kwargs), array)
            value = reshape_value(value, ()) if array.ndim == 0 and value.shape == (1,) else value
        else:
            value = value_for(function, array)
        result = ops.select(mask, broadcast_value(value, array.sizes), result)
    return laid_out(result, array, "K")


def _elementwise(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of the elements alone: then it does not matter that it sees all of them and not only the chosen ones."""
    builder = active_trace().builder
    before = len(builder.nodes)
    result = function(*args, **kwargs)
    for node in builder.nodes[before:]:
        of_number = all(v.shape == () for v in node.inputs)
        if not (node.op.is_pointwise or of_number):
            not_compiled("piecewise", f"with a function that mixes elements ({node.op.name})", "Use np.where or np.select.")
    return result


def _any_of(masks: Sequence[Value]) -> Value:
    result = masks[0]
    for mask in masks[1:]:
        result = ops.bit_or(result, mask)
    return result


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """The element at each place of the array that the index there chooses."""
    values = list(choices) if isinstance(choices, (list, tuple)) else list(iter(as_array(choices)))
    dtype = common_dtype(*values)
    index = integers(a)
    lifted = [_wrapped(v, dtype) for v in values]
    shape = common_shape("choose", index.shape, *(v.shape for v in lifted))
    stacked = ops.concat(*(reshape_value(broadcast_value(v, shape), (1, *shape)) for v in lifted), axis=0)
    index = astype(broadcast_value(index, shape), I64)
    inside = index_in_mode(index, len(values), mode)
    index = checked_index(index, len(values)) if inside is index else inside
    places = [ops.iota(shape=shape, axis=n, dtype=I64) for n in range(len(shape))]
    return finish_converted(ops.gather(stacked, index, *places, axis=0), out)


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    x = value_of(a)
    if axis is None:
        x, axis = reshape_value(x, (x.size,)), 0
    x, index = with_axis(x, axis), integers(indices, cut=True)
    along = strict_axis(axis, x.ndim)
    index = index_in_mode(index, x.shape[along], mode)
    if x.shape[along] == 0 and index.size != 0:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return finish_picked(ops.gather(x, index, axis=along), out)


def _along(x: Value, index: Value, axis: int) -> list[Value]:
    """An index array for every axis: `index` on one, each element's own place on the others."""
    return [index if n == axis else ops.iota(shape=index.shape, axis=n, dtype=index.dtype) for n in range(x.ndim)]


def _broadcast_indices(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[TracedArray, Value, int]:
    x, index = as_array(arr), value_of(indices)
    if not is_integer(index.dtype):
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        x, axis = reshaped(x, (x.aval.size,)), 0
    along = one_axis(axis, x.ndim)
    if x.ndim != index.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    others = common_shape(name, _with_one(x.sizes, along), _with_one(index.shape, along))
    shape = tuple(i if n == along else others[n] for n, i in enumerate(index.shape))
    index = broadcast_value(index, shape)
    target = tuple(s if n == along else shape[n] for n, s in enumerate(x.sizes))
    return (x if x.sizes == target else broadcasted(x, target)), index, along


def _with_one(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> TracedArray:
    x, index, along = _broadcast_indices("take_along_axis", arr, indices, axis)
    value = read(x)
    return fresh(ops.gather(value, *_along(value, index, along), axis=0))


@implements(np.put_along_axis)
def put_along_axis(arr: TracedArray, indices: Any, values: Any, axis: int | None) -> None:
    x, index, along = _broadcast_indices("put_along_axis", arr, indices, axis)
    new = broadcast_assigned(value_for(values, arr), index.shape)
    base = read(x)
    assign(x, ops.scatter(base, new, *_along(base, index, along), axis=0, combine="set"))


@implements(np.copyto)
def copyto(dst: TracedArray, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    kind = kind_of(src)
    allowed = dst.dtype.kind in _HOLDING[kind] if isinstance(kind, type) else np.can_cast(kind, dst.dtype, casting)
    if not allowed and casting != "unsafe":
        raise TypeError(f"Cannot cast array data from {kind!r} to {dst.dtype!r} according to the rule {casting!r}")
    new = broadcast_assigned(value_for(src, dst), dst.sizes)
    assign(dst, new if where is True else ops.select(broadcast_value(mask_of(where), dst.sizes), new, read(dst)))


_HOLDING: dict[type, str] = {int: "iufc", float: "fc", complex: "c"}  # kinds that hold Python's numbers


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    value = value_of(x)
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    if is_complex(value.dtype):
        if not copy:
            not_compiled("nan_to_num", "of complex numbers in place", "Leave out copy=False.")
        parts = (nan_to_num(fresh(part), True, nan, posinf, neginf) for part in (ops.real(value), ops.imag(value)))
        return result_of(ops.complex(*map(read, parts)))
    if value.dtype.kind != "f":
        return result_of(value) if copy else x
    limits = np.finfo(value.dtype)  # type: ignore[type-var]  # a floating dtype, by its kind
    result = value
    for mask, number in (
        (ops.isnan(value), nan),
        (ops.eq(value, float("inf")), float(limits.max) if posinf is None else posinf),
        (ops.eq(value, float("-inf")), float(limits.min) if neginf is None else neginf),
    ):
        result = ops.select(mask, broadcast_value(value_of(number, value.dtype), value.shape), result)
    if not copy and isinstance(x, TracedArray):
        assign(x, result)
        return x
    return result_of(result)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    x = as_array(arr)
    if axis is None:
        x, axis = reshaped(x, (x.aval.size,)), 0
    along = one_axis(axis, x.ndim)
    size = x.sizes[along]
    if holds_traced(obj) or isinstance(size, Dim):
        return getitem(x, (*(slice(None),) * along, fresh(_kept(obj, size))))
    kept = np.delete(np.arange(size), obj)
    if not isinstance(obj, slice) and np.size(obj) != 1:  # NumPy indexes the array, and else makes one and fills it
        return getitem(x, (*(slice(None),) * along, kept))
    return take(x, kept.tolist(), along)


def _kept(obj: Any, size: Any) -> Value:
    """Which places along an axis np.delete leaves."""
    everywhere = fresh(full((size,), True, BOOL))
    if isinstance(obj, slice) or value_of(obj).dtype != BOOL:
        setitem(everywhere, obj, False)
        return read(everywhere)
    if value_of(obj).shape != (size,):
        raise ValueError(f"boolean array argument obj to delete must be one dimensional and match the axis length of {size}")
    return ops.bit_not(value_of(obj))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    if holds_traced(obj):
        not_compiled("insert", "at traced places", "np.concatenate joins the parts.")
    x = as_array(arr)
    if axis is None:
        x, axis = reshaped(x, (x.aval.size,)), 0
    along = one_axis(axis, x.ndim)
    size, new = as_int(x.shape[along]), value_for(values, x)
    new = reshape_value(new, (*(1,) * (x.ndim - new.ndim), *new.shape))
    is_one_place = np.ndim(obj) == 0 and not isinstance(obj, slice)
    places = np.atleast_1d(np.arange(*obj.indices(size)) if isinstance(obj, slice) else np.asarray(obj))
    places = np.flatnonzero(places) if places.dtype == bool and not is_one_place else places
    if places.size != 1 or places.ndim > 1:  # which NumPy refuses
        part = broadcast_assigned(new, (*x.sizes[:along], places.size, *x.sizes[along + 1 :]))
        order = np.insert(np.arange(size), places.astype(int) if not places.size else places, size + np.arange(places.size))
        return take(fresh(ops.concat(read(x), part, axis=along)), order.tolist(), along)
    at = as_int(places.item())
    if not -size <= at <= size:
        raise IndexError(f"index {obj} is out of bounds for axis {along} with size {size}")
    at += size if at < 0 else 0
    new = read(moveaxis(fresh(new), 0, along)) if is_one_place else new
    part = broadcast_assigned(new, (*x.sizes[:along], new.shape[along], *x.sizes[along + 1 :]))
    before = (slice(None),) * along
    left, right = getitem(x, (*before, slice(None, at))), getitem(x, (*before, slice(at, None)))
    return fresh(ops.concat(read(left), part, read(right), axis=along))
