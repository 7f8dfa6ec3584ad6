"""Medians, quantiles and covariances in all the ways that NumPy has: methods, fractions that are computed, nan, weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import agree, check, function_of

X = np.random.default_rng(0).normal(size=(4, 6))
HOLES = np.where(X > 0.9, np.nan, X)
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "linear",
    "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_methods(method: str) -> None:
    agree(lambda x: np.quantile(x, 0.37, axis=1, method=method), X)
    agree(lambda x: np.percentile(x, [0, 12.5, 50, 99, 100], axis=0, method=method), X.astype(np.float32))


# As the fractions of percentiles are 100 of these: plain numbers, NumPy's, lists, arrays; known and computed.
FRACTIONS = """
0.3*S ; 0.77*S ; S ; np.float64(0.3*S) ; np.float32(0.3*S) ; [0.1*S, 0.9*S] ; np.array([0.1*S, 0.9*S], "f4")
np.array([0, 1], "i2") ; float(y[0])*S ; y[0]*S ; y*S ; z*S ; int(n[1]) ; n
"""


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "i4"])
def test_places_have_the_dtype_of_the_fraction(name: str, dtype: str) -> None:
    x, y = (20 * (HOLES if name[0] == "n" and dtype[0] == "f" else X)).astype(dtype), np.array([0.3, 0.9])
    fractions = FRACTIONS.replace("S", "100" if "per" in name else "1").replace("\n", " ; ").strip(" ;").split(" ; ")
    expression = ", ".join(f"np.{name}(x, {fraction}, axis=1)" for fraction in fractions)
    check(function_of("x, y, z, n", expression), x, y, y.astype("f4"), np.array([0, 1]), ulps=0)


def test_an_integer_is_a_place() -> None:
    x, n = np.array([1.0, np.inf]), np.array(1)
    check(lambda x, n: (np.quantile(x, 1), np.nanquantile(x, 1), np.nanquantile(x, n)), x, n, ulps=0)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "computed fractions": (lambda x, q: np.quantile(x, q, axis=1), (X, np.array([0.2, 0.9]))),
    "one computed fraction": (lambda x, q: np.percentile(x, q[0] * 50), (X, np.array([0.2, 0.9]))),
    "a table of fractions": (lambda x, q: np.quantile(x, q, axis=0, keepdims=True), (X, np.array([[0.2, 0.9], [0.0, 1.0]]))),
    "nan among them": (lambda x, q: np.quantile(x, q, axis=1), (HOLES, np.array([0.2, 0.9]))),
    "nanmedian": (lambda x: np.nanmedian(x, axis=1), (HOLES,)),
    "nanmedian of all": (lambda x: np.nanmedian(x), (HOLES,)),  # noqa: PLW0108
    "nanmedian of float32": (lambda x: np.nanmedian(x, axis=0, keepdims=True), (HOLES.astype(np.float32),)),
    "nanquantile": (lambda x: np.nanquantile(x, [0.1, 0.5, 1.0], axis=1), (HOLES,)),
    "nanpercentile": (lambda x: np.nanpercentile(x, 30, axis=0), (HOLES.astype(np.float32),)),
    "nanpercentile of all": (lambda x: np.nanpercentile(x, 77.0), (HOLES,)),
    "covariance by columns": (lambda x: np.cov(x, rowvar=False), (X,)),
    "weights": (lambda x, w: np.cov(x, aweights=w), (X, np.arange(1.0, 7.0))),
    "counts": (lambda x, n: np.cov(x, fweights=n, ddof=0), (X, np.array([1, 2, 0, 1, 1, 3]))),
    "weights and counts": (lambda x, w, n: np.cov(x, aweights=w, fweights=n), (X, np.arange(1.0, 7.0), np.arange(6))),
    "correlations of complex numbers": (lambda x: np.corrcoef(x + 1j * x[::-1]), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, args = CASES[name]
    check(function, *args, ulps=16, absolute=1e-14)


def test_rows_of_nothing_but_nan() -> None:
    rows = HOLES.copy()
    rows[1] = np.nan
    for function in (lambda x: np.nanmedian(x, axis=1), lambda x: np.nanquantile(x, 0.3, axis=1)):
        with pytest.warns(RuntimeWarning, match="All-NaN slice"):
            np.testing.assert_array_equal(jitml.jit(function)(rows), function(rows))


def test_fractions_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"must be in the range \[0, 1\]"):
        jitml.jit(np.quantile)(X, np.array([0.5, 1.5]))
