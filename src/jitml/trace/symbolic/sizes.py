"""Symbolic sizes: what is arithmetic on sizes?

Exact where a polynomial says it, decided where the limits do, else computed by the program.

A size is an int or a `Dim`. `compute` is what `numbers.py` asks for Python's operators on loop indices and shapes: sums and
products stay polynomials, comparisons become truths if the limits allow, and a quotient or a minimum becomes a value of the
graph that is a size of its own.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from jitml.errors import UnknownSizeError
from jitml.ir import ops
from jitml.ir.analysis.limits import Limits, limits_of
from jitml.ir.dims import Dim, Size, as_size, limits
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import I64
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import active_trace

LOWEST, HIGHEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
_MANY_TERMS = 12  # a longer polynomial becomes a value with a name of its own

_POLYNOMIAL: set[Callable[..., Any]] = {operator.add, operator.sub, operator.mul, operator.neg}
_COMPARISONS: dict[Callable[..., Any], Op] = {
    operator.lt: ops.lt, operator.le: ops.le, operator.gt: ops.gt, operator.ge: ops.ge, operator.eq: ops.eq, operator.ne: ops.ne,
}  # fmt: skip


def value_of_size(size: Size) -> Value:
    """The size as an i64[] value of the graph being recorded; the same one each time."""
    return once(("value", size), lambda: _value_of_polynomial(size) if isinstance(size, Dim) else number(size))


class _Derived(dict[Hashable, Value], CallPart):
    """Quotients, minima, ... of sizes: computed once."""


def once(key: Hashable, make: Callable[[], Value]) -> Value:
    """A value that is made where it is first asked for, and again where that one cannot be seen."""
    trace = active_trace()
    known = trace.call[_Derived]
    if key not in known or not trace.sees(known[key]):
        known[key] = make()
    return known[key]


def _value_of_polynomial(size: Dim) -> Value:
    values = active_trace().sizes.values
    total: Any = None
    for monomial, factor in size.terms:
        term: Any = None
        for sym in monomial:
            term = values[sym] if term is None else ops.mul(term, values[sym])
        if term is None:
            term = number(factor)
        elif factor != 1:
            term = ops.mul(term, number(factor))
        total = term if total is None else ops.add(total, term)
    return total


def number(n: int) -> Value:
    """An integer as a constant i64[]."""
    return ops.full(value=n, shape=(), dtype=I64)


def value_limits(value: Value) -> Limits:
    """The least and the greatest element of an integer or bool value."""
    trace = active_trace()
    names = trace.sizes.names
    return limits_of(value, trace.builder.producer, lambda v: names[v].limits if v in names else None)


def named(value: Value, low: int, high: int) -> Size:
    """A value computed by the program as a size."""
    return active_trace().bind(value, low, high) if low < high else low


def size_of_value(value: Value, least: int, most: int) -> Size:
    """An integer that the program computes as a size; one that is not between these two is left to the plain function."""
    low, high = value_limits(value)
    if low == high and least <= low <= most:
        return low
    whole = once(("whole", value, least, most), lambda: _whole(within(value, least, most)))
    return named(whole, max(low, least), min(high, most))


def _whole(value: Value) -> Value:
    made: Value = value if value.dtype == I64 else ops.convert(value, dtype=I64)
    return made


def within(value: Value, least: int, most: int) -> Value:
    """An integer; the program checks that it lies between these two, where its limits do not say so."""
    low, high = value_limits(value)
    tests = []
    if low < least:
        tests.append(ops.ge(value, least))
    if high > most:
        tests.append(ops.le(value, most))
    for test in tests:
        value = ops.check(value, test, error="OverflowError", message="Python int too large to convert to C ssize_t")
    return value


def compute(function: Callable[..., Any], *sizes: Size) -> Size | bool | Value | None:
    """An operator of Python (or `min`, `max`, `abs`) on sizes.

    Returns:
        a size; a truth, or a bool[] Value where it is not decided; None where the result may not fit 64 bits, or the function
        is none of those.

    >>> compute(operator.floordiv, 7, 2), compute(max, 1, 2), compute(operator.lt, 1, 2)
    (3, 2, True)
    """
    if all(type(size) is int for size in sizes):
        return function(*sizes)
    if function in _COMPARISONS:
        return _compare(function, *sizes)
    result: Size | None = None
    if function in _POLYNOMIAL:
        result = function(*sizes)
    elif function is operator.pos:
        result = sizes[0]
    elif function is operator.pow:
        result = _power(*sizes)
    elif function is operator.lshift and type(sizes[1]) is int and 0 <= sizes[1] < 64:
        result = sizes[0] * (1 << sizes[1])
    elif function is operator.rshift and type(sizes[1]) is int and 0 <= sizes[1] < 64:
        result = quotient(sizes[0], 1 << sizes[1])
    elif function is operator.floordiv:
        result = quotient(*sizes)
    elif function is operator.mod:
        result = remainder(*sizes)
    elif function is operator.and_ and type(sizes[1]) is int and sizes[1] >= 0:
        result = _derived("and", ops.bit_and, sizes[0], sizes[1], 0, sizes[1])
    elif function in (min, max):
        choose = smaller if function is min else larger
        result = sizes[0]
        for size in sizes[1:]:
            result = choose(result, size)
    elif function is operator.abs:
        result = larger(sizes[0], 0 - sizes[0]) if fits(0 - sizes[0]) else None
    return _short(result) if result is not None and fits(result) else None


def span(size: Size) -> tuple[int, int]:
    """The least and the greatest value of a size, as far as the limits of its Syms say, those that are sizes included.

    With `j` of `range(i + 1, n)` the limits of `n - 1 - j` as numbers allow negative values; its span does not. Nor does that of
    `n - 1 - i` inside of `if i < n`.
    """
    if not isinstance(size, Dim):
        return size, size
    low, high = _extreme(size, 0), _extreme(size, 1)
    for fact in _facts():
        # What a size exceeds something by that is not negative is a bound from below, and the other way about.
        low, high = max(low, _extreme(size - fact, 0)), min(high, _extreme(size + fact, 1))
    return low, high


def _facts() -> list[Dim]:
    return [fact for trace in active_trace().around() for fact in trace.facts if isinstance(fact, Dim)]


def _extreme(size: Size, end: int) -> int:
    """An end (0: the lower, 1: the upper) of a size's span, Syms replaced by their limits from the innermost loop outwards."""
    known = active_trace().sizes.limits
    best = limits(size)[end]
    while isinstance(size, Dim) and (inner := [sym for sym in size.syms if sym in known]):
        sym = max(inner, key=lambda sym: sym.serial)
        parts = size.linear_in(sym)
        if parts is None:
            break
        factor, rest = parts
        low, high = limits(factor)
        if low < 0 < high:
            break
        size = rest + factor * known[sym][end if low >= 0 else 1 - end]
        best = min(best, limits(size)[1]) if end else max(best, limits(size)[0])
    return best


def fits(size: Size) -> bool:
    """Whether a size fits 64 bits, whatever the program finds."""
    low, high = limits(size)
    return low >= LOWEST and high <= HIGHEST


def _short(size: Size) -> Size:
    if isinstance(size, Dim) and len(size.terms) > _MANY_TERMS:
        return named(value_of_size(size), *limits(size))
    return size


def _power(base: Size, exponent: Size) -> Size | None:
    if type(exponent) is not int or not 0 <= exponent <= 4:
        return None
    result: Size = 1
    for _ in range(exponent):
        result = result * base
    return result


def _compare(function: Callable[..., Any], x: Size, y: Size) -> bool | Value:
    difference = x - y
    low, high = span(difference)
    if low == high or low > 0 or high < 0:
        return bool(function(low or high, 0))
    if low == 0 and function in (operator.lt, operator.ge):
        return function is operator.ge
    if high == 0 and function in (operator.gt, operator.le):
        return function is operator.le
    return _COMPARISONS[function](value_of_size(x), value_of_size(y))


Facts = tuple[tuple[Dim | Value, ...], tuple[Dim | Value, ...]]
NO_FACTS: Facts = ((), ())


def facts_of_comparison(function: Callable[..., Any], x: Size, y: Size) -> Facts:
    """Sizes that are not negative where an undecided comparison holds, and where it does not."""
    less, greater = x - y, y - x
    claims: dict[Callable[..., Any], tuple[tuple[Any, ...], tuple[Any, ...]]] = {
        operator.lt: ((greater - 1,), (less,)),
        operator.le: ((greater,), (less - 1,)),
        operator.gt: ((less - 1,), (greater,)),
        operator.ge: ((less,), (greater - 1,)),
        operator.eq: ((less, greater), ()),
        operator.ne: ((), (less, greater)),
    }
    return claims.get(function, NO_FACTS)


def smaller(x: Size, y: Size) -> Size:
    """min(x, y)"""
    low, high = span(x - y)
    if high <= 0 or low >= 0:
        return x if high <= 0 else y
    (a, b), (c, d) = span(x), span(y)
    return _derived("min", ops.minimum, x, y, min(a, c), y if isinstance(y, Dim) and d <= b else min(b, d))


def larger(x: Size, y: Size) -> Size:
    """max(x, y)"""
    low, high = span(x - y)
    if low >= 0 or high <= 0:
        return x if low >= 0 else y
    (a, b), (c, d) = span(x), span(y)
    return _derived("max", ops.maximum, x, y, y if isinstance(y, Dim) and a <= c else max(a, c), max(b, d))


def quotient(x: Size, y: Size) -> Size | None:
    """x // y; None if y may be -1 where x is the lowest integer."""
    (a, b), (c, d) = span(x), span(y)
    if isinstance(x, Dim) and (c > 0 or d < 0):
        try:
            return x // y
        except UnknownSizeError:
            pass
    y, ends = _nonzero(y), [n for n in {c, d, -1, 1} if n and c <= n <= d]
    results = [m // n for m, n in itertools.product((a, b), ends)]
    if max(results) > HIGHEST:
        return None
    return _derived("floordiv", ops.floor_divide, x, y, min(results), max(results))


def remainder(x: Size, y: Size) -> Size:
    """x % y"""
    if type(x) is int and type(y) is int and y:
        return x % y
    (a, b), (c, d) = span(x), span(y)
    if isinstance(x, Dim) and (c > 0 or d < 0):
        try:
            return x % y
        except UnknownSizeError:
            pass
    if a >= 0 and span(x - y)[1] < 0:
        return x
    low, high = min(0, c + 1), max(0, d - 1)
    if a >= 0 and c >= 0:
        high = min(high, b)
    return _derived("mod", ops.remainder, x, _nonzero(y), low, high)


def wrapped(place: Size, size: Size) -> Size:
    """An index of an axis of this size, a negative one counted from the end; not checked."""
    low, high = span(place)
    if low >= 0:
        return place
    if high < 0:
        return place + size
    least, most = span(size)
    return _derived("wrap", _wrap, place, size, min(0, low + least), max(high, most - 1))


def _wrap(place: Value, size: Value) -> Value:
    return ops.select(ops.lt(place, number(0)), ops.add(place, size), place)


def _nonzero(y: Size) -> Size:
    """A divisor; ZeroDivisionError when the program finds it to be 0."""
    low, high = span(y)
    if low > 0 or high < 0:
        return y
    if low == high == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return named(once(("nonzero", y), lambda: _checked_divisor(value_of_size(y))), low, high)


def _checked_divisor(y: Value) -> Value:
    return ops.check(y, ops.ne(y, number(0)), error="ZeroDivisionError", message="integer division or modulo by zero")


def _derived(name: str, op: Callable[..., Value], x: Size, y: Size, low: Size, high: Size) -> Size:
    """What an op makes of two sizes, as a size: the same for the same operands."""
    if type(low) is int and low == high:
        return low
    return active_trace().bind(once((name, x, y), lambda: op(value_of_size(x), value_of_size(y))), low, high)


__all__ = [
    "as_size", "compute", "fits", "larger", "limits", "named", "number", "once", "quotient", "remainder", "smaller",
    "span", "value_limits", "value_of_size", "wrapped",
]  # fmt: skip
