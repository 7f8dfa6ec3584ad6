"""Places and sizes that are values: windows at run-time offsets, and elements picked by a mask.

Starts are i64[] values and have been made good before: a window lies inside its array (`check` sees to it where that is not
known). Sizes are ints or `Dim`s; a Dim's Syms are bound before the node.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError
from jitml.ir.dims import Dim, limits
from jitml.ir.op import Op
from jitml.ir.types import BOOL, I64, Aval

Ints = tuple[int, ...]


def _require_starts(name: str, x: Aval, starts: tuple[Aval, ...], sizes: Ints, step: Ints) -> None:
    if not len(starts) == len(sizes) == len(step) == x.ndim or any(s != Aval((), I64) for s in starts):
        raise ShapeError(f"{name}: {x} needs {x.ndim} starts of i64[], sizes and steps, not {starts}, {sizes}, {step}")
    if any(s < 1 for s in step):
        raise ShapeError(f"{name}: steps must be positive, not {step}")
    for n, size in zip(x.shape, sizes):
        if type(n) is int and type(size) is int and size > n:
            raise ShapeError(f"{name}: a window of {sizes} does not fit into {x}")


def _dynamic_slice_aval(x: Aval, *starts: Aval, sizes: Ints, step: Ints) -> Aval:
    _require_starts("dynamic_slice", x, starts, sizes, step)
    return x.with_shape(sizes)


def _window(starts: tuple[Any, ...], sizes: Ints, step: Ints) -> tuple[builtins.slice, ...]:
    return tuple(builtins.slice(int(a), int(a) + (n - 1) * s + 1 if n else int(a), s) for a, n, s in zip(starts, sizes, step))


# x[a : a + (n - 1) * s + 1 : s] on each axis, for start a, size n, step s: a window of elements.
dynamic_slice = Op(
    "dynamic_slice", "dynamic", _dynamic_slice_aval, lambda x, *starts, sizes, step: x[_window(starts, sizes, step)]
)


def _dynamic_update_slice_aval(x: Aval, v: Aval, *starts: Aval, step: Ints) -> Aval:
    _require_starts("dynamic_update_slice", x, starts, v.shape, step)
    if v.dtype != x.dtype:
        raise DTypeError(f"dynamic_update_slice: {v} into {x}")
    return x


def _evaluate_dynamic_update_slice(x: Any, v: Any, *starts: Any, step: Ints) -> Any:
    out = np.array(x)
    out[_window(starts, np.shape(v), step)] = v
    return out


# x with that window replaced by v.
dynamic_update_slice = Op("dynamic_update_slice", "dynamic", _dynamic_update_slice_aval, _evaluate_dynamic_update_slice)


def _compress_aval(x: Aval, mask: Aval, *, axis: int, size: int) -> Aval:
    if mask.dtype != BOOL or not 0 <= axis < x.ndim or mask.shape != (x.shape[axis],):
        raise ShapeError(f"compress: a mask {mask} on axis {axis} of {x}")
    return x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1 :]))


# x where the mask (of one axis) is true, in order; `size` is how often it is.
compress = Op("compress", "dynamic", _compress_aval, lambda x, mask, *, axis, size: np.compress(mask, x, axis))


def _resize_aval(x: Aval, *, shape: Ints) -> Aval:
    if len(shape) != x.ndim:
        raise ShapeError(f"resize: {x} to {shape}")
    for n, m in zip(x.shape, shape):
        if not isinstance(n, Dim) and not isinstance(m, Dim) and n != m:
            raise ShapeError(f"resize: {n} and {m} are different sizes")
        if limits(n)[1] < limits(m)[0] or limits(m)[1] < limits(n)[0]:
            raise ShapeError(f"resize: {n} is never {m}")
    return x.with_shape(shape)


def _evaluate_resize(x: Any, *, shape: Ints) -> Any:
    assert np.shape(x) == shape, f"resize: {np.shape(x)} is not {shape}, as a check before it should have seen"
    return x


# The same array under another name of its sizes: what two sizes that have been checked to be equal come to.
resize = Op("resize", "dynamic", _resize_aval, _evaluate_resize)
