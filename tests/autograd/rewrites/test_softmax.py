"""A softmax keeps its value for its slope, and nothing else; what only looks like one has the slopes of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.autograd.reverse.linearize import linearize
from jitml.ir import ops

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((4, 4, 5)), RNG.standard_normal((4, 4, 5))


def by_rows(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def down_columns(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(axis=0)


def over_two_axes(x: Any) -> Any:
    e = np.exp(2 * x)
    return e / e.sum(axis=(0, 2), keepdims=True)


def over_all(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum()


def in_a_loop(x: Any) -> Any:
    for _ in range(3):
        e = np.exp(x)
        x = x + e / e.sum(axis=1, keepdims=True)
    return x


SOFTMAXES = (by_rows, down_columns, over_two_axes, over_all, in_a_loop)


def beside_other_rows(x: Any) -> Any:
    e = np.exp(x[:, :, :4])
    return e / e.sum(axis=2)[:, None]


def of_other_numbers(x: Any) -> Any:
    return np.exp(x) / np.exp(2 * x).sum(axis=1, keepdims=True)


def of_no_exponential(x: Any) -> Any:
    e = np.cosh(x)
    return e / e.sum(axis=1, keepdims=True)


LOOKALIKES = (beside_other_rows, of_other_numbers, of_no_exponential)


@pytest.mark.parametrize("function", (*SOFTMAXES, *LOOKALIKES), ids=lambda f: f.__name__)
def test_slopes_are_right_to_second_order(function: Callable[[Any], Any]) -> None:
    jitml.check_grads(function, (X,), order=2)
    jitml.check_grads(function, (X[:, :1],), order=1)


def _quotients(function: Callable[[Any], Any], x: Any = X) -> int:
    w = W[tuple(map(slice, x.shape))]
    gradient = jitml.jit(jitml.grad(lambda x: (function(x) * w).sum()))
    return sum(node.op is ops.div for node in gradient.lower(x).graph.nodes)


@pytest.mark.parametrize("function", SOFTMAXES[:-1], ids=lambda f: f.__name__)
def test_cotangents_are_not_divided(function: Callable[[Any], Any]) -> None:
    assert _quotients(function) == 1


@pytest.mark.parametrize("x", [X[:1], X[:, :1], X[:1, :1]], ids=lambda x: str(x.shape))
def test_nor_are_they_beside_axes_of_length_1(x: Any) -> None:
    assert _quotients(by_rows, x) == 1
    jitml.check_grads(by_rows, (x,), order=2)


def test_those_of_lookalikes_are() -> None:
    assert _quotients(of_other_numbers) > 1


@pytest.mark.parametrize("function", (by_rows, down_columns, over_all), ids=lambda f: f.__name__)
def test_only_the_value_is_kept(function: Callable[[Any], Any]) -> None:
    derivative = linearize(jitml.jit(function).lower(X).traced, [0])
    (value, *residuals) = derivative.forward.outputs
    assert [v for v in residuals if v.shape == X.shape] == [value]


def over_rows(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


def test_rows_that_overflow_have_slopes_where_their_values_are_finite() -> None:
    x = np.array([[1000.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = jitml.grad(lambda x: over_rows(x)[:, 1].sum())(x)
    np.testing.assert_allclose(slopes[1], jitml.grad(lambda x: by_rows(x)[1])(x[1]), rtol=1e-12)
