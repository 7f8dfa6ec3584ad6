"""np.pad: constant, edge, reflect, symmetric and wrap; each is a concat of parts of the array."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import I64
from jitml.numpy.layouts import keeps_columns
from jitml.numpy.operands import as_int, broadcast_value, constant, nonempty, not_compiled, spread_size, value_of
from jitml.trace.registry import implements
from jitml.trace.tracers import TracedArray, fresh

_BY_PLACE = ("edge", "reflect", "symmetric", "wrap")


def _pairs(width: Any, ndim: int) -> list[tuple[int, int]]:
    """`pad_width` as (before, after) for every axis."""
    if isinstance(width, dict):
        given = {axis % ndim: width[axis] for axis in width}
        return [_pair(given.get(axis, 0)) for axis in range(ndim)]
    if not isinstance(width, (list, tuple, np.ndarray)):
        return [_pair(width)] * ndim
    items = list(width)
    if len(items) == 1:
        return [_pair(items[0])] * ndim
    if len(items) == 2 and not isinstance(items[0], (list, tuple, np.ndarray)):
        return [(as_int(items[0]), as_int(items[1]))] * ndim
    if len(items) != ndim:
        raise ValueError(f"operands could not be broadcast together: pad_width {width} and {ndim} axes")
    return [_pair(item) for item in items]


def _pair(item: Any) -> tuple[int, int]:
    if isinstance(item, (list, tuple, np.ndarray)):
        both = [as_int(n) for n in item]
        return (both[0], both[-1])
    return (as_int(item), as_int(item))


@implements(np.pad)
@keeps_columns
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> TracedArray:
    x = value_of(array)
    pairs = _pairs(pad_width, x.ndim)
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        return fresh(_constant(x, pairs, kwargs.get("constant_values", 0)))
    if mode not in _BY_PLACE or kwargs.get("reflect_type", "even") != "even":
        not_compiled("pad", f"with mode={mode!r} {kwargs or ''}".strip(), f"The modes constant, {', '.join(_BY_PLACE)} are.")
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = nonempty(x, (axis,), f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
            x = _along(x, axis, before, after, mode)
    return fresh(x)


def _along(x: Value, axis: int, before: int, after: int, mode: str) -> Value:
    """One axis padded by copies of its own elements: slices of x where they suffice, which needs no table of places."""
    size = x.shape[axis]
    if isinstance(size, Dim):
        return ops.gather(x, _padded_places(size, before, after, mode), axis=axis)
    reach = size - 1 if mode == "reflect" else size
    if mode != "edge" and max(before, after) > reach:
        # NumPy's own pad of the positions says which element each place repeats.
        return ops.gather(x, constant(np.pad(np.arange(size), (before, after), mode=mode)), axis=axis)  # type: ignore[call-overload]  # modes are checked before
    first, last = {
        "edge": ((0, 1), (size - 1, size)),
        "wrap": ((size - before, size), (0, after)),
        "symmetric": ((0, before), (size - after, size)),
        "reflect": ((1, before + 1), (size - 1 - after, size - 1)),
    }[mode]
    parts = [_part(x, axis, first, before, mode), x, _part(x, axis, last, after, mode)]
    return ops.concat(*(p for p in parts if p.shape[axis]), axis=axis)


def _padded_places(size: Dim, before: int, after: int, mode: str) -> Value:
    """Which element stands at each place of an axis of unknown length, padded."""
    length: Any = size + before + after
    at = ops.iota(shape=(length,), axis=0, dtype=I64) - before
    count = spread_size(size, at.shape)
    if mode == "edge":
        return ops.minimum(ops.maximum(at, 0), count - 1)
    if mode == "wrap":
        return ops.remainder(at, count)
    if mode == "symmetric":  # there and back again
        around = ops.remainder(at, count * 2)
        return ops.minimum(around, count * 2 - 1 - around)
    period = ops.maximum(count * 2 - 2, 1)
    around = ops.remainder(at, period)
    return ops.minimum(around, period - around)


def _part(x: Value, axis: int, limits: tuple[int, int], width: int, mode: str) -> Value:
    start = tuple(limits[0] if n == axis else 0 for n in range(x.ndim))
    stop = tuple(limits[1] if n == axis else size for n, size in enumerate(x.shape))
    part = ops.slice(x, start=start, stop=stop, step=(1,) * x.ndim)
    if mode == "edge":
        return broadcast_value(part, [width if n == axis else size for n, size in enumerate(x.shape)])
    return part if mode == "wrap" else ops.flip(part, axes=(axis,))


def _constant(x: Value, pairs: list[tuple[int, int]], values: Any) -> Value:
    zeros = (0,) * x.ndim
    if not isinstance(values, (list, tuple)):
        lows, highs = (tuple(pair[n] for pair in pairs) for n in (0, 1))
        return ops.pad(x, value_of(values, x.dtype), low=lows, high=highs, interior=zeros)
    each = [values[0]] * x.ndim if len(values) == 1 else list(values)
    if not isinstance(each[0], (list, tuple)):
        each = [values] * x.ndim
    for axis, ((before, after), (left, right)) in enumerate(zip(pairs, each)):
        for value, low, high in ((left, before, 0), (right, 0, after)):
            lows = tuple(low if a == axis else 0 for a in range(x.ndim))
            highs = tuple(high if a == axis else 0 for a in range(x.ndim))
            x = ops.pad(x, value_of(value, x.dtype), low=lows, high=highs, interior=zeros)
    return x
