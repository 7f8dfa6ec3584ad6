"""Slopes at kinks, ties, zeros and far out: the conventions of docs/derivatives.md, and rules that lose no digits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from jitml import grad, hessian, jacrev, jit, jvp, vmap
from jitml.errors import DerivativeError

inf, nan = np.inf, np.nan


def write_twice(v: np.ndarray) -> Any:
    out = np.ones(4)
    out[np.array([2, 2, 0])] = v
    return (out * np.array([1.0, 2.0, 3.0, 4.0])).sum()


# Name: (function, where, slope).
SLOPES: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "absolute value": (np.abs, 0.0, 0),
    "square root": (np.sqrt, 0.0, inf),
    "quotient of nothing by what is hardly more": (lambda x: (np.zeros((2, 3)) * x / np.array([[1e-310], [2.0]])).sum(), 1.0, 0),
    "norm": (np.linalg.norm, np.zeros(3), [0, 0, 0]),
    "third norm": (lambda x: np.linalg.norm(x, 3), np.zeros(3), [0, 0, 0]),
    "greatest norm": (lambda x: np.linalg.norm(x, inf), np.array([1.0, -1.0]), [0.5, -0.5]),
    "hypot": (lambda x: np.hypot(x[0], x[1]), np.zeros(2), [0, 0]),
    "sinc": (np.sinc, 0.0, 0),
    "sinc, nearly": (np.sinc, 1e-9, -(np.pi**2) / 3 * 1e-9),
    "base of a power": (lambda x: x**2.0, 0.0, 0),
    "base of a power below one": (lambda x: x**0.5, 0.0, inf),
    "base of the power zero": (lambda x: x**0.0, 0.0, 0),
    "negative base": (lambda x: x**3.0, -2.0, 12),
    "exponent over zero": (lambda y: np.float64(0.0) ** y, 2.0, 0),
    "integer power": (lambda x: x**3, 0.0, 0),
    "square": (lambda x: x**2, 0.0, 0),
    "log1p far below": (np.log1p, 1e-300, 1),
    "expm1": (np.expm1, -1e-300, 1),
    "expm1 far below": (lambda x: np.expm1(x) + special.expm1(x), -40.0, 2 * math.exp(-40)),
    "angle of a short arrow": (lambda x: np.arctan2(x[0], x[1]), np.array([3e-200, 4e-200]), [1.6e199, -1.2e199]),
    "angle of a long arrow": (lambda x: np.arctan2(x[0], x[1]), np.array([3e200, -4e200]), [-1.6e-201, -1.2e-201]),
    "arcsinh far out": (np.arcsinh, -1e200, 1e-200),
    "arccosh far out": (np.arccosh, 1e200, 1e-200),
    "complex arcsinh far out": (lambda x: np.arcsinh(x + 1j).real, -1e200, 1e-200),
    "logaddexp of equals": (lambda x: np.logaddexp(x, 1.0), 1.0, 0.5),
    "logaddexp far out": (lambda x: np.logaddexp(x, 0.0), -1000.0, 0),
    "logaddexp of equal infinities": (lambda x: np.logaddexp(x, inf), 3.0, 0),
    "softmax far out": (lambda x: special.softmax(x)[0], np.array([1000.0, 0.0]), [0, 0]),
    "logsumexp far out": (special.logsumexp, np.array([1000.0, 0.0]), [1, 0]),
    "logsumexp of an infinity": (special.logsumexp, np.array([0.0, -inf]), [1, 0]),
    "tanh far out": (np.tanh, 400.0, 0),
    "logistic far out": (lambda x: 1 / (1 + np.exp(-x)), 800.0, 0),
    "xlogy": (lambda x: special.xlogy(x, 3.0), 0.0, np.log(3)),
    "xlogy of nothing": (lambda x: special.xlogy(x, 0.0), 0.0, 0),
    "entropy": (lambda p: special.xlogy(p, p).sum(), np.array([0.0, 1.0]), [0, 1]),
    "equal operands of maximum": (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
    "clip at its bound": (lambda x: np.clip(x, 0.0, 1.0), 1.0, 0.5),
    "relu": (lambda x: np.where(x > 0, x, 0.0), 0.0, 0),
    "equal greatest": (np.max, np.array([1.0, 5.0, 5.0]), [0, 0.5, 0.5]),
    "greatest beside nan": (np.max, np.array([1.0, nan, 5.0]), [nan, nan, nan]),
    "least of rows, one with nan": (
        lambda x: x.min(axis=1) @ [2.0, 1.0],
        np.array([[1.0, 1.0], [nan, 2.0]]),
        [[1, 1], [nan, nan]],
    ),
    "greatest beside a start that ties": (lambda x: np.max(x, initial=5.0), np.array([1.0, 5.0, 5.0]), [0, 0.25, 0.25]),
    "greatest of Python's equals": (lambda x: max(x[0], x[1]), np.array([5.0, 5.0]), [1, 0]),
    "spread of equals": (np.ptp, np.array([2.0, 2.0]), [0, 0]),
    "median of equals": (np.median, np.array([1.0, 5.0, 5.0, 7.0]), [0, 0.5, 0.5, 0]),
    "sorted equals": (lambda x: (np.sort(x) * np.array([1.0, 10.0, 100.0])).sum(), np.array([3.0, 1.0, 3.0]), [10, 1, 100]),
    "running greatest": (lambda x: np.maximum.accumulate(x).sum(), np.array([2.0, 2.0, 1.0]), [1, 2, 0]),
    "product with a zero": (np.prod, np.array([0.0, 2.0, 3.0]), [6, 0, 0]),
    "product with two zeros": (np.prod, np.array([0.0, 0.0, 3.0]), [0, 0, 0]),
    "running product": (lambda x: np.cumprod(x).sum(), np.array([0.0, 2.0]), [3, 0]),
    "variance of equals": (np.var, np.array([2.0, 2.0]), [0, 0]),
    "deviation of equals": (lambda x: (np.std(x) + np.nanstd(x)) * x[0], np.array([2.0, 2.0]), [0, 0]),
    "layer norm of equals": (lambda x: ((x - x.mean()) / (x.std() + 0.5))[0], np.array([2.0, 2.0]), [1, -1]),
    "harmonic norm of a zero": (lambda x: np.linalg.norm(x, -1) + np.linalg.norm(x, -2), np.array([0.0, 2.0]), [0, 0]),
    "decimal places of Python's": (lambda x: round(x, 1) * x, 1.25, 1.2),
    "steps": (lambda x: np.floor(x) + np.round(x) + np.sign(x) + x // 2, 1.5, 0),
    "interpolation outside": (lambda x: np.interp(x, [0.0, 1.0], [0.0, 5.0]), 7.0, 0),
    "interpolation": (lambda x: np.interp(x, [0.0, 1.0], [0.0, 5.0]), 0.3, 5),
    "interpolation at samples": (
        lambda x: np.interp(x, np.arange(5.0), np.arange(5.0) ** 2).sum(),
        np.arange(5.0),
        [1, 3, 5, 7, 7],
    ),
    "interpolation at its places": (
        lambda x: np.interp([0.0, 1, 2], x, [0.0, 1, 4]).sum(),
        np.arange(3.0),
        [-1, -3, -3],
    ),
    "interpolation at its samples": (lambda y: np.interp([0.0, 1, 2], [0.0, 1, 2], y) @ [1.0, 2, 3], np.arange(3.0), [1, 2, 3]),
    "interpolation at steps": (lambda x: np.interp(x, [0.0, 1, 1, 2, 2], [0.0, 1, 5, 7, 9]).sum(), np.arange(3.0), [1, 2, 0]),
    "interpolation of complex values": (lambda x: np.interp(x, [0.0, 1], [0j, 2 + 5j]).imag.sum(), np.arange(2.0), [5, 5]),
    "unwrapped halves of a period": (lambda x: np.unwrap(x, period=360) @ [1.0, 2, 3], np.array([0.0, 180, 360]), [1, 2, 3]),
    "period of what is unwrapped": (lambda p: np.unwrap(np.array([0.0, 180, 720, 900]), period=p).sum(), 360.0, -2),
    "fractions": (lambda x: np.modf(x)[0] @ [1.0, 2, 3, 4], np.array([-1.0, 0, 2, 2.5]), [1, 2, 3, 4]),
    "divisor of Python's remainder": (lambda y: math.remainder(5.0, y), 3.0, -2),
    "both operands of Python's remainder": (lambda x: math.remainder(x, 0.3 * x), 5.0, 0.1),
    "where nextafter goes": (lambda y: np.nextafter(1.0, y) + math.nextafter(1.0, y), 3.0, 0),
    "both operands of nextafter": (lambda x: np.nextafter(x, x + 1) * 2 + math.nextafter(x, x + 1), 3.0, 3),
    "nextafter beside a number": (lambda x: np.nextafter(x, 3.0).sum() + np.nextafter(x[0], x).sum(), np.ones(2), [3, 1]),
    "a function of Python's itself": (math.exp2, 3.0, 8 * math.log(2)),
    "a function of Python's handed on": (
        lambda x: functools.reduce(math.hypot, [x[0], x[1], 1.0]),
        np.full(2, 2.0),
        [2 / 3, 2 / 3],
    ),
    "length of three": (lambda x: math.hypot(2.0, x, 1.0), 2.0, 2 / 3),
    "branch that is not taken": (lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0), -1.0, 0),
    "remainder": (lambda x: np.remainder(x, 2.0), 5.0, 1),
    "last write": (write_twice, np.zeros(3), [0, 3, 1]),
    "nan_to_num": (lambda x: np.nan_to_num(x).sum(), np.array([nan, 1.0, inf]), [0, 1, 0]),
    "ignored nan": (np.nansum, np.array([nan, 1.0]), [0, 1]),
}


@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", SLOPES)
def test_slope(name: str, finish: Any) -> None:
    f, x, slope = SLOPES[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(finish(grad(f))(x), slope, rtol=1e-9, atol=1e-300)
        direction = np.ones_like(x) if isinstance(x, np.ndarray) else 1.0
        forward = finish(lambda x: jvp(f, (x,), (direction,))[1])(x)
        np.testing.assert_allclose(forward, np.sum(np.array(slope, float)), rtol=1e-9, atol=1e-300)


def test_a_branch_that_is_not_taken_and_has_an_infinite_slope() -> None:
    """Reverse mode multiplies that slope by a cotangent of zero; forward mode chooses between tangents."""
    f = lambda x: np.where(x > 0, np.sqrt(x), 0.0)  # noqa: E731
    assert np.isnan(grad(f)(0.0))
    assert jvp(f, (0.0,), (1.0,))[1] == 0


@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
def test_a_sigmoid_is_flat_where_exp_overflows(finish: Any) -> None:
    x = np.array([-800.0, -3.0, 0.0, 3.0, 800.0])
    s = 1 / (1 + np.exp(np.minimum(-x, 700)))
    slope = finish(grad(lambda x: (1 / (1 + np.exp(-x))).sum()))
    for _ in range(3):
        np.testing.assert_allclose(slope(x), s * (1 - s), rtol=1e-14, atol=1e-300)


def test_higher_derivatives_at_special_points() -> None:
    assert grad(grad(np.sinc))(0.0) == pytest.approx(-(np.pi**2) / 3, rel=1e-12)
    assert grad(grad(grad(grad(np.sinc))))(0.0) == pytest.approx(np.pi**4 / 5, rel=1e-12)
    np.testing.assert_allclose(
        hessian(lambda x: np.logaddexp(x[0], x[1]))(np.ones(2)), [[0.25, -0.25], [-0.25, 0.25]], rtol=1e-12
    )
    np.testing.assert_allclose(hessian(np.prod)(np.array([0.0, 2.0, 3.0])), [[0, 3, 2], [3, 0, 0], [2, 0, 0]])
    p = special.softmax(np.arange(3.0))
    np.testing.assert_allclose(jacrev(special.softmax)(np.arange(3.0)), np.diag(p) - np.outer(p, p), rtol=1e-12)
    np.testing.assert_allclose(hessian(special.logsumexp)(np.arange(3.0)), np.diag(p) - np.outer(p, p), rtol=1e-12)
    assert grad(grad(lambda x: x**2))(0.0) == 2
    assert grad(grad(lambda x: x**3.0))(0.0) == 0


MASKED: dict[str, tuple[Callable[..., Any], Any]] = {
    "log": (lambda x: np.log(x, where=x > 0, out=np.zeros(3)), [0, 0, 0.25]),
    "sqrt": (lambda x: np.sqrt(x, where=x > 0, out=np.zeros(3)), [0, 0, 0.25]),
    "divide": (lambda x: np.divide(1.0, x, where=x != 0, out=np.zeros(3)), [-1, 0, -1 / 16]),
    "power": (lambda x: np.power(x, 1.5, where=x > 0, out=np.zeros(3)), [0, 0, 3]),
    "arccosh": (lambda x: np.arccosh(x, where=x > 1, out=np.zeros(3)), [0, 0, 15**-0.5]),
    "arcsin": (lambda x: np.arcsin(x / 4, where=x < 0, out=np.zeros(3)), [15**-0.5, 0, 0]),
    "multiply": (lambda x: np.multiply(x, [1, inf, 2], where=x != 0, out=np.zeros(3)), [1, 0, 2]),
    "xlogy": (lambda x: special.xlogy(x, x, where=x > 0, out=np.zeros(3)), [0, 0, 1 + np.log(4)]),
    "onto itself": (lambda x: np.sqrt(x, where=x > 0, out=x), [1, 1, 0.25]),
    "of new memory": (lambda x: np.where(x > 0, np.log(x, where=x > 0), 0.0), [0, 0, 0.25]),
    "rows": (lambda x: np.sqrt(x * np.ones((2, 1)), where=x > 0, out=np.zeros((2, 3))), [0, 0, 0.5]),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_of_a_ufunc_leaves_out_slopes_too(name: str) -> None:
    f, slope = MASKED[name]
    x = np.array([-1.0, 0.0, 4.0])

    def total(x: np.ndarray) -> Any:
        return f(x).sum()

    gradient = grad(total)
    for found in (gradient(x), jit(gradient)(x), vmap(gradient)(np.stack([x, x]))[1], jit(vmap(gradient))(x[None])[0]):
        np.testing.assert_allclose(found, slope, rtol=1e-13)
    np.testing.assert_allclose(jvp(total, (x,), (np.ones(3),))[1], np.sum(slope), rtol=1e-13)


@pytest.mark.loose
def test_a_mask_of_a_function_that_numpy_answers_is_refused() -> None:
    slope = grad(lambda x: special.gammaln(x, where=x > 0, out=np.zeros(3)).sum())
    with pytest.raises(DerivativeError, match="gammaln with where= is not compiled"):
        slope(np.array([-1.0, 0.0, 4.0]))
