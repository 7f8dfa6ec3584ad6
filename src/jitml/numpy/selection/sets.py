"""Arrays as sets, `unique` first of all, and counts by value: `bincount`, `histogram`. Their sizes are data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F64, I64, is_float, is_inexact, is_integer
from jitml.numpy.arrays.masks import flat, true_count
from jitml.numpy.arrays.reshaping import as_length
from jitml.numpy.building.ranges import linspace
from jitml.numpy.reductions.sorting import isin, search
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    common_dtype,
    full,
    no_truth,
    not_compiled,
    one_axis,
    promoted,
    require_no_objects,
    reshape_value,
    spread_size,
    value_of,
)
from jitml.numpy.ufuncs.loops import truth
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.broadcasting import insist, require_sizes
from jitml.trace.symbolic.sizes import larger, number, value_of_size
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, read, scalar
from jitml.trace.values.registry import implements


class _Groups(NamedTuple):
    """A sorted line and where runs of equal elements begin in it."""

    line: Value
    first: Value  # bool
    order: Value | None  # where each element comes from

    @property
    def size(self) -> Size:
        return true_count(self.first)

    def pick(self, x: Value) -> Value:
        """What belongs to the first of each run."""
        return ops.compress(x, self.first, axis=0, size=self.size)

    @property
    def number(self) -> Value:
        """The number of its run, for each sorted element."""
        return ops.cumsum(astype(self.first, I64), axis=0, reverse=False) - 1


def _group_equal(x: Value, *, places: bool, equal_nan: bool = True) -> _Groups:
    order = ops.argsort(x, axis=0, kind="stable") if places else None
    line = ops.sort(x, axis=0, kind="quicksort") if order is None else ops.gather(x, order, axis=0)
    (length,) = line.shape
    if isinstance(length, Dim) or length == 0:
        index = ops.iota(shape=line.shape, axis=0, dtype=I64)
        before = ops.gather(line, ops.maximum(index - 1, 0), axis=0)
        return _Groups(line, ops.bit_or(ops.eq(index, 0), _differs(line, before, equal_nan)), order)
    after, before = (ops.slice(line, start=(k,), stop=(length - 1 + k,), step=(1,)) for k in (1, 0))
    return _Groups(line, ops.concat(full((1,), True, BOOL), _differs(after, before, equal_nan), axis=0), order)


def _differs(x: Value, y: Value, equal_nan: bool) -> Value:
    differs = ops.ne(x, y)
    if not (is_inexact(x.dtype) and equal_nan):
        return differs
    return ops.bit_and(differs, ops.bit_not(ops.bit_and(ops.isnan(x), ops.isnan(y))))


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    x = value_of(ar)
    if axis is not None and (one_axis(axis, x.ndim), x.ndim) != (0, 1):
        not_compiled("unique", "with an axis", "Number the rows, for instance by np.lexsort, or do it outside.")
    groups = _group_equal(flat(x), places=return_index or return_inverse, equal_nan=equal_nan)
    results = [fresh(groups.pick(groups.line))]
    if return_index:
        assert groups.order is not None
        results.append(fresh(groups.pick(groups.order)))
    if return_inverse:
        results.append(fresh(_inverse(groups, x)))
    if return_counts:
        results.append(fresh(_counts(groups)))
    return results[0] if len(results) == 1 else tuple(results)


def _inverse(groups: _Groups, x: Value) -> Value:
    """For each element of x the number of its run."""
    assert groups.order is not None
    zeros = full(groups.line.shape, 0, I64)
    return reshape_value(ops.scatter(zeros, groups.number, groups.order, axis=0, combine="set"), x.shape)


def _counts(groups: _Groups) -> Value:
    """How long each run is: the next one begins behind it, and the line ends behind the last one."""
    (length,) = groups.line.shape
    begin = groups.pick(ops.iota(shape=groups.line.shape, axis=0, dtype=I64))
    index = ops.iota(shape=begin.shape, axis=0, dtype=I64)
    last = spread_size(groups.size, begin.shape, I64) - 1
    following = ops.gather(begin, ops.minimum(index + 1, last), axis=0)
    return ops.select(ops.eq(index, last), spread_size(length, begin.shape, I64), following) - begin


def _zeros(size: Any, dtype: np.dtype[Any]) -> Value:
    return full((size,), 0, dtype)


def _unique_named(name: str, *fields: str) -> None:
    """The Array API's forms, which return a named tuple, of NaN that all differ."""
    if not hasattr(np, name):
        return
    options = {f"return_{field}": True for field in fields}

    def function(x: Any, /) -> Any:
        result = unique(x, **options, equal_nan=False)
        if not fields:
            return result
        kinds = np.unique_all(np.empty(0)) if len(fields) == 3 else getattr(np, name)(np.empty(0))
        return type(kinds)(*result)

    implements(getattr(np, name))(function)


_unique_named("unique_values")
_unique_named("unique_counts", "counts")
_unique_named("unique_inverse", "inverse")
_unique_named("unique_all", "index", "inverse", "counts")


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """Unlike its kin it joins what it is given, so that Python's numbers are weak, and wrap."""
    dtype = common_dtype(ar1, ar2)
    return unique(fresh(ops.concat(*(flat(astype(value_of(x), dtype)) for x in (ar1, ar2)), axis=0)))


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Values that stand twice among the unique ones of both."""
    if return_indices:
        not_compiled("intersect1d", "with return_indices", "np.searchsorted finds the places afterwards.")
    parts = [x if assume_unique else value_of(unique(fresh(x))) for x in map(flat, promoted(ar1, ar2))]
    line = ops.sort(ops.concat(*parts, axis=0), axis=0, kind="quicksort")
    index = ops.iota(shape=line.shape, axis=0, dtype=I64)
    again = ops.bit_and(ops.gt(index, 0), ops.eq(line, ops.gather(line, ops.maximum(index - 1, 0), axis=0)))
    # The second of each pair; the value is the same.
    return fresh(ops.compress(line, again, axis=0, size=true_count(again)))


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x = flat(value_of(ar1)) if assume_unique else value_of(unique(ar1))
    y = value_of(ar2) if assume_unique else value_of(unique(ar2))
    kept = value_of(isin(fresh(x), fresh(y), invert=True))
    return fresh(ops.compress(x, kept, axis=0, size=true_count(kept)))


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Values without an equal neighbour among the unique ones of both."""
    parts = [x if assume_unique else value_of(unique(fresh(x))) for x in map(flat, promoted(ar1, ar2))]
    line = ops.sort(ops.concat(*parts, axis=0), axis=0, kind="quicksort")
    index = ops.iota(shape=line.shape, axis=0, dtype=I64)
    last = spread_size(line.shape[0], line.shape) - 1
    before, after = (ops.gather(line, i, axis=0) for i in (ops.maximum(index - 1, 0), ops.minimum(index + 1, last)))
    alone = ops.bit_and(ops.bit_or(ops.eq(index, 0), ops.ne(line, before)), ops.bit_or(ops.eq(index, last), ops.ne(line, after)))
    return fresh(ops.compress(line, alone, axis=0, size=true_count(alone)))


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """A view between the first and the last element that is not 0."""
    if not isinstance(filt, (TracedArray, np.ndarray)) or filt.ndim != 1 or not set(trim.lower()) <= {"f", "b"}:
        not_compiled("trim_zeros", "is compiled for arrays of one axis", "np.nonzero finds the places.")
    x: Any = fresh(value_of(filt)) if isinstance(filt, np.ndarray) and not isinstance(filt, TracedArray) else filt
    mask = truth(read(x))
    size = x.sizes[0]
    index = ops.iota(shape=(size,), axis=0, dtype=I64)
    nowhere = spread_size(size, (size,))
    if size == 0:
        return x[:]
    first = _least(ops.select(mask, index, nowhere), size)
    end = _greatest(ops.select(mask, index + 1, full((size,), 0, I64)), size)
    trace = active_trace()
    # Of zeros alone NumPy keeps nothing: both ends meet where the search from the front ended.
    start = trace.bind(first, 0, size) if "f" in trim.lower() else 0
    stop = trace.bind(ops.maximum(end, first) if "f" in trim.lower() else end, 0, size) if "b" in trim.lower() else size
    return x[TracedNumber.of_size(trace, None, start) : TracedNumber.of_size(trace, None, stop)]


def _least(x: Value, size: Any) -> Value:
    return _within(ops.reduce_min(ops.concat(x, spread_size(size, (1,)), axis=0), axes=(0,)), size)


def _greatest(x: Value, size: Any) -> Value:
    return _within(ops.reduce_max(ops.concat(x, full((1,), 0, I64), axis=0), axes=(0,)), size)


def _within(place: Value, size: Any) -> Value:
    """A place between 0 and a size, so that layers below see that it is: they do not know of what it is the least."""
    return ops.minimum(ops.maximum(place, number(0)), value_of_size(size))


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> TracedArray:
    places = value_of(x)
    if places.ndim != 1:
        raise ValueError(
            "object of too small depth for desired array" if not places.ndim else "object too deep for desired array"
        )
    if not is_integer(places.dtype) and places.dtype != BOOL:
        raise TypeError(f"Cannot cast array data from {places.dtype!r} to dtype('int64') according to the rule 'safe'")
    least = as_int(no_truth(minlength))
    if least < 0:
        raise ValueError("'minlength' must not be negative")
    is_negative = places.dtype.kind == "i"
    places = astype(places, I64)
    has_elements = places.aval.is_static and places.aval.size > 0

    def with_one(x: Value, least: int) -> Value:  # more, where there may be nothing else
        return x if has_elements else ops.concat(x, full((1,), least, I64), axis=0)

    if is_negative:
        lowest = ops.reduce_min(with_one(places, 0), axes=(0,))
        insist(ops.ge(lowest, 0), message="'list' argument must have no negative elements")
    longest = ops.reduce_max(with_one(places, -1), axes=(0,)) + 1
    length = larger(as_length(scalar(longest)), least)
    if weights is None:
        return fresh(ops.scatter(_zeros(length, I64), full(places.shape, 1, I64), places, axis=0, combine="add"))
    amounts = value_of(weights, F64)
    if amounts.ndim != 1:
        raise ValueError("object too deep for desired array")
    amounts = require_sizes(amounts, places.shape, "The weights and list don't have the same length.")
    if places.aval.is_static and not has_elements:  # NumPy counts then, and has not looked at the weights
        return fresh(_zeros(length, I64))
    return fresh(ops.scatter(_zeros(length, F64), amounts, places, axis=0, combine="add"))


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> TracedArray:
    return fresh(_edges(flat(value_of(a)), bins, range))


def _edges(x: Value, bins: Any, given: Any) -> Value:
    if isinstance(bins, str):
        not_compiled("histogram", "with bins chosen by a rule", "Give their number or their edges.")
    if np.ndim(bins):
        return value_of(bins)
    count = as_int(bins)
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    low, high = _outer_edges(x, given)
    return value_of(linspace(scalar(low), scalar(high), count + 1, dtype=x.dtype if is_float(x.dtype) else F64))


def _outer_edges(x: Value, given: Any) -> tuple[Value, Value]:
    """The least and the greatest edge: given, or of the data; 0 and 1 where there are none, half a step around a single value."""
    if given is not None:
        require_no_objects(*given)
        low, high = (value_of(v, F64) for v in given)
        finite = ops.bit_and(ops.isfinite(low), ops.isfinite(high))
        insist(finite, message="supplied range is not finite")
        insist(ops.le(low, high), message="max must be larger than min in range parameter.")
    else:
        at = x if is_float(x.dtype) else astype(x, F64)
        empty = ops.eq(value_of_size(x.shape[0]), number(0))
        low = ops.reduce_min(ops.concat(at, full((1,), float("inf"), at.dtype), axis=0), axes=(0,))
        high = ops.reduce_max(ops.concat(at, full((1,), float("-inf"), at.dtype), axis=0), axes=(0,))
        low, high = ops.select(empty, full((), 0, at.dtype), low), ops.select(empty, full((), 1, at.dtype), high)
        finite = ops.bit_and(ops.isfinite(low), ops.isfinite(high))
        insist(finite, message="autodetected range is not finite")
    half = ops.select(ops.eq(low, high), full((), 0.5, low.dtype), full((), 0, low.dtype))
    return ops.sub(low, half), ops.add(high, half)


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Counts between edges. Even bins are found by a division, and corrected by the edges themselves, as NumPy does."""
    x = flat(value_of(a))
    if x.dtype == BOOL:
        not_compiled("histogram", "of truth values", "Convert them with .astype(np.uint8), as NumPy does with a warning.")
    amounts = None
    if weights is not None:
        amounts = require_sizes(flat(value_of(weights)), x.shape, "weights should have the same shape as a.")
    edges = _edges(x, bins, range)
    count = edges.shape[0] - 1
    index, inside = _even_bins(x, edges, count) if not np.ndim(bins) else _bins(x, edges, count)
    dtype = I64 if amounts is None else amounts.dtype
    each = full(x.shape, 1, I64) if amounts is None else amounts
    each = ops.select(inside, each, full(x.shape, 0, dtype))
    result: Any = fresh(ops.scatter(full((count,), 0, dtype), each, index, axis=0, combine="add"))
    borders: Any = as_array(bins) if np.ndim(bins) else fresh(edges)
    if density:
        result = result / (borders[1:] - borders[:-1]) / result.sum()
    return result, borders


def _even_bins(x: Value, edges: Value, count: int) -> tuple[Value, Value]:
    dtype = edges.dtype if is_float(edges.dtype) else F64
    at, edges = astype(x, dtype), astype(edges, dtype)
    first, last = (
        ops.broadcast(reshape_value(ops.slice(edges, start=(n,), stop=(n + 1,), step=(1,)), ()), shape=x.shape, axes=())
        for n in (0, count)
    )
    inside = ops.bit_and(ops.ge(at, first), ops.le(at, last))
    place = ops.div(ops.sub(at, first), ops.sub(last, first)) * float(count)
    index = astype(ops.select(inside, place, full(x.shape, 0, dtype)), I64)
    index = ops.minimum(ops.maximum(index, 0), count - 1)
    index = index - astype(ops.lt(at, ops.gather(edges, index, axis=0)), I64)
    index = ops.maximum(index, 0)
    beyond = ops.bit_and(ops.ge(at, ops.gather(edges, index + 1, axis=0)), ops.ne(index, count - 1))
    return index + astype(beyond, I64), inside


def _bins(x: Value, edges: Value, count: int) -> tuple[Value, Value]:
    """Bins of any width: a search among the edges; the last bin holds its upper edge too."""
    dtype = np.result_type(x.dtype, edges.dtype)
    at, edges = astype(x, dtype), astype(edges, dtype)
    left, right = (ops.slice(edges, start=(n,), stop=(n + count,), step=(1,)) for n in (0, 1))
    rises = ops.reduce_all(ops.le(left, right), axes=(0,))
    insist(rises, message="`bins` must increase monotonically, when an array")
    index = search(edges, at, "right") - 1
    last = ops.broadcast(
        reshape_value(ops.slice(edges, start=(count,), stop=(count + 1,), step=(1,)), ()), shape=x.shape, axes=()
    )
    index = ops.select(ops.eq(at, last), full(x.shape, count - 1, I64), index)
    inside = ops.bit_and(ops.ge(index, 0), ops.lt(index, count))
    return ops.minimum(ops.maximum(index, 0), count - 1), inside
