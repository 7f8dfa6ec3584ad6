"""NumPy versions: which NumPy is this?

What the supported versions do differently, asked of the NumPy at hand and not of its number.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def _works(do: Callable[[], Any], error: type[Exception]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            do()
        except error:
            return False
    return True


def _power_takes_shortcuts() -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(np.power(np.full(1, -np.inf), 0.5))[0])


def _dot_warns() -> bool:
    huge = np.full(1, 1e300)
    with np.errstate(over="raise"):
        return not _works(lambda: np.dot(huge, huge), FloatingPointError)


def _broadcast_keeps_arrays() -> bool:
    full = np.empty((1, 1))
    return np.broadcast_arrays(np.empty(1), full)[1] is full


def _flat_is_copied() -> bool:
    memory = np.zeros(1)
    return not np.shares_memory(np.array(memory.flat), memory)


def _at_writes_what_is_read_only() -> bool:
    array = np.zeros(1)
    array.flags.writeable = False
    return _works(lambda: np.add.at(array, [0], 1), ValueError)


# Since 2.3 the ufunc takes the shortcuts for known exponents; before, the operator `**` alone did.
# sqrt(-inf) is nan, where pow gives inf.
POWER_TAKES_SHORTCUTS = _power_takes_shortcuts()
# Since 2.3 `out=...` asks a ufunc for an array, also where it would return a scalar.
ELLIPSIS_IS_AN_OUTPUT = _works(lambda: np.positive(0.0, out=...), TypeError)
# In newer versions the greatest of no sizes is 0 in norms; before, it was an error.
NORM_OF_NOTHING_IS_ZERO = _works(lambda: np.linalg.norm(np.empty(0), np.inf), ValueError)
# In older versions `np.count_nonzero` of all elements was Python's int.
COUNT_IS_A_NUMBER = isinstance(np.count_nonzero(np.ones(1)), int)
# In newer versions `np.broadcast_arrays` hands on arrays that have the common shape; before, all were views if one was.
BROADCAST_KEEPS_ARRAYS = _broadcast_keeps_arrays()
# In older versions a fraction that is a plain number took the dtype of the floats whose quantile it asks for.
FRACTIONS_TAKE_THE_DTYPE = bool(np.quantile(np.array([-(2.0**30), 0.0], np.float32), 1 - 2.0**-30) == 0)
# In older versions one element may be set to an array of one, with a DeprecationWarning.
ONE_ELEMENT_IS_A_NUMBER = _works(lambda: np.zeros(1).__setitem__(0, np.zeros(1)), ValueError)
# In older versions `np.array(x.flat)` is a copy; in newer ones, memory in its order is handed on.
FLAT_IS_COPIED = _flat_is_copied()
# In older versions a Python integer that does not fit the dtype of `np.where` wraps around.
CHOICES_WRAP = _works(lambda: np.where(True, np.int8(0), 300), OverflowError)
# In newer versions the `out=` of `np.take` and `np.compress` may have any dtype.
PICKED_ARE_CONVERTED = _works(lambda: np.take(np.zeros(1, int), [0], out=np.zeros(1)), TypeError)
# In older versions `ufunc.at` writes elements of read-only arrays, though not rows.
AT_WRITES_WHAT_IS_READ_ONLY = _at_writes_what_is_read_only()
# In older versions sparse grids that are no copies came in a list.
GRIDS_ARE_A_TUPLE = isinstance(np.meshgrid([0], sparse=True, copy=False), tuple)
# In newer versions `np.roll` takes shifts that are floats with `int`; before, they were an error.
SHIFTS_ARE_CUT = _works(lambda: np.roll(np.zeros(2), 1.0), TypeError)  # type: ignore[call-overload]  # that is the question
# In older versions the condition by a norm of a complex matrix is a complex number.
CONDITIONS_ARE_COMPLEX = np.linalg.cond(np.full((1, 1), 1j), 1).dtype.kind == "c"
# In newer versions `np.dot` and what calls it warn of floating-point errors.
DOT_WARNS = _dot_warns()


def check_argument(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse an argument that only other versions have.

    Raises:
        TypeError: it is given (not None), and the function of this NumPy has none of that name.
    """
    if value is not None and name not in inspect.signature(function).parameters:
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
