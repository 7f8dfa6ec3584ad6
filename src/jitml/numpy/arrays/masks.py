"""What a boolean mask picks out of an array.

How much that is, is data. It is counted, the count becomes a size of the graph, and `ops.compress` gathers that many elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitml.ir import ops
from jitml.ir.dims import Size, limits
from jitml.ir.graph import Value
from jitml.ir.types import I64
from jitml.numpy.support.arguments import astype, reshape_value
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.broadcasting import require_sizes
from jitml.trace.symbolic.sizes import once


def flat(x: Value, axes: int | None = None) -> Value:
    """x with its first `axes` axes as one; default: all."""
    count = x.ndim if axes is None else axes
    return reshape_value(x, (prod(x.shape[:count]), *x.shape[count:]))


def true_count(mask: Value) -> Size:
    """How often a mask is true: the same size each time for one mask."""
    most = prod(mask.shape)
    counted = once(("count", mask), lambda: ops.reduce_sum(astype(mask, I64), axes=tuple(range(mask.ndim))))
    return active_trace().bind(counted, 0, most if limits(most)[0] >= 0 else limits(most)[1]) if most != 0 else 0


def picked(x: Value, mask: Value) -> Value:
    """x[mask] for a mask of x's first axes: the elements, or rows, where it is true."""
    size = true_count(mask)
    return ops.compress(flat(x, mask.ndim), flat(fitted(mask, x.shape)), axis=0, size=size)


def fitted(mask: Value, shape: Sequence[int]) -> Value:
    """A mask of an array's first axes.

    Raises:
        IndexError: it is not of their shape, in NumPy's words; where sizes are unknown, the program ends with it.
    """
    if mask.ndim > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {mask.ndim} were indexed")
    for axis, (size, given) in enumerate(zip(shape, mask.shape)):
        if type(size) is int and type(given) is int and size != given:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {size} "
                f"but size of corresponding boolean axis is {given}"
            )
    return require_sizes(mask, shape[: mask.ndim], _MISFIT, error="IndexError")


_MISFIT = "boolean index did not match indexed array; size of axis is {1} but size of corresponding boolean axis is {0}"


def true_places(mask: Value) -> list[Value]:
    """Where a mask is true: an array of positions for each axis, in order."""
    size, line = true_count(mask), flat(mask)
    places = (ops.iota(shape=mask.shape, axis=axis, dtype=I64) for axis in range(mask.ndim))
    return [ops.compress(flat(p), line, axis=0, size=size) for p in places]


def scatter_true(x: Value, mask: Value, values: Value) -> Value:
    """x with `values`, one for each True or one row, in the places where the mask of its first axes is true."""
    base = flat(x, mask.ndim)
    line = flat(fitted(mask, x.shape))
    place = ops.compress(ops.iota(shape=line.shape, axis=0, dtype=I64), line, axis=0, size=true_count(mask))
    return reshape_value(ops.scatter(base, values, place, axis=0, combine="set"), x.shape)
