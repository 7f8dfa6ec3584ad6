"""Elements in C order, whatever the memory: `x.flat`, and the functions that write by flat position or by mask.

`window(x)` is x as one axis: a view of the values, although memory need not allow it. What is written repeats as often as needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partialmethod
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import I64, Aval
from jitml.numpy.arrays.indexing import getitem, locate, setitem, value_for
from jitml.numpy.support.arguments import (
    astype,
    broadcast_value,
    index_in_mode,
    integers,
    not_compiled,
    one_element,
    reshape_value,
    spread_size,
    value_of,
)
from jitml.numpy.ufuncs.loops import truth
from jitml.trace.record.recording import active_trace
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.strides import c_strides
from jitml.trace.symbolic.broadcasting import insist_at_least, never_equal, require_sizes
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, fresh, read
from jitml.trace.values.registry import call, implements


def window(x: TracedArray) -> TracedArray:
    """All elements of x in C order; writes reach x."""
    aval = Aval((x.aval.size,), x.dtype)
    step = Step(ops.reshape, {"shape": aval.shape}, x.aval)
    return TracedArray(x.storage, (*x.steps, step), aval, c_strides(aval.shape), x.writeable)


def repeated(values: Value, count: int) -> Value:
    """The first `count` of the values in C order, again and again."""
    size = values.aval.size
    line = reshape_value(values, (size,))
    if size == 1:
        return broadcast_value(line, (count,))
    if not isinstance(size, Dim) and not isinstance(count, Dim) and size >= count:
        return line if size == count else ops.slice(line, start=(0,), stop=(count,), step=(1,))
    places = ops.iota(shape=(count,), axis=0, dtype=I64)
    return ops.gather(line, ops.remainder(places, spread_size(size, places.shape)), axis=0)


def _is_empty(values: Value) -> bool:
    """Whether there are no values; if that is not known, there are claimed to be some."""
    insist_at_least(values.aval.size, 1)
    return type(values.aval.size) is int and values.aval.size == 0


class TracedFlat:
    """`x.flat`. `isinstance(x.flat, np.flatiter)` holds."""

    __slots__ = ("base", "line", "taken")

    def __init__(self, base: TracedArray) -> None:
        self.base = base
        self.taken = 0  # elements that have been handed out
        self.line = window(base)

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return np.flatiter

    def __len__(self) -> int:
        return len(self.line)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.taken >= len(self.line):
            raise StopIteration
        self.taken += 1
        return self.line[self.taken - 1]

    def __getitem__(self, index: Any) -> Any:
        found = getitem(self.line, index)
        return found.copy() if type(found) is TracedArray else found

    def __setitem__(self, index: Any, value: Any) -> None:
        new = value_for(value, self.line)
        found = locate(self.line, index)
        if found.is_scalar:
            new = one_element(new, "Error setting single item of array.")
        (count,) = found.shape or (1,)
        if _is_empty(new):
            if count:
                raise ValueError("Cannot set an empty sequence to a flat iterator")
            return
        setitem(self.line, index, fresh(reshape_value(repeated(new, count), found.shape)))

    def copy(self) -> TracedArray:
        return self.base.flatten()

    def as_array(self) -> TracedArray:
        """What NumPy takes it for, even where it is asked for a copy: contiguous memory itself, else a copy that is read-only."""
        line: TracedArray = call(np.ravel, self.base)
        is_view = line.storage is self.base.storage
        return line if is_view else TracedArray(line.storage, line.steps, line.aval, line.layout, False)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [x.line if type(x) is TracedFlat else x for x in inputs]
        return call(ufunc if method == "__call__" else getattr(ufunc, method), *given, **kwargs)

    def _compared(self, other: Any, ufunc: np.ufunc) -> Any:
        return call(ufunc, self.line, other)

    __lt__ = partialmethod(_compared, ufunc=np.less)
    __le__ = partialmethod(_compared, ufunc=np.less_equal)
    __gt__ = partialmethod(_compared, ufunc=np.greater)
    __ge__ = partialmethod(_compared, ufunc=np.greater_equal)
    __eq__ = partialmethod(_compared, ufunc=np.equal)  # arrays of truth values
    __ne__ = partialmethod(_compared, ufunc=np.not_equal)
    __hash__ = None  # type: ignore[assignment]  # as of an array


@implements(np.ndarray.flat)
def flat(x: TracedArray) -> TracedFlat:
    """x.flat"""
    made = TracedFlat(x)
    active_trace().outside.own[id(made)] = made
    return made


@implements(np.put)
def put(a: TracedArray, ind: Any, v: Any, mode: str = "raise") -> None:
    """Flat assignment; values repeat as often as needed."""
    index = astype(integers(ind, cut=True), I64)
    index = reshape_value(index, (index.aval.size,))
    index = index_in_mode(index, a.aval.size, mode)
    new = value_for(v, a)
    if (isinstance(index.aval.size, Dim) or index.aval.size) and not _is_empty(new):
        setitem(window(a), fresh(index), fresh(repeated(new, index.aval.size)))


def _mask_of(a: TracedArray, mask: Any, name: str) -> Value:
    """A mask of as many elements as the array, in the array's shape."""
    where = truth(value_of(mask))
    message = f"{name}: mask and data must be the same size"
    if never_equal(where.aval.size, a.aval.size):
        raise ValueError(message)
    line = require_sizes(reshape_value(where, (where.aval.size,)), (a.aval.size,), message)
    return reshape_value(line, a.aval.shape)


@implements(np.putmask)
def putmask(a: TracedArray, mask: Any, values: Any) -> None:
    """Where the mask is true, what stands at the same flat position of the repeated values."""
    where = _mask_of(a, mask, "putmask")
    new = value_for(values, a)
    if _is_empty(new):
        return
    filled = reshape_value(repeated(new, a.aval.size), a.aval.shape)
    assign(a, ops.select(where, filled, read(a)))


@implements(np.place)
def place(arr: TracedArray, mask: Any, vals: Any) -> None:
    """The first values go to the first places where the mask is true."""
    where = _mask_of(arr, mask, "place")
    new = value_for(vals, arr)
    if _is_empty(new):
        not_compiled("place", "with no values", "It fails where the mask is true.")
    line = reshape_value(where, (arr.aval.size,))
    nth = ops.sub(ops.cumsum(ops.convert(line, dtype=I64), axis=0, reverse=False), 1)
    which = ops.remainder(nth, spread_size(new.aval.size, nth.shape))
    chosen = ops.gather(reshape_value(new, (new.aval.size,)), ops.maximum(which, 0), axis=0)
    assign(arr, ops.select(where, reshape_value(chosen, arr.aval.shape), read(arr)))


@implements(np.fill_diagonal)
def fill_diagonal(a: TracedArray, val: Any, wrap: bool = False) -> None:
    """Every so many elements in a row, as NumPy does it; one number into a matrix without looking for its place."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim == 2:
        step = a.aval.shape[1] + 1
        end = None if wrap else a.aval.shape[1] * a.aval.shape[1]
    else:
        if len(set(a.aval.shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        step, end = 1 + sum(c_strides(a.aval.shape)[:-1]), None
    if a.ndim > 2 or wrap or np.ndim(val):
        TracedFlat(a)[:end:step] = val
        return
    rows, columns = (ops.iota(shape=a.aval.shape, axis=n, dtype=I64) for n in (0, 1))
    assign(a, ops.select(ops.eq(rows, columns), broadcast_value(value_for(val, a), a.aval.shape), read(a)))
