"""Block-wise comparison: arrays are compared some thousand elements at a time, so that what is made of them stays in cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_BLOCK = 1 << 15  # elements
_SMALL = 1 << 12  # bytes that are copied in less time than they are taken apart
_SAMPLES, _SAMPLE = 16, 1 << 12  # how many, and bytes of each


def blocks(a: Array, b: Array) -> Iterator[tuple[Array, Array]]:
    """The same elements of two arrays of one shape, as vectors, in the order in which they lie in the second one."""
    order = sorted(range(b.ndim), key=lambda axis: -abs(b.strides[axis]))
    mine, theirs = (x.transpose(order).reshape(-1) for x in (a, b))
    for start in range(0, theirs.size, _BLOCK):
        yield mine[start : start + _BLOCK], theirs[start : start + _BLOCK]


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and dtype hold the same, also of NaN and of zeros."""
    if a.dtype.hasobject:
        return are_same([*a.flat], [*b.flat])
    if b.nbytes <= _SMALL:
        return a.tobytes() == b.tobytes()
    size = a.dtype.itemsize
    word = f"u{size if size in (1, 2, 4, 8) else 8 if size % 8 == 0 else 1}"
    return all((x.view(word) == y.view(word)).all() for x, y in blocks(a, b))


def are_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether the items of two sequences are the same objects."""
    return len(a) == len(b) and all(map(_is, a, b))


def _is(a: Any, b: Any) -> bool:
    return a is b


def sample(x: Array) -> list[bytes]:
    """Some pages of an array that is contiguous."""
    memory = x.ravel("K").view(np.uint8)
    last = max(0, memory.size - _SAMPLE)
    return [memory[start : start + _SAMPLE].tobytes() for start in {last * n // _SAMPLES for n in range(_SAMPLES + 1)}]
