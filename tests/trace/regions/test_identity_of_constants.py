"""`x is y` of what never changes: dtypes, of which there is one each, and tuples, which are made anew."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

import jitml

_PAIR = (1.0, 2.0)


def _dtypes(x, y):
    return x.dtype is y.dtype, x.dtype is np.dtype(float), x[0].dtype is y.dtype, np.result_type(x, y) is x.dtype


@pytest.mark.parametrize("other", ["f8", "f4"])
def test_a_dtype_is_one_object(other):
    args = np.ones(2), np.ones(2, other)
    assert jitml.jit(_dtypes, verify="never")(*args) == _dtypes(*args)


def _are_one(t, u):
    return t is u, t is not u


def _place(items, t):
    for place, item in enumerate(items):
        if item is t:
            return place
    return -1


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (_are_one, (_PAIR, _PAIR)),
        (_are_one, (_PAIR, (1.0, float("2")))),
        (_are_one, (_PAIR, (1.0,))),
        (_are_one, (_PAIR, [1.0, 2.0])),
        (_place, ([(1.0, float("2")), _PAIR], _PAIR)),
        (_place, ([[1.0, 2.0], (1.0,)], _PAIR)),
    ],
)
def test_tuples_are_compared_as_python_has_them(function, args):
    jitted = jitml.jit(function, verify="never", strict=False)
    assert jitted(*args) == function(*args)
