"""np.pad: each mode is a concat of parts of the array, or of what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import I64, is_inexact
from jitml.numpy.support.arguments import (
    as_int,
    broadcast_value,
    constant,
    no_truth,
    nonempty,
    not_compiled,
    spread_size,
    value_of,
)
from jitml.trace.values.boxing import TracedArray, fresh, read
from jitml.trace.values.registry import call, implements

_BY_PLACE = ("edge", "reflect", "symmetric", "wrap")
_OPTIONS = {
    "constant": ["constant_values"], "empty": [], "edge": [], "wrap": [], "linear_ramp": ["end_values"],
    "reflect": ["reflect_type"], "symmetric": ["reflect_type"], "maximum": ["stat_length"], "minimum": ["stat_length"],
    "mean": ["stat_length"], "median": ["stat_length"],
}  # fmt: skip
_STATISTICS: dict[str, Any] = {"maximum": np.amax, "minimum": np.amin, "mean": np.mean, "median": np.median}


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
        return [(as_int(no_truth(items[0])), as_int(no_truth(items[1])))] * ndim
    if len(items) != ndim:
        raise ValueError(f"operands could not be broadcast together: pad_width {width} and {ndim} axes")
    return [_pair(item) for item in items]


def _pair(item: Any) -> tuple[int, int]:
    if isinstance(item, (list, tuple, np.ndarray)):
        both = [as_int(no_truth(n)) for n in item]
        return (both[0], both[-1])
    return (as_int(no_truth(item)),) * 2


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> TracedArray:
    x = value_of(array)
    pairs = _pairs(pad_width, x.ndim)
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError("index can't contain negative values")
    if mode in _OPTIONS and (unknown := set(kwargs).difference(_OPTIONS[mode])):
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode == "constant":
        return fresh(_pad_with_constants(x, pairs, kwargs.get("constant_values", 0)))
    if mode == "empty":
        return fresh(_pad_with_constants(x, pairs, 0))
    if mode not in (*_BY_PLACE, *_STATISTICS, "linear_ramp"):
        not_compiled("pad", f"with mode={mode!r}", "Concatenate the parts.")
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = nonempty(x, (axis,), f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
            if mode in _BY_PLACE and kwargs.get("reflect_type", "even") == "even":
                x = _along(x, axis, before, after, mode)
            else:
                x = _computed(x, axis, before, after, mode, kwargs)
    return fresh(x)


def _computed(x: Value, axis: int, before: int, after: int, mode: str, options: dict[str, Any]) -> Value:
    """One axis padded by what is computed from its elements."""
    size = x.shape[axis]
    if isinstance(size, Dim) or not is_inexact(x.dtype):
        not_compiled("pad", f"with mode={mode!r} of {x.aval}", "Concatenate the parts.")
    if mode in _STATISTICS:
        lengths = _pairs(options.get("stat_length") or size, x.ndim)[axis]
        places = (slice(0, lengths[0]), slice(max(size - lengths[1], 0), size))
        ends = [_statistic(x, axis, mode, place) for place in places]
        parts = [call(np.repeat, end, width, axis=axis) for end, width in zip(ends, (before, after))]
    elif mode == "linear_ramp":
        values = _end_values(options.get("end_values", 0), x.ndim)[axis]
        parts = [_ramp(x, axis, at, width, value) for at, width, value in zip((0, size - 1), (before, after), values)]
        parts[1] = call(np.flip, parts[1], axis)
    else:
        parts = _turned(x, axis, before, after, mode)
    left, right = (read(part) for part in parts)
    return ops.concat(*(p for p in (left, x, right) if p.shape[axis]), axis=axis)


def _statistic(x: Value, axis: int, mode: str, where: slice) -> Any:
    chosen = fresh(x)[tuple(where if n == axis else slice(None) for n in range(x.ndim))]
    return call(_STATISTICS[mode], chosen, axis=axis, keepdims=True)


def _ramp(x: Value, axis: int, at: int, width: int, value: Any) -> Any:
    """From a value to the element at an end, without it."""
    edge = fresh(x)[tuple(at if n == axis else slice(None) for n in range(x.ndim))]
    return call(np.linspace, value, edge, width, endpoint=False, dtype=x.dtype, axis=axis)


def _turned(x: Value, axis: int, before: int, after: int, mode: str) -> list[Any]:
    """Reflections turned around the ends: `reflect_type="odd"`."""
    size = x.shape[axis]
    if mode not in ("reflect", "symmetric") or max(before, after) > size - (mode == "reflect"):
        not_compiled("pad", "with an odd reflection of more than the array", "Pad twice.")
    even = fresh(_along(x, axis, before, after, mode))
    whole = [slice(None)] * x.ndim
    parts = []
    for at, place in ((0, slice(0, before)), (size - 1, slice(size + before, None))):
        edge = fresh(x)[(*whole[:axis], slice(at, at + 1), *whole[axis + 1 :])]
        parts.append(2 * edge - even[(*whole[:axis], place, *whole[axis + 1 :])])
    return parts


def _end_values(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """`end_values` as a pair for each axis."""
    if not isinstance(values, (list, tuple)):
        return [(values, values)] * ndim
    if not isinstance(values[0], (list, tuple)):
        return [(values[0], values[-1])] * ndim
    each = [(pair[0], pair[-1]) for pair in values]
    return each * ndim if len(each) == 1 else each


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


def _pad_with_constants(x: Value, pairs: list[tuple[int, int]], values: Any) -> Value:
    zeros = (0,) * x.ndim
    given = value_of(values, x.dtype)
    if given.ndim == 0:
        lows, highs = (tuple(pair[n] for pair in pairs) for n in (0, 1))
        return ops.pad(x, given, low=lows, high=highs, interior=zeros)
    ends = broadcast_value(given, (x.ndim, 2))
    for axis, (before, after) in enumerate(pairs):
        for side, low, high in ((0, before, 0), (1, 0, after)):
            value = ops.slice(ends, start=(axis, side), stop=(axis + 1, side + 1), step=(1, 1))
            lows = tuple(low if a == axis else 0 for a in range(x.ndim))
            highs = tuple(high if a == axis else 0 for a in range(x.ndim))
            x = ops.pad(x, ops.reshape(value, shape=()), low=lows, high=highs, interior=zeros)
    return x
