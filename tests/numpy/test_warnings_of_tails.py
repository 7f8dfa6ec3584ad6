"""The end of an array that fills no vector raises no errors of its own: else plain Python answers each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]

FUNCTIONS: tuple[Callable[[Array, int], Any], ...] = (
    lambda x, n: np.log(1 - x),
    lambda x, n: (1 / (1 - x)).sum(),
    lambda x, n: np.log(1 - x[::-1]),
    lambda x, n: np.log(1 - x[::2]),
    lambda x, n: np.log(1 - x[x < 0.4]).sum(),
    lambda x, n: np.where(x > 0.25, np.log(1 - x), np.sqrt(1 - 2 * x)),
    lambda x, n: np.log(n - np.arange(n)) + x,
    lambda x, n: 7 // (1 - (4 * x).astype(int) * 2) + 5 % (n - np.arange(n)),
)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("count", [1, 9, 21, 38])
def test_lanes_that_do_not_run_raise_nothing(function: Callable[[Array, int], Any], count: int) -> None:
    x = np.random.default_rng(count).uniform(0, 0.5, count)
    jitted = jitml.jit(function)
    with np.errstate(all="raise"):
        expected = function(x, count)
        np.testing.assert_allclose(jitted(x, count), expected, rtol=1e-14)
    assert not [variant.replays for variant in jitted.variants if variant.replays]
