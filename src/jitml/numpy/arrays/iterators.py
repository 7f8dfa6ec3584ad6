"""NumPy's iterators: what do NumPy's iterators go over?

`np.ndenumerate`, `np.ndindex`, `np.nditer`, and `itertools.product` of ranges: `Rows`, which a `for` need not unroll.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from jitml.ir.dims import Dim, Size
from jitml.numpy.arrays.flat import window
from jitml.numpy.support.arguments import as_array, nonempty, not_compiled
from jitml.trace.lists.sequences import Going, Position, Range, rows_of
from jitml.trace.storage.strides import memory_order
from jitml.trace.values.array_writes import require_writeable
from jitml.trace.values.boxing import TracedArray, lift, named_order, read
from jitml.trace.values.numbers import of_size, size_of
from jitml.trace.values.registry import call, implements

_HARMLESS = {"refs_ok", "zerosize_ok"}


@implements(np.ndindex)
def ndindex(*shape: Any) -> Going:
    """Every index of an array of this shape."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    extents = tuple(size if (size := size_of(n)) is not None else operator.index(n) for n in sizes)
    return Going(_product(extents), lambda position: _unravelled(position, extents), "ndindex")


@implements(itertools.product)
def product(*iterables: Any, repeat: Any = 1) -> Any:
    """Every choice of an element of each. Only ranges are what they were when the loop comes to read them."""
    rows = [found for x in iterables if type(x) in (range, Range) and (found := rows_of(x)) is not None]
    if repeat != 1 or len(rows) < max(1, len(iterables)):
        return itertools.product(*iterables, repeat=repeat)
    extents = tuple(x.trip for x in rows)

    def at(position: Position) -> tuple[Any, ...]:
        return tuple(x.at(index) for x, index in zip(rows, _unravelled(position, extents)))

    return Going(_product(extents), at, "product")


@implements(np.ndenumerate)
def ndenumerate(arr: Any) -> Going:
    """Every index, and the element there."""
    x = _array(arr)
    line = window(x)
    return Going(x.aval.size, lambda position: (_unravelled(position, x.sizes), line[position]), "ndenumerate")


class Walk(Going):
    """`np.nditer(x)`, which is a context as well."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


@implements(np.nditer)
def nditer(op: Any, flags: Sequence[str] = (), op_flags: Any = None, order: str = "K", **others: Any) -> Walk:
    """The elements of one array, each as an array without axes, in the order in which they lie in memory."""
    if isinstance(op, (tuple, list)) or others or not _HARMLESS.issuperset(flags):
        not_compiled("nditer", "of several arrays, or with flags", "Loop over np.ndenumerate(x), np.ndindex(x.shape) or x.flat.")
    x, order = _array(op), named_order(order)
    if "zerosize_ok" not in flags:
        nonempty(read(x), range(x.ndim), "Iteration of zero-sized operands is not enabled")
    named = [flag for part in op_flags or () for flag in ([part] if isinstance(part, str) else part)]
    if any(isinstance(step, Dim) or step < 0 for step in x.layout):
        not_compiled("nditer", "of an array that lies backwards in memory", "Pass a copy.")
    axes = memory_order(x.sizes, x.layout) if order in "KA" else tuple(reversed(range(x.ndim))) if order == "F" else None
    line = window(x if axes is None else call(np.transpose, x, axes))
    writeable = bool({"readwrite", "writeonly"} & set(named))
    if writeable:
        require_writeable(x, "output array is read-only")

    def at(position: Position) -> TracedArray:
        element: TracedArray = call(operator.getitem, line, (position, ...))
        return TracedArray(element.storage, element.steps, element.aval, element.layout, writeable)

    return Walk(line.aval.size, at, "nditer")


def _array(x: Any) -> TracedArray:
    return x if type(x) is TracedArray else lift(x) if type(x) is np.ndarray else as_array(x)


def _product(extents: Sequence[Size]) -> Size:
    product: Any = 1
    for extent in extents:
        product = product * extent
    return product


def _unravelled(position: Position, extents: Sequence[Size]) -> tuple[Any, ...]:
    """The index of the element at a position in C order."""
    rest, index = position, []
    for extent in reversed(extents[1:]):
        n = of_size(extent)
        index.append(rest % n)
        rest = rest // n
    return (rest, *reversed(index)) if extents else ()
