"""Options that NumPy refuses, or takes in a way of its own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Function = Callable[[Any], Any]

ANSWERED: dict[str, Function] = {
    "take, clip by number": lambda x: np.take(x, [7, -2], mode=0),
    "take, wrap by number": lambda x: np.take(x, [7, -2], mode=1),
    "choose, wrap by number": lambda x: np.choose([7, 0], [x[:2], x[2:4]], mode=1),
    "mean counts what where= sums to": lambda x: np.mean(x, where=2),
    "std counts what where= sums to": lambda x: np.std(x, where=[1, 0, 1, 0, 1, 2]),
    "sum, where= of numbers": lambda x: np.sum(x, where=[1, 0, 1, 0, 1, 2]),
}
REFUSED: dict[str, tuple[Function, type[Exception]]] = {
    "zeros": (lambda x: np.zeros(3, order="A") + x[0], ValueError),
    "ones": (lambda x: np.ones(3, order="K") + x[0], ValueError),
    "full": (lambda x: np.full(3, 2.0, order="A") + x[0], ValueError),
    "eye": (lambda x: np.eye(3, order="A") + x[0], ValueError),
    "einsum": (lambda x: np.einsum("i,i", x, x, order="Q"), ValueError),
    "indices": (lambda x: np.indices(6)[0] + x, TypeError),
    "take": (lambda x: np.take(x, 2, mode="over"), ValueError),
    "choose": (lambda x: np.choose(0, [x, x], mode="over"), ValueError),
    "nan_to_num": (lambda x: np.nan_to_num(x, copy="no"), ValueError),
    "nanmean": (lambda x: np.nanmean(x, where=np.array(3)), TypeError),
}


@pytest.mark.parametrize("function", ANSWERED.values(), ids=ANSWERED)
def test_answers_as_numpy(function: Function) -> None:
    x = np.arange(6.0)
    np.testing.assert_allclose(jitml.jit(function, verify="never")(x), function(x), rtol=1e-15)


@pytest.mark.parametrize(("function", "error"), REFUSED.values(), ids=REFUSED)
def test_refuses_as_numpy(function: Function, error: type[Exception]) -> None:
    x = np.arange(6.0)
    with pytest.raises(error):
        function(x)
    with pytest.raises(error):
        jitml.jit(function)(x)
