"""Numba's functions and ufuncs called from jitted code: with this call's arguments, each time, as in the plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from sections.forced_breaks import no_trials, trials

numba = pytest.importorskip("numba")

pytestmark = [pytest.mark.loose, pytest.mark.every_row]  # some rows have others' functions compiled


@numba.njit
def weighted(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += x[i] * k
    return total


@numba.njit
def fill(x: Any) -> None:
    for i in range(x.size):
        x[i] = i


@numba.vectorize(["float64(float64, float64)"])
def twice_and(a: Any, b: Any) -> Any:
    return a * 2 + b


@numba.vectorize
def larger(a: Any, b: Any) -> Any:  # compiled for types as they come
    return a if a > b else b


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
def running(x: Any, out: Any) -> None:
    total = 0.0
    for i in range(x.size):
        total += x[i]
        out[i] = total


@numba.njit
def refuse_negative(x: Any) -> Any:
    if x.min() < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def function(x: Any) -> Any:
    return weighted(np.exp(x), 2.0) + 1


def ufunc(x: Any) -> Any:
    return twice_and(np.exp(x), x).sum()


def ufunc_of_any_type(x: Any) -> Any:
    return larger(x, x.mean()) * 2


def reduced(x: Any) -> Any:
    return larger.reduce(x) + 1


def generalized(x: Any) -> Any:
    return running(x * 2).sum() + x[0]


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    fill(y)
    return (y * x).sum(), y


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(4):
        total = total + weighted(x * i, i + 1.0)
    return total


def if_it_is_so(x: Any) -> Any:
    y = np.sin(x)
    if y.sum() > 3:
        y = twice_and(y, x)
    return y * 2


def handled(x: Any) -> Any:
    try:
        return refuse_negative(x) + 1
    except ValueError:
        return np.zeros_like(x)


FUNCTIONS = (function, ufunc, ufunc_of_any_type, reduced, generalized, written, in_a_loop, if_it_is_so, handled)


def same(a: Any, b: Any) -> None:
    if isinstance(b, tuple):
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", [trials, no_trials], ids=["rented", "compiled"])
def test_they_are_called_with_the_arguments_of_each_call(f: Callable[..., Any], how: Callable[[], Any]) -> None:
    with how():
        fast = jitml.jit(f)
        for k in range(5):  # other values each time, and other lengths at last
            x = np.linspace(-0.1 * (k % 2), 1.0, 50 + 7 * (k // 3)) * (k + 1)
            given, kept = x.copy(), x.copy()
            same(fast(given), f(kept))
            np.testing.assert_array_equal(given, kept)


def test_what_numba_raises_is_raised() -> None:
    fast = jitml.jit(lambda x: refuse_negative(x * 2) + 1)
    same(fast(np.ones(3)), np.sqrt(np.full(3, 2.0)) + 1)
    with pytest.raises(ValueError, match="negative"):
        fast(-np.ones(3))


@pytest.mark.parametrize("f", [function, generalized, written], ids=lambda f: f.__name__)
def test_strict_refuses_them_by_name(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f, strict=True)
    try:
        result = fast(np.ones(9))
    except jitml.UnsupportedError as refused:
        assert any(name in str(refused) for name in ("weighted", "running", "fill"))
    else:  # it is part of the program, and called each time
        same(result, f(np.ones(9)))
        same(fast(np.arange(9.0)), f(np.arange(9.0)))


def test_a_pure_callback_keeps_one_program() -> None:
    @jitml.jit(strict=True)
    def fast(x: Any) -> Any:
        return jitml.pure_callback(weighted, 1.0, np.exp(x), 2.0) + x.sum()

    for k in range(3):
        x = np.linspace(0.0, 1.0 + k, 50)
        same(fast(x), weighted(np.exp(x), 2.0) + x.sum())
    assert len(fast.variants) == 1


def test_derivatives_of_what_numba_computes_are_refused() -> None:
    """Nobody knows them: they must not come out as zero."""
    for f in (function, ufunc, generalized):
        with pytest.raises((jitml.JitmlError, TypeError)):
            jitml.grad(f)(np.ones(9))


def test_a_function_that_numba_has_compiled_is_not_compiled_once_more() -> None:
    with pytest.raises(TypeError, match="py_func"):
        jitml.jit(weighted)
