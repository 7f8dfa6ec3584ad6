"""Does a function of twice as many operations take twice as long to compile?  Counted in calls of functions, not in seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG

Array = np.ndarray[Any, Any]
N = 16


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    """Verifiers compare every two accesses, and are not what users wait for."""
    before = CONFIG.check
    object.__setattr__(CONFIG, "check", False)
    yield
    object.__setattr__(CONFIG, "check", before)


def choices(x: Array, n: int) -> Array:
    y = x
    for i in [*range(n)]:
        y = np.where(y > i, y * 1.01, y + i * 0.5)
    return y


def neighbours(x: Array, n: int) -> Array:
    y = x
    for _ in [*range(n)]:
        y = y + 0.5 * (np.roll(y, 1, axis=0) - y)
    return y


def inner_points(x: Array, n: int) -> Array:
    y = x.copy()
    for _ in [*range(n)]:
        y[1:-1] += 0.1 * (y[2:] - 2 * y[1:-1] + y[:-2])
    return y


def elements(x: Array, n: int) -> Array:
    y = x.copy()
    for i in [*range(n)]:
        y[i % 8, 0] = y[(i + 3) % 8, 1] * 0.5 + i
    return y


def products(x: Array, n: int) -> Array:
    y = x
    for _ in [*range(n)]:
        y = np.einsum("ij,jk->ik", x, y) * 0.1
    return y


def rows(x: Array, n: int) -> Array:
    y = x
    for i in [*range(n)]:
        y = y - y.mean(axis=1, keepdims=True) * (i * 0.01)
    return y


def branches(x: Array, n: int) -> Array:
    y = x
    for i in [*range(n)]:
        y = y * 0.5 if y[i % 8, 0] > i else y + 1
    return y


def distances(x: Array, n: int) -> int:
    before = list(range(n // 8 + 1))
    for i in range(len(x)):
        row = [i + 1]
        for j in range(n // 8):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (0 if x[i, 0] * 5 > j else 1)))
        before = row
    return before[-1]


@pytest.mark.parametrize(
    "function", [choices, neighbours, inner_points, elements, products, rows, branches, distances], ids=lambda f: f.__name__
)
def test_twice_as_much_takes_twice_as_long(function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function, static_argnums=1)
    x = np.linspace(0.5, 1.5, 64).reshape(8, 8)
    compiled(x, 2)

    def calls(n: int) -> int:
        count = 0

        def see(*_: Any) -> None:
            nonlocal count
            count += 1

        sys.setprofile(see)
        try:
            found = compiled(x, n)
        finally:
            sys.setprofile(None)
        np.testing.assert_allclose(found, function(x, n))
        return count

    few, more, most = calls(N), calls(2 * N), calls(4 * N)
    assert most - more < 2**1.3 * (more - few)
