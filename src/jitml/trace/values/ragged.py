"""Ragged arrays: how does an array leave a region that alone knows its size?

In memory of its largest size, with its sizes beside it.

The region hands out the array at the start of a larger one (`widened`) and each unknown size as an i64[]; outside, those become
sizes, and the array is cut out again (`RaggedKind.show`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import Dim, Size, bound, limits
from jitml.ir.graph import Value
from jitml.ir.types import I64, Aval
from jitml.records import dataclass, replace
from jitml.trace.record.recording import Trace
from jitml.trace.storage.strides import c_strides
from jitml.trace.symbolic.sizes import named, number
from jitml.trace.values.boxing import fresh, read
from jitml.trace.values.kinds import HeldValue, Kind
from jitml.trace.values.numbers import of_size

MOST_ELEMENTS = 1 << 24  # a larger array would be written as a whole where perhaps only a few elements of it are there
SIZE = Kind("number", Aval((), I64))


@dataclass(frozen=True)
class RaggedKind:
    """An array's kind outside of the region; its sizes along `axes` are between `low` and `high`, and known inside."""

    kind: Kind
    axes: tuple[int, ...]
    low: tuple[int, ...]

    @property
    def wide(self) -> Kind:
        """The array that is handed out in its place."""
        aval = self.kind.aval
        return replace(self.kind, aval=aval, layout=c_strides(aval.bounds))

    def sizes(self, leaf: Any) -> list[Any]:
        """Those of an array, as numbers of Python's. Call it where they are known."""
        return [of_size(leaf.aval.shape[axis]) for axis in self.axes]

    def show(self, value: Value, sizes: list[Value]) -> tuple[Kind, Value]:
        """The array itself, from what the region has handed out, and its kind."""
        shape: list[Any] = list(self.kind.aval.shape)
        for axis, low, size in zip(self.axes, self.low, sizes):
            shape[axis] = named(size, low, bound(shape[axis]))
        array = window(value, tuple(shape))
        return replace(self.kind, aval=array.aval, layout=c_strides(array.aval.shape)), array


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
    return RaggedKind(replace(first, aval=aval, layout=()), tuple(axes), tuple(lows))


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


@dataclass(frozen=True)
class Handed(HeldValue):
    """What a name holds, taken apart as the region hands it out: beside each array its sizes that are not known outside."""

    ragged: tuple[RaggedKind | None, ...] = ()

    def rebuild(self, leaves: list[Any]) -> Any:
        following = iter(leaves)
        return super().rebuild([_cut(wide, next(following), following) for wide in self.ragged])


def _cut(wide: RaggedKind | None, leaf: Any, following: Iterator[Any]) -> Any:
    if wide is None:
        return leaf
    kind, value = wide.show(read(leaf), [read(next(following)) for _ in wide.axes])
    return kind.show(value)


def handed(held: HeldValue, outside: Trace) -> HeldValue:
    """The same, made ready in the region to leave it for the trace outside; nothing else may hold an array of unknown size."""
    wides = tuple(ragged([kind], outside, is_complete=False) if kind is not None else None for kind in held.kinds)
    leaves: list[Any] = []
    kinds: list[Kind | None] = []
    for leaf, kind, wide in zip(held.leaves, held.kinds, wides):
        sizes = wide.sizes(leaf) if wide is not None else []
        leaves += [leaf if wide is None else fresh(widened(read(leaf), wide.kind.aval)), *sizes]
        kinds += [kind if wide is None else wide.wide, *(SIZE for _ in sizes)]
    return Handed(held.spec, tuple(leaves), tuple(kinds), wides)


__all__ = ["MOST_ELEMENTS", "SIZE", "RaggedKind", "handed", "ragged", "widened", "window"]
