"""Products of floats have the bits and the errors of NumPy's, which takes one element after the other, as they lie in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]

PRODUCTS: dict[str, Callable[[Array], Any]] = {
    "of all": np.prod,
    "of rows": lambda x: np.prod(x, axis=1),
    "of columns": lambda x: np.prod(x, axis=0),
    "of the transposed": lambda x: np.prod(x.T),
    "from the end": lambda x: np.prod(x[:, ::-1]),
    "of two axes of a transposed cube": lambda x: np.prod(np.stack([x, x * 2]).T, axis=(0, 1)),
    "of the outer axes of a cube": lambda x: np.prod(np.stack([x, x * 2]), axis=(0, 2)),
    "of what is computed": lambda x: np.prod(x * x + 1.0),
    "beside sums": lambda x: np.stack([np.prod(x, axis=1), np.sum(np.abs(x) < 1, axis=1)]),
    "of rows from a number": lambda x: np.prod(x, axis=1, initial=1e-30),
    "of a transposed cube from a number": lambda x: np.prod(np.stack([x, x * 2]).T, axis=(0, 2), initial=1e-30, keepdims=True),
    "of what is repeated": lambda x: np.prod(np.broadcast_to(x.T, (3, *x.T.shape))),
    "of numbers by columns": lambda x: np.nanprod(np.asfortranarray(x)),
    "where": lambda x: np.prod(x, where=x > 0),
    "to divide by": lambda x: x / np.prod(x, axis=1, keepdims=True),
}
SHAPES = [(1, 17), (1, 5), (3, 4), (5, 17), (40, 3), (7, 100), (70, 9), (300, 5), (2, 1000), (11, 1000), (100, 40)]


def computed(function: Callable[[Array], Any], x: Array) -> tuple[Any, set[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(x)
    return np.asarray(result), {str(warning.message) for warning in caught}


def elements(shape: tuple[int, ...], dtype: type, seed: int) -> Array:
    """Of any size, with infinities, zeros and nans among them, so that the order decides what comes out."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * rng.choice([1.0, 1e3, 1e-3, 1e30], shape)
    kind = rng.random(shape)
    return np.select([kind < 0.02, kind < 0.05, kind < 0.06], [np.inf, -0.0, np.nan], x).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_those_of_one_element_after_the_other(name: str, dtype: type) -> None:
    function = PRODUCTS[name]
    compiled = jitml.jit(function)
    for seed, shape in enumerate(SHAPES * 2):
        x = elements(shape, dtype, seed)
        want, warned = computed(function, x)
        got, also = computed(compiled, x)
        np.testing.assert_array_equal(got, want)
        assert also == warned


def test_complex_products_go_through_all_axes_as_through_one() -> None:
    x = np.exp(1j * np.arange(120.0)).reshape(4, 5, 6) * 1.01
    for function in (np.prod, lambda x: np.prod(x.T), lambda x: np.prod(x, axis=(1, 2))):
        np.testing.assert_array_equal(jitml.jit(function)(x), function(x))


@pytest.mark.filterwarnings("error")
def test_no_product_on_the_way_is_another_one() -> None:
    """By lanes, 1e200 met 1e-200 first, and nothing was infinite."""
    x = np.tile([1e200, 1e200, 1e-200, 1e-200], 8)
    with np.errstate(over="ignore"):
        assert np.isinf(jitml.jit(np.prod)(x)) == np.isinf(np.prod(x)) == True  # noqa: E712  # all three


@pytest.mark.parametrize(("rows", "cells"), [(7, 1), (8, 8), (100, 9)])
def test_rows_run_side_by_side(rows: int, cells: int) -> None:
    """Each is a chain of products, of which a processor has several on the way; one loop is for rows that are left over."""
    kernels = str(jitml.jit(lambda x: np.prod(x, axis=1)).lower(np.ones((rows, 1000))).kernels)
    assert kernels.count("cell ") == cells
