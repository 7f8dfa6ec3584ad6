"""np.power and `**` before the loop: NumPy's shortcuts for known exponents, its refusal of negative integer powers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.types import BOOL, F64, is_complex, is_inexact
from jitml.numpy.support.arguments import broadcast_value, common_dtype, common_shape, kind_of, not_compiled, value_of
from jitml.numpy.support.versions import power_takes_shortcuts
from jitml.trace.speculation import paths
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.values.boxing import TracedArray, TracedNumber, TracedScalar, fresh, is_traced, scalar
from jitml.trace.values.kinds import truth
from jitml.trace.values.registry import call, implements
from jitml.trace.values.type_unions import settled

# They change bits: sqrt(-0.0) is -0.0 where pow gives 0.0, and x * x is one rounding.
_SHORTCUTS: dict[float, np.ufunc] = {2.0: np.square, 0.5: np.sqrt, -1.0: np.reciprocal, 1.0: np.positive}


_NOT_REAL = (bool, np.bool_, np.complexfloating)


@implements(operator.pow)
def power_operator(base: Any, exponent: Any) -> Any:
    """`base ** exponent`: np.power, but for what NumPy's operator does otherwise to an array and a known number."""
    exponent = _known_if_short(exponent)
    if not isinstance(base, TracedArray):
        if is_inexact(base.dtype) and type(base) is TracedScalar and _known_number(exponent) in _SHORTCUTS:
            exponent = scalar(value_of(exponent, common_dtype(base, exponent)))  # scalars take no shortcuts
        return call(np.power, base, exponent)
    if base.dtype == BOOL and _is_two(exponent):
        return call(np.square, base)  # int8, where np.power has int64
    if power_takes_shortcuts():
        # Those of the ufunc are for real numbers, and go by its name.
        shortcut = _SHORTCUTS.get(exponent) if is_inexact(base.dtype) and type(exponent) in (int, float) else None
        return call(np.power, base, exponent) if shortcut is None else call(shortcut, base)
    return _shortcut_of_the_operator(base, exponent)


def _shortcut_of_the_operator(base: TracedArray, exponent: Any) -> Any:
    """`base ** exponent` before NumPy 2.3, when np.power had no shortcuts."""
    if isinstance(exponent, TracedScalar) and np.result_type(base.dtype, exponent.dtype) != base.dtype:
        known = constant_of(exponent.value)  # for the dtype of the result depends on it
        exponent = exponent if known is None else known[()]
    number = _known_number(exponent)
    # They do not look at the exponent's dtype: float32 stays float32 beside np.float64(2).
    if is_inexact(base.dtype):
        if number == 0:
            return call(np.power, base, 0.0)
        if number in _SHORTCUTS:
            return call(_SHORTCUTS[number], base)
    elif number == 2:
        widens = base.dtype.kind != "b" and _is_inexact(exponent)
        return call(np.square, base, dtype=F64 if widens else None)
    return call(np.power, base, exponent)


def replace_power(base: Any, exponent: Any) -> tuple[np.ufunc, tuple[Any, ...]]:
    """The ufunc and operands that NumPy's `base ** exponent` amounts to.

    Raises:
        ValueError: an integer to the power of an integer that is known to be negative.
        UnsupportedError: one that may be negative for all that is known.
    """
    exponent = _known_if_short(exponent)
    operands = (base, exponent)
    result = settled(operands, [*map(kind_of, operands)], lambda kinds: np.power.resolve_dtypes((*kinds, None))[2])
    number = _known_number(exponent)
    if is_inexact(result):
        takes = power_takes_shortcuts() and not isinstance(kind_of(base), type) and not is_complex(result)
        shortcut = _SHORTCUTS.get(number) if takes and number is not None else None
        return (np.power, (base, exponent)) if shortcut is None else (shortcut, (fresh(value_of(base, result)),))
    if number == 2:
        return np.square, (fresh(value_of(base, result)),)
    if not _has_no_elements(base):
        _check_not_negative(exponent)
    x, y = value_of(base, result), value_of(exponent, result)
    shape = common_shape("power", x.shape, y.shape)
    return np.positive, (fresh(ops.pow(broadcast_value(x, shape), broadcast_value(y, shape))),)


def _known_if_short(exponent: Any) -> Any:
    """A Python number as its value where a shortcut may follow from it."""
    if isinstance(exponent, TracedNumber) and exponent.slot is not None:
        # Exponents hardly change between calls, and a known one is far cheaper than pow.
        if exponent.kind is int or exponent.concrete in _SHORTCUTS:
            return exponent.known()
    return exponent


def _is_two(exponent: Any) -> bool:
    """Whether an exponent is Python's number 2; of what only the running program knows, it is decided for this call."""
    if type(exponent) is not TracedNumber:
        return type(exponent) is int and exponent == 2
    low, high = exponent.limits
    if exponent.kind is not int or not low <= 2 <= high:
        return False
    remedy = "Convert the booleans to integers first, as in x.astype(int) ** n."
    return bool(paths.number(truth(call(np.equal, exponent, 2)), "booleans ** n are int8 if n is 2, and else int64", remedy))


def _is_inexact(number: Any) -> bool:
    return isinstance(number, (float, np.floating))


def _known_number(exponent: Any) -> float | None:
    if is_traced(exponent) or not isinstance(exponent, (int, float, np.generic)) or isinstance(exponent, _NOT_REAL):
        return None
    return float(exponent)


def _has_no_elements(x: Any) -> bool:
    return isinstance(x, TracedArray) and 0 in x.sizes


def _check_not_negative(exponent: Any) -> None:
    kind = kind_of(exponent)
    if isinstance(kind, np.dtype) and kind.kind in "bu":
        return
    known = exponent if type(exponent) is int else constant_of(value_of(exponent))
    if known is None:
        not_compiled(
            "power",
            "of integers to signed integer powers that are known only at run time (NumPy refuses negative ones)",
            "Make the exponent a Python number, unsigned (.astype(np.uint64)), or floating point.",
        )
    if np.any(np.less(known, 0)):
        raise ValueError("Integers to negative integer powers are not allowed.")
