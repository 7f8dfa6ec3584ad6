"""Exceptions that depend on sizes, handled by the function: a variant with open sizes must not keep what one size has raised."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.loose

SHAPES = ([(2, 5), (2, 4), (2, 3), (2, 1), (2, 2), (2, 0)], [(2, 4), (2, 1), (1, 1), (2, 3), (3, 3), (3, 2)])


def truth_of_row(x: Any) -> Any:
    return 1 if x[0] < 4 else 2


def truth_of_all(x: Any) -> Any:
    return 1 if x > 0 else 2


def negation(x: Any) -> Any:
    return not x


def conjunction(x: Any) -> Any:
    return x and 1


def chain(x: Any) -> Any:
    return 0 <= x < 2


def assertion(x: Any) -> Any:
    assert x
    return 1


def raised_or_ambiguous(x: Any) -> Any:
    if x[0] < 1.5:
        raise ValueError("too small")
    return 3


def greater(x: Any) -> Any:
    return max(x[:, 0], x[:, 0])


def item(x: Any) -> Any:
    return x.item()


def as_float(x: Any) -> Any:
    return float(x[0][1:].sum()) + int(x.T[0].size)


def repeat(x: Any) -> Any:
    return np.repeat(x, [1, 2, 3], axis=1)


def place(x: Any) -> Any:
    np.place(x, np.ones((2, 3), bool), [9, 8])
    return x


def putmask(x: Any) -> Any:
    np.putmask(x, np.ones((3, 2), bool), [9, 8])
    return x


def covariance(x: Any) -> Any:
    return np.cov(x.T[:1])


def squeeze(x: Any) -> Any:
    return np.squeeze(x, axis=1)


def unpack(x: Any) -> Any:
    a, _, c = x[0]
    return a + c


FUNCTIONS = [
    truth_of_row, truth_of_all, negation, conjunction, chain, assertion, raised_or_ambiguous, greater, item, as_float, repeat,
    place, putmask, covariance, squeeze, unpack,
]  # fmt: skip


def handled(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        try:
            return f(x)
        except (ValueError, TypeError, IndexError):
            return -7.0

    return run


def counted(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        n = 0
        for _ in range(2):
            try:
                f(x)
            except (ValueError, TypeError, IndexError):
                n += 1
                continue
            n += 10
        return n

    return run


@pytest.mark.parametrize("wrap", [handled, counted])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_a_handler_hears_is_what_this_size_raises(f: Callable[[Any], Any], wrap: Callable[..., Any]) -> None:
    for shapes in SHAPES:
        plain = wrap(f)
        fast = jitml.jit(wrap(f), verify="never")
        for shape in shapes:
            x = np.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected, got = plain(x.copy()), fast(x.copy())
            assert repr(got) == repr(expected), shape
