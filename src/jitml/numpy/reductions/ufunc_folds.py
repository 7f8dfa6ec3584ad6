"""The methods of ufuncs that no op stands for, element after element: `np.logaddexp.reduce`, `np.divide.at`.

They are loops, as they are in NumPy, which goes through an array in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.types import I64, is_inexact, normalize_axis
from jitml.numpy.arrays.indexing import Indexed, broadcast_assigned, locate
from jitml.numpy.arrays.methods import may_write
from jitml.numpy.reductions.reductions import finish, is_given
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    full,
    kind_of,
    not_compiled,
    reshape_value,
    strict_axis,
    value_of,
)
from jitml.numpy.support.versions import at_writes_what_is_read_only
from jitml.trace.regions import drivers
from jitml.trace.symbolic.sizes import span
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, fresh, read
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import call


def each(count: Any) -> Iterator[Any]:
    """The numbers 0, 1, ... as a `for` of the program would give them: one loop, if there are many."""
    driver, steps = drivers.rows(call(range, count), drivers.here())
    if driver is None:
        yield from steps
        return
    driver.enter((), {})
    for k in driver:
        driver.load()
        yield k
        driver.step({})
    driver.result()


def target(found: Indexed) -> TracedArray:
    """What `ufunc.at` writes into."""
    x = found.base
    if at_writes_what_is_read_only() and not x.writeable and len(found.indices) == x.ndim and may_write(x):
        return TracedArray(x.storage, x.steps, x.aval, x.layout, True)
    return x


def one_by_one(ufunc: np.ufunc, a: TracedArray, indices: Any, b: Any, /) -> None:
    """`ufunc.at` for any dtypes: each result is cast to a's before the next is made. Python numbers are not weak there."""
    found = locate(a, indices)
    base = target(found)
    if not found.indices:
        result = value_of(ufunc(base, as_array(b)))
        assign(base, broadcast_assigned(astype(result, a.dtype), base.sizes))
        return
    values = broadcast_assigned(value_of(b), found.shape)
    if len(found.indices) == 1 and found.axis == 0:  # row by row
        places, shape, rows = fresh(found.indices[0]), base.sizes[1:], base
    else:  # element by element, by their numbers
        numbers = ops.reshape(ops.iota(shape=(base.aval.size,), axis=0, dtype=I64), shape=base.sizes)
        places, shape = fresh(ops.gather(numbers, *found.indices, axis=found.axis)), ()
        rows = fresh(reshape_value(read(base), (base.aval.size,)))
    places = call(np.ravel, places)
    given = fresh(reshape_value(values, (places.sizes[0], *shape)))
    for k in each(of_size(places.sizes[0])):
        result = ufunc(rows[places[k]], given[k])
        rows[places[k]] = fresh(astype(value_of(result), a.dtype))
    if rows is not base:
        assign(base, reshape_value(read(rows), base.sizes))


def _moved(ufunc: np.ufunc, method: str, array: Any, axis: Any, dtype: Any) -> tuple[TracedArray, int]:
    """The array with the axis in front and in the dtype that the ufunc takes and gives."""
    x = as_array(array)
    if (axis is None or isinstance(axis, tuple)) and x.ndim != 1:
        not_compiled(f"{ufunc.__name__}.{method}", "over several axes", "Do one axis after the other.")
    along = normalize_axis(0 if axis is None or isinstance(axis, tuple) else as_int(axis), x.ndim)
    kind = kind_of(x) if dtype is None else np.dtype(dtype)
    first, second, result = ufunc.resolve_dtypes((kind, kind, None))
    if not first == second == result or not is_inexact(result):
        not_compiled(f"{ufunc.__name__}.{method}", f"of {x.dtype}", "Convert to float first.")
    return call(np.moveaxis, fresh(astype(read(x), result)), along, 0), along


def _reduce(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> Any:  # fmt: skip
    if where is not True:
        not_compiled(f"{ufunc.__name__}.reduce", "with where=", "Take the elements out before.")
    x, along = _moved(ufunc, "reduce", array, axis, dtype)
    first = 0
    if is_given(initial) or ufunc.identity is not None:
        total = fresh(full(x.sizes[1:], initial if is_given(initial) else ufunc.identity, x.dtype))
    else:
        total, first = fresh(read(x[0])), 1
    for k in each(x.shape[0] - first):
        total[...] = ufunc(total, x[k + first])
    return finish(read(total), (along,) if keepdims else None, out, x.ndim)


def _accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    x, along = _moved(ufunc, "accumulate", array, axis, dtype)
    total = fresh(read(x))
    for k in each(x.shape[0] - 1):
        total[k + 1] = ufunc(total[k], x[k + 1])
    return finish(read(call(np.moveaxis, total, 0, along)), None, out, x.ndim)


def _reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """Of places that are known: each result is the reduction of a slice."""
    x = as_array(array)
    along = strict_axis(axis, x.ndim)
    x = call(np.moveaxis, x, along, 0)
    if not isinstance(indices, (list, tuple)):
        not_compiled(f"{ufunc.__name__}.reduceat", "with an array of indices", "Give them as a list of Python integers.")
    starts = [as_int(n) for n in indices]
    size = x.sizes[0]
    if span(size)[0] <= max(starts, default=0):
        size = as_int(of_size(size))
    if any(n < 0 or (type(size) is int and n >= size) for n in starts):
        raise IndexError(f"index out-of-bounds in {ufunc.__name__}.reduceat")
    if not starts:
        not_compiled(f"{ufunc.__name__}.reduceat", "at no places", "Its result is empty.")
    parts = []
    for start, stop in zip(starts, [*starts[1:], None]):
        part = x[start:stop] if stop is None or start < stop else x[start : start + 1]
        value = read(call(ufunc.reduce, part, axis=0, dtype=dtype))
        parts.append(reshape_value(value, (1, *value.shape)))
    return finish(read(call(np.moveaxis, fresh(ops.concat(*parts, axis=0)), 0, along)), None, out, x.ndim)


def folds(ufunc: np.ufunc) -> dict[Callable[..., Any], Callable[..., Any]]:
    """The methods of a ufunc of two operands, as loops."""
    return {
        ufunc.reduce: partial(_reduce, ufunc),
        ufunc.accumulate: partial(_accumulate, ufunc),
        ufunc.reduceat: partial(_reduceat, ufunc),
        ufunc.at: partial(one_by_one, ufunc),
    }
