"""Ragged arrays: how does an array leave a region that alone knows its size?

In memory of its largest size, with its sizes beside it.

The region hands out the array at the start of a larger one (`widened`) and each unknown size as an i64[]; outside, those become
sizes, and the array is cut out again (`RaggedKind.cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound, limits
from jitml.ir.graph import Value
from jitml.ir.types import I64, Aval
from jitml.records import dataclass
from jitml.trace.record.recording import Trace
from jitml.trace.storage.strides import c_strides
from jitml.trace.symbolic.sizes import named, number
from jitml.trace.values.boxing import read
from jitml.trace.values.kinds import Kind
from jitml.trace.values.numbers import of_size

MOST_ELEMENTS = 1 << 24  # a larger array would be written as a whole where perhaps only a few elements of it are there
SIZE = Kind("number", Aval((), I64))


@dataclass(frozen=True)
class RaggedKind(Kind):
    """Of an array whose sizes along `axes`, each `low` at least, the region alone knows. `aval` is memory for the largest."""

    axes: tuple[int, ...] = ()
    low: tuple[int, ...] = ()

    def take(self, leaf: Any) -> Value:
        return widened(read(leaf), self.aval)

    def sizes(self, leaf: Any) -> list[Any]:
        """Those of an array, as numbers of Python's. Call it where they are known."""
        return [of_size(leaf.aval.shape[axis]) for axis in self.axes]

    def cut(self, value: Value, sizes: Sequence[Value]) -> Any:
        """The array itself, from what the region has handed out."""
        shape: list[Any] = list(self.aval.shape)
        for axis, low, size in zip(self.axes, self.low, sizes):
            shape[axis] = named(size, low, bound(shape[axis]))
        array = window(value, tuple(shape))
        return Kind("array", array.aval, c_strides(array.aval.shape), self.writeable, self.lent).show(array)


def ragged(kinds: list[Kind], trace: Trace, *, is_complete: bool) -> RaggedKind | None:
    """The common kind of arrays that differ in sizes of which at least one depends on data, outside the region (`trace`).

    Args:
        is_complete: whether one of them is there in any case.
    """
    first = kinds[0]
    shapes = [kind.aval.shape for kind in kinds]
    fit = all(k.form == "array" for k in kinds) and len({(k.aval.dtype, k.aval.ndim, k.writeable, k.lent) for k in kinds}) == 1
    if not fit or not any(kind.aval.syms for kind in kinds):
        return None
    shape: list[Any] = []
    axes, lows = [], []
    for axis, sizes in enumerate(zip(*shapes)):
        if all(size == sizes[0] and _is_known(size, trace) for size in sizes):
            shape.append(sizes[0])
            continue
        shape.append(max(bound(size) for size in sizes))
        axes.append(axis)
        lows.append(max(0, min(limits(size)[0] for size in sizes)) if is_complete else 0)
    if not axes or prod(map(bound, shape)) > MOST_ELEMENTS:
        return None
    aval = Aval(tuple(shape), first.aval.dtype)
    return RaggedKind("array", aval, c_strides(aval.bounds), first.writeable, first.lent, tuple(axes), tuple(lows))


def _is_known(size: Size, trace: Trace) -> bool:
    return not isinstance(size, Dim) or all(trace.sees(trace.sizes.values[sym]) for sym in size.syms)


def window(value: Value, shape: tuple[Any, ...]) -> Value:
    """The array of this shape at the start of a larger one."""
    starts = [number(0)] * len(shape)
    array: Value = ops.dynamic_slice(value, *starts, sizes=shape, step=(1,) * len(shape))
    return array


def widened(value: Value, aval: Aval) -> Value:
    """An array at the start of a larger one, whose rest is never read. Call it in the region."""
    memory = ops.empty(shape=aval.shape, dtype=aval.dtype)
    starts = [number(0)] * aval.ndim
    made: Value = ops.dynamic_update_slice(memory, value, *starts, step=(1,) * aval.ndim)
    return made
