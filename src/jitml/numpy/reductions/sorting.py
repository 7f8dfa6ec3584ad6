"""Sorting and searching. Sorts are NumPy's of the same kind; a partition is a sort, which satisfies its contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import BOOL, I64, is_complex, is_inexact
from jitml.numpy.reductions.reductions import reduce_values
from jitml.numpy.support.arguments import (
    as_array,
    astype,
    broadcast_value,
    holds_traced,
    no_truth,
    not_compiled,
    one_axis,
    reshape_value,
    result_of,
    spread_size,
    value_of,
)
from jitml.trace.symbolic.broadcasting import insist
from jitml.trace.symbolic.sizes import value_of_size
from jitml.trace.values.boxing import TracedArray, fresh
from jitml.trace.values.registry import implements

_FEW_KEYS = 256  # whose order is looked at beforehand
_KEYS_FOR_ONE = 32  # that can be looked at in about the time in which one value is searched for


def _kind_of(kind: str | None, stable: bool | None) -> str:
    np.sort(np.empty(0), kind=kind, stable=stable)  # type: ignore[arg-type]  # NumPy's own errors
    initial = "s" if stable else (kind or "q")[0].lower()
    return {"h": "heapsort", "m": "stable", "s": "stable"}.get(initial, "quicksort")


def _sorted(op: Op, a: Any, axis: int | None, order: Any, kind: str = "quicksort") -> TracedArray:
    x = value_of(a)
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if axis is None:
        x, axis = reshape_value(x, (x.size,)), -1
    return fresh(op(x, axis=one_axis(axis, x.ndim), kind=kind))


def _ascending(name: str, descending: bool | None) -> None:
    if descending:  # an argument since NumPy 2.5
        not_compiled(name, "in descending order", "Sort, then flip the result with np.flip.")


@implements(np.sort)
def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> TracedArray:
    _ascending("sort", descending)
    return _sorted(ops.sort, a, axis, order, _kind_of(kind, stable))


@implements(np.argsort)
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> TracedArray:
    _ascending("argsort", descending)
    if np.ndim(a) == 0 and no_truth(axis) in (0, -1):
        return fresh(ops.full(value=0, shape=(1,), dtype=I64))
    return _sorted(ops.argsort, a, no_truth(axis), order, _kind_of(kind, stable))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> TracedArray:
    return _sorted(ops.sort, _parted(a, kth, axis, kind), axis, order)


def _parted(a: Any, kth: Any, axis: int | None, kind: str) -> Value:
    """What is to be sorted, where there is a place `kth`."""
    x = value_of(a)
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    size = x.size if axis is None else x.shape[one_axis(axis, x.ndim)]
    places = np.asarray(kth if not holds_traced(kth) else [], None if not holds_traced(kth) else I64)
    if value_of(kth).dtype == BOOL:
        raise ValueError("Booleans unacceptable as partition index")
    if places.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if holds_traced(kth) or isinstance(size, Dim) or isinstance(x.size, Dim):
        _require_places(value_of(kth), size, x.size)
    elif x.size:  # of nothing there is nothing to do
        wrapped = np.ravel(np.where(places < 0, places + size, places))
        beyond = wrapped[(wrapped < 0) | (wrapped >= size)]
        if beyond.size:
            raise ValueError(f"kth(={beyond[0]}) out of bounds ({size})")
    return x


def _require_places(kth: Value, size: Size, total: Size) -> None:
    """The same of places, or of a size, that only the running program knows."""
    given = astype(reshape_value(kth, (kth.size,)), I64)
    extent, shape = value_of_size(size), given.shape
    wrapped = ops.select(ops.lt(given, 0), ops.add(given, broadcast_value(extent, shape)), given)
    is_beyond = ops.bit_or(ops.lt(wrapped, 0), ops.ge(wrapped, broadcast_value(extent, shape)))
    first = ops.gather(wrapped, ops.argmax(is_beyond, axis=0), axis=0)
    is_there = ops.bit_not(ops.reduce_any(is_beyond, axes=(0,)))
    insist(ops.bit_or(is_there, ops.eq(value_of_size(total), 0)), first, extent, message="kth(={}) out of bounds ({})")


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> TracedArray:
    return _sorted(ops.argsort, _parted(a, kth, axis, kind), axis, order, kind)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> TracedArray:
    """Stable sorts by each key in turn, the last one deciding."""
    columns = [value_of(k) for k in (keys if isinstance(keys, (list, tuple)) else list(iter(as_array(keys))))]
    if columns[0].ndim != 1:
        not_compiled("lexsort", "of keys with several axes", "Sort one row after the other.")
    order = ops.argsort(columns[0], axis=0, kind="stable")
    for column in columns[1:]:
        order = ops.gather(order, ops.argsort(ops.gather(column, order, axis=0), axis=0, kind="stable"), axis=0)
    return fresh(order)


def _of_one_dtype(a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands that NumPy makes arrays of before it compares them: Python numbers are strong."""
    x, y = value_of(a), value_of(b)
    dtype = np.result_type(x.dtype, y.dtype)
    return astype(x, dtype), astype(y, dtype)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Binary search, all at once: each step halves every element's interval. NaN counts as the largest."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if np.ndim(a) != 1:
        raise ValueError("object of too small depth for desired array")
    keys, wanted = _of_one_dtype(a, v)
    if sorter is not None:
        keys = ops.gather(keys, value_of(sorter), axis=0)
    if wanted.aval.size == 1:
        return result_of(_bisect(keys, wanted, side))
    found = search(keys, wanted, side)
    if is_inexact(keys.dtype) and bound(keys.shape[0]) > 1 and _is_order_cheap(keys.shape[0], wanted.aval.size):
        # Keys with NaN among them are in no order: then the answer depends on the way of the search, and NumPy gives it.
        ok = _in_order(*_pairs(keys))
        found = ops.check(found, ok, error="ValueError", message="the keys of searchsorted are in no order")
    return result_of(found)


def _is_order_cheap(count: Size, wanted: Size) -> bool:
    """Whether looking at all keys takes no longer, or not much, than to search for all that is wanted; if unknown, it is so."""
    if isinstance(wanted, Dim):
        return isinstance(count, Dim) or count <= _FEW_KEYS
    return isinstance(count, Dim) or count <= max(_FEW_KEYS, _KEYS_FOR_ONE * wanted)


def _bisect(keys: Value, wanted: Value, side: str) -> Value:
    """Where one value goes, by the very steps that NumPy takes: among keys in no order, too."""
    size = keys.shape[0]
    low = ops.full(value=0, shape=wanted.shape, dtype=I64)
    if bound(size) == 0:
        return low
    high = count = spread_size(size, wanted.shape)
    if isinstance(size, Dim):  # there may be no key
        keys = ops.concat(keys, ops.full(value=0, shape=(1,), dtype=keys.dtype), axis=0)
    for _ in range(bound(size).bit_length()):
        middle = low + ops.shift_right(ops.sub(high, low), 1)
        is_open = ops.lt(low, high)
        key = ops.gather(keys, ops.maximum(ops.minimum(middle, count - 1), 0), axis=0)
        before = _stands_before(key, wanted, side)
        low, high = (
            ops.select(ops.bit_and(is_open, before), middle + 1, low),
            ops.select(ops.bit_and(is_open, ops.bit_not(before)), middle, high),
        )
    return low


def search(keys: Value, wanted: Value, side: str) -> Value:
    """Where each wanted value goes among sorted keys: the number of keys that stand before it."""
    size = keys.shape[0]
    found = ops.full(value=0, shape=wanted.shape, dtype=I64)
    if size == 0:
        return found
    if isinstance(size, Dim):
        # There may be no key. One more, which is never inside, can be looked at.
        keys = ops.concat(keys, ops.full(value=0, shape=(1,), dtype=keys.dtype), axis=0)
    count = spread_size(size, wanted.shape)
    step = 1 << (bound(size).bit_length() - 1)
    while step:
        # Keys before `found` stand before the wanted value; try `step` more of them.
        trial = found + step
        inside = ops.le(trial, count)
        key = ops.gather(keys, ops.minimum(trial, count + 1 if isinstance(size, Dim) else count) - 1, axis=0)
        found = ops.select(ops.bit_and(inside, _stands_before(key, wanted, side)), trial, found)
        step //= 2
    return found


def _stands_before(key: Value, wanted: Value, side: str) -> Value:
    if side == "left":
        before = ops.lt(key, wanted)
        return (
            ops.bit_or(before, ops.bit_and(ops.isnan(wanted), ops.bit_not(ops.isnan(key)))) if is_inexact(key.dtype) else before
        )
    before = ops.le(key, wanted)
    return ops.bit_or(before, ops.isnan(wanted)) if is_inexact(key.dtype) else before


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """A search among the edges, which may rise or fall; which of the two is seen at run time."""
    edges, wanted = _of_one_dtype(bins, x)
    if is_complex(value_of(x).dtype):
        raise TypeError("x may not be complex")
    side = "left" if right else "right"
    count = edges.shape[0]
    if not isinstance(count, Dim) and count < 2:
        return result_of(search(edges, wanted, side))
    before, after = _pairs(edges)
    rises, falls = ops.reduce_any(ops.lt(before, after), axes=(0,)), ops.reduce_any(ops.gt(before, after), axes=(0,))
    rising, falling = _in_order(before, after), _in_order(after, before)
    # The first two that are not equal tell, of which one may be NaN.
    last = ops.eq(ops.iota(shape=(count,), axis=0, dtype=I64), spread_size(count - 1, (count,)))
    differ = ops.reduce_any(ops.bit_and(ops.ne(before, after), ops.bit_not(last)), axes=(0,))
    is_falling = ops.bit_and(differ, ops.bit_not(rises))
    # Edges with NaN among them are in no order: then the answer depends on the way of the search, and NumPy gives it.
    ok = ops.select(is_falling, falling, ops.bit_and(ops.bit_not(falls), rising))
    turned = ops.broadcast(is_falling, shape=(count,), axes=())
    found = search(ops.select(turned, ops.flip(edges, axes=(0,)), edges), wanted, side)
    whole = spread_size(count, found.shape)
    result = ops.select(ops.broadcast(is_falling, shape=found.shape, axes=()), ops.sub(whole, found), found)
    return result_of(ops.check(result, ok, error="ValueError", message="bins must be monotonically increasing or decreasing"))


def _pairs(keys: Value) -> tuple[Value, Value]:
    """Each key and the next one; of the last one that itself."""
    count = keys.shape[0]
    place = ops.iota(shape=(count,), axis=0, dtype=I64)
    return keys, ops.gather(keys, ops.minimum(place + 1, spread_size(count - 1, (count,))), axis=0)


def _in_order(first: Value, second: Value) -> Value:
    """Whether the first of each pair is not behind the second, where NaN is the largest."""
    ordered = ops.le(first, second)
    if is_inexact(first.dtype):
        ordered = ops.bit_or(ordered, ops.isnan(second))
    return ops.reduce_all(ordered, axes=(0,))


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    """Every element against every test element; a binary search in the sorted ones where there are many."""
    x, y = _of_one_dtype(element, test_elements)
    y = reshape_value(y, (y.size,))
    if bound(y.size) > 16 or isinstance(y.size, Dim):
        keys = ops.sort(y, axis=0, kind="quicksort")
        # Equal where some keys stand before and not all of those that may: the two searches differ.
        found = ops.lt(search(keys, x, "left"), search(keys, x, "right"))
        found = ops.bit_and(found, ops.eq(x, x)) if is_inexact(x.dtype) else found
    else:
        shape = (*x.shape, y.size)
        pairs = ops.eq(ops.broadcast(x, shape=shape, axes=tuple(range(x.ndim))), broadcast_value(y, shape))
        found = reduce_values(ops.reduce_any, pairs, (x.ndim,)) if y.size else ops.full(value=False, shape=x.shape, dtype=BOOL)
    return fresh(ops.bit_not(found) if invert else found)
