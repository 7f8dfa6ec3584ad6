"""Which NumPy is this?  What the supported versions do differently, asked of the NumPy at hand and not of its number."""

from __future__ import annotations

import inspect
import warnings
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


def _count_is_a_number() -> bool:
    """In older versions `np.count_nonzero` of all elements was Python's int."""
    return isinstance(np.count_nonzero(np.ones(1)), int)


def _broadcast_keeps_arrays() -> bool:
    """In newer versions `np.broadcast_arrays` hands on arrays that have the common shape; before, all were views if one was."""
    full = np.empty((1, 1))
    return np.broadcast_arrays(np.empty(1), full)[1] is full


def _fractions_take_the_dtype() -> bool:
    """In older versions a fraction that is a plain number took the dtype of the floats whose quantile it asks for."""
    return bool(np.quantile(np.array([-(2.0**30), 0.0], np.float32), 1 - 2.0**-30) == 0)


def _one_element_is_a_number() -> bool:
    """In older versions one element may be set to an array of one, with a DeprecationWarning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            np.zeros(1)[0] = np.zeros(1)
        except ValueError:
            return False
    return True


def _flat_is_copied() -> bool:
    """In older versions `np.array(x.flat)` is a copy; in newer ones, memory in its order is handed on."""
    memory = np.zeros(1)
    return not np.shares_memory(np.array(memory.flat), memory)


def _choices_wrap() -> bool:
    """In older versions a Python integer that does not fit the dtype of `np.where` wraps around."""
    try:
        np.where(True, np.int8(0), 300)
    except OverflowError:
        return False
    return True


def _picked_are_converted() -> bool:
    """In newer versions the `out=` of `np.take` and `np.compress` may have any dtype."""
    try:
        np.take(np.zeros(1, int), [0], out=np.zeros(1))
    except TypeError:
        return False
    return True


def _grids_are_a_tuple() -> bool:
    """In older versions sparse grids that are no copies came in a list."""
    return isinstance(np.meshgrid([0], sparse=True, copy=False), tuple)


POWER_TAKES_SHORTCUTS = _power_takes_shortcuts()
ELLIPSIS_IS_AN_OUTPUT = _ellipsis_is_an_output()
NORM_OF_NOTHING_IS_ZERO = _norm_of_nothing_is_zero()
COUNT_IS_A_NUMBER = _count_is_a_number()
BROADCAST_KEEPS_ARRAYS = _broadcast_keeps_arrays()
FRACTIONS_TAKE_THE_DTYPE = _fractions_take_the_dtype()
ONE_ELEMENT_IS_A_NUMBER = _one_element_is_a_number()
FLAT_IS_COPIED = _flat_is_copied()
CHOICES_WRAP = _choices_wrap()
PICKED_ARE_CONVERTED = _picked_are_converted()
GRIDS_ARE_A_TUPLE = _grids_are_a_tuple()


def check_argument(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse an argument that only other versions have.

    Raises:
        TypeError: it is given (not None), and the function of this NumPy has none of that name.
    """
    if value is not None and name not in inspect.signature(function).parameters:
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
