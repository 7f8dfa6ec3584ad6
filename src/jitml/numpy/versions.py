"""Which NumPy is this?  What the supported versions do differently, asked of the NumPy at hand and not of its number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np


def _power_takes_shortcuts() -> bool:
    """Since 2.3 the ufunc takes the shortcuts for known exponents; before, the operator `**` alone did.

    sqrt(-inf) is nan, where pow gives inf.
    """
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(np.power(np.full(1, -np.inf), 0.5))[0])


def _ellipsis_is_an_output() -> bool:
    """Since 2.3 `out=...` asks a ufunc for an array, also where it would return a scalar."""
    try:
        np.positive(0.0, out=...)
    except TypeError:
        return False
    return True


def _norm_of_nothing_is_zero() -> bool:
    """In newer versions the greatest of no sizes is 0 in norms; before, it was an error."""
    try:
        np.linalg.norm(np.empty(0), np.inf)
    except ValueError:
        return False
    return True


POWER_TAKES_SHORTCUTS = _power_takes_shortcuts()
ELLIPSIS_IS_AN_OUTPUT = _ellipsis_is_an_output()
NORM_OF_NOTHING_IS_ZERO = _norm_of_nothing_is_zero()


def check_argument(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse an argument that only other versions have.

    Raises:
        TypeError: it is given (not None), and the function of this NumPy has none of that name.
    """
    if value is not None and name not in inspect.signature(function).parameters:
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
