"""`math` and `round` on traced values are Python's: numbers, types, exceptions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

ONE = [
    "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "atanh", "fabs", "degrees", "radians", "isnan", "isinf", "isfinite", "floor", "ceil",
]  # fmt: skip
TWO = ["atan2", "hypot", "pow", "copysign", "fmod", "log"]


def agree(function: Callable[..., Any], x: Any) -> None:
    got, want = jitml.jit(function)(x), function(x)
    assert type(got) is type(want)
    assert got == pytest.approx(want, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("value", [0.37, np.float32(0.5)])
def test_of_one_number(name: str, value: Any) -> None:
    function = getattr(math, name)
    agree(lambda x: function(x[0]), np.array([value, value]))


@pytest.mark.parametrize("name", TWO)
def test_of_two_numbers(name: str) -> None:
    function = getattr(math, name)
    agree(lambda x: function(x[0], x[1]), np.array([2.5, 1.75]))
    agree(lambda x: function(x[0], 3), np.array([2.5, 1.75]))


@pytest.mark.parametrize("value", [2.5, 3.5, -0.5, 7.0, 1e15])
def test_whole_numbers(value: float) -> None:
    for function in (round, math.floor, math.ceil):
        agree(lambda x, f=function: f(x[0]), np.array([value]))
        agree(lambda x, f=function: f(x[0]), np.array([7]))
    agree(lambda x: math.trunc(x[0]), np.array([value]))
    with pytest.raises(TypeError, match="__trunc__"):
        jitml.jit(lambda x: math.trunc(x[0]))(np.array([7]))


ERRORS = [(math.sqrt, -1.0), (math.log, 0.0), (math.exp, 1000.0), (math.floor, np.nan), (math.acos, 2.0)]


@pytest.mark.parametrize("call, value", ERRORS)
def test_what_python_raises(call: Any, value: float) -> None:
    with pytest.raises(Exception) as wanted:  # whatever Python says
        call(value)
    with pytest.raises(type(wanted.value), match=str(wanted.value)):
        jitml.jit(lambda x: call(x[0]))(np.array([value]))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, float])
def test_products(dtype: Any) -> None:
    """Of Python's 1 and each number in turn: a scalar of NumPy's, an int where there is none."""

    def products(x: Any, n: int) -> Any:
        listed = math.prod([x[0], 3, n]), math.prod((n, 2.5)), math.prod(v for v in x if v > 1)
        return math.prod(x), math.prod(x[:n]), math.prod(x, start=2.5), math.prod(x[x > 1]), *listed

    compiled, x = jitml.jit(products), np.array([1, 2, 3, 4]).astype(dtype)
    for n in (3, 0, 2):
        got, want = compiled(x, n), products(x, n)
        assert got == want and list(map(type, got)) == list(map(type, want))


def test_a_product_of_an_array_is_a_loop() -> None:
    f = jitml.jit(lambda x: math.prod(x) + math.prod(x, start=0.5), host_calls="error")
    x = np.random.default_rng(0).uniform(0.99, 1.01, 4000)
    assert f(x) == math.prod(x) + math.prod(x, start=0.5)
    assert len(f.lower(x).graph.nodes) < 20


def test_products_of_many_lengths() -> None:
    f = jitml.jit(lambda x: math.prod(x[x > 0]))
    for n in range(40):
        got, want = f(np.arange(40) < n), math.prod(np.ones(n, bool))
        assert got == want and type(got) is type(want)
    assert len(f.variants) <= 3


def test_a_product_that_overflows_warns_as_pythons_loop() -> None:
    with pytest.warns(RuntimeWarning, match="overflow encountered in scalar multiply"):
        assert jitml.jit(lambda x: math.prod(x))(np.array([1e200, 1e200])) == np.inf  # noqa: PLW0108  # math.prod has no source


def test_what_python_computes_can_be_forbidden() -> None:
    with pytest.raises(jitml.errors.UnsupportedError, match=r"math\.gamma would be a host call"):
        jitml.jit(lambda x: math.gamma(x[0]), host_calls="error")(np.ones(2))


@pytest.mark.parametrize("function", [round, math.trunc, lambda x: round(x, 1), lambda x: round(x[...])])
def test_an_array_of_no_axis_is_no_number_to_round(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError) as wanted:
        function(np.array(2.5))
    with pytest.raises(TypeError, match=str(wanted.value)):
        jitml.jit(function)(np.array(2.5))
