"""scipy.special under jit, against SciPy."""

from __future__ import annotations

import warnings

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


OPERANDS = {
    "a row": np.array([1.0, 2.0, 3.0]),
    "nothing but -inf": np.array([-np.inf, -np.inf]),
    "an infinity": np.array([np.inf, 1000.0]),
    "NaN": np.array([np.nan, 1.0]),
    "far apart": np.array([-1e308, 1e308]),
    "rows": np.array([[-np.inf, -np.inf], [0.0, np.inf], [1.0, 2.0]]),
    "integers": np.arange(4),
    "half": np.arange(3, dtype=np.float16),
    "single": np.arange(3, dtype=np.float32),
    "complex": np.array([1000 + 3j, 1000 + 3.5j]),
    "nothing": np.zeros(0),
    "an array of no axes": np.array(3.0),
    "a number": np.float32(2.0),
}
FORMS = {
    "all": special.logsumexp,
    "an axis": lambda x: special.logsumexp(x, axis=-1),
    "kept": lambda x: special.logsumexp(x, keepdims=True),
    "weights": lambda x: special.logsumexp(x, b=np.arange(x.shape[-1] if x.ndim else 1)),
    "a weight": lambda x: special.logsumexp(x, b=-1.0),
    "no weight": lambda x: special.logsumexp(x, b=0),
    "a size": lambda x: special.logsumexp(x, b=-1.0, return_sign=True)[0],
    "a sign": lambda x: special.logsumexp(x, axis=-1, b=np.cos(x.real), keepdims=True, return_sign=True)[1],
    "what is finite": lambda x: special.logsumexp(x[np.isfinite(x)]),
    "log_softmax": special.log_softmax,
}


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("form", FORMS)
def test_logarithms_of_sums(form: str, operand: str) -> None:
    f, x = FORMS[form], OPERANDS[operand]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            expected = f(x)
        except ValueError:  # log_softmax of nothing
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError):
                jitml.jit(f)(x)
            return
        result = jitml.jit(f)(x)
    assert type(result) is type(expected) and result.dtype == expected.dtype and result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=16 * np.finfo(expected.dtype).eps, atol=16 * np.finfo(expected.dtype).eps)


def test_gradient_of_softmax() -> None:
    g = jitml.grad(lambda v: (special.softmax(v) * np.arange(3.0)).sum())(np.array([0.1, 0.2, 0.3]))
    s = special.softmax(np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(g, s * (np.arange(3.0) - (s * np.arange(3.0)).sum()), rtol=1e-13)
