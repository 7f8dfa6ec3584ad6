"""NumPy versions: which NumPy is this?

What the supported versions do differently, asked of the NumPy at hand and not of its number. Each question is asked when it is
first needed: some bring parts of NumPy that few programs import.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from jitml.headroom import require_numpys_blas


def _asked_once(ask: Callable[[], bool]) -> Callable[[], bool]:
    """The question, which is answered once. Errors of its arithmetic are none of the function's that is traced meanwhile."""

    @cache
    def answer() -> bool:
        with np.errstate(all="ignore"):
            return ask()

    return answer


def _works(do: Callable[[], Any], error: type[Exception]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            do()
        except error:
            return False
    return True


@_asked_once
def power_takes_shortcuts() -> bool:
    """Since 2.3 the ufunc takes the shortcuts for known exponents; before, the operator `**` alone did."""
    return bool(np.isnan(np.power(np.full(1, -np.inf), 0.5))[0])  # sqrt(-inf) is nan, where pow gives inf


@_asked_once
def ellipsis_is_an_output() -> bool:
    """Since 2.3 `out=...` asks a ufunc for an array, also where it would return a scalar."""
    return _works(lambda: np.positive(0.0, out=...), TypeError)


@_asked_once
def norm_of_nothing_is_zero() -> bool:
    """In newer versions the greatest of no sizes is 0 in norms; before, it was an error."""
    return _works(lambda: np.linalg.norm(np.empty(0), np.inf), ValueError)


@_asked_once
def count_is_a_number() -> bool:
    """In older versions `np.count_nonzero` of all elements was Python's int."""
    return isinstance(np.count_nonzero(np.ones(1)), int)


@_asked_once
def broadcast_keeps_arrays() -> bool:
    """In newer versions `np.broadcast_arrays` hands on arrays that have the common shape; before, all were views if one was."""
    full = np.empty((1, 1))
    return np.broadcast_arrays(np.empty(1), full)[1] is full


@_asked_once
def fractions_take_the_dtype() -> bool:
    """In older versions a fraction that is a plain number took the dtype of the floats whose quantile it asks for."""
    return bool(np.quantile(np.array([-(2.0**30), 0.0], np.float32), 1 - 2.0**-30) == 0)


@_asked_once
def one_element_is_a_number() -> bool:
    """In older versions one element may be set to an array of one, with a DeprecationWarning."""
    return _works(lambda: np.zeros(1).__setitem__(0, np.zeros(1)), ValueError)


@_asked_once
def flat_is_copied() -> bool:
    """In older versions `np.array(x.flat)` is a copy; in newer ones, memory in its order is handed on."""
    memory = np.zeros(1)
    return not np.shares_memory(np.array(memory.flat), memory)


@_asked_once
def choices_wrap() -> bool:
    """In older versions a Python integer that does not fit the dtype of `np.where` wraps around."""
    return _works(lambda: np.where(True, np.int8(0), 300), OverflowError)


@_asked_once
def picked_are_converted() -> bool:
    """In newer versions the `out=` of `np.take` and `np.compress` may have any dtype."""
    return _works(lambda: np.take(np.zeros(1, int), [0], out=np.zeros(1)), TypeError)


@_asked_once
def at_writes_what_is_read_only() -> bool:
    """In older versions `ufunc.at` writes elements of read-only arrays, though not rows."""
    array = np.zeros(1)
    array.flags.writeable = False
    return _works(lambda: np.add.at(array, [0], 1), ValueError)


@_asked_once
def grids_are_a_tuple() -> bool:
    """In older versions sparse grids that are no copies came in a list."""
    return isinstance(np.meshgrid([0], sparse=True, copy=False), tuple)


@_asked_once
def shifts_are_cut() -> bool:
    """In newer versions `np.roll` takes shifts that are floats with `int`; before, they were an error."""
    return _works(lambda: np.roll(np.zeros(2), 1.0), TypeError)  # type: ignore[call-overload]  # that is the question


@_asked_once
def conditions_are_complex() -> bool:
    """In older versions the condition by a norm of a complex matrix is a complex number."""
    require_numpys_blas()
    return np.linalg.cond(np.full((1, 1), 1j), 1).dtype.kind == "c"


@_asked_once
def dot_warns() -> bool:
    """In newer versions `np.dot` and what calls it warn of floating-point errors."""
    require_numpys_blas()
    huge = np.full(1, 1e300)
    with np.errstate(over="raise"):
        return not _works(lambda: np.dot(huge, huge), FloatingPointError)


def check_argument(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse an argument that only other versions have.

    Raises:
        TypeError: it is given (not None), and the function of this NumPy has none of that name.
    """
    if value is not None and name not in inspect.signature(function).parameters:
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
