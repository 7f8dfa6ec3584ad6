"""scipy.special under jit, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import jitml

X = np.concatenate([np.linspace(-6, 6, 101), [0.0, -0.0, 40.0, -40.0]])
M = np.random.default_rng(0).normal(size=(4, 7)) * 30


@pytest.mark.parametrize("name", ["erf", "expit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pointwise(name: str, dtype: type) -> None:
    function, x = getattr(special, name), X.astype(dtype)
    result = jitml.jit(function)(x)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, function(x), rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


def test_logit_and_xlogy() -> None:
    p = np.linspace(0, 1, 21)
    np.testing.assert_allclose(jitml.jit(special.logit)(p), special.logit(p), rtol=1e-13, atol=1e-14)
    x, y = np.array([0.0, 0.0, 2.0, 0.0]), np.array([0.0, 3.0, 5.0, np.nan])
    np.testing.assert_allclose(jitml.jit(special.xlogy)(x, y), special.xlogy(x, y), rtol=1e-14)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
def test_softmax_family(name: str, axis) -> None:
    function = getattr(special, name)
    np.testing.assert_allclose(jitml.jit(lambda m: function(m, axis=axis))(M), function(M, axis=axis), rtol=1e-12)


def test_logsumexp_of_minus_infinity_and_with_weights() -> None:
    f = jitml.jit(lambda m: special.logsumexp(m, axis=1))
    m = np.array([[-np.inf, -np.inf], [0.0, np.inf], [1.0, 2.0]])
    np.testing.assert_allclose(f(m), special.logsumexp(m, axis=1))
    weighted = jitml.jit(lambda m: special.logsumexp(m, axis=1, b=2.0, keepdims=True))
    np.testing.assert_allclose(weighted(M), special.logsumexp(M, axis=1, b=2.0, keepdims=True))


def test_gradient_of_softmax() -> None:
    g = jitml.grad(lambda v: (special.softmax(v) * np.arange(3.0)).sum())(np.array([0.1, 0.2, 0.3]))
    s = special.softmax(np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(g, s * (np.arange(3.0) - (s * np.arange(3.0)).sum()), rtol=1e-13)
