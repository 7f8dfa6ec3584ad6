"""Sums over rows that indices choose: the same however vectors run, along the rows or across them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def mean_of_rows(t: Any, i: Any) -> Any:
    return t[i].sum(axis=-2)


def largest_of_rows(t: Any, i: Any) -> Any:
    return t[i].max(axis=-2)


def weighted(t: Any, i: Any) -> Any:
    return (t[i] * i[..., None]).sum(axis=-2)


def along_the_rows(t: Any, i: Any) -> Any:
    return t[i].sum(axis=-1)


def of_two_tables(t: Any, i: Any) -> Any:
    return (t[i] * t[::-1][i]).sum(axis=-2)


def of_columns(t: Any, i: Any) -> Any:
    return t.T[:, i].sum(axis=-1)


@pytest.mark.parametrize(
    "f", [mean_of_rows, largest_of_rows, weighted, along_the_rows, of_two_tables, of_columns], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("width", [1, 3, 4, 17, 64])
@pytest.mark.parametrize("shape", [(1,), (5,), (100,), (1000,), (40, 3), (7, 16), (9, 50), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_as_numpy(f: Callable[..., Any], width: int, shape: tuple[int, ...], dtype: str) -> None:
    if f is largest_of_rows and 0 in shape:
        shape = (3, 1)
    rng = np.random.default_rng(width)
    t = rng.integers(-50, 50, (30, width)).astype(dtype)
    i = rng.integers(-30, 30, shape)
    np.testing.assert_array_equal(jitml.jit(f, verify="never")(t, i), f(t, i), strict=True)
