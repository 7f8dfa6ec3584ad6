"""Programs that are right and that a check of jitml's own did not let pass: bounds, declared buffers, layouts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from programs.comparing import difference

Array = np.ndarray[Any, Any]


def rolled(x: Array) -> Array:
    for i in range(len(x) - 1, 0, -1):
        v = np.flip(np.roll(x[i:], 1))
    return v


def rolled_in_place(x: Array) -> Array:
    for i in range(len(x) - 1, 0, -1):
        x[i - 1] = np.roll(x[i:], 1)[::-1][0]
    return x


def rolled_forwards(x: Array) -> Array:
    total = x[0] * 0
    for i in range(1, len(x)):
        total = total + np.roll(x[:i], -2)[::-1][0]
    return total


def unique_rows(z: Array) -> Array:
    for v in z:
        np.add.at(z, [0, 0, -1], 3.0)
        v[:2] = np.unique(v)
    return z


def compressed_rows(z: Array) -> Array:
    for v in z:
        z[0] += 1
        v[:2] = v[v > -1][:2]
    return z


def of_found_sizes(y: Array) -> Array:
    found = np.argwhere(y > 5) * 1.0
    other = found.reshape(-1, 2).T
    return np.where(other > 1, np.where(found > 0, other, found), found)


def powers_of_rows(x: Array) -> tuple[Array, Array]:
    x[::-2] %= len(x) % 100
    powers = np.power(np.abs(x.ravel()), np.add.accumulate(np.abs(x), axis=-1))
    for _ in zip(powers, x):
        x |= np.compress(x.ravel() > 0, x.ravel())
    return powers, x


@pytest.mark.parametrize(
    "function, x",
    [
        (rolled, np.arange(1.0, 8)),
        (rolled_in_place, np.arange(1.0, 8)),
        (rolled_forwards, np.arange(1.0, 8)),
        (unique_rows, np.arange(12.0).reshape(6, 2)),
        (compressed_rows, np.arange(12.0).reshape(6, 2)),
        (of_found_sizes, np.array([[0, 6, 2], [1, 6, 3]])),
        (powers_of_rows, np.zeros((2, 0), np.int16)),
    ],
)
def test_what_is_right_is_compiled(function: Callable[[Array], Any], x: Array) -> None:
    mine, theirs = x.copy(), x.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, expected = jitml.jit(function)(mine), function(theirs)
    assert difference((got, mine), (expected, theirs), np.array_equal) is None
