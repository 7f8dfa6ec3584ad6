"""Counts of elements and iterations where steps and bounds are as far apart as 64 bits go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(7.0)
FAR = sys.maxsize


def part(x: Any, a: Any, b: Any, c: Any) -> Any:
    return x[a:b:c].copy()


def of_arrays(x: Any, a: Any, b: Any, c: Any) -> Any:
    n = np.array([a, b])
    return x[n[0] : n[1] : c] * 2


def written(x: Any, a: Any, b: Any, c: Any) -> Any:
    y = x.copy()
    y[a:b:c] = -1.0
    return y


SLICES = [
    (1, 5, 2), (2, 6, 3), (-3, -1, FAR), (3, 6, FAR), (-4, 2**62, FAR), (5, 1, -FAR - 1), (5, 1, -FAR), (0, 7, FAR - 5),
    (0, 7, FAR - 7), (-FAR, FAR, 2), (FAR, -FAR, -2), (-FAR - 1, -FAR, 1), (2, FAR, FAR // 2), (FAR - 1, FAR, 1),
]  # fmt: skip


@pytest.mark.parametrize("f", [part, of_arrays, written])
def test_slices(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f)
    for bounds in SLICES:
        np.testing.assert_array_equal(fast(X, *bounds), f(X, *bounds), err_msg=str(bounds))


def first(x: Any, lo: Any, hi: Any, step: Any) -> Any:
    for k in range(lo, hi, step):
        if x[k % len(x)] > 3:
            return k
    return None


def from_data(x: Any, lo: Any, hi: Any, step: Any) -> Any:
    found = -1
    for k in range(int(x[0]) + lo, hi):
        if x[k % len(x)] > 3:
            found = k
            break
    return found


RANGES = [
    (0, 9, 1), (1, 8, 1), (2, 9, 1), (0, FAR, 1), (-1, FAR, 1), (-5, FAR, 1), (-(2**62) - 1, 2**62 + 1, 1),
    (FAR, -FAR, 1), (-5, -FAR, 1), (2, 9, 2), (FAR, -FAR, -1), (FAR - 3, FAR, 1), (4, 7, FAR - 1), (6, 0, -FAR),
    (6, -3, -FAR - 1), (5, FAR, FAR - 5),
]  # fmt: skip


@pytest.mark.parametrize("f", [first, from_data])
def test_ranges(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f)
    for bounds in RANGES:
        if f is first or -(2**62) < bounds[0] < 2**62:
            assert fast(X, *bounds) == f(X, *bounds), bounds


ASKED: dict[str, Callable[[int], Any]] = {
    "up": lambda n: len(range(n, sys.maxsize, 3)),
    "down": lambda n: len(range(sys.maxsize, -n, -5)),
    "a number in it": lambda n: 7 in range(n, sys.maxsize, 3),
    "in steps down": lambda n: n in range(20, 0, -4),
    "a float in it": lambda n: n / 2 in range(9, 1, -2),
    "no number in it": lambda n: "a" in range(n),
    "their class": lambda n: (type(range(n)) is range) + 2 * isinstance(range(n), (list, range)),
    "equal ones": lambda n: (range(n) == range(n)) + 2 * (range(n) in [range(n)]) + 4 * (hash(range(n)) == hash(range(n))),
    "what they have": lambda n: hasattr(range(n), "start") + range(2, n).stop,
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_what_ranges_of_open_numbers_say_of_themselves(asked: Callable[[int], Any]) -> None:
    compiled = jitml.jit(lambda x, n: x + asked(n), verify="never")
    for n in (5, 6, 7, 8):
        assert compiled(np.zeros(1), n) == float(asked(n))
