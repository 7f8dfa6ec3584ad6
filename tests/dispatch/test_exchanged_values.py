"""Numbers and objects that are others at each call: one more variant serves all, unless they have to be known."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(4.0)


class Scaled:
    def __init__(self, k: float) -> None:
        self.k, self.log = k, [k]

    def __call__(self, x: Any) -> Any:
        return x * self.k


class Shifted(Scaled):
    def __call__(self, x: Any) -> Any:
        return x + self.k


def _whole(m: Any) -> Any:
    return m.a(X), m.a is m.b


def _nested(m: Any) -> Any:
    total = 0.0
    for row in m.table:
        for cell in row:
            total += cell["mean"] * cell["weight"]
    return total * X


def _kept(m: Any) -> Any:
    m.b = m.a
    m.a.log.append(m.a.k)
    return m.b(X)


def _made(k: int) -> Any:
    scaled = Scaled(k)
    table = [[{"mean": np.float64(k), "weight": k / 2}] for _ in range(3)]
    return SimpleNamespace(a=scaled, b=scaled if k == 4 else Scaled(1), table=table, n=k)


@pytest.mark.parametrize("function, most", [(_whole, 3), (_nested, 2), (_kept, 3), (lambda m: m.a.k * X, 2)])
def test_others_of_one_kind_share_a_variant(function: Callable[[Any], Any], most: int) -> None:
    jitted = jitml.jit(function)
    for k in (1, 2, 3, 4, 5, 6, 1):
        mine, plain = _made(k), _made(k)
        np.testing.assert_equal(jitted(mine), function(plain))
        assert mine.a.log == plain.a.log and (mine.b is mine.a) == (plain.b is plain.a)
    assert len(jitted.variants) <= most


def test_objects_of_another_class_are_not_taken_for_the_same() -> None:
    jitted = jitml.jit(lambda m: m.a(X))
    for k, kind in enumerate([Scaled, Scaled, Shifted, Scaled, Shifted]):
        np.testing.assert_array_equal(jitted(SimpleNamespace(a=kind(k + 1))), kind(k + 1)(X))


def test_what_has_to_be_known_is_known() -> None:
    def ones(m: Any) -> Any:
        return np.ones((m.n, 2)).sum(axis=m.n % 2)

    jitted = jitml.jit(ones)
    for n in (1, 2, 3, 2, 1):
        np.testing.assert_array_equal(jitted(SimpleNamespace(n=n)), ones(SimpleNamespace(n=n)))
