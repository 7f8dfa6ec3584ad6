"""np.power before its loop: NumPy's shortcuts for known exponents, and its refusal of negative integer powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.numpy.operands import broadcast_value, common_shape, kind_of, not_compiled, value_of
from jitml.trace.known import constant_of
from jitml.trace.tracers import TracedNumber, fresh, is_traced

# They change bits: sqrt(-0.0) is -0.0 where pow gives 0.0, and x * x is one rounding.
_SHORTCUTS: dict[float, np.ufunc] = {2.0: np.square, 0.5: np.sqrt, -1.0: np.reciprocal, 1.0: np.positive}


def replace_power(base: Any, exponent: Any) -> tuple[np.ufunc, tuple[Any, ...]]:
    """The ufunc and operands that NumPy's `base ** exponent` amounts to.

    Raises:
        ValueError: an integer to the power of an integer that is known to be negative.
        UnsupportedError: one that may be negative for all that is known.
    """
    if isinstance(exponent, TracedNumber) and exponent.slot is not None:
        # Exponents hardly change between calls, and a known one is far cheaper than pow.
        if exponent.kind is int or exponent.concrete in _SHORTCUTS:
            exponent = exponent.known()
    result = np.power.resolve_dtypes((kind_of(base), kind_of(exponent), None))[2]
    number = _known_number(exponent)
    if result.kind == "f":
        shortcut = None if number is None or isinstance(kind_of(base), type) else _SHORTCUTS.get(number)
        return (np.power, (base, exponent)) if shortcut is None else (shortcut, (fresh(value_of(base, result)),))
    if number == 2:
        return np.square, (fresh(value_of(base, result)),)
    _check_not_negative(exponent)
    x, y = value_of(base, result), value_of(exponent, result)
    shape = common_shape("power", x.shape, y.shape)
    return np.positive, (fresh(ops.pow(broadcast_value(x, shape), broadcast_value(y, shape))),)


def _known_number(exponent: Any) -> float | None:
    if is_traced(exponent) or not isinstance(exponent, (int, float, np.generic)) or isinstance(exponent, (bool, np.bool_)):
        return None
    return float(exponent)


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
