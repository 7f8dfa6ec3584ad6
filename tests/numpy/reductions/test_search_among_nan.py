"""`np.searchsorted` among keys in no order, with NaN in between: one value is searched for by the steps that NumPy takes."""

from __future__ import annotations

import numpy as np
import pytest

import jitml


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("count", [3, 100, 300, 5000])
def test_one_value_among_keys_in_no_order(count: int, side: str) -> None:
    rng = np.random.default_rng(count)
    f = jitml.jit(lambda keys, x: np.searchsorted(keys, x, side), verify="never")
    for n in (count, count + 1, count + 2, 0, 1):
        keys = np.sort(rng.normal(size=n))
        for place in (n // 2, n // 3, -1):
            if n:
                keys[place] = np.nan
            for x in (0.3, float(keys[0]) if n else 1.0, np.nan, np.inf, -np.inf):
                assert f(keys, x) == np.searchsorted(keys, x, side)
                assert f(keys[::-1].copy(), x) == np.searchsorted(keys[::-1], x, side)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("count", [7, 300, 1500])
def test_many_values_among_keys_with_nan(count: int, side: str) -> None:
    rng = np.random.default_rng(count)
    f = jitml.jit(lambda keys, x: np.searchsorted(keys, x, side), verify="never")
    for n in (count, count - 1, count - 2, count + 3):  # the first alone has a size that is known
        keys = np.sort(rng.normal(size=n))
        keys[n // 2] = np.nan
        wanted = np.concatenate([rng.normal(size=60), keys[:3], [np.nan, np.inf]])
        np.testing.assert_array_equal(f(keys, wanted), np.searchsorted(keys, wanted, side))
