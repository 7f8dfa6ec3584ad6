"""Special methods of Python's numbers that are called by their names: they ask no other operand, as operators do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def of_an_argument(a: Any, x: Any) -> Any:
    return a.__mul__(x)


def looked_up(a: Any, x: Any) -> Any:
    return getattr(a, "__add__")(x)  # noqa: B009


def compared(a: Any, x: Any) -> Any:
    return a.__lt__(x)


def reflected(a: Any, x: Any) -> Any:
    return a.__rsub__(x)


def given(a: Any, x: Any) -> Any:
    return called(a.__mul__, x)


def called(method: Callable[[Any], Any], x: Any) -> Any:
    return method(x)


OTHERS = [np.ones(3), np.float64(3), 3.0, 3, True]


@pytest.mark.loose
@pytest.mark.parametrize("function", [of_an_argument, looked_up, compared, reflected, given])
@pytest.mark.parametrize("number", [2.0, 3])
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_as_python(function: Callable[..., Any], number: Any, other: Any) -> None:
    jitted = jitml.jit(function)
    for _ in range(2):
        result, expected = jitted(number, other), function(number, other)
        assert type(result) is type(expected)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.loose
@pytest.mark.parametrize("method", [(2.0).__mul__, (2).__add__, (2.0).__le__])
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_a_bound_method_from_outside(method: Any, other: Any) -> None:
    result, expected = jitml.jit(called)(method, other), called(method, other)
    assert type(result) is type(expected)
    np.testing.assert_array_equal(result, expected)


def test_those_of_one_type_compute() -> None:
    assert jitml.jit(of_an_argument, strict=True)(2.0, 3.0) == 6.0
    assert jitml.jit(compared, strict=True)(2, 3)
