"""What conditions pick out, with a size that data decide: `nonzero` and its kin, `compress`, `extract`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import I64
from jitml.numpy.arrays.masks import flat, true_count, true_places
from jitml.numpy.reductions.reductions import finish_picked
from jitml.numpy.support.arguments import constant, no_truth, one_axis, reshape_value, value_of, with_axis
from jitml.numpy.support.memory_order import beside_each_other, put_in_order
from jitml.numpy.ufuncs.loops import truth
from jitml.trace.symbolic.broadcasting import require_sizes
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.values.boxing import TracedArray, fresh
from jitml.trace.values.registry import implements


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[TracedArray, ...]:
    x = value_of(a)
    if x.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    places = true_places(truth(x))
    return beside_each_other(places) if len(places) > 1 else tuple(map(fresh, places))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> TracedArray:
    return fresh(true_places(flat(truth(value_of(a))))[0])


@implements(np.argwhere)
def argwhere(a: Any) -> TracedArray:
    mask = truth(value_of(a))
    if mask.ndim == 0:
        return fresh(ops.full(value=0, shape=(true_count(reshape_value(mask, (1,))), 0), dtype=I64))
    places = true_places(mask)
    result = fresh(ops.concat(*(reshape_value(p, (*p.shape, 1)) for p in places), axis=1))
    put_in_order(result, (1, 0))
    return result


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    x, mask = value_of(a), truth(value_of(condition))
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        x, axis = flat(x), 0
    x = with_axis(x, no_truth(axis))
    along = one_axis(axis, x.ndim)
    x, mask = _of_one_length(x, mask, along)
    return finish_picked(compressed(x, mask, along), out)


@implements(np.ndarray.compress)
def _compress(a: Any, condition: Any, axis: int | None = None, out: Any = None) -> Any:
    return compress(condition, a, axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> TracedArray:
    return fresh(compressed(*_of_one_length(flat(value_of(arr)), flat(truth(value_of(condition))), 0), 0))


def compressed(x: Value, mask: Value, axis: int) -> Value:
    """x where a mask of one axis is true: of known size if the mask is."""
    known = constant_of(mask)
    if known is not None:
        return ops.gather(x, constant(np.flatnonzero(known)), axis=axis)
    return ops.compress(x, mask, axis=axis, size=true_count(mask))


def _of_one_length(x: Value, mask: Value, axis: int) -> tuple[Value, Value]:
    """A shorter condition leaves the rest of the axis out; a longer one must not be true beyond it."""
    size, given = x.shape[axis], mask.shape[0]
    if type(size) is not int or type(given) is not int:
        return x, require_sizes(mask, (size,))
    if given < size:
        x = ops.slice(x, start=(0,) * x.ndim, stop=_with(x.shape, axis, given), step=(1,) * x.ndim)
    elif given > size:
        beyond = ops.slice(mask, start=(size,), stop=(given,), step=(1,))
        none = ops.bit_not(ops.reduce_any(beyond, axes=(0,)))
        message = f"index {{}} is out of bounds for axis {axis} with size {size}"
        first = ops.argmax(beyond, axis=0) + size
        mask = ops.slice(ops.check(mask, none, first, error="IndexError", message=message), start=(0,), stop=(size,), step=(1,))
    return x, mask


def _with(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
