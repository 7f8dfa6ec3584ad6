"""Functions that are smooth, made of parts that are not: norms squared, lengths, softplus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
CENTRE = np.array([0.3, -0.2, 0.5])

SQUARES: dict[str, Callable[[Array], Any]] = {
    "norm": lambda d: np.linalg.norm(d) ** 2,
    "np.square": lambda d: np.square(np.linalg.norm(d)),
    "of rows": lambda d: np.sum(np.linalg.norm(d[:, None], axis=1, keepdims=True) ** 2),
    "under an exponential": lambda d: -np.exp(-(np.linalg.norm(d) ** 2)),
    "a root": lambda d: np.sqrt(np.sum(d * d)) ** 2,
    "complex": lambda d: np.sum(np.abs(d * 1j) ** 2),
    "hypot": lambda d: np.hypot(d[0], d[1]) ** 2 + d[2] ** 2,
}
TWICE: dict[str, Callable[..., Any]] = {
    "hessian": jitml.hessian,
    "forward": lambda f: jitml.jacfwd(jitml.jacfwd(f)),
    "reverse": lambda f: jitml.jacrev(jitml.jacrev(f)),
}


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("how", TWICE)
def test_a_norm_squared_is_curved_at_the_origin(name: str, how: str) -> None:
    def f(x: Array) -> Any:
        return SQUARES[name](x - CENTRE)

    np.testing.assert_allclose(TWICE[how](f)(CENTRE), 2 * np.eye(3), atol=1e-14)
    away = CENTRE + np.array([0.3, 0.1, -0.4])
    assert f(away) == jitml.value_and_grad(f)(away)[0]
    jitml.check_grads(f, (away,), order=2)


def test_the_fourth_power_too() -> None:
    def f(x: Array) -> Any:
        return np.linalg.norm(x) ** 4

    np.testing.assert_array_equal(jitml.hessian(f)(np.zeros(3)), np.zeros((3, 3)))
    jitml.check_grads(f, (CENTRE,), order=2)


def test_a_length_of_nothing_has_no_slope() -> None:
    def beside(w: Array) -> Any:
        return (np.sqrt(np.sum((0 * w) ** 2)) - 1) ** 2

    np.testing.assert_array_equal(jitml.grad(beside)(np.ones(2)), np.zeros(2))
    np.testing.assert_array_equal(jitml.grad(lambda w: np.sqrt(w[0] ** 2 + w[1] ** 2))(np.zeros(2)), np.zeros(2))
    assert jitml.jvp(lambda w: np.sqrt(np.sum(w * w)), (np.zeros(3),), (CENTRE,)) == (0.0, 0.0)
    jitml.check_grads(lambda w: np.sqrt(np.sum(w**2)), (CENTRE,), order=2)
    with np.errstate(divide="ignore"):
        assert jitml.grad(np.sqrt)(0.0) == np.inf  # of a number that is no square


@pytest.mark.parametrize("x", [-50.0, 0.0, 3.0, 20.0, 37.43, 700.0])
def test_softplus_keeps_its_digits(x: float) -> None:
    def softplus(x: Any) -> Any:
        return np.log1p(np.exp(x))

    curved = np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2
    np.testing.assert_allclose(jitml.grad(softplus)(x), 1 / (1 + np.exp(-x)), rtol=1e-14)
    np.testing.assert_allclose(jitml.grad(jitml.grad(softplus))(x), curved, rtol=1e-14)
    np.testing.assert_allclose(jitml.jacfwd(jitml.jacfwd(softplus))(x), curved, rtol=1e-14)


def test_ldexp_of_a_list() -> None:
    assert jitml.grad(lambda v: np.sum(np.ldexp([v, v], [1, 2])))(1.3) == 6.0
