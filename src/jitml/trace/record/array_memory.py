"""Array memory queries: how do concrete arrays lie in memory?  The questions that guards and the tracing of arguments ask."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from jitml.device.view import DeviceView
from jitml.trace.record.guards import OWNS

Array = np.ndarray[Any, Any]


def is_native(array: Array) -> bool:
    """Whether compiled code can read the array's memory as it is: byte order, alignment, whole-element strides."""
    whole = all(s % array.itemsize == 0 for s in array.strides)
    return array.dtype.isnative and whole and (array.flags.aligned or not array.size)


def same_view(x: Array, y: Array) -> bool:
    """Whether two arrays are one: the same memory seen in the same way."""
    return x is y or (
        x.shape == y.shape
        and x.dtype == y.dtype
        and x.strides == y.strides
        and x.__array_interface__["data"][0] == y.__array_interface__["data"][0]
    )


def view_of(x: Array) -> tuple[object, ...]:
    """What arrays have in common that are the same view."""
    return x.__array_interface__["data"][0], x.dtype, x.shape, x.strides


def disjoint(x: Array, y: Array) -> bool:
    """Whether no byte belongs to both arrays; where that is too hard to tell, False."""
    if not np.may_share_memory(x, y):
        return True
    try:
        return not np.shares_memory(x, y, max_work=10_000)  # type: ignore[arg-type]  # NumPy's stubs know only -1 and 0
    except np.exceptions.TooHardError:
        return False


def meets_itself(x: Array) -> bool:
    """Whether some element of an array may stand in several places (made by `as_strided`, or stretched)."""
    if not x.size:  # NumPy gives it strides of 0
        return False
    reach = 0
    for stride, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape) if n > 1):
        if stride <= reach or stride < x.itemsize:
            return True
        reach += stride * (n - 1)
    return False


def all_disjoint(written: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether each written array is disjoint from all other arrays.

    Arrays over memory of different owners are; looking for the owner is far cheaper than comparing all pairs.
    """
    owners = [owner(x) for x in written]
    mine = set(map(id, owners))
    if len(mine) < len(written) or id(None) in mine:
        pairs = combinations((*written, *others), 2)
        return all(disjoint(x, y) for x, y in pairs if any(x is w or y is w for w in written))
    close = [y for y in others if (o := owner(y)) is None or id(o) in mine]
    return all(disjoint(x, y) for y in close for x in written)


def owner(x: Array) -> Array | None:
    """The array that owns x's memory; None if that is no plain array (a file, a buffer, another library)."""
    while x.base is not None:
        x = x.base
        if type(x) is not np.ndarray:
            return None
    return x if x.flags.num & OWNS else None


def root(x: Array) -> Array:
    """The array at the end of the chain of bases; it may show what a file or another library owns."""
    kind = DeviceView if type(x) is DeviceView else np.ndarray
    while type(x.base) is kind:
        x = x.base
    return x


def native_copy(array: Array) -> Array:
    return np.array(array, dtype=np.dtype(array.dtype.type), order="C", subok=False)
