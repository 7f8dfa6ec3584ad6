"""np.lib.stride_tricks.sliding_window_view: every window of an array, as a view for reading."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Size
from jitml.ir.types import I64, Aval
from jitml.numpy.arrays.reshaping import transposed
from jitml.numpy.support.arguments import as_array, as_int, no_truth, not_compiled, one_axis
from jitml.trace.storage.index_maps import Step
from jitml.trace.symbolic.broadcasting import require_at_least
from jitml.trace.symbolic.sizes import larger, span
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.registry import implements


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> TracedArray:
    """A view of every window; its elements overlap, so it is for reading."""
    shown = as_array(x)
    sizes = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    lengths = [as_int(no_truth(n)) for n in sizes]
    given = range(shown.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [one_axis(a, shown.ndim) for a in given]
    if writeable:
        not_compiled("lib.stride_tricks.sliding_window_view", "with writeable=True", "Write into the array itself.")
    if any(n < 0 for n in lengths):
        raise ValueError("`window_shape` cannot contain negative values")
    if len(axes) != len(lengths):
        raise ValueError(f"Must provide window_shape for all dimensions of `x`; got {len(lengths)} and {len(axes)} axes")
    for along, length in zip(axes, lengths):
        shown = _windows(shown, along, length)
    return shown


def _windows(x: TracedArray, axis: int, length: int) -> TracedArray:
    """The windows along an axis in its place, what is in them along a last one."""
    count: Size = x.sizes[axis] - length + 1
    if span(count)[0] < 1:
        require_at_least(count, 1, "window shape cannot be larger than input array shape")
        count = larger(count, 1)
    rows, columns = (ops.iota(shape=(count, length), axis=k, dtype=I64) for k in (0, 1))
    step = Step(ops.gather, {"axis": axis}, x.aval, (rows + columns,))
    sizes: list[Any] = list(x.sizes)
    layout = list(x.layout)
    sizes[axis : axis + 1], layout[axis : axis + 1] = (count, length), (x.layout[axis], x.layout[axis])
    seen = TracedArray(x.storage, (*x.steps, step), Aval(tuple(sizes), x.dtype), tuple(layout), False)
    others = [n for n in range(seen.ndim) if n != axis + 1]
    return transposed(seen, (*others, axis + 1))
