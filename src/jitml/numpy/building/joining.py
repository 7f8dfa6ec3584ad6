"""Joining, splitting and repeating arrays: concatenate and its relatives, split, tile, repeat, roll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from jitml.errors import ShapeError, UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import I64, normalize_axis
from jitml.numpy.arrays.indexing import getitem
from jitml.numpy.arrays.reshaping import (
    as_length,
    as_lengths,
    as_shape,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    complete_shape,
    moveaxis,
    reshaped,
    transposed,
)
from jitml.numpy.reductions.reductions import finish
from jitml.numpy.reductions.sorting import search
from jitml.numpy.support.arguments import (
    Shape,
    as_array,
    as_int,
    astype,
    broadcast_value,
    constant,
    no_truth,
    one_axis,
    present,
    reshape_value,
    strict_axis,
    value_of,
    whole,
    with_axis,
)
from jitml.numpy.support.versions import shifts_are_cut
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.recording import user_source
from jitml.trace.storage.strides import joined_strides
from jitml.trace.symbolic.broadcasting import (
    insist_at_least,
    insist_differ,
    insist_equal,
    never_equal,
    require_at_least,
    require_sizes,
)
from jitml.trace.symbolic.sizes import quotient, remainder, smaller, value_of_size
from jitml.trace.values.boxing import TracedArray, fresh, fresh_like, is_traced, laid_out, layout_of, read, scalar, view
from jitml.trace.values.indices import unknown_size
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import call, implements


def _parts(arrays: Any) -> list[Any]:
    """The arrays of a sequence argument; the rows of an array that is one."""
    if isinstance(arrays, (list, tuple)):
        return list(arrays)
    return list(iter(as_array(arrays)))


def concat_values(values: Sequence[Value], axis: int) -> Value:
    """Join along one axis (non-negative); zero-size parts cost nothing."""
    return values[0] if len(values) == 1 else ops.concat(*values, axis=axis)


@implements(np.concatenate)
def concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = _parts(arrays)
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    target = _joined_dtype(parts, dtype if out is None else out.dtype, casting)
    values = [astype(value_of(p), target) for p in parts]
    if axis is None:
        values, axis = [reshape_value(v, (v.size,)) for v in values], 0
    first = values[0]
    if any(v.ndim == 0 for v in values):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    along = strict_axis(axis, first.ndim)
    for n, v in enumerate(values):
        if v.ndim != first.ndim or any(
            p != q and never_equal(p, q) for a, (p, q) in enumerate(zip(v.shape, first.shape)) if a != along
        ):
            message = f"concatenate: arrays 0 and {n} have the shapes {first.shape} and {v.shape}, which differ off axis {along}"
            raise ShapeError(message, source=user_source())
    values = [require_sizes(v, (*first.shape[:along], v.shape[along], *first.shape[along + 1 :])) for v in values]
    result = concat_values(values, along)
    if out is not None:
        return finish(result, None, out, first.ndim)
    made = fresh(result)
    _lay_out(made, [layout_of(p) for p in parts if type(p) in (TracedArray, np.ndarray) and p.ndim == made.ndim], along)
    return made


def _joined_dtype(parts: Sequence[Any], dtype: Any, casting: Any) -> np.dtype[Any]:
    # As elements of a sequence Python numbers are strong: np.array makes float64 and int64 of them.
    found: np.dtype[Any] = np.result_type(*(value_of(p).dtype for p in parts))
    if dtype is None:
        return found
    target: np.dtype[Any] = np.dtype(dtype)
    if not np.can_cast(found, target, casting):
        raise TypeError(f"Cannot cast array data from {found!r} to {target!r} according to the rule '{casting}'")
    return target


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    if type(arrays) is TracedList and (whole := arrays.whole()) is not None and out is None and dtype is None:
        require_at_least(whole.shape[0], 1, "need at least one array to stack")
        along = one_axis(axis, whole.ndim)
        result = fresh(read(call(np.moveaxis, fresh(whole), 0, along)))
        kinds = [kind for kind in arrays.all_kinds() if kind is not None and kind.form == "array"]
        pieces = [(_with(kind.aval.shape, along, 1), _with(kind.layout, along, 0)) for kind in kinds]
        _lay_out(result, 2 * pieces, along)  # of more they lie like two
        return result
    given = _parts(arrays)
    parts = [value_of(p) for p in given]
    if not parts:
        raise ValueError("need at least one array to stack")
    shape = parts[0].shape
    if any(p.ndim != len(shape) or any(n != m and never_equal(n, m) for n, m in zip(p.shape, shape)) for p in parts):
        shapes = [p.shape for p in parts]
        raise ShapeError(f"all input arrays must have the same shape, not {shapes}", source=user_source())
    along = one_axis(axis, parts[0].ndim + 1)
    raised = [reshape_value(require_sizes(p, shape), (*shape[:along], 1, *shape[along:])) for p in parts]
    result = concatenate(raised, along, out, dtype=dtype, casting=casting)
    if out is None:
        pieces = [(_with(p.sizes, along, 1), _with(p.layout, along, 0)) for p in given if type(p) is TracedArray]
        _lay_out(result, pieces, along)
    return result


def _lay_out(result: TracedArray, pieces: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]], axis: int) -> None:
    """Let arrays joined along an axis lie in memory as NumPy's do, of pieces with these shapes and strides."""
    if pieces:
        result.layout = result.storage.strides = joined_strides(pieces, axis, result.sizes)


def _with(sizes: tuple[Any, ...], axis: int, extra: int) -> tuple[Any, ...]:
    return (*sizes[:axis], extra, *sizes[axis:])


def _after_raising(raise_to: Callable[..., Any], axis: Callable[[int], int]) -> Callable[..., Any]:
    def function(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
        parts = [raise_to(p) for p in _parts(tup)]
        return concatenate(parts, axis(parts[0].ndim if parts else 1), dtype=dtype, casting=casting)

    return function


implements(np.hstack)(_after_raising(atleast_1d, lambda ndim: 0 if ndim == 1 else 1))
vstack = implements(np.vstack)(_after_raising(atleast_2d, lambda ndim: 0))
implements(np.dstack)(_after_raising(atleast_3d, lambda ndim: 2))


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    parts = [as_array(p) for p in _parts(tup)]
    return concatenate([p if p.ndim >= 2 else transposed(atleast_2d(p), (1, 0)) for p in parts], 1)


@implements(np.block)
def block(arrays: Any) -> Any:
    """Nested lists: the innermost are joined along the last axis, the next along the one before."""
    depth = _depth(arrays)
    ndim = max(depth, _largest_ndim(arrays))
    return _block(arrays, depth, ndim) if depth else fresh(value_of(arrays))


def _depth(x: Any) -> int:
    return 1 + _depth(x[0]) if isinstance(x, list) and x else 0


def _largest_ndim(x: Any) -> int:
    return max(map(_largest_ndim, x)) if isinstance(x, list) else value_of(x).ndim


def _block(x: Any, depth: int, ndim: int) -> Any:
    if not isinstance(x, list):
        array = as_array(x)
        return reshaped(array, (1,) * (ndim - array.ndim) + array.sizes)
    return concatenate([_block(part, depth - 1, ndim) for part in x], ndim - depth)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return concatenate([as_array(arr), as_array(values)], axis)


def _along(x: TracedArray, axis: int, start: int, stop: int) -> TracedArray:
    if any(isinstance(n, Dim) for n in x.sizes):
        return getitem(x, (slice(None),) * axis + (slice(start, stop),))
    starts = tuple(start if a == axis else 0 for a in range(x.ndim))
    stops = tuple(stop if a == axis else n for a, n in enumerate(x.sizes))
    return view(x, ops.slice, start=starts, stop=stops, step=(1,) * x.ndim)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[TracedArray]:
    x = as_array(ary)
    along = one_axis(axis, x.ndim)
    size = x.sizes[along]
    if isinstance(size, Dim):
        if hasattr(indices_or_sections, "__len__"):
            places = [None, *indices_or_sections, None]
        else:
            places = [of_size(cut) for cut in _even_cuts(size, as_int(indices_or_sections))]
        return [getitem(x, (slice(None),) * along + (slice(a, b),)) for a, b in pairwise(places)]
    if hasattr(indices_or_sections, "__len__"):
        cuts = [0, *map(as_int, indices_or_sections), size]
    else:
        cuts = _even_cuts(size, as_int(indices_or_sections))
    bounds = [slice(a, b).indices(size) for a, b in pairwise(cuts)]
    return [_along(x, along, start, max(start, stop)) for start, stop, _ in bounds]


def _even_cuts(size: Size, count: int) -> list[Any]:
    """Where parts begin that differ by one element at most, and where the last one ends."""
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    each, extra = (quotient(size, count), remainder(size, count)) if isinstance(size, Dim) else divmod(size, count)
    assert each is not None
    return [*(n * each + smaller(n, extra) for n in range(count)), size]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[TracedArray]:
    x = as_array(ary)
    if not hasattr(indices_or_sections, "__len__"):
        size, count = x.sizes[one_axis(axis, x.ndim)], as_int(indices_or_sections)
        left, message = remainder(size, count), "array split does not result in an equal division"
        if isinstance(left, Dim):
            insist_equal(left, 0, message)
        elif left:
            raise ShapeError(message, source=user_source())
    return array_split(x, indices_or_sections, axis)


def _split_along(axis: Callable[[int], int], least: int, name: str) -> Callable[..., list[TracedArray]]:
    def function(ary: Any, indices_or_sections: Any) -> list[TracedArray]:
        x = as_array(ary)
        if x.ndim < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return split(x, indices_or_sections, axis(x.ndim))

    return function


implements(np.hsplit)(_split_along(lambda ndim: 0 if ndim == 1 else 1, 1, "hsplit"))
implements(np.vsplit)(_split_along(lambda ndim: 0, 2, "vsplit"))
implements(np.dsplit)(_split_along(lambda ndim: 2, 3, "dsplit"))


@implements(*present("unstack"))
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    moved = moveaxis(x, axis, 0)
    return tuple(getitem(moved, n) for n in range(as_int(moved.shape[0])))


@implements(np.tile)
def tile(A: Any, reps: Any) -> TracedArray:
    x = value_of(A)
    times = as_lengths(reps)
    if all(type(t) is int and t == 1 for t in times) and isinstance(A, TracedArray):
        return reshaped(fresh_like(x, A), (1,) * (len(times) - x.ndim) + x.shape)
    unknown = [t for t in times if type(t) is not int]
    if unknown and isinstance(A, TracedArray) and not A.is_contiguous and all(t == 1 for t in times if type(t) is int):
        insist_differ(unknown[0], 1)  # else it would be a copy, which lies as A does
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    if isinstance(A, TracedArray) and not A.writeable:
        insist_at_least(x.aval.size, 1)  # else it would be a view of A, which cannot be written
    if isinstance(A, TracedArray) and 0 in x.shape and any(t != 1 for t in times):  # NumPy copies nothing, and copies no array
        return view(A, ops.reshape, shape=tuple(t * s for t, s in zip(times, shape)))
    # Each axis becomes (times, size): repeating is a broadcast of the first of the two.
    pairs = [n for t, s in zip(times, shape) for n in (t, s)]
    spread = ops.broadcast(reshape_value(x, shape), shape=tuple(pairs), axes=tuple(range(1, 2 * ndim, 2)))
    return fresh(reshape_value(spread, [t * s for t, s in zip(times, shape)]))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> TracedArray:
    x = value_of(a)
    if axis is None:
        x, axis = reshape_value(x, (x.size,)), 0
    x = with_axis(x, no_truth(axis))
    along = one_axis(axis, x.ndim)
    if isinstance(repeats, TracedArray) and repeats.ndim:
        if not np.can_cast(repeats.dtype, I64):
            raise TypeError(f"Cannot cast array data from {repeats.dtype!r} to dtype('int64') according to the rule 'safe'")
        return fresh(_repeated(x, astype(value_of(repeats), I64), along))
    if (times := unknown_size(repeats)) is not None:
        counts = [as_length(of_size(times))]
    else:
        counts = _counts(repeats)
    before, size, after = x.shape[:along], x.shape[along], x.shape[along + 1 :]
    if len(counts) == 1:
        each = (*before, size, counts[0], *after)
        axes = tuple(n for n in range(len(each)) if n != along + 1)
        return fresh(reshape_value(ops.broadcast(x, shape=each, axes=axes), (*before, size * counts[0], *after)))
    if len(counts) != size and never_equal(len(counts), size):
        raise ShapeError(f"repeat: {len(counts)} counts for an axis of {size}", source=user_source())
    places = [n for n, count in enumerate(counts) for _ in range(count)]
    x = require_sizes(x, (*before, len(counts), *after))
    return fresh(ops.gather(x, constant(np.array(places, np.int64)), axis=along))


def _repeated(x: Value, counts: Value, axis: int) -> Value:
    """Every element as often as its count says: result element k comes from where the running sum of counts passes k."""
    size = x.shape[axis]
    if counts.ndim != 1:
        raise ValueError("object too deep for desired array")
    counts = broadcast_value(counts, (size,))
    none_negative = ops.reduce_all(ops.ge(counts, 0), axes=(0,))
    ends = ops.cumsum(counts, axis=0, reverse=False)
    total = ops.reduce_sum(counts, axes=(0,))
    total = ops.check(total, none_negative, error="ValueError", message="repeats may not contain negative values.")
    length = as_length(scalar(total))
    place = search(ends, ops.iota(shape=(length,), axis=0, dtype=I64), "right")
    return ops.gather(x, place, axis=axis)


def _counts(repeats: Any) -> list[int]:
    if is_traced(repeats) or not hasattr(repeats, "__len__"):
        return [as_int(whole(repeats))]
    return [as_int(whole(n)) for n in repeats]


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> TracedArray:
    x = value_of(a)
    if axis is None:
        return fresh(reshape_value(read(roll(fresh(reshape_value(x, (x.size,))), shift, 0)), x.shape))
    shifts = list(shift) if isinstance(shift, (tuple, list)) or np.ndim(shift) else [shift]
    axes = [normalize_axis(n, x.ndim) for n in as_lengths(axis)]
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes) or any(map(np.ndim, shifts)):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    for by, along in zip(shifts, axes):
        is_cut = shifts_are_cut() or not isinstance(by, (float, np.floating))
        place = unknown_size(by)
        x = _rolled(x, place if place is not None else as_int(whole(by)) if is_cut else by, along)
    return laid_out(x, a, "K")


def _rolled(x: Value, by: Any, axis: int) -> Value:
    size = x.shape[axis]
    if isinstance(size, Dim) or isinstance(by, Dim):
        # Element k comes from k - by, from the end where that is negative.
        start = ops.remainder(value_of_size(by), ops.maximum(value_of_size(size), 1))
        return ops.gather(x, ops.iota(shape=(size,), axis=0, dtype=I64) - broadcast_value(start, (size,)), axis=axis)
    if size == 0 or by % size == 0:
        return x
    if isinstance(by, (float, np.floating)):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    array = fresh(x)
    cut = size - by % size
    return concat_values([read(_along(array, axis, cut, size)), read(_along(array, axis, 0, cut))], axis)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> TracedArray:
    x = value_of(a)
    shape: Shape = as_shape(new_shape)
    size = prod(shape)
    if isinstance(x.size, Dim) or isinstance(size, Dim):
        raise UnknownSizeError(f"how often {x.size} elements fill {shape} is known only when the program runs")
    if x.size == 0 or size == 0:
        return fresh(ops.full(value=0, shape=shape, dtype=x.dtype))
    copies = -(-size // x.size)
    flat = broadcast_value(reshape_value(x, (x.size,)), (copies, x.size))
    flat = ops.slice(reshape_value(flat, (copies * x.size,)), start=(0,), stop=(size,), step=(1,))
    return fresh(reshape_value(flat, complete_shape(shape, size)))
