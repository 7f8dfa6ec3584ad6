"""Helpers for indices: `np.r_[...]`, `np.mgrid[...]`, `ix_`, `unravel_index` and the places of a diagonal or triangle.

Without a traced part `r_`, `c_`, `mgrid` and `ogrid` are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from jitml.ir.types import BOOL, DType
from jitml.numpy.arrays.reshaping import as_shape, atleast_1d, reshaped
from jitml.numpy.building.grids import meshgrid
from jitml.numpy.building.joining import concatenate, stack
from jitml.numpy.building.ranges import arange, linspace, require_forwards
from jitml.numpy.selection.nonzero import flatnonzero
from jitml.numpy.support.arguments import (
    as_array,
    checked_index,
    common_dtype,
    holds_traced,
    integers,
    not_compiled,
    result_of,
    value_of,
)
from jitml.numpy.support.memory_order import beside_each_other, kept_rest
from jitml.trace.values.boxing import TracedArray, fresh, laid_out, named_order
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import implements


def _make_index_joiner(name: str, axis: int, place: Callable[[TracedArray], TracedArray]) -> Callable[[Any], Any]:
    plain = getattr(np, name)

    def index(key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(_is_traced, items)):
            return as_array(plain[key])
        if any(isinstance(i, str) for i in items):
            not_compiled(name, "with a string of directives", "np.concatenate and np.stack take an axis.")
        parts = [_line(*_ends(i)) if isinstance(i, slice) else i for i in items]
        dtype = common_dtype(*parts)
        return concatenate([place(laid_out(value_of(part, dtype), part, "K")) for part in parts], axis)

    return index


def _is_traced(item: Any) -> bool:
    return holds_traced([item.start, item.stop, item.step] if isinstance(item, slice) else item)


def _ends(places: slice) -> tuple[Any, Any, Any]:
    return 0 if places.start is None else places.start, places.stop, 1 if places.step is None else places.step


def _is_count(step: Any) -> bool:
    """Whether a step is a number of places from end to end: `3j`."""
    return isinstance(step, (complex, np.complexfloating))


def _line(start: Any, stop: Any, step: Any) -> TracedArray:
    """The numbers of a slice, as `r_` has them."""
    line: TracedArray = linspace(start, stop, int(abs(step))) if _is_count(step) else arange(start, stop, step)
    return line


def _row(start: Any, stop: Any, step: Any, dtype: DType) -> TracedArray:
    """The same as the grids have them: multiples of the step, from the start."""
    if _is_count(step):
        count: Any = int(abs(step))
        step = (stop - start) / float(count - 1) if count != 1 else 1
    else:
        count = arange(start, stop, step).shape[0]
    row: TracedArray = arange(count, dtype=dtype) * step + start
    return row


def _grid(name: str) -> Callable[[Any], Any]:
    plain = getattr(np, name)

    def index(key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(_is_traced, items)):
            found = plain[key]
            return tuple(map(as_array, found)) if isinstance(found, tuple) else as_array(found)
        axes = [_ends(item) for item in items]
        if not isinstance(key, tuple) and not _is_count(axes[0][2]):
            return arange(*axes[0])
        dtype = common_dtype(0, *(abs(n) if _is_count(n) else n for ends in axes for n in ends))
        rows = [_row(*ends, dtype) for ends in axes]
        if not isinstance(key, tuple):
            return rows[0]
        if name == "ogrid":
            return tuple(meshgrid(*rows, sparse=True, indexing="ij"))
        for ends in axes:
            if not _is_count(ends[2]):
                require_forwards(*ends)
        return stack(meshgrid(*rows, indexing="ij"))

    return index


for _name in ("mgrid", "ogrid"):
    implements(getattr(np, _name))(_grid(_name))
for _name, _axis, _place in (("r_", 0, atleast_1d), ("c_", -1, lambda x: reshaped(x, (x.aval.size, 1)) if x.ndim < 2 else x)):
    implements(getattr(np, _name))(_make_index_joiner(_name, _axis, _place))


@implements(np.ix_)
def ix_(*args: Any) -> tuple[TracedArray, ...]:
    arrays = [fresh(integers(a)) if isinstance(a, (list, tuple)) and not a else as_array(a) for a in args]
    if any(x.ndim != 1 for x in arrays):
        raise ValueError("Cross index must be 1 dimensional")
    arrays = [flatnonzero(x) if x.dtype == BOOL else x for x in arrays]
    return tuple(reshaped(x, [x.aval.size if n == k else 1 for k in range(len(arrays))]) for n, x in enumerate(arrays))


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Quotients and remainders by the sizes."""
    sizes, order = as_shape(shape), "C" if order is None else named_order(order)
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    rest = result_of(checked_index(integers(indices), prod(sizes)))
    places = []
    for n in reversed(sizes) if order == "C" else sizes:
        places.append(rest % of_size(n))
        rest = rest // of_size(n)
    found = places[::-1] if order == "C" else places
    if len(found) < 2 or type(rest) is not TracedArray:
        return tuple(found)
    return beside_each_other([value_of(p) for p in found], kept_rest(as_array(indices), ()))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Any:
    if mode != "raise" or order != "C":
        not_compiled("ravel_multi_index", f"with mode={mode!r}, order={order!r}", "Compute it by hand: i * columns + j.")
    result: Any = 0
    for index, size in zip(multi_index, as_shape(dims), strict=True):
        result = result * of_size(size) + result_of(checked_index(integers(index), size))
    return result


def _indices_from(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Of the shape alone, which is known."""
    return lambda arr, k=0: tuple(map(as_array, plain(arr.shape[-2], k, arr.shape[-1])))


implements(np.tril_indices_from)(_indices_from(np.tril_indices))
implements(np.triu_indices_from)(_indices_from(np.triu_indices))


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[TracedArray, ...]:
    if arr.ndim < 2 or len(set(arr.sizes)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    places = arange(arr.shape[0])
    return tuple(places for _ in arr.shape)
