"""`x[index]` and `x[index] = value`: basic indices are views, integer arrays gather and scatter, masks select.

An index is first completed to one item per axis of x; the basic part of it is a view, and what is left are integer arrays on
some axes of that view.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, is_integer
from jitml.numpy.arrays.basic_index import Window, element, part, whole, window_view
from jitml.numpy.arrays.masks import fitted, picked, scatter_true, true_count, true_places
from jitml.numpy.arrays.reshaping import reshaped, transposed
from jitml.numpy.support.arguments import (
    Shape,
    as_array,
    astype,
    broadcast_value,
    common_shape,
    constant,
    not_compiled,
    one_element,
    reshape_value,
    through_python,
    value_of,
)
from jitml.numpy.support.memory_order import kept_rest, put_in_order
from jitml.records import dataclass
from jitml.trace.record.recording import user_source
from jitml.trace.rewrite.driver_protocol import OpenType
from jitml.trace.symbolic.broadcasting import common_sizes, insist_equal, never_equal
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.symbolic.sizes import once
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, TracedNumber, TracedScalar, fresh, is_traced, read, scalar
from jitml.trace.values.indices import place_of
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import implements
from jitml.trace.values.type_unions import doubt_of, types_of

_VALID_INDICES = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A view by the basic part of an index, and the integer arrays that are left.

    Args:
        base: the view; its indexed axes are neighbours, starting at `axis`.
        indices: one Value of one common shape per indexed axis; empty for a basic index.
        is_scalar: every axis has an integer, and NumPy gives a scalar.
    """

    base: TracedArray
    indices: tuple[Value, ...]
    axis: int
    is_scalar: bool

    @property
    def shape(self) -> Shape:
        """The shape of what is indexed."""
        if not self.indices:
            return self.base.sizes
        after = self.base.sizes[self.axis + len(self.indices) :]
        return (*self.base.sizes[: self.axis], *self.indices[0].shape, *after)


@implements(operator.getitem)
def getitem(x: Any, index: Any) -> Any:
    """x[index]: a view, a new array, or a scalar, as in NumPy.

    Raises:
        IndexError: too many indices, or one out of bounds (NumPy's messages).
    """
    mask = _single_mask(index)
    if mask is not None:
        result = fresh(picked(value_of(x), mask))
        _order_gathered(result, as_array(x), range(mask.ndim), 0)
        return result
    found = locate(as_array(x), index)
    if not found.indices:
        return scalar(_element(found.base)) if found.is_scalar else found.base
    value = ops.gather(read(found.base), *found.indices, axis=found.axis)
    if found.is_scalar:
        return scalar(value)
    result = fresh(value)
    _order_gathered(result, found.base, range(found.axis, found.axis + len(found.indices)), found.axis)
    return result


def _order_gathered(result: TracedArray, base: TracedArray, indexed: range, at: int) -> None:
    """Let a new array of picked elements lie as NumPy's: the axes of the indices outermost, then the others as in `base`.

    Args:
        indexed: the axes of base that index arrays stand for. at: where the axes of those stand in the result.
    """
    own = result.ndim - base.ndim + len(indexed)
    others = [n if n < at else n - len(indexed) + own for n in kept_rest(base, indexed)]
    put_in_order(result, (*range(at, at + own), *others))


def _element(x: TracedArray) -> Value:
    """What a view of one element shows. Read twice it is one value, so that the sizes `x[i]` and `x[i]` are one size."""
    steps = tuple((step.op, tuple(step.params.items()), step.starts) for step in x.steps)
    return once(("element", x.storage.load(), steps), lambda: read(x))


@implements(operator.setitem)
def setitem(x: TracedArray, index: Any, value: Any) -> None:
    """x[index] = value, through views into the storage that x looks at.

    Raises:
        IndexError, ValueError, TypeError: as NumPy. OverflowError: a Python integer does not fit x's dtype.
    """
    new = value_for(value, x)
    if new.ndim > 1 and _is_mask_of_all(index, x):
        raise TypeError(
            f"NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has {new.ndim} dimensions"
        )
    mask = _single_mask(index)
    if mask is not None:
        _set_where(x, mask, new)
        return
    found = locate(x, index)
    if isinstance(value, (list, tuple)) and new.ndim > len(found.shape):
        raise ValueError(
            "setting an array element with a sequence. The requested array would exceed the maximum number of dimension"
        )
    if found.is_scalar:
        new = one_element(new)
    new = broadcast_assigned(new if found.indices or isinstance(value, TracedNumber) else through_python(value, new), found.shape)
    if found.indices:
        new = ops.scatter(read(found.base), new, *found.indices, axis=found.axis, combine="set")
    assign(found.base, new)


def value_for(value: Any, x: TracedArray) -> Value:
    """A value that is stored in x: unsafe casts are allowed, as in NumPy, but Python's numbers must fit."""
    if type(value) is float and x.dtype.kind in "iu":
        value = int(value)  # x[0] = 2.7 truncates
    if value is None or isinstance(value, (str, bytes)):
        number = np.zeros((), x.dtype)
        number[...] = value  # NumPy reads it, or says why not
        return constant(number)
    if isinstance(value, TracedNumber) and value.kind is float and x.dtype.kind in "iu":
        return through_python(value, astype(value_of(value), x.dtype))
    if isinstance(value, TracedNumber) and x.dtype == BOOL:
        return astype(value_of(value), BOOL)
    return value_of(value, x.dtype)


def broadcast_assigned(value: Value, shape: Shape) -> Value:
    """A value broadcast into the place it is stored in; more leading axes of length one than the place has are dropped."""
    extra = value.ndim - len(shape)
    if extra > 0 and not any(never_equal(n, 1) for n in value.shape[:extra]):
        value = fitted(value, (*(1,) * extra, *value.shape[extra:]))
        value = reshape_value(value, value.shape[extra:])
    if value.shape == shape:
        return value
    common = common_shape("assignment", value.shape, shape)
    if len(common) != len(shape) or any(m == 1 and never_equal(n, 1) for m, n in zip(shape, common)):
        message = f"could not broadcast input array from shape {value.shape} into shape {shape}"
        raise ShapeError(message, source=user_source())
    return broadcast_value(value, shape)


def _is_mask_of_all(index: Any, x: TracedArray) -> bool:
    """Whether an index is one mask with all the axes of x, and nothing beside it."""
    if isinstance(index, tuple) and len(index) == 1:
        (index,) = index
    if isinstance(index, list):
        return x.ndim == 1 and bool(index) and all(isinstance(i, (bool, np.bool_)) for i in index)
    return isinstance(index, (TracedArray, np.ndarray)) and index.dtype == BOOL and index.ndim == x.ndim > 0


def _single_mask(index: Any) -> Value | None:
    """The boolean array that an index consists of (alone, or with a trailing `...`), if it is traced; or a single bool."""
    if isinstance(index, tuple) and len(index) in (1, 2) and all(i is Ellipsis for i in index[1:]):
        index = index[0]
    if isinstance(index, (bool, np.bool_)):  # a mask of no axis
        return value_of(index)
    if not isinstance(index, (TracedArray, np.ndarray)) or index.dtype != BOOL:
        return None
    mask = read(index)
    return mask if constant_of(mask) is None else None


def _set_where(x: TracedArray, mask: Value, new: Value) -> None:
    """x[mask] = new: a number or a row for every True alike is selected, one for each True is scattered."""
    base = read(x)
    mask = fitted(mask, x.sizes)
    behind = x.ndim - mask.ndim
    if new.ndim > behind and any(n != 1 for n in new.shape[: new.ndim - behind]):
        assign(x, scatter_true(base, mask, broadcast_assigned(new, _shape_of_true(mask, x.sizes))))
        return
    new = reshape_value(new, new.shape[max(0, new.ndim - behind) :])
    new = broadcast_value(broadcast_assigned(new, x.sizes[mask.ndim :]), x.sizes)
    where = reshape_value(mask, (*mask.shape, *(1,) * behind))
    assign(x, ops.select(broadcast_value(where, x.sizes), new, base))


def _shape_of_true(mask: Value, sizes: Shape) -> Any:
    return (true_count(mask), *sizes[mask.ndim :])


def locate(x: TracedArray, index: Any) -> Indexed:
    items = _complete(index if isinstance(index, tuple) else (index,), x)
    arrays = {n: i for n, i in enumerate(items) if _is_array(i)}
    if arrays:
        # Beside an array an integer is an array of shape (), which takes part in the broadcast.
        arrays = {n: i for n, i in enumerate(items) if _is_array(i) or _is_int(i)}
    base, places = _basic_view(x, items, arrays)
    if not arrays:
        is_scalar = all(map(_is_int, items))  # also for the () of a 0-d array
        return Indexed(base, (), 0, is_scalar and Ellipsis not in _as_tuple(index))
    return _with_arrays(base, arrays, places, _as_tuple(index))


def _as_tuple(index: Any) -> Sequence[Any]:
    """The items of an index whose ellipsis can be found by identity."""
    items = index if isinstance(index, tuple) else (index,)
    return [Ellipsis if i is Ellipsis else None for i in items]


def _complete(index: tuple[Any, ...], x: TracedArray) -> list[Any]:
    """The index without ellipsis, one item per axis of x, and None for each new axis."""
    items = [j for i in index for j in _as_items(i)]
    used = sum(i is not None and i is not Ellipsis for i in items)
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed")
    if not any(i is Ellipsis for i in items):
        items.append(Ellipsis)
    at = next(n for n, i in enumerate(items) if i is Ellipsis)
    return [*items[:at], *[slice(None)] * (x.ndim - used), *items[at + 1 :]]


def _as_items(i: Any) -> list[Any]:
    """One part of an index, brought to a slice, None, `...`, a size, or a Value of integers; a concrete mask is several."""
    if i is None or i is Ellipsis or isinstance(i, slice):
        return [i]
    if doubt_of(i) is not None and not all(map(_is_whole, types_of(i))):
        raise OpenType(i)
    if isinstance(i, TracedNumber) and i.kind is float:
        raise IndexError(_VALID_INDICES)
    if (isinstance(i, TracedNumber) and i.kind is int) or (type(i) is TracedScalar and is_integer(i.dtype)):
        return [place_of(i)]
    if type(i) is int or (isinstance(i, np.integer) and not is_traced(i)):
        return [int(i)]
    if isinstance(i, (bool, np.bool_)):
        not_compiled("ndarray.__getitem__", "a single bool beside other indices", "np.where chooses by a condition.")
    if not is_traced(i) and type(i) not in (np.ndarray, list, tuple):
        if hasattr(i, "__index__") and not isinstance(i, np.ndarray):
            return _as_items(type(i).__index__(i))  # of an object made inside it may be traced
        if not isinstance(i, (Sequence, np.ndarray)) or isinstance(i, (str, bytes)):
            raise IndexError(_VALID_INDICES)
        i = i if isinstance(i, np.ndarray) else list(i)
    value = value_of(np.empty(0, np.int64)) if type(i) in (list, tuple) and len(i) == 0 else value_of(i)
    if value.dtype == BOOL:
        return _mask_items(value)
    if not is_integer(value.dtype):
        is_array = isinstance(i, np.ndarray)
        raise IndexError("arrays used as indices must be of integer (or boolean) type" if is_array else _VALID_INDICES)
    return [value]


def _is_whole(which: type) -> bool:
    return issubclass(which, (int, np.integer)) and which is not bool


def _mask_items(mask: Value) -> list[Any]:
    """A mask as the positions of its True, those of one axis each."""
    known = constant_of(mask)
    places = true_places(mask) if known is None else [constant(positions) for positions in known.nonzero()]
    return [_Places(p, size) for p, size in zip(places, mask.shape)]


@dataclass(frozen=True, slots=True)
class _Places:
    """The positions on one axis that a mask is true at, and the mask's own size there."""

    value: Value
    size: Size


def _is_int(i: Any) -> bool:
    return type(i) is int or isinstance(i, Dim)


def _is_array(i: Any) -> bool:
    return isinstance(i, (Value, _Places))


def _basic_view(x: TracedArray, items: list[Any], arrays: dict[int, Any]) -> tuple[TracedArray, dict[int, int]]:
    """Slices, new axes and lone integers as a view; also the view's axis for each item that is an index array."""
    windows: list[Window] = []
    shape: list[Any] = []
    places: dict[int, int] = {}
    for n, item in enumerate(items):
        if item is None:
            shape.append(1)
            continue
        axis = len(windows)
        size = x.sizes[axis]
        if n in arrays:
            places[n] = len(shape)
            windows.append(whole(size))
            if isinstance(item, _Places):
                arrays[n] = _of_mask(item, size, axis)
        else:
            windows.append(element(item, size, axis) if _is_int(item) else part(item, size))
        if n in arrays or not _is_int(item):
            shape.append(windows[-1].size)
    return reshaped(window_view(x, windows), shape), places


def _of_mask(places: _Places, size: Size, axis: int) -> Value:
    if type(size) is int and type(places.size) is int and size != places.size:
        raise IndexError(
            f"boolean index did not match indexed array along axis {axis}; size of axis is {size} "
            f"but size of corresponding boolean axis is {places.size}"
        )
    insist_equal(places.size, size)
    return places.value


def _with_arrays(base: TracedArray, arrays: dict[int, Any], places: dict[int, int], given: Sequence[Any]) -> Indexed:
    """Broadcast the index arrays together and bring their axes side by side.

    NumPy puts the axes of the indices where the indexed axes were if those are neighbours in the index, else first.
    """
    values = [value_of(of_size(arrays[n])) if _is_int(arrays[n]) else arrays[n] for n in arrays]
    for n, value in arrays.items():
        if type(value) is int and type(base.sizes[places[n]]) is int:
            element(value, base.sizes[places[n]], places[n])
    try:
        shape = common_sizes(*(v.shape for v in values))
    except ValueError:
        listed = " ".join(str(v.shape) for v in values)
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed}") from None
    indices = tuple(broadcast_value(v, shape) for v in values)
    axes = [places[n] for n in arrays]
    is_scalar = not shape and len(axes) == base.ndim and Ellipsis not in given
    if axes == list(range(axes[0], axes[0] + len(axes))) and not _split_by_empty_ellipsis(arrays, given):
        return Indexed(base, indices, axes[0], is_scalar)
    others = [a for a in range(base.ndim) if a not in axes]
    return Indexed(transposed(base, (*axes, *others)), indices, 0, is_scalar)


def _split_by_empty_ellipsis(arrays: dict[int, Any], given: Sequence[Any]) -> bool:
    """Whether a `...` that stands for no axis lies between two index arrays, which NumPy counts as a separation."""
    if Ellipsis not in given:
        return False
    at = given.index(Ellipsis)
    return min(arrays) < at <= max(arrays) and len(arrays) > 1
