"""SciPy's and scikit-learn's functions are called with the arrays of each call, and compiled once, whatever they do inside."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
import scipy.fft
import scipy.ndimage
import scipy.optimize
import scipy.signal
from tests.numpy.library_calls import ROWS

import jitml

Array = np.ndarray[Any, Any]


def arrays(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    b = rng.normal(size=(4, 4))
    return {
        "x": rng.normal(size=8), "p": rng.uniform(0.5, 3.0, 8), "a": rng.normal(size=(4, 4)) + 4 * np.eye(4), "b": b,
        "s": b @ b.T + np.eye(4), "z": rng.normal(size=(6, 2)), "m": rng.normal(size=(6, 7)), "k": rng.integers(0, 5, 8),
    }  # fmt: skip


# Rows that make an object, let a library call a function of theirs, or write into what they are given: these are breaks.
BREAKS = {
    "spatial.cKDTree",
    "spatial.ConvexHull",
    "spatial.transform.Rotation",
    "spatial.transform.Rotation.apply",
    "integrate.quad",
    "integrate.odeint",
    "integrate.solve_ivp",
    "optimize.minimize",
    "optimize.root_scalar",
    "optimize.lsq_linear",
    "optimize.linprog",
    "optimize.curve_fit",
    "stats.pearsonr",
    "stats.spearmanr",
    "stats.linregress",
    "stats.ttest_ind",
    "stats.norm.cdf",
    "stats.gaussian_kde",
    "sparse.linalg.spsolve",
    "sparse.diags",
    "interpolate.interp1d",
    "interpolate.CubicSpline",
    "interpolate.PchipInterpolator",
    "interpolate.RegularGridInterpolator",
    "interpolate.RBFInterpolator",
    "argument that is returned",
    "overwritten matrix",
    "overwritten argument",
    "overwritten and read",
    "output of a filter",
    "output in place",
    "output into rows",
    "signal.sosfilt",
    "written by blas",
    "written under a condition",
    "fitted without looking at the result",
    "fitted part by part",
    "pipeline",
}
BREAKS |= {name for name in ROWS if name.startswith("sklearn.")}


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_break_agrees(name: str) -> None:
    check(name, jitml.jit(ROWS[name]))
    with pytest.raises(jitml.UnsupportedError):
        jitml.jit(ROWS[name], strict=True)(*given(name, 0))


@pytest.mark.parametrize("name", [name for name in ROWS if name not in BREAKS])
def test_agrees(name: str) -> None:
    compiled = jitml.jit(ROWS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error", jitml.errors.UncompiledWarning)
        check(name, compiled)
    assert len(compiled.variants) == 1


def given(name: str, seed: int) -> list[Array]:
    return [arrays(seed)[p] for p in inspect.signature(ROWS[name]).parameters]


def check(name: str, compiled: Callable[..., Any]) -> None:
    for seed in (0, 1):
        mine, theirs = given(name, seed), given(name, seed)
        wanted, got = optree.tree_leaves(ROWS[name](*theirs)), optree.tree_leaves(compiled(*mine))
        assert [np.shape(x) for x in got] == [np.shape(x) for x in wanted]
        for x, y in zip([*got, *mine], [*wanted, *theirs]):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def bfgs(x: Array) -> Any:
    hessian = scipy.optimize.BFGS()
    hessian.initialize(2, "hess")
    hessian.update(x[:2], x[2:4])
    return hessian.get_matrix()


def overlapping(x: Array) -> Any:
    scipy.ndimage.uniform_filter1d(x[:4], 3, output=x[2:6])
    return x


def attribute_set(x: Array) -> Any:
    from sklearn.linear_model import Ridge

    model = Ridge()
    model.alpha = 3.0
    return model.fit(x[:, None], x).coef_


def of_an_estimator_made_of_traced_values(x: Array) -> Any:
    from sklearn.base import BaseEstimator, RegressorMixin

    class Mean(RegressorMixin, BaseEstimator):
        def fit(self, x: Array, y: Array) -> Any:
            self.mean = y.mean()
            return self

        def predict(self, x: Array) -> Array:
            return np.full(len(x), self.mean)

    return Mean().fit(x[:, None], x).score(x[:, None], x)


@pytest.mark.parametrize("f", [bfgs, overlapping, attribute_set, of_an_estimator_made_of_traced_values])
def test_refused_with_the_line(f: Callable[[Array], Any]) -> None:
    with pytest.raises(jitml.UnsupportedError) as caught:
        jitml.jit(f)(arrays(0)["x"])
    assert caught.value.source is not None
    assert caught.value.source.function == f.__name__


def test_derivatives_say_that_there_is_none() -> None:
    with pytest.raises(jitml.DerivativeError):
        jitml.grad(lambda x: scipy.ndimage.gaussian_filter1d(x, 1.0).sum())(arrays(0)["x"])


def test_what_is_made_of_numpys_functions_has_a_derivative() -> None:
    slope = jitml.grad(lambda x: (scipy.fft.ifftshift(scipy.fft.fftshift(x[:3]) * np.arange(3.0)) * np.arange(3.0)).sum())
    np.testing.assert_array_equal(slope(arrays(0)["x"])[:3], [0.0 * 1.0, 1.0 * 2.0, 2.0 * 0.0])


def test_constants_make_no_call() -> None:
    def f(x: Array) -> Any:
        return x * scipy.signal.get_window("hann", 8)

    assert "host_call" not in str(jitml.jit(f).lower(arrays(0)["x"]).graph)


def nearest(x: Array, i: Array) -> Any:
    i = i + 0
    distances = scipy.ndimage.distance_transform_edt(x, return_indices=True, indices=i)
    return distances, i[0], i * 2


def nearest_by_position(x: Array, i: Array) -> Any:
    tripled = i * 3
    return scipy.ndimage.distance_transform_edt(x, None, True, True, None, i), i * 2, tripled


def smoothed_by_position(x: Array, i: Array) -> Any:
    y = i[0] * 1.0
    scipy.ndimage.gaussian_filter1d(x, 1.0, -1, 0, y)
    return y + 1, i


@pytest.mark.loose
@pytest.mark.parametrize("f", [nearest, nearest_by_position, smoothed_by_position])
def test_an_argument_that_the_first_call_happens_to_leave_as_it_is(f: Callable[..., Any]) -> None:
    still = [np.zeros((3, 3)), np.zeros((2, 3, 3), np.int32)]
    f(*still)  # what is written is what is there, from now on
    compiled = jitml.jit(f)
    for x in (np.zeros((3, 3)), np.eye(3), np.arange(9.0).reshape(3, 3)):
        mine, theirs = [x, still[1].copy()], [x, still[1].copy()]
        for got, wanted in zip(optree.tree_leaves((compiled(*mine), mine)), optree.tree_leaves((f(*theirs), theirs))):
            np.testing.assert_array_equal(got, wanted, strict=True)
