"""Floats that Python must know: one program for each that comes, by its bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
Array = np.ndarray[Any, Any]


def named_factor(x: Array) -> Any:
    return x * {1.0: 2.0, 3.0: 5.0, 0.0: 4.0}.get(float(x[0]), 9.0)


def largest_of_kinds(x: Array) -> Any:
    return max(0, float(x[0]), 1), x + 1


def sign_of_zero(x: Array) -> Any:
    return x + float(x[0]).hex().startswith("-")


@pytest.mark.parametrize("f, most", [(named_factor, 6), (largest_of_kinds, 3), (sign_of_zero, 6)])
def test_a_float_that_python_needs_is_decided(f: Any, most: int) -> None:
    jitted = jitml.jit(f)
    for first in (1.0, 3.0, -0.0, 0.0, np.nan, 2.5, -np.nan, 0.0, 1.0):
        x = np.array([first, 2.0])
        assert repr(jitted(x)) == repr(f(x))
    assert len(jitted.variants) <= most
    assert not any(variant.replays for variant in jitted.variants)
