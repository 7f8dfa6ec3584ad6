"""Ranges of floats: NumPy's elements bit by bit, and one program for all that are as long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


@pytest.mark.parametrize(
    "made",
    [
        lambda a: np.arange(a, a + 1.05, 0.1),
        lambda a: np.arange(np.float64(a), a + 3.5),
        lambda a: np.arange(0, 1.0 + a / 20, 0.1, dtype=np.float32),
        lambda a: np.arange(3 + a / 2),
        lambda a: np.arange(2 * a, -a - 3, step=-0.7),
    ],
)
def test_ranges_of_floats_share_a_program(made: Callable[[float], Any]) -> None:
    jitted = jitml.jit(made, strict=True)
    for a in (0.25, 0.3, 0.125, 0.99):
        result, expected = jitted(a), made(a)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(jitted(40.0), made(40.0))


@pytest.mark.parametrize("bounds", [(0.0, 1.0, 0.0), (float("nan"), 1.0, 1.0), (0.0, float("inf"), 1.0), (5.0, 1.0, 1.0)])
def test_ranges_without_a_length_raise_as_numpy_does(bounds: tuple[float, float, float]) -> None:
    def outcome(function: Callable[..., Any]) -> Any:
        try:
            return function(*bounds).tolist()
        except (ValueError, ZeroDivisionError) as error:
            return type(error), str(error)

    assert outcome(jitml.jit(lambda start, stop, step: np.arange(start, stop, step) * 1)) == outcome(np.arange)
