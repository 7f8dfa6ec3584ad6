"""Derivatives of whole programs: compiled, they are what the same graphs give when they are interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import grad

Array = np.ndarray[Any, Any]


def slope(x: Array) -> Any:
    return (np.gradient(x) ** 2).sum()


def cross_entropy(x: Array) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(x)), np.arange(len(x)) % x.shape[1]]).mean()


def normalised(x: Array) -> Any:
    centred = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (np.tanh(centred) * np.arange(x.shape[-1])).sum()


def second(f: Callable[[Array], Any]) -> Callable[[Array], Any]:
    return grad(lambda x: (grad(f)(x) ** 2).sum())


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        # Pieces of one element: each is wanted, and stored, only where a box of the concat has it.
        pytest.param(grad(slope), (5,), id="the pieces of a concat"),
        # A row that waits for the pass after next, beside outputs that earlier passes have finished.
        pytest.param(second(cross_entropy), (3, 3), id="rows that wait for several passes"),
        # Scratch of one vector: its loads look invariant in the loop over rows that writes it.
        pytest.param(second(normalised), (2, 4), id="scratch of one vector"),
        pytest.param(second(normalised), (3, 20), id="scratch of several vectors"),
    ],
)
def test_a_compiled_derivative_is_the_interpreted_one(function: Callable[[Array], Any], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    expected = function(x)
    np.testing.assert_allclose(jitml.jit(function)(x), expected, rtol=1e-12, atol=1e-12 * abs(expected).max())
