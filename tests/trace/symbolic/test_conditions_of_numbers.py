"""Conditions on the caller's NumPy numbers are computed: the next call has another number, and needs no program of its own."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]


def if_true(z: Any) -> Any:
    r = 0
    if z:
        r = 1.0
    return r * np.ones(3)


def if_greater(z: Any) -> Any:
    r = 0.0
    if z > 0.5:
        r = z * 2
    return r * np.ones(3)


def if_elif(z: Any) -> Any:
    if z < 0:
        return -z * np.ones(3)
    elif z == 0:
        return np.zeros(3)
    return math.cos(z) * np.ones(3)


def chosen(z: Any) -> Any:
    return (math.cos(z) if z else 2.0) * np.ones(3)


def either(z: Any) -> Any:
    return (z or 2.0) * np.ones(3)


def both(z: Any) -> Any:
    return 1.0 * (z > 0 and z < 3) * np.ones(3)


def negated(z: Any) -> Any:
    return (not z) * np.ones(3)


def truth(z: Any) -> Any:
    return np.ones(3) if bool(z) else np.zeros(3)


def halved(z: Any) -> Any:
    count = 0
    while z > 0.1 and count < 50:
        z = z * 0.5
        count += 1
    return z * np.ones(3) + count


def of_functions(z: Any) -> Any:
    return np.ones(2) * z if np.abs(np.sin(z)) > 0.3 else np.zeros(2)


def gathered(z: Any) -> Any:
    parts = []
    if z:
        parts.append(np.ones(2) * z)
    if z > 1:
        parts.append(np.ones(2))
    return sum(parts) if parts else np.zeros(2)


def of_other_shapes(z: Any) -> Any:
    return np.ones(2) if z > 1 else np.zeros(3)


def of_other_types(z: Any) -> Any:
    return "much" if z > 1 else None


def required(z: Any) -> Any:
    assert z > 0, "not positive"
    return np.ones(2) / z


def raising(z: Any) -> Any:
    if z > 1:
        raise ValueError("too much")
    return np.ones(2) * z


def handled(z: Any) -> Any:
    try:
        return raising(z)
    except ValueError:
        return np.zeros(2)


def written(z: Any) -> Any:
    x = np.zeros(4)
    for k in range(4):
        if k * 0.5 > z:
            break
        x[k] = k + z
    return x


def largest(z: Any) -> Any:
    return max(z, 0.5) * np.ones(2), min(z, 1.5)


FUNCTIONS = [
    *(if_true, if_greater, if_elif, chosen, either, both, negated, truth, halved, of_functions, gathered, of_other_shapes),
    *(of_other_types, required, raising, handled, written, largest),
]
NUMBERS = [0.0, 2.5, -0.0, -1.5, 0.75, math.nan, math.inf, 1.0]
KINDS = [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.bool_]


def outcome(f: Callable[[Any], Any], z: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(z)
        except (AssertionError, ValueError, TypeError) as error:
            return type(error), str(error)


@pytest.mark.parametrize(
    "f", [pytest.param(f, marks=[pytest.mark.loose] * (f.__name__ == "handled")) for f in FUNCTIONS], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_as_plain_python(f: Callable[[Any], Any], kind: type[Any]) -> None:
    numbers = NUMBERS if kind(0).dtype.kind == "f" else [0, 2, 1, 100]
    jitted = jitml.jit(f)
    for number in numbers:
        expected, got = outcome(f, kind(number)), outcome(jitted, kind(number))
        assert type(got) is type(expected)
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, expected)), strict=True):
            if isinstance(y, (np.ndarray, np.generic)):
                assert x.dtype == y.dtype
                np.testing.assert_allclose(x, y, rtol=1e-6 if kind is np.float64 else 1e-3)
            else:
                assert x == y or (x != x and y != y)


@pytest.mark.parametrize("f", [if_true, if_greater, if_elif, chosen, halved, of_functions, written])
def test_one_program_is_for_all_numbers(f: Callable[[Any], Any]) -> None:
    jitted = jitml.jit(f)
    for number in (2.5, 0.75, 1.25, 2.0):
        jitted(np.float64(number))
    assert "1 variant>" in str(jitml.explain(jitted, np.float64(3.5)))


def test_derivatives_know_the_branch() -> None:
    def f(z: Any) -> Any:
        return z * z if z > 1 else 3 * z

    slope = jitml.jit(jitml.grad(f))
    assert [float(slope(np.float64(z))) for z in (2.0, 0.5, 5.0)] == [4.0, 3.0, 10.0]
