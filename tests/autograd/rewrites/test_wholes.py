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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softplus_has_slopes_however_large_its_exponential(dtype: Any) -> None:
    x = np.array([-1e4, -3.0, 0.0, 88.0, 709.0, 1e4, np.nan], dtype)
    slope = jitml.jit(jitml.grad(lambda x: np.log1p(np.exp(x)).sum()))
    with np.errstate(over="ignore"):
        got = slope(x)
        expected = 1 / (1 + np.exp(-x))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("f", [lambda x: np.exp(x) / (1 + np.exp(x)), lambda x: np.exp(x) / (np.exp(x) + 1.0)])
def test_a_sigmoid_of_an_exponential_keeps_its_digits(f: Callable[[Any], Any]) -> None:
    for x in (-50.0, 0.5, 37.43, 600.0):
        sloped = np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2
        np.testing.assert_allclose(jitml.grad(f)(x), sloped, rtol=1e-14)
    jitml.check_grads(f, (0.3,), order=3)
    jitml.check_grads(lambda x: np.log1p(np.exp(x)), (-0.7,), order=3)


def test_what_is_no_sigmoid_is_not_taken_for_one() -> None:
    e = np.exp(0.3)
    other = jitml.grad(lambda x: np.exp(x) / (1 + np.exp(2 * x)))
    np.testing.assert_allclose(other(0.3), (e - e**3) / (1 + e * e) ** 2, rtol=1e-14)
    more = jitml.grad(lambda x: np.exp(x) / (2 + np.exp(x)))
    np.testing.assert_allclose(more(0.3), 2 * e / (2 + e) ** 2, rtol=1e-14)

    def cut(x: Any) -> Any:
        e = np.where(np.exp(x) > 1, 1.0, np.exp(x))
        return e / (e + 1)

    assert jitml.grad(cut)(0.3) == 0


def test_ldexp_of_a_list() -> None:
    assert jitml.grad(lambda v: np.sum(np.ldexp([v, v], [1, 2])))(1.3) == 6.0
