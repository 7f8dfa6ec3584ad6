"""Gradients of whole NumPy functions, against gradients derived by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import jitml

rng = np.random.default_rng(0)
Transform = Callable[..., Callable[..., Any]]


@pytest.fixture(params=[lambda f: f, jitml.jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def grad(finish: Any) -> Transform:
    return lambda f, argnums=0: finish(jitml.grad(f, argnums))


@pytest.fixture
def value_and_grad(finish: Any) -> Transform:
    return lambda f: finish(jitml.value_and_grad(f))


def close(got: object, expected: object, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-13)


def test_logistic_regression(value_and_grad: Transform) -> None:
    x, y, w = rng.normal(size=(20, 3)), rng.integers(0, 2, 20).astype(float), rng.normal(size=3)

    def loss(w: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-(x @ w)))
        return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()

    p = special.expit(x @ w)
    value, slope = value_and_grad(loss)(w)
    close(value, loss(w))
    close(slope, x.T @ (p - y) / len(y), rtol=1e-10)


def test_softmax_cross_entropy_written_in_place(grad: Transform) -> None:
    x, w, y = rng.normal(size=(7, 4)), rng.normal(size=(4, 3)), rng.integers(0, 3, 7)

    def loss(w: np.ndarray) -> float:
        p = x @ w
        p -= p.max(axis=1, keepdims=True)
        p = np.exp(p)
        p /= p.sum(axis=1, keepdims=True)
        return -np.log(p[np.arange(len(y)), y]).mean()

    p = special.softmax(x @ w, axis=1)
    close(grad(loss)(w), x.T @ (p - np.eye(3)[y]) / len(y), rtol=1e-10)


def test_two_layers_with_containers_of_parameters(grad: Transform) -> None:
    x, y = rng.normal(size=(9, 5)), rng.normal(size=(9, 2))
    params = {"first": (rng.normal(size=(5, 6)), rng.normal(size=6)), "last": [rng.normal(size=(6, 2)), rng.normal(size=2)]}

    def loss(params: dict, x: np.ndarray) -> float:
        (w1, b1), (w2, b2) = params["first"], params["last"]
        h = np.tanh(x @ w1 + b1)
        return (((h @ w2 + b2) - y) ** 2).sum()

    (w1, b1), (w2, b2) = params["first"], params["last"]
    h = np.tanh(x @ w1 + b1)
    d_out = 2 * (h @ w2 + b2 - y)
    d_in = (d_out @ w2.T) * (1 - h * h)
    slopes = grad(loss)(params, x)
    assert list(slopes) == ["first", "last"] and isinstance(slopes["first"], tuple) and isinstance(slopes["last"], list)
    for got, expected in zip([*slopes["first"], *slopes["last"]], [x.T @ d_in, d_in.sum(0), h.T @ d_out, d_out.sum(0)]):
        close(got, expected)
    close(grad(loss, 1)(params, x), d_in @ w1.T)


def test_layernorm(grad: Transform) -> None:
    x, gain, ct = rng.normal(size=(4, 8)), rng.normal(size=8), rng.normal(size=(4, 8))

    def f(x: np.ndarray, gain: np.ndarray) -> float:
        centred = x - x.mean(axis=-1, keepdims=True)
        return (ct * gain * centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)).sum()

    scale = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    n = (x - x.mean(axis=-1, keepdims=True)) * scale
    d = ct * gain
    expected = scale * (d - d.mean(-1, keepdims=True) - n * (d * n).mean(-1, keepdims=True))
    dx, dgain = grad(f, (0, 1))(x, gain)
    close(dx, expected, rtol=1e-10)
    close(dgain, (ct * n).sum(0))


def normal_cdf(x: np.ndarray) -> np.ndarray:
    # NumPy has no erf: Abramowitz and Stegun 26.2.17 is what people write, and its error is below 1e-7.
    k = 1 / (1 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * poly
    return np.where(x >= 0, 1 - tail, tail)


def black_scholes(spot: np.ndarray, strike: np.ndarray, years: np.ndarray, rate: float, vol: np.ndarray) -> np.ndarray:
    d1 = (np.log(spot / strike) + (rate + vol**2 / 2) * years) / (vol * np.sqrt(years))
    d2 = d1 - vol * np.sqrt(years)
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d2)


def test_black_scholes_greeks(grad: Transform) -> None:
    n = 50
    spot, strike = rng.uniform(50, 150, n), rng.uniform(50, 150, n)
    years, vol, rate = rng.uniform(0.1, 2, n), rng.uniform(0.1, 0.6, n), 0.03

    def total(*args: object) -> float:
        return black_scholes(*args).sum()

    delta, vega, rho = grad(total, (0, 4, 3))(spot, strike, years, rate, vol)
    d1 = (np.log(spot / strike) + (rate + vol**2 / 2) * years) / (vol * np.sqrt(years))
    d2 = d1 - vol * np.sqrt(years)
    np.testing.assert_allclose(delta, special.ndtr(d1), atol=2e-5)
    np.testing.assert_allclose(vega, spot * np.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi) * np.sqrt(years), rtol=2e-3, atol=1e-2)
    np.testing.assert_allclose(rho, (strike * years * np.exp(-rate * years) * special.ndtr(d2)).sum(), rtol=1e-3)
    assert isinstance(rho, np.float64)


def test_a_filter_written_with_slices_and_assignment(grad: Transform) -> None:
    image = rng.normal(size=(6, 7))

    def energy(image: np.ndarray) -> float:
        out = np.zeros_like(image)
        out[1:-1, 1:-1] = image[1:-1, 2:] - image[1:-1, :-2]
        out[0] += image[-1] ** 2
        return (out**2).sum()

    difference = image[1:-1, 2:] - image[1:-1, :-2]
    expected = np.zeros_like(image)
    expected[1:-1, 2:] += 2 * difference
    expected[1:-1, :-2] -= 2 * difference
    expected[-1] += 4 * image[-1] ** 3
    close(grad(energy)(image), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_keep_the_arguments_dtype(dtype: type, grad: Transform) -> None:
    x = np.arange(1, 5, dtype=dtype)
    slope = grad(lambda x: np.sqrt(x * 2.0).sum())(x)
    assert slope.dtype == dtype
    close(slope, 1 / np.sqrt(2 * x), rtol=1e-6)


def test_repeated_indices_add_up_and_the_last_write_wins(grad: Transform) -> None:
    x, i = rng.normal(size=4), np.array([2, 2, 0])
    close(grad(lambda x: (x[i] * np.array([1.0, 10.0, 100.0])).sum())(x), [100, 0, 11, 0])

    def write(v: np.ndarray) -> float:
        out = np.ones(4)
        out[i] = v
        return (out * np.array([1.0, 2.0, 3.0, 4.0])).sum()

    close(grad(write)(np.zeros(3)), [0, 3, 1])
