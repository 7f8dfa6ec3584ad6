"""Lists of numbers from outside: where an array is made of one, the host program makes it, and the graph has one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitml.ir.graph import Value
from jitml.ir.types import F64, I64, DType
from jitml.records import dataclass
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST
from jitml.trace.values.boxing import TracedNumber

_FEW = 32  # numbers that are inputs of their own


@dataclass(frozen=True)
class _ArrayOfNumbers:
    """Makes an array of numbers.

    Raises:
        OverflowError: an integer does not fit.
    """

    shape: tuple[int, ...]
    dtype: DType

    def __call__(self, *items: int | float) -> np.ndarray[Any, Any]:
        return np.array(items, self.dtype).reshape(self.shape)


def array_of_numbers(items: Sequence[object], wanted: DType | None) -> Value | None:
    """What `np.array` makes of a nested sequence of many numbers, all of one type and the caller's; None if it is another one."""
    numbers: list[TracedNumber] = []
    shape = _collected(items, numbers)
    if shape is None or len(numbers) <= _FEW or numbers[0].trace.root is not active_trace().root:
        return None
    dtype = numbers[0].dtype
    is_wanted = wanted is None or wanted == dtype  # float64 is equal to None
    if dtype not in (F64, I64) or not is_wanted or any(x.dtype != dtype for x in numbers):
        return None
    if dtype == I64 and not all(LOWEST <= x.concrete <= HIGHEST for x in numbers):
        return None
    slots = [x.slot for x in numbers if x.slot is not None]
    return numbers[0].trace.numbers_input(slots, [x.concrete for x in numbers], _ArrayOfNumbers(shape, dtype))


def _collected(items: Sequence[object], numbers: list[TracedNumber]) -> tuple[int, ...] | None:
    """The shape of a nested sequence; None if it holds others than numbers, or parts of several forms."""
    if not items:
        return None
    if type(items[0]) is not TracedNumber:
        parts = [_collected(item, numbers) if isinstance(item, (list, tuple)) else None for item in items]
        return None if parts[0] is None or any(part != parts[0] for part in parts) else (len(items), *parts[0])
    for x in items:
        if type(x) is not TracedNumber or x.slot is None:
            return None
        numbers.append(x)
    return (len(items),)
