"""Sums, differences and products of integer scalars: wrapped as NumPy wraps them, with a warning exactly where it warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def at_once(x):
    return x[0] + x[1], x[0] - x[1], x[0] * x[1]


def in_a_loop(x):
    total, out = x[0], np.zeros(4, x.dtype)
    for k in range(4):
        out[k] = x[k % 2] * x[1] + total
        total = out[k] - x[1]
    return out, total


def added_up(x):
    return sum(x), sum([+v for v in x]), sum(v for v in x)


def _heard(function: Callable[..., Any], x: np.ndarray[Any, Any]) -> tuple[list[Any], bool]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        results = function(x)
    return [np.asarray(r).tolist() for r in results], bool(heard)


@pytest.mark.parametrize("function", [at_once, in_a_loop, added_up])
@pytest.mark.parametrize("name", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_overflows_are_numpys(function: Callable[..., Any], name: str) -> None:
    dtype = np.dtype(name)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    root = int(high**0.5)
    values = [low, low + 1, -2 if low else 2, -1 if low else 1, 0, 1, 3, root, root + 1, high // 2, high // 2 + 1, high - 1, high]
    jitted, warned = jitml.jit(function), 0
    for p in values:
        for q in values:
            x = np.array([p, q], dtype)
            expected = _heard(function, x)
            assert _heard(jitted, x) == expected, (p, q)
            warned += expected[1]
    assert 0 < warned < len(values) ** 2


@pytest.mark.parametrize("function", [np.sqrt, np.sin, np.exp, np.log10, np.abs])
def test_what_is_an_object_to_numpy_is_refused_as_there(function: Callable[..., Any]) -> None:
    def half(x):
        return function(x) / 2

    jitted = jitml.jit(half, strict=False)
    for x in (3, 2**62, 10**30, -(2**70), 5, 2**64):
        assert _told(jitted, x) == _told(half, x), x


def _told(function: Callable[..., Any], x: int) -> str:
    try:
        with np.errstate(all="ignore"):
            return f"{function(x):.10g}"
    except TypeError as error:
        return str(error)
