"""What may an axis be?  Every function that takes one, with every kind of thing that people pass, beside NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import jitml

AXES: dict[str, Any] = {
    "True": True,
    "np.int8(1)": np.int8(1),
    "np.array(1)": np.array(1),
    "-1": -1,
    "-3": -3,
    "2": 2,
    "(1,)": (1,),
    "[1]": [1],
    "None": None,
    "1j": 1j,
    "a string": "rows",
}

FUNCTIONS = {
    "argmax": lambda x, axis: np.argmax(x, axis=axis),
    "argsort": lambda x, axis: np.argsort(x, axis=axis),
    "accumulate": lambda x, axis: np.add.accumulate(x, axis=axis),
    "any": lambda x, axis: np.any(x, axis=axis),
    "average": lambda x, axis: np.average(x, axis=axis),
    "compress": lambda x, axis: np.compress([True, False], x, axis=axis),
    "concatenate": lambda x, axis: np.concatenate([x, x], axis=axis),
    "count_nonzero": lambda x, axis: np.count_nonzero(x, axis=axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "cumulative_sum": lambda x, axis: np.cumulative_sum(x, axis=axis),
    "delete": lambda x, axis: np.delete(x, 0, axis=axis),
    "diff": lambda x, axis: np.diff(x, axis=axis),
    "expand_dims": lambda x, axis: np.expand_dims(x, axis=axis),
    "flip": lambda x, axis: np.flip(x, axis=axis),
    "gradient": lambda x, axis: np.gradient(x, axis=axis),
    "insert": lambda x, axis: np.insert(x, 0, 9, axis=axis),
    "max": lambda x, axis: np.max(x, axis=axis),
    "mean": lambda x, axis: np.mean(x, axis=axis),
    "median": lambda x, axis: np.median(x, axis=axis),
    "moveaxis": lambda x, axis: np.moveaxis(x, axis, 0),
    "norm": lambda x, axis: np.linalg.norm(x, axis=axis),
    "partition": lambda x, axis: np.partition(x, 1, axis=axis),
    "reduceat": lambda x, axis: np.add.reduceat(x, [0], axis=axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis=axis),
    "roll": lambda x, axis: np.roll(x, 1, axis=axis),
    "sort": lambda x, axis: np.sort(x, axis=axis),
    "split": lambda x, axis: np.split(x, 1, axis=axis),
    "stack": lambda x, axis: np.stack([x, x], axis=axis),
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "swapaxes": lambda x, axis: np.swapaxes(x, axis, 0),
    "take": lambda x, axis: np.take(x, [0], axis=axis),
    "trapezoid": lambda x, axis: np.trapezoid(x, axis=axis),
    "unique": lambda x, axis: np.unique(x, axis=axis),
    "var": lambda x, axis: np.var(x, axis=axis),
    "method repeat": lambda x, axis: x.repeat(2, axis),
    "method sum": lambda x, axis: x.sum(axis),
}


def outcome(f: Any, *args: Any) -> Any:
    try:
        return f(*args)
    except Exception as error:
        return next(kind for kind in (ValueError, IndexError, TypeError, Exception) if isinstance(error, kind))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_axis_is_what_it_is_in_numpy(name: str) -> None:
    """That a call was not compiled is an answer, where a version of NumPy takes for an integer what is none."""
    f, x = FUNCTIONS[name], np.arange(6.0).reshape(3, 2)
    for what, axis in AXES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, got = outcome(f, x, axis), outcome(jitml.jit(lambda x, axis=axis: f(x, axis)), x)
        if isinstance(expected, type):
            assert got is expected, what
        else:
            np.testing.assert_array_equal(got, expected, err_msg=what)


KEPT: tuple[Any, ...] = (
    np.sum, np.mean, np.max, np.all, np.std, np.average, np.ptp, np.argmin, np.nansum, np.median, np.nanmedian, np.count_nonzero,
    np.maximum.reduce, np.linalg.norm, lambda x, axis, keepdims: x.prod(axis, keepdims=keepdims),
    lambda x, axis, keepdims: np.percentile(x, 30, axis, keepdims=keepdims),
)  # fmt: skip


def test_dimensions_are_kept_where_an_argument_says_so() -> None:
    def f(x: Any, keep: Any) -> Any:
        return [reduce(x, axis=1, keepdims=keep) for reduce in KEPT]

    fast, x = jitml.jit(f), np.arange(6.0).reshape(3, 2)
    for keep in (True, False, 1, 0, True):
        for got, expected in zip(fast(x, keep), f(x, keep), strict=True):
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected)
    assert outcome(jitml.jit(lambda x, keep: x.sum(1, keepdims=keep)), x, 0.5) is TypeError


def test_a_copy_that_an_argument_forbids() -> None:
    f, x = jitml.jit(lambda x, dtype, copy: np.array(x, dtype, copy=copy)), np.arange(6.0)
    for copy in (True, None, False):
        assert np.shares_memory(x, f(x, float, copy)) == (not copy)
    assert outcome(f, x, int, False) is ValueError
