"""Programs that once differed from NumPy, made small: what the passes over graphs drop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml


def test_a_choice_between_equal_values_drops_no_check() -> None:
    """`select(c, x, x)` became x, and an index that c had got wrong went unnoticed once its size was open (31000:677)."""

    def chosen(x: Any, a: Any) -> Any:
        return np.where(np.take(x[:-1], [0], axis=0) > 7, a, a)

    jitted = jitml.jit(chosen)
    for rows in (3, 2):
        np.testing.assert_array_equal(jitted(np.ones(rows), np.arange(3.0)), np.arange(3.0))
    with pytest.raises(IndexError):
        jitted(np.ones(1), np.arange(3.0))
