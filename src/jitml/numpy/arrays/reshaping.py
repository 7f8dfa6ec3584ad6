"""Reshaping, transposing, flipping, stretching: views wherever NumPy gives views, so that writes go through them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from jitml.errors import ShapeError, UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound
from jitml.numpy.support.arguments import (
    Shape,
    as_array,
    as_int,
    axes_of,
    common_shape,
    holds_traced,
    no_truth,
    not_compiled,
    one_axis,
    reduced_axes,
    require_no_objects,
    strict_axis,
)
from jitml.numpy.support.versions import broadcast_keeps_arrays, check_argument
from jitml.trace.record.concrete_evaluation import example_of_size
from jitml.trace.record.recording import active_trace, user_source
from jitml.trace.speculation.modes import site
from jitml.trace.speculation.paths import limit
from jitml.trace.storage.strides import kept_strides, largest_stride
from jitml.trace.symbolic.broadcasting import insist_equal, is_single
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.symbolic.sizes import named, number, quotient, span, value_of_size
from jitml.trace.values.boxing import TracedArray, TracedScalar, fresh, is_fortran, is_traced, named_order, read, scalar, view
from jitml.trace.values.indices import unknown_size
from jitml.trace.values.ragged import MOST_ELEMENTS
from jitml.trace.values.registry import implements

_ANYTHING = 1 << 16  # the same in a loop, of whose first iteration nothing is known either
_ROOM = 16  # times the memory of an array that its reshape may take
_MUCH, _MOST = 1 << 16, 1 << 48  # elements along one axis: worth a closer look, and more than any memory holds


def as_shape(shape: Any) -> Shape:
    """A `shape=` argument as sizes: an int, or a sequence of them.

    Raises:
        TypeError: one of Python's bools.
    """
    return as_lengths([*map(no_truth, shape)] if _is_sequence(shape) else no_truth(shape))


def as_lengths(counts: Any) -> Shape:
    """An integer argument, or a sequence of them, as sizes."""
    return tuple(map(as_length, counts if _is_sequence(counts) else (counts,)))


def _is_sequence(x: Any) -> bool:
    """Whether NumPy takes an argument for a sequence; it asks that before it asks `__index__`."""
    if isinstance(x, (tuple, list)):
        return True
    return hasattr(type(x), "__getitem__") and not is_traced(x) and not isinstance(x, (np.ndarray, np.generic, dict))


def as_length(n: Any) -> Any:
    """An integer argument as a size: known, or of the running program with known limits and claimed not to be negative.

    Raises:
        UnknownSizeError: it may be so large that no memory can be set aside for it.
    """
    is_number = type(n) in (TracedScalar, TracedArray)
    size = unknown_size(n) if not is_number or constant_of(read(n)) is None else None
    if size is None:
        return as_int(n)
    low, high = span(size)
    if high > _MUCH:
        size = _limited(size, high)
        high = span(size)[1]
    if low >= 0:
        return size
    value = value_of_size(size)
    ok = ops.ge(value, number(0))
    return named(ops.check(value, ok, error="ValueError", message="negative dimensions are not allowed"), 0, high)


def _limited(size: Size, high: int) -> Size:
    """A size of which hardly anything is known, limited by what it is in this call; one beyond that has another program."""
    value = value_of_size(size)
    sample = example_of_size(value)
    if sample is None and high <= _MOST:
        return size
    if sample is None:
        most = _ANYTHING if active_trace().is_body else None  # which a loop may reach only later
    else:
        most = 1 << max(2 * sample, 64).bit_length()
    found = limit(site(), most)
    if found is None:
        raise UnknownSizeError(
            "a size that only the running program knows has no limit",
            remedy="Limit it, as by min(n, 1000), or compute it outside the jitted function.",
        )
    return named(found.check(value), span(size)[0], found.most)


def resized(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    """x with other names for its sizes, which the running program has to find equal."""
    if tuple(shape) == x.sizes:
        return x
    for n, m in zip(x.sizes, shape, strict=True):
        insist_equal(n, m)
    return view(x, ops.resize, shape=tuple(shape))


def transposed(x: TracedArray, perm: Sequence[int]) -> TracedArray:
    return view(x, ops.transpose, perm=tuple(perm)) if list(perm) != sorted(perm) else same(x)


def reshaped(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    shape = tuple(shape)
    if shape == x.sizes:
        return same(x)
    if prod(shape) != x.aval.size and any(isinstance(n, Dim) for n in (*shape, *x.sizes)):
        flat = resized(reshaped(x, (x.aval.size,)), (prod(shape),))
        if flat.storage is not x.storage:
            raise UnknownSizeError(f"whether a reshape to {shape} is a view is known only when the program runs")
        _insist_on_room(x, shape)
        return reshaped(flat, shape)
    return view(x, ops.reshape, shape=shape)


def _insist_on_room(x: TracedArray, shape: Shape) -> None:
    """Rows and columns that are both unknown have memory for the most of both, which x in any one shape never fills."""
    most = prod(bound(n) for n in shape)
    if most > max(MOST_ELEMENTS, _ROOM * prod(x.aval.bounds)):
        raise UnknownSizeError(
            f"an array of at most {prod(x.aval.bounds)} elements would take memory for {most} as one of shape {shape}",
            remedy="Limit its sizes, as by min(n, 1000), or compute them outside the jitted function.",
        )


def flipped(x: TracedArray, axes: Sequence[int]) -> TracedArray:
    return view(x, ops.flip, axes=tuple(axes)) if axes else same(x)


def broadcasted(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    """A read-only view stretched to `shape`."""
    if any(type(n) is int and n < 0 for n in shape):
        raise ValueError("all elements of broadcast shape must be non-negative")
    common = common_shape("broadcast_to", x.sizes, tuple(shape))
    if any(m == 1 and n != 1 for m, n in zip(shape[::-1], common[::-1])) or len(common) > len(shape):
        raise ShapeError(f"broadcast_to: {x.sizes} cannot be stretched to {tuple(shape)}", source=user_source())
    places = tuple(shape)[len(shape) - x.ndim :]
    x = resized(x, [n if n == 1 else m for n, m in zip(x.sizes, places)])
    return view(x, ops.broadcast, shape=tuple(shape), axes=tuple(range(len(shape) - x.ndim, len(shape))))


def same(x: TracedArray) -> TracedArray:
    """Another array object on the same elements."""
    return TracedArray(x.storage, x.steps, x.aval, x.layout, x.writeable)


def _of_scalar(a: object, result: TracedArray) -> Any:
    """NumPy's shape methods give a scalar back for a scalar."""
    return scalar(read(result)) if isinstance(a, TracedScalar) and result.ndim == 0 else result


def complete_shape(shape: Any, size: int) -> Shape:
    """A new shape with its -1 worked out.

    Raises:
        ShapeError: the sizes differ, or there are two unknown dimensions.
    """
    wanted = as_shape(shape)
    require_no_objects(*wanted)
    known = prod(n for n in wanted if not _is_open(n))
    unknown = sum(map(_is_open, wanted))
    if unknown > 1:
        raise ShapeError("can only specify one unknown dimension", source=user_source())
    if isinstance(size, Dim) or isinstance(known, Dim):
        missing = quotient(size, known) if unknown else None
        return tuple(missing if _is_open(n) else n for n in wanted)  # type: ignore[misc]  # a size stands in for an int
    if unknown and known and size % known == 0:
        return tuple(size // known if n < 0 else n for n in wanted)
    if unknown or known != size:
        raise ShapeError(f"cannot reshape array of size {size} into shape {wanted}", source=user_source())
    return wanted


def _is_open(n: Size) -> bool:
    return type(n) is int and n < 0


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None) -> Any:
    check_argument(np.reshape, "newshape", newshape)  # the name of `shape` in NumPy 2.0
    check_argument(np.reshape, "copy", copy)
    shape = newshape if shape is None else shape
    if shape is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    x = as_array(a)
    target = complete_shape(shape, x.aval.size)
    order = "C" if order is None else named_order(order)
    if order == "K":
        raise ValueError(f"order {order!r} is not permitted for reshaping")
    if order == "F" or (order == "A" and is_fortran(x)):
        backwards = reshaped(transposed(x, range(x.ndim)[::-1]), target[::-1])
        result = transposed(backwards, range(len(target))[::-1])
    else:
        result = reshaped(x, target)
    if copy is not None and not copy and result.storage is not x.storage:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return fresh(read(result)) if copy and result.storage is x.storage else _of_scalar(a, result)


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> TracedArray:
    """A view of contiguous memory, else a copy: unlike reshape, which views whatever strides can express."""
    x, order = as_array(a), "C" if order is None else named_order(order)
    if order == "K":
        outer = kept_strides([(x.sizes, x.layout)], x.sizes)
        x = transposed(x, sorted(range(x.ndim), key=lambda n: -largest_stride(outer[n])))
    elif order == "F" or (order == "A" and not x.is_contiguous and transposed(x, range(x.ndim)[::-1]).is_contiguous):
        x = transposed(x, range(x.ndim)[::-1])
    flat = reshaped(x, (x.aval.size,))
    return flat if x.is_contiguous else fresh(read(flat))


@implements(np.transpose)
def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    x = as_array(a)
    if axes is None:
        return _of_scalar(a, transposed(x, range(x.ndim)[::-1]))
    if len(axes) != x.ndim:
        raise ShapeError("axes don't match array", source=user_source())
    perm = tuple(strict_axis(axis, x.ndim) for axis in axes)
    if len(set(perm)) != len(perm):
        raise ValueError("repeated axis in transpose")
    return _of_scalar(a, transposed(x, perm))


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> TracedArray:
    x = as_array(a)
    perm = list(range(x.ndim))
    one, two = one_axis(axis1, x.ndim), one_axis(axis2, x.ndim)
    perm[one], perm[two] = two, one
    return transposed(x, perm)


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> TracedArray:
    return swapaxes(x, -1, -2)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> TracedArray:
    x = as_array(a)
    froms, tos = (
        [one_axis(n, x.ndim) for n in (axes if isinstance(axes, (tuple, list)) else (axes,))] for axes in (source, destination)
    )
    if len(froms) != len(tos):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    if len(set(froms)) != len(froms) or len(set(tos)) != len(tos):
        raise ValueError(
            "repeated axis in `source` argument" if len(set(froms)) != len(froms) else "repeated axis in `destination` argument"
        )
    perm = [axis for axis in range(x.ndim) if axis not in froms]
    for to, axis in sorted(zip(tos, froms)):
        perm.insert(to, axis)
    return transposed(x, perm)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> TracedArray:
    x = as_array(a)
    axis = one_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise np.exceptions.AxisError(start, x.ndim)
    return moveaxis(x, axis, start - 1 if axis < start else start)


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    x = as_array(a)
    if axis is None:
        drop = [n for n, size in enumerate(x.sizes) if is_single(size)]
    else:
        drop = reduced_axes(axis, x.ndim)  # type: ignore[assignment]  # a tuple or a list
    x = resized(x, [1 if n in drop and isinstance(size, Dim) else size for n, size in enumerate(x.sizes)])
    if any(x.sizes[n] != 1 for n in drop):
        raise ShapeError("cannot select an axis to squeeze out which has size not equal to one", source=user_source())
    if not drop and isinstance(a, TracedArray):
        return a
    return _of_scalar(a, reshaped(x, [size for n, size in enumerate(x.sizes) if n not in drop]))


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> TracedArray:
    x = as_array(a)
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    new = axes_of(axis, ndim)
    sizes = iter(x.sizes)
    return reshaped(x, [1 if n in new else next(sizes) for n in range(ndim)])


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> TracedArray:
    return broadcasted(as_array(array), as_shape(shape))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[TracedArray, ...]:
    return all_broadcasted("broadcast_arrays", [as_array(a) for a in args])


def all_broadcasted(name: str, arrays: Sequence[TracedArray]) -> tuple[TracedArray, ...]:
    """Views of one shape. NumPy warns of a write into those that it makes, and will forbid it; here it is forbidden."""
    shape = common_shape(name, *(x.sizes for x in arrays))
    kept = broadcast_keeps_arrays() or all(x.sizes == shape for x in arrays)
    return tuple(x if kept and x.sizes == shape else broadcasted(x, shape) for x in arrays)


def _at_least(ndim: int, place: Any) -> Any:
    def function(*arys: Any) -> Any:
        arrays = [as_array(a) for a in arys]
        raised = tuple(x if x.ndim >= ndim else reshaped(x, place(x.sizes)) for x in arrays)
        return raised[0] if len(raised) == 1 else raised

    return function


atleast_1d = implements(np.atleast_1d)(_at_least(1, lambda shape: (1,)))
atleast_2d = implements(np.atleast_2d)(_at_least(2, lambda shape: (1, *shape) if shape else (1, 1)))
atleast_3d = implements(np.atleast_3d)(_at_least(3, lambda shape: {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]))


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    x = as_array(m)
    axes = axes_of(axis, x.ndim)
    return flipped(x, axes) if x.ndim else scalar(read(x))


@implements(np.fliplr)
def fliplr(m: Any) -> TracedArray:
    if np.ndim(m) < 2:
        raise ValueError("Input must be >= 2-d.")
    return flipped(as_array(m), (1,))


@implements(np.flipud)
def flipud(m: Any) -> TracedArray:
    if np.ndim(m) < 1:
        raise ValueError("Input must be >= 1-d.")
    return flipped(as_array(m), (0,))


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> TracedArray:
    x = as_array(m)
    first, second = (one_axis(axis, x.ndim) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    turns = as_int(k) % 4
    if turns == 0:
        return same(x)
    if turns == 2:
        return flipped(x, sorted((first, second)))
    if turns == 1:
        return swapaxes(flipped(x, (second,)), first, second)
    return flipped(swapaxes(x, first, second), (second,))


@implements(np.shape)
def shape(a: Any) -> tuple[Any, ...]:
    """As users see it; see `TracedArray.shape`."""
    return a.shape if hasattr(a, "shape") else _plain(a, "shape").shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return len(shape(a))


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    sizes = shape(a)
    return prod(sizes if axis is None else [sizes[n] for n in axes_of(axis, len(sizes))])


def _plain(a: Any, name: str) -> Any:
    if is_traced(a):
        return np.empty(())
    if not isinstance(a, (list, tuple)) or holds_traced(a):
        not_compiled(name, "of a list with traced values in it", "Use np.array(list) first.")
    return np.asarray(a)
