"""Index maps: ops that say where elements are, and move none until a consumer needs it; and the constants.

`slice` has positive steps; a negative step is a `flip` of a slice. Each has an exact inverse or transpose among the
others, which is how views are written through and how derivatives are taken.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError
from jitml.ir.op import Op
from jitml.ir.types import Aval, DType, dtype_name

Ints = tuple[int, ...]


def _full_aval(*, value: Any, shape: Ints, dtype: DType) -> Aval:
    dtype_name(dtype)
    return Aval(shape, dtype)


def _evaluate_full(*, value: Any, shape: Ints, dtype: DType) -> Any:
    number = dtype.type(value)
    # Zeros take memory where something is written; that decides about arrays as long as what a `while` may save.
    return np.full(shape, number) if any(number.tobytes()) else np.zeros(shape, dtype)


# One number in every element; the number is a Python bool, int or float.
full = Op("full", "index_maps", _full_aval, _evaluate_full)


def _array_aval(*, value: Any, shape: Ints, dtype: DType) -> Aval:
    if np.shape(value) != shape:
        raise ShapeError(f"array: a value of the shape {np.shape(value)} for {shape}")
    return _full_aval(value=value, shape=shape, dtype=dtype)


# A literal array, small: large ones are inputs of the graph.
array = Op("array", "index_maps", _array_aval, lambda *, value, shape, dtype: np.asarray(value, dtype).reshape(shape))


def _empty_aval(*, shape: Ints, dtype: DType) -> Aval:
    dtype_name(dtype)
    return Aval(shape, dtype)


# Memory whose contents nobody reads before they are written: where a loop is going to put its results. Untouched, it costs
# nothing, however large.
empty = Op("empty", "index_maps", _empty_aval, lambda *, shape, dtype: np.zeros(shape, dtype))


def _iota_aval(*, shape: Ints, axis: int, dtype: DType) -> Aval:
    if not 0 <= axis < len(shape):
        raise ShapeError(f"iota: axis {axis} of a shape {shape}")
    return Aval(shape, dtype)


def _evaluate_iota(*, shape: Ints, axis: int, dtype: DType) -> Any:
    line = np.arange(shape[axis]).astype(dtype).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return np.broadcast_to(line, shape)


iota = Op("iota", "index_maps", _iota_aval, _evaluate_iota)  # each element's own index along one axis


def _broadcast_aval(x: Aval, *, shape: Ints, axes: Ints) -> Aval:
    if len(axes) != x.ndim or list(axes) != sorted(set(axes)) or any(not 0 <= a < len(shape) for a in axes):
        raise ShapeError(f"broadcast: axes {axes} do not place {x} into {shape}")
    for n, a in zip(x.shape, axes):
        if n not in (1, shape[a]):
            raise ShapeError(f"broadcast: {x} does not broadcast into {shape} by axes {axes}")
    return x.with_shape(shape)


def _evaluate_broadcast(x: Any, *, shape: Ints, axes: Ints) -> Any:
    sizes = dict(zip(axes, np.shape(x)))
    return np.broadcast_to(np.reshape(x, [sizes.get(a, 1) for a in range(len(shape))]), shape)


# Operand axis k becomes result axis axes[k] (increasing); size 1 stretches, other result axes repeat.
broadcast = Op("broadcast", "index_maps", _broadcast_aval, _evaluate_broadcast)


def _transpose_aval(x: Aval, *, perm: Ints) -> Aval:
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError(f"transpose: {perm} does not permute the axes of {x}")
    return x.with_shape(x.shape[p] for p in perm)


transpose = Op("transpose", "index_maps", _transpose_aval, lambda x, *, perm: np.transpose(x, perm))


def _reshape_aval(x: Aval, *, shape: Ints) -> Aval:
    if Aval(shape, x.dtype).size != x.size:
        raise ShapeError(f"reshape: cannot reshape array of size {x.size} into shape {shape}")
    return x.with_shape(shape)


reshape = Op("reshape", "index_maps", _reshape_aval, lambda x, *, shape: np.reshape(x, shape))  # C order


def slice_length(start: int, stop: int, step: int) -> int:
    length = -(-(stop - start) // step)
    return length if length >= 0 else 0  # of a size that is known to be one, a Dim


def _slice_aval(x: Aval, *, start: Ints, stop: Ints, step: Ints) -> Aval:
    if not len(start) == len(stop) == len(step) == x.ndim:
        raise ShapeError(f"slice: {x} needs {x.ndim} starts, stops and steps")
    for n, a, b, s in zip(x.shape, start, stop, step):
        if s < 1 or not (0 <= a <= n and 0 <= b <= n):
            raise ShapeError(f"slice: {a}:{b}:{s} is outside an axis of {n}")
    return x.with_shape(map(slice_length, start, stop, step))


def _slices(start: Ints, stop: Ints, step: Ints) -> tuple[builtins.slice, ...]:
    return tuple(map(builtins.slice, start, stop, step))


slice = Op("slice", "index_maps", _slice_aval, lambda x, *, start, stop, step: x[_slices(start, stop, step)])


def _flip_aval(x: Aval, *, axes: Ints) -> Aval:
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(f"flip: axes {axes} of {x}")
    return x


flip = Op("flip", "index_maps", _flip_aval, lambda x, *, axes: np.flip(x, axes))


def _pad_aval(x: Aval, value: Aval, *, low: Ints, high: Ints, interior: Ints) -> Aval:
    if value.shape != () or value.dtype != x.dtype:
        raise DTypeError(f"pad: the value is {value}, not a scalar of {x}'s dtype")
    if not len(low) == len(high) == len(interior) == x.ndim or any(a < 0 for a in (*low, *high, *interior)):
        raise ShapeError(f"pad: low {low}, high {high}, interior {interior} for {x}")
    return x.with_shape(a + n + (i and max(0, n - 1) * i) + b for n, a, b, i in zip(x.shape, low, high, interior))


def _evaluate_pad(x: Any, value: Any, *, low: Ints, high: Ints, interior: Ints) -> Any:
    x = np.asarray(x)
    out = np.full(
        _pad_aval(Aval(x.shape, x.dtype), Aval((), x.dtype), low=low, high=high, interior=interior).shape, value, x.dtype
    )
    out[tuple(builtins.slice(a, a + n + max(0, n - 1) * i, i + 1) for n, a, i in zip(x.shape, low, interior))] = x
    return out


# The transpose of slice: `interior` elements of `value` between neighbours, `low` before, `high` after.
pad = Op("pad", "index_maps", _pad_aval, _evaluate_pad)


def _concat_aval(*xs: Aval, axis: int) -> Aval:
    if not xs:
        raise ShapeError("concat: need at least one array to concatenate")
    first = xs[0]
    for x in xs:
        if x.dtype != first.dtype:
            raise DTypeError(f"concat: {first} and {x} differ in dtype")
        if x.ndim != first.ndim or any(m != n for a, (m, n) in enumerate(zip(x.shape, first.shape)) if a != axis):
            raise ShapeError(f"concat: {first} and {x} differ in an axis other than {axis}")
    if not 0 <= axis < first.ndim:
        raise ShapeError(f"concat: axis {axis} of {first}")
    return first.with_shape(sum(x.shape[a] for x in xs) if a == axis else n for a, n in enumerate(first.shape))


concat = Op("concat", "index_maps", _concat_aval, lambda *xs, axis: np.concatenate(xs, axis))


def _update_slice_aval(x: Aval, v: Aval, *, start: Ints, step: Ints) -> Aval:
    stop = tuple(a + (n - 1) * s + 1 if type(n) is not int or n else a for a, n, s in zip(start, v.shape, step))
    if v.dtype != x.dtype or _slice_aval(x, start=start, stop=stop, step=step).shape != v.shape:
        raise ShapeError(f"update_slice: {v} does not fit into {x} at {start} by {step}")
    return x


def _evaluate_update_slice(x: Any, v: Any, *, start: Ints, step: Ints) -> Any:
    out = np.array(x)
    out[tuple(builtins.slice(a, a + n * s, s) for a, n, s in zip(start, np.shape(v), step))] = v
    return out


# x with the slice that starts at `start` and has v's shape replaced by v: what a write through a view becomes.
update_slice = Op("update_slice", "index_maps", _update_slice_aval, _evaluate_update_slice)
