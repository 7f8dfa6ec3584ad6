"""What a condition depends on is not gone through again for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir.graph import GraphBuilder


def _looked_up(steps: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many makers of values are looked up where so many conditions, one after the other, depend on the same array."""

    def chain(x: Any) -> Any:
        for scale in [1.0] * steps:
            x = x * scale
            if x.sum() > 100.0:
                x = x - 1.0
        return x

    asked: list[Any] = []
    with monkeypatch.context() as patch:
        maker = GraphBuilder.maker
        patch.setattr(GraphBuilder, "maker", lambda self, value: asked.append(value) or maker(self, value))
        jitml.jit(chain).lower(np.arange(3.0))
    x = np.arange(30.0)
    np.testing.assert_array_equal(jitml.jit(chain)(x), chain(x))
    return len(asked)


def test_what_is_found_unknown_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (_looked_up(steps, monkeypatch) for steps in (8, 32))
    assert few
    assert many <= 5 * few  # in proportion: four times as many conditions


def test_a_number_from_outside_is_known_beside_what_is_not() -> None:
    def chain(x: Any, n: float) -> Any:
        for _ in [1, 2, 3]:
            if x[0] * n > 4.0:
                x = x + n
            if np.sqrt(np.float64(n)) > 1.0:
                x = x * n
        return x

    jitted = jitml.jit(chain)
    for n in (0.5, 4.0, 0.5):
        x = np.arange(3.0) + 2.0
        np.testing.assert_array_equal(jitted(x, n), chain(x, n))
