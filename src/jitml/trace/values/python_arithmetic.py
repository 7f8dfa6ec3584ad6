"""Python arithmetic in the graph: what is checked, so that 64 bits compute as Python's numbers do, where NumPy's do not?

In 64 bits, as long as that is what Python computes; else Python itself does.

NumPy's integers wrap around, and its floats go on with inf and nan, where Python's have more digits, are complex, or raise. There
a check ends the run, or a floating-point error that `np.errstate` does not silence.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import ALL, DIVIDE, INVALID, OVERFLOW
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import BOOL, F64, I64, DType
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.symbolic.booleans import Truth, all_of, any_of, as_value
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST, number, within
from jitml.trace.values.type_unions import (
    DTYPES,
    REMEDY,
    doubt,
    doubt_of,
    is_exact,
    is_of,
    is_pythons,
    never,
    of_known_type,
    own_type,
    typed_value,
)

_MOST_BITS = 62
_MOST = float(1 << _MOST_BITS)  # an estimate in floating point is off by 2^-51 of itself
_MOST_OF_FLOAT = 1 << 53  # up to here floats hold all integers
_RAISED = DIVIDE | OVERFLOW | INVALID
_QUOTIENTS = (operator.truediv, operator.floordiv, operator.mod)
_IN_64_BITS = (operator.pow, operator.lshift, operator.rshift)  # to NumPy, which does not say of overflows
_ORDERS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@contextmanager
def raising_as_python(function: Callable[..., Any], operands: Sequence[Any]) -> Iterator[None]:
    """What is recorded here raises in Python where NumPy has a floating-point error: no `np.errstate` silences it."""
    errors = active_trace().errors
    before = ignored, demanded = errors.state
    if function in (operator.pow, operator.abs) or getattr(function, "__module__", None) == "math":
        errors.state = ignored & ~_RAISED, demanded | _RAISED
    try:
        yield
    finally:
        errors.state = before


@contextmanager
def unheard() -> Iterator[None]:
    """What is recorded here ignores floating-point errors."""
    errors = active_trace().root.errors
    before, errors.state = errors.state, (ALL, 0)
    was_transformed, errors.is_transformed = errors.is_transformed, True
    try:
        yield
    finally:
        errors.state, errors.is_transformed = before, was_transformed


def without_large(function: Callable[..., Any], operands: Sequence[Any]) -> Sequence[Any]:
    """Operands without plain ints of more than 64 bits: a float does instead where it computes the same.

    Raises:
        UnsupportedError: it does not.
    """
    meets_float = any(own_type(x) in (float, complex) for x in operands)
    return [_float_of_large(function, x, meets_float) if _is_large(x) else x for x in operands]


def _is_large(x: Any) -> bool:
    return type(x) is int and not LOWEST <= x <= HIGHEST


def _float_of_large(function: Callable[..., Any], x: int, meets_float: bool) -> float:
    is_same = (not meets_float or int(float(x)) == x) if function in _ORDERS else meets_float
    if not is_same:
        unsupported(
            "an int of more than 64 bits is computed with one that only the compiled program knows", "Write it as a float."
        )
    return float(x)


def checked_operands(function: Callable[..., Any], values: Sequence[Value]) -> list[Value]:
    """Operands of an operator that computes in floating point: such that it comes to what Python computes."""
    values = list(values)
    if function in _QUOTIENTS:
        values[1] = _nonzero(values[1])
    dtypes = {v.dtype for v in values}
    if dtypes == {I64} if function is operator.truediv else function in _ORDERS and {I64, F64} <= dtypes:
        values = [that_floats_hold(v) if v.dtype == I64 else v for v in values]
    return values


def that_floats_hold(x: Value) -> Value:
    """An integer of 64 bits that a double has the very value of."""
    return within(x, -_MOST_OF_FLOAT, _MOST_OF_FLOAT)


def _where(
    ok: Value, value: Value, error: str = "OverflowError", message: str = "Python int too large to convert to C long"
) -> Value:
    made: Value = ops.check(value, ok, error=error, message=message)
    return made


def _by_estimate(function: Op) -> Callable[[Value, Value], Value]:
    def computed(x: Value, y: Value) -> Value:
        estimate = ops.abs(function(_float(x), _float(y)))
        return _where(ops.le(estimate, _MOST), function(x, y))

    return computed


def _of_one(function: Op) -> Callable[[Value], Value]:
    """Of the least of all integers the result is the one that does not fit."""
    return lambda x: _where(ops.ne(x, number(LOWEST)), function(x))


def _quotient(x: Value, y: Value) -> Value:
    y = _nonzero(y)
    is_off = ops.bit_and(ops.eq(x, number(LOWEST)), ops.eq(y, number(-1)))
    return _where(ops.bit_not(is_off), ops.floor_divide(x, y))


def _remainder(x: Value, y: Value) -> Value:
    made: Value = ops.remainder(x, _nonzero(y))
    return made


def _nonzero(y: Value) -> Value:
    zero = ops.full(value=0, shape=(), dtype=y.dtype)
    return _where(ops.ne(y, zero), y, "ZeroDivisionError", "division by zero")


def _shifted_left(x: Value, y: Value) -> Value:
    few = ops.bit_and(ops.ge(y, number(0)), ops.le(y, number(_MOST_BITS)))
    most = _float(ops.shift_right(number(1 << _MOST_BITS), ops.maximum(y, number(0))))
    return _where(ops.bit_and(few, ops.le(ops.abs(_float(x)), most)), ops.shift_left(x, y))


def _shifted_right(x: Value, y: Value) -> Value:
    return _where(ops.ge(y, number(0)), ops.shift_right(x, y), "ValueError", "negative shift count")


def _power(x: Value, y: Value) -> Value:
    exponent = ops.maximum(y, number(0))
    estimate = ops.pow(ops.abs(_float(x)), _float(exponent))
    return _where(ops.bit_and(ops.ge(y, number(0)), ops.le(estimate, _MOST)), ops.pow(x, exponent))


def _float(x: Value) -> Value:
    made: Value = ops.convert(x, dtype=F64)
    return made


# Of i64[] values; what is not here cannot leave 64 bits.
EXACT: dict[Callable[..., Any], Callable[..., Value]] = {
    operator.add: _by_estimate(ops.add),
    operator.sub: _by_estimate(ops.sub),
    operator.mul: _by_estimate(ops.mul),
    operator.neg: _of_one(ops.neg),
    operator.abs: _of_one(ops.abs),
    operator.lshift: _shifted_left,
    operator.rshift: _shifted_right,
    operator.pow: _power,
    operator.floordiv: _quotient,
    operator.mod: _remainder,
}


def hand_on(result: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The result of an operator: of numbers that may be Python's it may be one as well."""
    found = [doubt_of(x) for x in operands]
    result = of_known_type(result, operands)
    value = getattr(result, "value", None)
    if not any(found) or not isinstance(value, Value) or doubt_of(result) is not None:
        return result
    cases: dict[type, Truth] = {}
    for chosen in product(*(_types(x) for x in operands)):
        types = [which for which in chosen if which is not None and is_pythons(which)]
        if len(types) < len(chosen):
            continue
        test = all_of(*map(is_of, operands, types))
        if value.dtype == BOOL and not all(map(_is_told_exactly, operands, types)):
            result.value = value = never(value, as_value(test))
        _require_as_python(function, operands, types, test, value.dtype)
        made = _made(function, types)
        if made is None or made is own_type(result) or not is_pythons(made):
            continue
        if made is int and value.dtype == BOOL and function is not operator.mul:  # True + True, ~True
            unsupported(
                "sums and complements of truths are truths to NumPy, ints to Python, and whose these are depends on values",
                REMEDY,
            )
        cases[made] = any_of(cases.get(made, False), test)
    first = next(d for d in found if d is not None)
    doubt(value, cases, first.decider)
    return result


def _require_as_python(
    function: Callable[..., Any], operands: Sequence[Any], types: Sequence[type], test: Truth, dtype: DType
) -> None:
    """Of numbers that are Python's where the truth holds: division by zero raises, whatever `np.errstate` says, and ints are as
    long as they get."""
    if test is False:
        return
    if function in _QUOTIENTS and not (type(operands[1]) in DTYPES and operands[1]):
        (divisor,) = _where_true(operands[1:], types[1:], test, 1)
        _nonzero(divisor)
    if function in _IN_64_BITS and dtype == I64:
        EXACT[function](*(ops.convert(x, dtype=I64) for x in _where_true(operands, types, test, 0)))


def _where_true(operands: Sequence[Any], types: Sequence[type], test: Truth, otherwise: int) -> Iterator[Value]:
    """Operands as numbers of Python's; another number where they are not."""
    test = as_value(test)
    for x, which in zip(operands, types):
        value = x.as_value() if hasattr(type(x), "as_value") else getattr(x, "value", None)
        if not isinstance(value, Value):
            value = ops.full(value=x, shape=(), dtype=DTYPES[which])
        value = typed_value(value, which, test, exact=_is_told_exactly(x, which))
        yield ops.select(test, value, ops.full(value=otherwise, shape=(), dtype=value.dtype))


def _is_told_exactly(x: Any, which: type) -> bool:
    """Whether a number that is of this type can be compared as it is."""
    return not isinstance(getattr(x, "value", None), Value) or is_exact(x, which, x.dtype)


def _made(function: Callable[..., Any], types: Sequence[type]) -> type | None:
    """The type of what an operator makes of numbers of some types; None if it refuses them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ~True, since Python 3.12
            return type(function(*(which(1) for which in types)))
    except TypeError:  # bits of floats
        return None


def _types(x: Any) -> list[type | None]:
    found = doubt_of(x)
    return [own_type(x), *(() if found is None else found.cases)]


def hash_of(known: Any) -> int:
    """The hash of a number from outside.

    Raises:
        UnsupportedError: NaN, which dicts and sets find if it is that very object.
    """
    if known != known:
        unsupported("NaN in a dict or a set is found by its identity, which only Python knows", "Take another key for it.")
    return hash(known)
