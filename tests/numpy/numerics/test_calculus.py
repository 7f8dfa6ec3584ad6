"""Padding, interpolation, polynomials and windows in the ways that are more than slices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import jitml
from support.against_numpy import check

X = np.random.default_rng(0).normal(size=(4, 6))
PADS: list[dict[str, Any]] = [
    *({"mode": mode} for mode in ("linear_ramp", "maximum", "mean", "median", "minimum")),
    {"mode": "mean", "stat_length": ((2, 3), (1, 2))},
    {"mode": "linear_ramp", "end_values": ((1, 2), (3, 4))},
    {"mode": "reflect", "reflect_type": "odd"},
    {"mode": "symmetric", "reflect_type": "odd"},
]
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "interpolation of complex values": (lambda x, y: np.interp(x, np.arange(6.0), y + 1j * y[::-1]), (X * 4, X[0])),
    "interpolation around": (lambda x, y: np.interp(x, y, y * y, period=1.5), (X, X[0])),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), (X[0], X[1])),
    "polyfit with weights": (lambda x, y, w: np.polyfit(x, y, 1, w=w), (X[0], X.T, np.arange(1.0, 7.0))),
    "sums": (lambda p, q: np.concatenate([np.polyadd(p, q), np.polysub(q, p)]), (X[0], X[1, :4])),
    "products": (np.polymul, (X[0], X[1, :4])),
    "roots given": (np.poly, (X[0],)),
    "calculus": (lambda p: np.concatenate([np.polyder(p, 2), np.polyint(p, 2, [1.0, 2.0]), np.polyint(p)]), (X[0],)),
    "windows": (lambda x: sliding_window_view(x, (2, 3)).sum(axis=(2, 3)), (X,)),
    "windows of one axis": (lambda x: sliding_window_view(x, 2, axis=0).max(axis=-1), (X,)),
}


@pytest.mark.parametrize("options", PADS, ids=str)
def test_pads(options: dict[str, Any]) -> None:
    check(lambda x: np.pad(x, ((1, 2), (3, 1)), **options), X, ulps=64)


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, args = CASES[name]
    check(function, *args, ulps=64, absolute=1e-13)


def test_windows_are_views() -> None:
    def program(x: Any) -> Any:
        windows = sliding_window_view(x, 3)
        x[1] = 50.0
        return windows.sum(axis=1), windows.flags.writeable

    check(program, X[0])


def test_polynomials_that_numpy_would_cut() -> None:
    p = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(jitml.jit(np.polymul)(p, p), np.polymul(p, p))


def test_polyfit_of_few_points_warns() -> None:
    with pytest.warns(RuntimeWarning, match="poorly conditioned"):
        got = jitml.jit(lambda x, y: np.polyfit(x, y, 4))(X[0, :3], X[1, :3])
        np.testing.assert_allclose(got, np.polyfit(X[0, :3], X[1, :3], 4))


@pytest.mark.parametrize("taps", [3, 20])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_what_lies_beyond_an_array_meets_no_infinity(mode: Any, taps: int) -> None:
    """`0 * inf` would be nan; at the ends, NumPy multiplies what there is."""
    x, kernel = np.arange(1.0, 31.0), np.ones(taps)
    kernel[0] = np.inf
    compiled = jitml.jit(lambda x, y: (np.convolve(x, y, mode), np.correlate(x, y, mode), np.correlate(y, x, mode)))
    for n in (30, 25, 21):  # of sizes that are known, and not
        with np.errstate(all="ignore"):
            expected = np.convolve(x[:n], kernel, mode), np.correlate(x[:n], kernel, mode), np.correlate(kernel, x[:n], mode)
            for result, plain in zip(compiled(x[:n], kernel), expected, strict=True):
                np.testing.assert_array_equal(result, plain)


@pytest.mark.parametrize("taps", [1, 2, 5, 6, 20])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_lengths_that_data_decide(mode: Any, taps: int) -> None:
    """The kernel may be the longer one; nothing is multiplied that NumPy does not multiply."""
    kernel = np.random.default_rng(1).normal(size=taps)
    kernel[-1] = 1e308

    def convolved(x: Any, mask: Any) -> Any:
        return np.convolve(x[mask], kernel, mode)

    def correlated(x: Any, mask: Any) -> Any:
        return np.correlate(x[mask], kernel, mode)

    def the_other_way_round(x: Any, mask: Any) -> Any:
        return np.correlate(kernel, x[mask], mode)

    x = np.append(np.arange(6.0) / 8, 1e10)
    for function in (convolved, correlated, the_other_way_round):
        compiled = jitml.jit(function)
        for n in range(len(x) + 1):
            mask = np.arange(len(x)) >= len(x) - n
            assert _outcome(compiled, x, mask) == _outcome(function, x, mask)


def _outcome(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except ValueError as error:
            return str(error).splitlines()[0]
    return [f"{v:.12g}" for v in result], {str(w.message) for w in caught}


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_derivatives_of_convolutions_of_lengths_that_data_decide(mode: Any) -> None:
    def convolved(x: Any, y: Any) -> Any:
        return (np.convolve(x[x > 0], y, mode) ** 2).sum()

    for x in (np.array([1.0, -1.0, 2.0, 3.0, 0.5]), np.array([-1.0, 0.5])):
        jitml.check_grads(convolved, (x, np.array([0.3, -2.0, 1.5])), order=1)
        jitml.check_grads(jitml.jit(convolved), (x, np.array([0.3, -2.0, 1.5])), order=1)
        compiled = jitml.jit(jitml.grad(convolved))(x, np.array([0.3, -2.0, 1.5]))
        np.testing.assert_allclose(compiled, jitml.grad(convolved)(x, np.array([0.3, -2.0, 1.5])))


def test_the_slope_of_an_interpolation_of_one_sample() -> None:
    for derivative in (jitml.grad, jitml.jacfwd):
        np.testing.assert_array_equal(derivative(lambda x: np.interp(0.3, x, x**2))(np.array([1.0])), [2.0])


def test_windows_at_sums_of_positions_are_read_as_they_lie() -> None:
    """`x[i + j]` that stays inside needs no limits, nor a vector of places."""
    kernels = jitml.jit(lambda x, y: np.correlate(x, y) + 1).lower(np.ones(100), np.ones(20)).kernels
    assert "a[i0 + i1] * b[i1]" in kernels


def test_interpolation_gives_samples_as_they_are() -> None:
    samples = np.array([-0.0, 0.0, -1.0, np.inf, -0.0])
    places = np.arange(5.0)
    with np.errstate(invalid="ignore"):
        result = jitml.jit(np.interp)(places, places, samples)
    np.testing.assert_array_equal(result.view(np.int64), samples.view(np.int64))
