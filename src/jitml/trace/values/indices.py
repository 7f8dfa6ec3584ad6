"""Which size is an integer that users give: a place in an index, a bound of a slice, a length?"""

from __future__ import annotations

import operator
from typing import Any

from jitml.ir.dims import Size
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST, size_of_value
from jitml.trace.values.boxing import TracedArray, TracedNumber, TracedScalar, read


def place_of(n: Any) -> Size:
    """An integer as a size: plain, a number of the trace, or a NumPy integer that the program computes."""
    size = unknown_size(n)
    return known_integer(n) if size is None else size


def unknown_size(n: Any) -> Size | None:
    """The same, of an integer that only the running program knows; None for others."""
    if type(n) is TracedNumber and n.kind is int and n.slot is None:
        return n.size if n.size is not None else size_of_value(n.as_value(), LOWEST, HIGHEST)
    if type(n) in (TracedScalar, TracedArray) and n.dtype.kind in "iu" and not n.ndim:
        return size_of_value(read(n), LOWEST, HIGHEST)
    return None


def known_integer(n: Any) -> int:
    """An integer that is known, from now on guarded; of others the trace is refused."""
    if not hasattr(n, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return operator.index(n)
