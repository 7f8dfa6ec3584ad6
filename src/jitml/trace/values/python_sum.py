"""Python's sum: how does Python's `sum` add floats?

Since Python 3.12 what rounding loses is carried along, and added at the end.

The method is Neumaier's. What one addition loses is found without a branch (Knuth, The Art of Computer Programming 2, 4.2.2), and
exactly, as Python finds it, so that the bits are Python's. Python 3.14 compensates for ints among them, too, and for complex
numbers part by part. Nothing is compensated from the first item on that is no number of Python's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.booleans import as_value
from jitml.trace.values.boxing import TracedArray, is_traced, read
from jitml.trace.values.numbers import TracedNumber, combine
from jitml.trace.values.python_arithmetic import hand_on, unheard
from jitml.trace.values.registry import call
from jitml.trace.values.type_unions import is_of, own_type

_OF_INTS, _OF_COMPLEX = sum([1e16, 1, -1e16]) == 1.0, sum([1e16 + 0j, 1.0, -1e16]) == 1.0
_INTS = (int, bool)


def sum_of(items: Iterable[Any], start: Any = 0) -> Any:
    """`sum(items, start)`, of numbers and arrays."""
    rest: Any = 0.0
    for x in items:
        start, rest = added(start, rest, x)
    return settled(start, rest)


def sum_of_floats(x: TracedArray) -> Any:
    """The same of a line of Python's floats."""
    with unheard():
        sums = call(np.cumsum, x)
        before = call(np.concatenate, [np.zeros(1), sums[:-1]])
        last = (read(along[-1]) for along in (sums, call(np.cumsum, _lost(before, x, sums))))
        return settled(*(TracedNumber.of_value(active_trace(), value) for value in last))


def added(total: Any, rest: Any, x: Any) -> tuple[Any, Any]:
    """The next total, and what all additions have lost."""
    kind, other = own_type(total), own_type(x)
    if kind is complex and _OF_COMPLEX and other in (complex, float, *_INTS):
        return _added_to_complex(total, rest, x)
    if kind is not float:
        return total + x, rest
    if other is not float and other not in _INTS:
        return settled(total, rest) + x, 0.0
    is_float = is_of(x, float)
    if is_float is False and not _OF_INTS:
        return total + x, rest
    after = total + x
    with unheard():
        lost = _lost(total, x if is_float is True else call(float, x), after)
        for counts in (is_of(total, float), _OF_INTS or is_float):  # it may still be the int that the sum starts with
            if counts is not True:
                lost = TracedNumber.of_value(active_trace(), ops.select(as_value(counts), read(lost), read(0.0)))
        return after, rest + lost


def _added_to_complex(total: Any, rest: Any, x: Any) -> tuple[Any, Any]:
    after = total + x
    with unheard():
        real = _lost(total.real, x.real if own_type(x) is complex else call(float, x), after.real)
        imag = _lost(total.imag, x.imag, after.imag) if own_type(x) is complex else 0.0
        return after, rest + call(complex, real, imag)


def _lost(x: Any, y: Any, total: Any) -> Any:
    share = total - x
    return (x - (total - share)) + (y - share)


def settled(total: Any, rest: Any) -> Any:
    """The total with what additions have lost, unless that is nothing, or more than there is."""
    if own_type(total) is complex and own_type(rest) is complex:
        return call(complex, settled(total.real, rest.real), settled(total.imag, rest.imag))
    if own_type(total) is not float or (type(rest) is float and rest == 0.0):
        return total
    if not is_traced(total) and not is_traced(rest):
        return _settled(total, rest)
    if all(x.slot is not None for x in (total, rest) if type(x) is TracedNumber):
        return combine(_settled, total, rest)
    with unheard():
        value, lost = read(total), read(rest)
        counts = ops.bit_and(ops.ne(lost, 0.0), ops.eq(ops.sub(lost, lost), 0.0))
        whole = ops.select(counts, ops.add(value, lost), value)
    return hand_on(TracedNumber.of_value(active_trace(), whole), operator.pos, (total,))


def _settled(total: float, rest: float) -> float:
    return total + rest if rest and math.isfinite(rest) else total
