"""`jitml.pure_callback`: functions that jitml does not read, called by one compiled program."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(1.0, 5.0)


def gamma(x: Any) -> Any:
    return np.array([math.gamma(v) for v in x.ravel()]).reshape(x.shape)


def cubed(x: Any) -> Any:
    return x**3


def doubled_gamma(x: Any) -> Any:
    return jitml.pure_callback(gamma, np.empty_like(x), x + 1) * 2


def test_it_is_called_within_one_program_of_any_size() -> None:
    fast = jitml.jit(doubled_gamma)
    for n in (3, 4, 5, 6):
        x = np.arange(1.0, n)
        np.testing.assert_array_equal(fast(x), gamma(x + 1) * 2)
    assert len(fast.variants) < 4
    assert "host call pure_callback(gamma)" in jitml.explain(fast, X)


def test_results_may_be_numbers_and_containers() -> None:
    def parts(x: Any, k: Any) -> Any:
        assert type(k) is int
        return {"sum": float(x.sum()), "most": (x.max(), k + 1), "all": x * k}

    like = {"sum": 0.0, "most": (np.float64(0), 0), "all": np.empty(4)}

    def f(x: Any, k: Any) -> Any:
        return jitml.pure_callback(parts, like, x * 1.0, k)

    fast = jitml.jit(f)
    for k in (2, 3, 4):
        mine, plain = fast(X, k), f(X, k)
        assert mine["sum"] == plain["sum"] == 10.0 and type(mine["sum"]) is float
        assert mine["most"] == plain["most"] == (4.0, k + 1)
        assert [type(x) for x in mine["most"]] == [np.float64, int]
        np.testing.assert_array_equal(mine["all"], X * k)


def test_arrays_are_its_own() -> None:
    def spoil(x: Any) -> Any:
        x[0] = 100.0
        return x

    def f(x: Any) -> Any:
        y = jitml.pure_callback(spoil, np.empty_like(x), x)
        return y.sum() + x[0]

    x = X.copy()
    assert jitml.jit(f)(x) == f(x) == 110.0
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("like", [np.empty(2), 0.0, (np.empty(4),), np.empty((4, 1))])
@pytest.mark.parametrize("through", [jitml.jit, lambda f: f])
def test_another_shape_or_structure_is_refused(like: Any, through: Callable[..., Any]) -> None:
    with pytest.raises(jitml.ShapeError, match="result_like says"):
        through(lambda x: jitml.pure_callback(gamma, like, x))(X)


@pytest.mark.parametrize("through", [jitml.jit, lambda f: f])
def test_another_dtype_is_refused(through: Callable[..., Any]) -> None:
    with pytest.raises(jitml.DTypeError, match="returns float64, and result_like says float32"):
        through(lambda x: jitml.pure_callback(gamma, np.empty(4, np.float32), x))(X)


def test_a_result_that_is_wrong_in_a_later_call_is_refused() -> None:

    def odd(x: Any) -> Any:
        return np.ones(4 if x[0] < 5 else 3)

    fast = jitml.jit(lambda x: jitml.pure_callback(odd, np.empty(4), x) + 1)
    assert fast(X).tolist() == [2.0] * 4
    with pytest.raises(jitml.ShapeError, match=r"returns the shape \(3,\)"):
        fast(X + 10)


def multiplied_by(k: float) -> Callable[..., Any]:
    return lambda x: float(x.sum() * k)


class Model:
    def __init__(self, k: float) -> None:
        self.k, self.measure = k, multiplied_by(k)

    def total(self, x: Any) -> Any:
        return float(x.sum() * self.k)

    def __call__(self, x: Any) -> Any:
        return self.total(x)


def test_it_is_the_function_of_this_call() -> None:
    given = jitml.jit(lambda g, x: jitml.pure_callback(g, 0.0, x) + 1)
    held = jitml.jit(lambda model, x: jitml.pure_callback(model.measure, 0.0, x) + 1)
    for k in (1.0, 2.0, 3.0):
        assert given(multiplied_by(k), X) == held(Model(k), X) == 10 * k + 1


@pytest.mark.loose
def test_what_depends_on_more_than_arguments_is_left_to_python() -> None:
    def of(call: Callable[[Model], Any]) -> Callable[..., Any]:
        return jitml.jit(lambda model, x: jitml.pure_callback(call(model), 0.0, x) + 1)

    ways = [of(lambda m: m.total), of(lambda m: m), of(lambda m: functools.partial(Model.total, m))]
    model = Model(1.0)
    for fast in ways:
        for model.k in (1.0, 2.0, 3.0):
            assert fast(model, X) == 10 * model.k + 1


def test_a_function_that_is_made_inside_is_refused() -> None:
    def f(x: Any) -> Any:
        def inside(y: Any) -> Any:
            return y + x

        return jitml.pure_callback(inside, np.empty_like(x), x)

    with pytest.raises(jitml.UnsupportedError, match="made in the jitted one"):
        jitml.jit(f)(X)


def test_what_is_no_function_and_no_shape_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        jitml.pure_callback(3.0, 0.0, X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a str, which has no shape"):
        jitml.pure_callback(gamma, "text", X)


def test_a_derivative_is_refused_unless_there_is_a_rule() -> None:
    for derivative in (jitml.grad(lambda x: doubled_gamma(x).sum()), jitml.jit(jitml.grad(lambda x: doubled_gamma(x).sum()))):
        with pytest.raises(jitml.DerivativeError, match=r"pure_callback\(gamma\).* has no derivative"):
            derivative(X)

    @jitml.custom_vjp
    def cube(x: Any) -> Any:
        return jitml.pure_callback(cubed, np.empty_like(x), x)

    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3 * x**2 * ct,))
    np.testing.assert_allclose(jitml.jit(jitml.grad(lambda x: cube(x).sum()))(X), 3 * X**2)


def test_it_is_batched_row_by_row() -> None:
    rows = X.reshape(2, 2)
    np.testing.assert_array_equal(jitml.vmap(doubled_gamma)(rows), doubled_gamma(rows))


def test_functions_of_numba() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit("float64(float64[:])")  # type: ignore[untyped-decorator]
    def total(x: Any) -> Any:
        s = 0.0
        for v in x:
            s += v
        return s

    @jitml.jit
    def f(g: Any, x: Any) -> Any:
        return jitml.pure_callback(g, 0.0, np.exp(x))

    twice = numba.njit(lambda x: 2 * x.sum())
    for g, k in ((total, 1), (twice, 2), (total, 1)):
        np.testing.assert_allclose(f(g, X), k * np.exp(X).sum())


@pytest.mark.loose
def test_functions_of_numba_that_are_called_directly_run_as_python() -> None:
    numba = pytest.importorskip("numba")
    scaled = numba.vectorize(["float64(float64, float64)"])(lambda a, b: 2 * a + b)
    total = numba.njit(lambda x: 2 * x.sum())
    f = jitml.jit(lambda x: scaled(np.exp(x), 1.0).sum() + total(x))
    for x in (X, X, X[:2]):
        np.testing.assert_allclose(f(x), (2 * np.exp(x) + 1).sum() + 2 * x.sum())
