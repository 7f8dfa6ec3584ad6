"""Differences, integrals, polynomials, interpolation and convolution, as NumPy writes them in slices and sums."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Any

import numpy as np

from jitml.errors import UnknownSizeError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, C128, F64, I64, is_complex, is_float, is_inexact
from jitml.numpy.arrays.indexing import getitem
from jitml.numpy.arrays.reshaping import moveaxis
from jitml.numpy.building.joining import concat_values
from jitml.numpy.reductions.reductions import finish, is_given, reduce_values
from jitml.numpy.reductions.sorting import search
from jitml.numpy.reductions.ufunc_folds import each
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    broadcast_value,
    distinct_axes,
    full,
    nonempty,
    not_compiled,
    one_axis,
    reshape_value,
    result_of,
    spread_size,
    strict_axis,
    value_of,
    with_axis,
)
from jitml.numpy.ufuncs.loops import conjugate, with_tangent_of
from jitml.trace.hooks.convert import convert
from jitml.trace.symbolic.broadcasting import insist_at_least, never_equal, require_at_least, require_sizes
from jitml.trace.symbolic.sizes import larger, smaller, value_of_size
from jitml.trace.values.boxing import TracedArray, fresh, is_traced, read
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import implements


def _cut(x: Any, axis: int, part: slice) -> Any:
    """x[..., part, ...] along one axis."""
    return getitem(x, (slice(None),) * axis + (part,))


@implements(np.diff)
def diff(a: Any, n: Any = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    x, times = value_of(a), as_int(n)
    if times == 0:
        return a
    if times < 0:
        raise ValueError(f"order must be non-negative but got {times!r}")
    if x.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    along = one_axis(axis, x.ndim)
    x = _with_edges(x, prepend, append, along)
    for _ in range(times):
        array = fresh(x)
        right, left = read(_cut(array, along, slice(1, None))), read(_cut(array, along, slice(None, -1)))
        x = ops.ne(right, left) if x.dtype == BOOL else ops.sub(right, left)
    return fresh(x)


def _with_edges(x: Value, prepend: Any, append: Any, axis: int) -> Value:
    parts = [x]
    for edge, place in ((prepend, 0), (append, len(parts) + 1)):
        if is_given(edge):
            value = value_of(edge)
            if value.ndim == 0:
                value = broadcast_value(value, [1 if n == axis else size for n, size in enumerate(x.shape)])
            parts.insert(place, value)
    dtype = np.result_type(*(p.dtype for p in parts))
    return concat_values([astype(p, dtype) for p in parts], axis)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> TracedArray:
    x = value_of(ary)
    flat = fresh(reshape_value(x, (x.size,)))
    parts = [ops.sub(read(flat[1:]), read(flat[:-1]))]
    for edge, place in ((to_begin, 0), (to_end, 2)):
        if edge is not None:
            value = value_of(edge)
            if not np.can_cast(value.dtype, x.dtype, "same_kind"):
                raise TypeError("dtype of `to_end` must be compatible with input `ary` under the `same_kind` rule.")
            value = astype(value, x.dtype)
            parts.insert(place, reshape_value(value, (value.size,)))
    return fresh(concat_values(parts, 0))


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order differences inside, first- or second-order ones at the edges, on even or uneven grids."""
    x = as_array(f)
    if x.dtype == BOOL:
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported")
    x = x if is_inexact(x.dtype) else x.astype(F64)
    axes = tuple(range(x.ndim)) if axis is None else distinct_axes(axis if isinstance(axis, (tuple, list)) else (axis,), x.ndim)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = list(varargs) or [1.0]
    if len(spacings) not in (1, len(axes)):
        raise TypeError("invalid number of arguments")
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    for n in axes:
        message = "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
        require_at_least(x.sizes[n], edge_order + 1, message)
    results = tuple(_gradient_along(x, h, n, edge_order) for h, n in zip(spacings, axes))
    return results[0] if len(results) == 1 else results


def _gradient_along(x: Any, h: Any, axis: int, edge_order: int) -> Any:
    weights_first: tuple[Any, ...] = ()
    weights_last: tuple[Any, ...] = ()

    def at(start: int | None, stop: int | None) -> Any:
        return _cut(x, axis, slice(start, stop))

    steps = _steps(h, x, axis)
    if steps is None:
        inner = (at(2, None) - at(None, -2)) / (2.0 * h)
        first_step = last_step = h
        weights_first, weights_last = (-1.5 / h, 2.0 / h, -0.5 / h), (0.5 / h, -2.0 / h, 1.5 / h)
    else:
        before, after = _cut(steps, axis, slice(None, -1)), _cut(steps, axis, slice(1, None))
        a = -after / (before * (before + after))
        b = (after - before) / (before * after)
        c = before / (after * (before + after))
        inner = a * at(None, -2) + b * at(1, -1) + c * at(2, None)
        first_step, last_step = _cut(steps, axis, slice(0, 1)), _cut(steps, axis, slice(-1, None))
        if edge_order == 2:
            weights_first, weights_last = _uneven_edges(steps, axis)
    if edge_order == 1:
        first, last = (at(1, 2) - at(0, 1)) / first_step, (at(-1, None) - at(-2, -1)) / last_step
    else:
        first = weights_first[0] * at(0, 1) + weights_first[1] * at(1, 2) + weights_first[2] * at(2, 3)
        last = weights_last[0] * at(-3, -2) + weights_last[1] * at(-2, -1) + weights_last[2] * at(-1, None)
    return fresh(ops.concat(*(astype(value_of(p), x.dtype) for p in (first, inner, last)), axis=axis))


def _steps(h: Any, x: Any, axis: int) -> Any:
    """The distances of uneven coordinates, shaped to go along the axis; None for one even step."""
    coordinates = None if np.ndim(h) == 0 else as_array(h)
    if coordinates is None:
        return None
    message = "when 1d, distances must match the length of the corresponding dimension"
    if coordinates.ndim != 1 or never_equal(coordinates.sizes[0], x.sizes[axis]):
        raise ValueError(message)
    coordinates = fresh(require_sizes(read(coordinates), (x.sizes[axis],), message))
    return diff(coordinates).reshape([-1 if n == axis else 1 for n in range(x.ndim)])


def _uneven_edges(steps: Any, axis: int) -> tuple[Any, Any]:
    d1, d2 = _cut(steps, axis, slice(0, 1)), _cut(steps, axis, slice(1, 2))
    first = (-(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2)))
    d1, d2 = _cut(steps, axis, slice(-2, -1)), _cut(steps, axis, slice(-1, None))
    last = (d2 / (d1 * (d1 + d2)), -(d2 + d1) / (d1 * d2), (2.0 * d2 + d1) / (d2 * (d1 + d2)))
    return first, last


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = as_array(y)
    along = strict_axis(axis, values.ndim)
    if x is None:
        step: Any = dx
    elif np.ndim(x) == 1:
        step = diff(x).reshape([-1 if n == along else 1 for n in range(values.ndim)])
    else:
        step = diff(x, axis=along)
    panels = value_of(step * (_cut(values, along, slice(1, None)) + _cut(values, along, slice(None, -1))) / 2.0)
    return finish(reduce_values(ops.reduce_sum, panels, (along,)), None, None, values.ndim)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear between neighbours, the end values outside; xp must rise."""
    at, xs, ys = value_of(x, F64), value_of(xp, F64), value_of(fp)
    ys = astype(ys, C128 if is_complex(ys.dtype) else F64)
    if xs.ndim != 1 or ys.ndim != 1 or (xs.shape != ys.shape and never_equal(xs.shape[0], ys.shape[0])):
        raise ValueError("fp and xp are not of the same length.")
    ys = require_sizes(ys, xs.shape, "fp and xp are not of the same length.")
    xs = nonempty(xs, (0,), "array of sample points is empty")
    if period is not None:
        return result_of(_interpolate_linearly(*_around(at, xs, ys, period), None, None))
    return result_of(_interpolate_linearly(at, xs, ys, left, right))


def _around(at: Value, xs: Value, ys: Value, period: Any) -> tuple[Value, Value, Value]:
    """Samples of a periodic function, put in order, with one more at each end."""
    length: Any = abs(period)
    if not is_traced(period) and length == 0:
        raise ValueError("period must be a non-zero value")
    at, xs = (value_of(fresh(v) % length, F64) for v in (at, xs))
    order = ops.argsort(xs, axis=0, kind="quicksort")
    xs, ys = (ops.gather(v, order, axis=0) for v in (xs, ys))
    samples, values = fresh(xs), fresh(ys)
    whole = (samples[-1:] - length, samples, samples[:1] + length)
    return at, ops.concat(*(value_of(part, F64) for part in whole), axis=0), _repeated_ends(values)


def _repeated_ends(values: Any) -> Value:
    return ops.concat(read(values[-1:]), read(values), read(values[:1]), axis=0)


def _interpolate_linearly(at: Value, xs: Value, ys: Value, left: Any, right: Any) -> Value:
    shape, size = at.shape, xs.shape[0]
    low = ops.minimum(ops.maximum(search(xs, at, "right") - 1, 0), spread_size(larger(size - 2, 0), at.shape))
    high = ops.minimum(low + 1, spread_size(size - 1, at.shape))
    x0, x1, y0, y1 = (ops.gather(v, i, axis=0) for v, i in ((xs, low), (xs, high), (ys, low), (ys, high)))
    first, last = (ops.broadcast(v, shape=shape, axes=()) for v in (_item(ys, 0), _item(ys, size - 1)))
    start, end = (ops.broadcast(v, shape=shape, axes=()) for v in (_item(xs, 0), _item(xs, size - 1)))
    if is_complex(ys.dtype):
        result = ops.complex(*(_on_line(at, end, x0, x1, part(y0), part(y1)) for part in (ops.real, ops.imag)))
    else:
        result = _on_line(at, end, x0, x1, y0, y1)
    below = first if left is None else broadcast_value(value_of(left, ys.dtype), shape)
    above = last if right is None else broadcast_value(value_of(right, ys.dtype), shape)
    result = ops.select(ops.lt(at, start), below, ops.select(ops.gt(at, end), above, result))
    lost: Value = ops.select(ops.isnan(at), astype(at, ys.dtype), result)
    return lost


def _on_line(at: Value, end: Value, x0: Value, x1: Value, y0: Value, y1: Value) -> Value:
    """The line through two neighbours; a sample as it is, with the slope to its right, the last one with that to its left."""
    width = ops.sub(x1, x0)
    is_step = ops.eq(width, 0.0)  # of one sample, or of two at one place; nothing lies inside
    slope = ops.div(ops.sub(y1, y0), ops.select(is_step, full(width.shape, 1, width.dtype), width))
    is_end = ops.eq(at, end)
    x, y = ops.select(is_end, x1, x0), ops.select(is_end, y1, y0)
    is_sample = ops.eq(at, x)
    is_steep = ops.bit_and(is_sample, ops.bit_or(is_step, ops.bit_not(ops.isfinite(slope))))
    rise = ops.mul(ops.select(is_steep, full(slope.shape, 0, slope.dtype), slope), ops.sub(at, x))
    line: Value = ops.select(is_sample, with_tangent_of(rise, y), rise + y)
    return line


def _item(x: Value, at: Size) -> Value:
    if isinstance(at, Dim) or isinstance(x.shape[0], Dim):
        return ops.gather(x, value_of_size(at), axis=0)
    return reshape_value(ops.slice(x, start=(at,), stop=(at + 1,), step=(1,)), ())


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> TracedArray:
    x, kernel = with_axis(value_of(a), 0), with_axis(value_of(v), 0)
    x, kernel = nonempty(x, (0,), "a cannot be empty"), nonempty(kernel, (0,), "v cannot be empty")
    if isinstance(kernel.size, Dim) or (not isinstance(x.size, Dim) and kernel.size > x.size):
        x, kernel = kernel, x
    return fresh(_correlated(x, ops.flip(kernel, axes=(0,)), mode))


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> TracedArray:
    x, kernel = with_axis(value_of(a), 0), with_axis(conjugate(value_of(v)), 0)
    x, kernel = (nonempty(y, (0,), f"{which} array argument cannot be empty") for which, y in (("first", x), ("second", kernel)))
    unknown = isinstance(kernel.size, Dim) or isinstance(x.size, Dim)
    swapped = isinstance(kernel.size, Dim) if unknown else kernel.size > x.size
    if swapped:
        x, kernel = kernel, x
    if mode != "full":  # of the other order it is the same from back to front; NumPy swaps for a longer one alone
        insist_at_least(x.size, kernel.size + (swapped and unknown and mode == "same"))
    result = _correlated(x, kernel, mode)
    return fresh(ops.flip(result, axes=(0,)) if swapped else result)


def _correlated(x: Value, kernel: Value, mode: str) -> Value:
    """Every window of x times the kernel, summed; at the ends, the part of it that there is."""
    dtype = np.result_type(x.dtype, kernel.dtype)
    x, kernel = astype(x, dtype), astype(kernel, dtype)
    n, k = x.shape[0], kernel.shape[0]
    if isinstance(k, Dim):
        raise UnknownSizeError("a convolution of two arrays of which neither length is known before the program runs")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    if isinstance(n, Dim):
        return _part_of_all(x, kernel, mode)
    before, after = {"full": (k - 1, k - 1), "same": (k // 2, (k - 1) // 2), "valid": (0, 0)}[mode]
    head = [_sums_of_windows(_part(x, 0, k - 1), kernel, before, 0)] if before else []
    tail = [_sums_of_windows(_part(x, n - k + 1, n), kernel, 0, after)] if after else []
    result: Value = ops.concat(*head, _sums_of_windows(x, kernel, 0, 0), *tail, axis=0)
    return result


def _part_of_all(x: Value, kernel: Value, mode: str) -> Value:
    """The same of an x whose length, which may be the shorter one, only the running program knows: of the full result, a part."""
    n, k = x.shape[0], kernel.shape[0]
    if mode == "full":
        return _sums_of_windows(x, kernel, k - 1, k - 1)
    short, long = of_size(smaller(n, k)), of_size(larger(n, k))
    start = short - 1 if mode == "valid" else (short - 1) // 2
    stop = start + (long - short + 1 if mode == "valid" else long)
    every = _sums_of_windows(x, kernel, k - 1, k - 1, (value_of(start), value_of(stop)))
    return value_of(_cut(fresh(every), 0, slice(start, stop)))


_UNROLLED = 16  # taps of a kernel that become so many slices


def _part(x: Value, start: int, stop: int) -> Value:
    result: Value = ops.slice(x, start=(start,), stop=(stop,), step=(1,))
    return result


def _sums_of_windows(x: Value, kernel: Value, before: int, after: int, wanted: tuple[Value, Value] | None = None) -> Value:
    """Windows times the kernel, of x with so many zeros around it, which are multiplied by 1: the kernel may hold infinities.

    A short kernel is unrolled into shifted slices, which become one loop over x; a long one is a loop inside that loop.

    Args:
        wanted: the first window that matters, and the first that does not any more; NumPy would not multiply the others.
    """
    n, k, dtype = x.shape[0], kernel.shape[0], x.dtype
    length = n + before + after - k + 1
    padded = ops.pad(x, full((), 0, dtype), low=(before,), high=(after,), interior=(0,)) if before or after else x

    def factor(tap: Value, window: Value, place: Value) -> Value:
        if not before and not after:
            return tap
        end = broadcast_value(value_of_size(n + before), place.shape)
        counts = ops.bit_and(ops.ge(place, before), ops.lt(place, end))
        if wanted is not None:
            first, last = (broadcast_value(limit, window.shape) for limit in wanted)
            counts = ops.bit_and(counts, ops.bit_and(ops.ge(window, first), ops.lt(window, last)))
        chosen: Value = ops.select(counts, tap, full(place.shape, 1, dtype))
        return chosen

    if k > _UNROLLED:
        shape = (length, k)
        rows, columns = (ops.iota(shape=shape, axis=axis, dtype=I64) for axis in (0, 1))
        place = rows + columns
        windows = ops.gather(padded, place, axis=0)
        return reduce_values(ops.reduce_sum, ops.mul(windows, factor(broadcast_value(kernel, shape), rows, place)), (1,))
    rows = ops.iota(shape=(length,), axis=0, dtype=I64)
    taps = (factor(ops.broadcast(_item(kernel, t), shape=(length,), axes=()), rows, rows + t) for t in range(k))
    shifted = (ops.slice(padded, start=(t,), stop=(t + length,), step=(1,)) for t in range(k))
    return reduce(ops.add, map(ops.mul, shifted, taps))


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> TracedArray:
    """Jumps by more than half a period are taken out, cumulatively."""
    x = as_array(p)
    if not is_float(x.dtype) or discont is not None:
        not_compiled("unwrap", "of integers, or with discont", "Convert to float first.")
    along = one_axis(axis, x.ndim)
    half = period / 2
    jumps: Any = fresh(ops.stop_gradient(value_of(diff(x, axis=along))))  # what is taken out is whole periods
    wrapped: Any = (jumps + half) % period - half
    wrapped = fresh(ops.select(*map(value_of, ((wrapped == -half) & (jumps > 0), wrapped + period, wrapped))))
    fixes: Any = wrapped - jumps
    small = value_of(abs(jumps) < half)
    fixes = fresh(ops.select(small, full(fixes.sizes, 0, x.dtype), value_of(fixes)))
    total = value_of(fixes.cumsum(along))
    rest = ops.add(value_of(_cut(x, along, slice(1, None))), total)
    return fresh(ops.concat(value_of(_cut(x, along, slice(None, 1))), rest, axis=along))


_FEW_LINES = 8  # become nodes of their own, more are a loop


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> TracedArray:
    """The function of every line, one after another."""
    moved = moveaxis(arr, axis, -1)
    count_of_lines = as_int(of_size(prod(moved.sizes[:-1])))
    if count_of_lines == 0:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    lines = moved.reshape((count_of_lines, moved.shape[-1]))
    traced = convert(func1d)

    def function(line: Any) -> Any:
        return traced(line, *args, **kwargs)

    first = value_of(function(lines[0]))
    if count_of_lines > _FEW_LINES:
        results = fresh(full((count_of_lines, *first.shape), 0, first.dtype))
        results[0] = fresh(first)
        for n in each(count_of_lines - 1):
            results[n + 1] = function(lines[n + 1])
        stacked = read(results)
    else:
        values = [first, *(value_of(function(lines[n])) for n in range(1, count_of_lines))]
        stacked = ops.concat(*(reshape_value(r, (1, *r.shape)) for r in values), axis=0)
    outer = moved.sizes[:-1]
    if sum(isinstance(n, Dim) for n in outer) == 1:  # known by now, as the number of lines is
        rest = prod(n for n in outer if type(n) is int)
        outer = tuple(count_of_lines // rest if isinstance(n, Dim) else n for n in outer)
    whole = fresh(reshape_value(stacked, (*outer, *first.shape)))
    along = one_axis(axis, moved.ndim)
    count = len(first.shape)
    return (
        moveaxis(whole, tuple(range(moved.ndim - 1, moved.ndim - 1 + count)), tuple(range(along, along + count)))
        if count
        else whole
    )
