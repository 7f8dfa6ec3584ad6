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
