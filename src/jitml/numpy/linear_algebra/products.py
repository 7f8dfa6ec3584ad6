"""Products of arrays: matmul, dot, inner, outer, tensordot and their kin, each a `dot_general`.

float16 is multiplied in float32 and rounded once, as NumPy's loops do.
"""

from __future__ import annotations

from contextlib import _GeneratorContextManager
from math import prod
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import C64, C128, F32, F64, I64, Aval, normalize_axis
from jitml.numpy.arrays.reshaping import moveaxis, reshaped, swapaxes, transposed
from jitml.numpy.reductions.reductions import F16, accumulator, finish, reduce_values
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    broadcast_value,
    common_shape,
    not_compiled,
    one_axis,
    present,
    promoted,
    reshape_value,
    result_of,
    value_of,
)
from jitml.numpy.support.versions import dot_warns
from jitml.numpy.ufuncs.loops import conjugate
from jitml.numpy.ufuncs.ufunc import call_ufunc, store
from jitml.trace.record.recording import user_source
from jitml.trace.storage.index_maps import Diagonal, OpenDiagonal
from jitml.trace.symbolic.broadcasting import common_sizes, never_equal, require_sizes
from jitml.trace.symbolic.sizes import larger, number, smaller, value_of_size
from jitml.trace.values.boxing import TracedArray, fresh, laid_out, read, view
from jitml.trace.values.python_arithmetic import unheard
from jitml.trace.values.registry import call, implements, named

Ints = tuple[int, ...]


def dot_values(x: Value, y: Value, contract: tuple[Ints, Ints], batch: tuple[Ints, Ints] = ((), ())) -> Value:
    """`dot_general`; result axes are the batch's, then x's free ones, then y's."""
    if x.dtype == F16:
        return astype(ops.dot_general(astype(x, F32), astype(y, F32), batch=batch, contract=contract), F16)
    return ops.dot_general(x, y, batch=batch, contract=contract)


def _need_axes(name: str, *values: Value) -> None:
    if any(v.ndim == 0 for v in values):
        raise ShapeError(f"{name}: operands need at least one axis; use * for a product with a number", source=user_source())


def _fitted(name: str, x: Value, y: Value, along: int, other: int) -> Value:
    """y, whose axis `other` is contracted with x's axis `along`.

    Raises:
        ShapeError: their sizes differ; where they are not known, the program ends with ValueError.
    """
    m, n = x.shape[along], y.shape[other]
    message = f"{name}: {x.aval} and {y.aval} do not fit: the contracted axes have the sizes {m} and {n}"
    if m != n and never_equal(m, n):
        raise ShapeError(message, source=user_source())
    return require_sizes(y, [m if axis == other % y.ndim else size for axis, size in enumerate(y.shape)], message)


@implements(np.matmul)
def matmul(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: Any = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    **axes: Any,
) -> Any:
    if axes:
        not_compiled("matmul", f"with {', '.join(axes)}", "Move the axes with np.moveaxis first.")
    x, y = promoted(x1, x2)
    if dtype is not None:
        for v in (x, y):
            if not np.can_cast(v.dtype, dtype, casting):
                raise TypeError(f"Cannot cast ufunc 'matmul' input from {v.dtype!r} to {np.dtype(dtype)!r}")
        x, y = astype(x, np.dtype(dtype)), astype(y, np.dtype(dtype))
    _need_axes("matmul", x, y)
    result = _matmul_values(x, y)
    if out is not None:
        return store(out, result, casting=casting)
    return laid_out(result, None, order) if result.ndim and order != "K" else result_of(result)


def _matmul_values(x: Value, y: Value) -> Value:
    y = _fitted("matmul", x, y, -1, -2 if y.ndim > 1 else 0)
    if y.ndim <= 2:
        # The batch of x consists of free axes like its rows.
        return dot_values(x, y, ((x.ndim - 1,), (max(0, y.ndim - 2),)))
    if x.ndim == 1:
        return dot_values(y, x, ((y.ndim - 2,), (0,)))
    try:
        shape = common_sizes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(f"matmul: the batches of {x.aval} and {y.aval} do not broadcast", source=user_source()) from None
    x, y = broadcast_value(x, (*shape, *x.shape[-2:])), broadcast_value(y, (*shape, *y.shape[-2:]))
    batch = tuple(range(len(shape)))
    return dot_values(x, y, ((x.ndim - 1,), (y.ndim - 2,)), (batch, batch))


def _skipped(x: Value, y: Value) -> tuple[Value, Value]:
    """Operands as BLAS multiplies them, of which one is a single number: with 0 not at all, so that 0 times nan is 0."""
    for is_swapped in (False, True):
        array, factor = (y, x) if is_swapped else (x, y)
        if x.dtype not in (F32, F64, C64, C128) or any(n != 1 for n in factor.shape) or all(n == 1 for n in array.shape):
            continue
        nothing = ops.full(value=0, shape=(), dtype=x.dtype)
        skips = ops.eq(reshape_value(factor, ()), nothing)
        size = prod(array.shape)
        if isinstance(size, Dim):  # one element is a product of two numbers
            skips = ops.bit_and(skips, ops.ne(value_of_size(size), number(1)))
        is_finite = value_of(call(np.isfinite, fresh(array)))
        left_out = ops.bit_and(broadcast_value(skips, array.shape), ops.bit_not(is_finite))
        array = ops.select(left_out, broadcast_value(nothing, array.shape), array)
        return (factor, array) if is_swapped else (array, factor)
    return x, y


def _times(a: Any, b: Any, out: Any = None) -> Any:
    """np.dot and np.inner where one of the operands has no axes. What BLAS multiplies it adds to 0.0."""
    x, y = promoted(a, b)
    factors = _skipped(x, y) if max(x.ndim, y.ndim) <= 2 else (x, y)
    if factors == (x, y):
        return call_ufunc(np.multiply, x, y, out=out)
    product = value_of(call_ufunc(np.multiply, *factors))
    return finish_in(out, ops.add(product, ops.full(value=0, shape=product.shape, dtype=product.dtype)))


def as_dot() -> _GeneratorContextManager[None]:
    """What is recorded here NumPy makes by np.dot, and warns of by that name, if it does."""
    return named("dot") if dot_warns() else unheard()


@implements(np.dot)
@as_dot()
def dot(a: Any, b: Any, out: Any = None) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _times(a, b, out)
    x, y = promoted(a, b)
    if max(x.ndim, y.ndim) <= 2:
        x, y = _skipped(x, y)
    y = _fitted("dot", x, y, -1, max(0, y.ndim - 2))
    return finish_in(out, dot_values(x, y, ((x.ndim - 1,), (max(0, y.ndim - 2),))))


def finish_in(out: Any, result: Value) -> Any:
    """np.dot's result; `out=` has to be just such an array, and where it has no axes its element is returned.

    Raises:
        ValueError: it is another one.
    """
    if out is None:
        return result_of(result)
    if out.dtype != result.dtype or out.ndim != result.ndim or not out.is_contiguous:
        raise ValueError("output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)")
    stored = finish(result, None, out, 0)
    return stored if stored.ndim else stored[()]


@implements(np.inner)
@as_dot()
def inner(a: Any, b: Any, /) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _times(a, b)
    x, y = promoted(a, b)
    if max(x.ndim, y.ndim) <= 2:
        x, y = _skipped(x, y)
    y = _fitted("inner", x, y, -1, -1)
    return result_of(dot_values(x, y, ((x.ndim - 1,), (y.ndim - 1,))))


@implements(np.vdot)
@unheard()  # NumPy does not look
def vdot(a: Any, b: Any, /) -> Any:
    x, y = (reshape_value(v, (v.size,)) for v in promoted(a, b))
    y = _fitted("vdot", x, y, 0, 0)
    return result_of(dot_values(conjugate(x), y, ((0,), (0,))))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = map(as_array, (a, b))
    return call_ufunc(np.multiply, reshaped(x, (x.aval.size, 1)), reshaped(y, (1, y.aval.size)), out=out)


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={np.ndim(x1)} and x2.ndim={np.ndim(x2)}.")
    return outer(x1, x2)


@implements(np.vecdot)
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, **options: Any) -> Any:
    return _vecdot(x1, x2, axis, out)


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return _vecdot(x1, x2, axis, None)


def _vecdot(x1: Any, x2: Any, axis: int, out: Any) -> Any:
    x, y = (read(moveaxis(fresh(v), axis, -1)) for v in promoted(x1, x2))
    _need_axes("vecdot", x, y)
    y = _fitted("vecdot", x, y, -1, -1)
    shape = common_shape("vecdot", x.shape, y.shape)
    batch = tuple(range(len(shape) - 1))
    last = (len(shape) - 1,)
    result = dot_values(conjugate(broadcast_value(x, shape)), broadcast_value(y, shape), (last, last), (batch, batch))
    return finish(result, None, out, 0)


@implements(*present("matvec"))
def matvec(x1: Any, x2: Any, /, **options: Any) -> Any:
    vector = as_array(x2)
    product = matmul(x1, reshaped(vector, (*vector.sizes, 1)), **options)
    return result_of(reshape_value(read(product), product.sizes[:-1]))


@implements(*present("vecmat"))
def vecmat(x1: Any, x2: Any, /, **options: Any) -> Any:
    return matvec(swapaxes(x2, -1, -2), call_ufunc(np.conjugate, x1), **options)


@implements(np.tensordot)
@as_dot()
def tensordot(a: Any, b: Any, axes: Any = 2) -> TracedArray:
    x, y = promoted(a, b)
    if isinstance(axes, (tuple, list)):
        one, two = (tuple(n) if isinstance(n, (tuple, list)) else (n,) for n in axes)
    else:
        count = as_int(axes)
        one, two = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    xs, ys = (tuple(one_axis(n, v.ndim) for n in chosen) for chosen, v in ((one, x), (two, y)))
    if any(len(set(chosen)) != len(chosen) for chosen in (xs, ys)):
        raise ValueError("duplicate axes are not allowed in tensordot")
    message = f"tensordot: shape-mismatch for sum of {x.aval} over {xs} and {y.aval} over {ys}"
    if len(xs) != len(ys) or any(x.shape[n] != y.shape[m] and never_equal(x.shape[n], y.shape[m]) for n, m in zip(xs, ys)):
        raise ShapeError(message, source=user_source())
    wanted = {m: x.shape[n] for n, m in zip(xs, ys)}
    y = require_sizes(y, [wanted.get(axis, size) for axis, size in enumerate(y.shape)], message)
    return fresh(dot_values(*_skipped(x, y), (xs, ys)))


@implements(np.linalg.tensordot)
def linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> TracedArray:
    return tensordot(x1, x2, axes)


@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    return matmul(x1, x2)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = as_array(a), as_array(b)
    if not (x.ndim or y.ndim):
        return call_ufunc(np.multiply, value_of(a), value_of(b))
    ndim = max(x.ndim, y.ndim)
    xs, ys = (1,) * (ndim - x.ndim) + x.sizes, (1,) * (ndim - y.ndim) + y.sizes
    left = reshaped(x, [n for size in xs for n in (size, 1)])
    right = reshaped(y, [n for size in ys for n in (1, size)])
    product = as_array(call_ufunc(np.multiply, left, right))
    return reshaped(product, [m * n for m, n in zip(xs, ys)])


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> TracedArray:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if x.sizes[-1] != 3 or y.sizes[-1] != 3:
        not_compiled("cross", f"of vectors of {x.sizes[-1]} and {y.sizes[-1]} elements", "Only three-dimensional vectors are.")
    x1, x2, x3 = (x[..., n] for n in range(3))
    y1, y2, y3 = (y[..., n] for n in range(3))
    parts = (x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1)
    columns = [reshape_value(read(p), (*p.sizes, 1)) for p in parts]
    return moveaxis(fresh(ops.concat(*columns, axis=columns[0].ndim - 1)), -1, axisc)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> TracedArray:
    return cross(x1, x2, axis=axis)


def diagonal_values(x: Value, offset: int, axis1: int, axis2: int) -> Value:
    """The diagonal of two axes as the last axis of the result."""
    one, two = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    rows, columns = x.shape[one], x.shape[two]
    length: Any = larger(smaller(rows + min(offset, 0), columns - max(offset, 0)), 0)
    index = ops.iota(shape=(length,), axis=0, dtype=I64)
    others = tuple(n for n in range(x.ndim) if n not in (one, two))
    ordered = ops.transpose(x, perm=(*others, one, two)) if (one, two) != (x.ndim - 2, x.ndim - 1) else x
    down, right = max(-offset, 0), max(offset, 0)
    return ops.gather(ordered, index + down if down else index, index + right if right else index, axis=len(others))


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TracedArray:
    """A read-only view: it shows what is written into `a` later."""
    shown = diagonal_view(as_array(a), as_int(offset), as_int(axis1), as_int(axis2))
    shown.writeable = False
    return shown


def diagonal_view(x: TracedArray, offset: int, axis1: int, axis2: int) -> TracedArray:
    """The diagonal of two axes as the last axis of a view."""
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, two = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    moved = transposed(x, (*(n for n in range(x.ndim) if n not in (one, two)), one, two))
    *ahead, rows, columns = moved.sizes
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        return _open_diagonal(moved, offset)
    down, right = min(max(-offset, 0), rows), min(max(offset, 0), columns)
    size = min(rows - down, columns - right)
    zeros, ones = [0] * len(ahead), [1] * len(ahead)
    stop = (*ahead, down + size, right + size)
    square = view(moved, ops.slice, start=(*zeros, down, right), stop=stop, step=(*ones, 1, 1))
    layout = (*square.layout[:-2], square.layout[-2] + square.layout[-1])
    steps = (*square.steps, Diagonal.of(square.aval))
    return TracedArray(x.storage, steps, Aval((*ahead, size), x.dtype), layout, x.writeable)


def _open_diagonal(x: TracedArray, offset: int) -> TracedArray:
    """The diagonal of the last two axes, of sizes that only the running program knows."""
    down, right = max(-offset, 0), max(offset, 0)
    *ahead, rows, columns = x.sizes
    size: Any = larger(smaller(rows - down, columns - right), 0)
    layout = (*x.layout[:-2], x.layout[-2] + x.layout[-1])
    steps = (*x.steps, OpenDiagonal.of(x.aval, down, right, size))
    return TracedArray(x.storage, steps, Aval((*ahead, size), x.dtype), layout, x.writeable)


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> TracedArray:
    return diagonal(x, offset, -2, -1)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    x = value_of(a)
    x = astype(x, accumulator(x.dtype, dtype, out))
    line = diagonal_values(x, as_int(offset), as_int(axis1), as_int(axis2))
    return finish(reduce_values(ops.reduce_sum, line, (line.ndim - 1,)), None, out, line.ndim)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> TracedArray:
    x, offset = value_of(v), as_int(k)
    if x.ndim == 2:
        return diagonal(v, offset)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = x.shape[0] + abs(offset)
    # Rows of size + 1 elements shift by one column each: the padded vector, flattened, is the matrix from (0, offset) on.
    shape = (size, size)
    row, column = (ops.iota(shape=shape, axis=n, dtype=I64) for n in (0, 1))
    padded = ops.pad(x, ops.full(value=0, shape=(), dtype=x.dtype), low=(max(-offset, 0),), high=(max(offset, 0),), interior=(0,))
    spread = ops.broadcast(padded, shape=shape, axes=(0,))
    return fresh(ops.select(ops.eq(column - row, offset), spread, ops.full(value=0, shape=shape, dtype=x.dtype)))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> TracedArray:
    x = as_array(v)
    return diag(reshaped(x, (x.aval.size,)), k)
