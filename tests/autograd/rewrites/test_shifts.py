"""Extremes that a function subtracts in vain have no slope; all others keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

X = np.random.default_rng(0).standard_normal((3, 4, 5))
W = np.random.default_rng(1).standard_normal((5, 2))


def exponentials(x: Any) -> Any:
    return np.exp(x - x.max(axis=-1, keepdims=True))


def softmax(x: Any) -> Any:
    e = exponentials(x)
    return e / e.sum(axis=-1, keepdims=True)


def in_place(x: Any) -> Any:
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p[:, 0] * x[:, 1]


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def log_sum_exp(x: Any) -> Any:
    largest = x.max(axis=1)
    return largest + np.log(np.exp(x - largest[:, None]).sum(axis=1))


def weighted(x: Any) -> Any:
    e = exponentials(x)
    return (e @ W) / e.sum(axis=-1)[..., None]


def of_columns(x: Any) -> Any:
    e = np.exp((x.min(axis=1, keepdims=True) - x).transpose((1, 0, 2)))
    return -e / np.sqrt((e * e).sum(axis=0))


VAIN = [
    softmax,
    in_place,
    log_softmax,
    log_sum_exp,
    weighted,
    of_columns,
    lambda x: softmax(softmax(x)),
    lambda x: (x - x.max()) - (x.min() - x.max()) * 1.0 + (0.5 * x.min() - x / 2) * 2.0,
    lambda x: 2 * (x - x.max()) - (x - x.max()) * 2 + np.sin(x),
    lambda x: (x - x.max()).sum() - 60 * (x[0, 0, 0] - x.max()),
]
# What remains of the shift, or is not followed: a term, a factor, that of other rows, a number of elements, a comparison.
OTHERWISE = [
    exponentials,
    lambda x: x - x.max(),
    lambda x: exponentials(x) / exponentials(x).sum(),
    lambda x: exponentials(x) / exponentials(x + 1).sum(axis=-1, keepdims=True) ** 2,
    lambda x: x - x.max() + np.log(np.exp(2 * (x - x.max())).sum()),
    lambda x: (x - x.max()).sum() - 59 * (x[0, 0, 0] - x.max()),
    lambda x: np.exp(x[0, :4, :4] - x[0, :4, :4].max(axis=1)[:, None]) / np.exp(x[0, :4, :4] - x[0, :4, :4].max(axis=1)).sum(),
    lambda x: np.where(x < x.max(), softmax(x), 0) + softmax(x) * x.max(),
    lambda x: np.exp(x - x.max()) - np.exp(-x - x.max()),
    lambda x: (softmax(x), x.max()),
]


def compared(f: Callable[..., Any]) -> bool:
    """Whether the derivative looks for the elements that are extremes."""

    def leaves(y: Any) -> Any:
        return sum(np.sin(part).sum() for part in (y if isinstance(y, tuple) else (y,)))

    g = jitml.grad(lambda x: leaves(f(x)))
    jitml.check_grads(lambda x: leaves(f(x)), (X,), order=1, modes=("rev",))
    np.testing.assert_allclose(jitml.jit(g)(X), g(X), rtol=1e-12, atol=1e-14)
    return " = bit_not " in str(jitml.jit(g).lower(X).graph)


@pytest.mark.parametrize("f", VAIN, ids=lambda f: f.__name__)
def test_what_is_subtracted_in_vain(f: Callable[..., Any]) -> None:
    assert not compared(f)


@pytest.mark.parametrize("f", OTHERWISE, ids=lambda f: f.__name__)
def test_what_is_not(f: Callable[..., Any]) -> None:
    assert compared(f)


def test_second_derivatives_and_loops() -> None:
    def looped(x: Any) -> Any:
        for k in range(6):
            x = softmax(x * (k + 1.0)) + 0.1 * x
        return (x * x).sum()

    assert not compared(looped)
    jitml.check_grads(looped, (X,), order=2)
    row = X[0, 0]
    p = softmax(row)
    slopes = jitml.jit(jitml.hessian(log_sum_exp))(row[None])[0]
    np.testing.assert_allclose(slopes.reshape(5, 5), np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-15)
