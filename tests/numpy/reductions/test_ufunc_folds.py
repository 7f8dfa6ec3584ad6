"""Methods of ufuncs that no op stands for: loops that give NumPy's own numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import agree, run_traced

X = np.random.default_rng(0).uniform(0.5, 2, (3, 4))


def changed(ufunc: np.ufunc, at: Any) -> Callable[[Any, Any], Any]:
    def program(x: Any, b: Any) -> Any:
        y = x * 1
        ufunc.at(y, at, b)
        return y

    return program


CASES: dict[str, Callable[[Any], Any]] = {
    "subtract": lambda x: np.subtract.reduce(x, axis=1),
    "divide": np.divide.reduce,
    "power": lambda x: np.power.accumulate(x, axis=1),
    "logaddexp": lambda x: np.logaddexp.reduce(x, axis=-1, keepdims=True),
    "an identity": lambda x: np.hypot.reduce(-x[0, :1]),
    "a start": lambda x: np.logaddexp.reduce(x, initial=1.0),
    "arctan2": lambda x: np.arctan2.accumulate(x[0]),
    "reduceat": lambda x: np.add.reduceat(x[0], [0, 2, 1]) + np.multiply.reduceat(x, [1, 0, 2], axis=0)[0, 0],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_folds(name: str, dtype: Any) -> None:
    agree(CASES[name], X.astype(dtype))


def test_places_are_compared_with_lengths_that_are_open() -> None:
    compiled = jitml.jit(lambda x: np.multiply.reduceat(x, [0, 2]))
    for n in (4, 5, 3):
        np.testing.assert_array_equal(compiled(X[0, :n]), np.multiply.reduceat(X[0, :n], [0, 2]))
    with pytest.raises(IndexError, match="out-of-bounds"):
        compiled(X[0, :2])


@pytest.mark.parametrize("ufunc", [np.divide, np.multiply, np.power, np.logaddexp, np.subtract])
def test_at(ufunc: np.ufunc) -> None:
    agree(changed(ufunc, np.array([0, 2, 2])), X, X[:3] + 1)
    agree(changed(ufunc, np.array([3, -1])), X[0], 0.5)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.divide, np.logaddexp])
@pytest.mark.parametrize(
    "at", [([0, 2, 2],) * 2, (0, [1, 1]), [0, 0], slice(0, 2)], ids=["elements", "in a row", "rows", "slice"]
)
def test_what_is_read_only_is_written_where_this_numpy_does(ufunc: np.ufunc, at: Any) -> None:
    def program(x: Any) -> Any:
        y = x * 1
        y.flags.writeable = False
        ufunc.at(y, at, 2.5)
        return y

    def into_a_diagonal(x: Any) -> Any:
        ufunc.at(np.diagonal(x), [0, 1, 1], 2.5)
        return x

    for f in (program, into_a_diagonal):
        try:
            want = f(X.copy())
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                jitml.jit(f)(X.copy())
        else:
            with warnings.catch_warnings(action="error"):
                np.testing.assert_allclose(jitml.jit(f)(X.copy()), want)


@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.minimum])
def test_complex_numbers(ufunc: np.ufunc) -> None:
    agree(changed(ufunc, np.array([1, 1, 0])), X[0] * 1j, X[1, :3] + 1j)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.subtract])
def test_the_largest_integers_beside_an_int_are_floats(ufunc: np.ufunc) -> None:
    big = np.array([2**53 + 1, 2**63 - 3, 7, 2**63 + 1, 2**62 + 5], np.uint64)
    agree(lambda x: changed(ufunc, [0, 1, 1, -2])(x, 3), big)


def test_nothing_to_reduce() -> None:
    with pytest.raises((ValueError, IndexError)):
        run_traced(lambda x: np.subtract.reduce(x[:, :0], axis=1), X)
