"""When further calls of a variant are looked at: soon, but for no more than a share of plain Python's time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.verification.looks import Watching, look


class Model:
    def __init__(self, n: int) -> None:
        self.rows, self.rate = [[n]], 0.5


def begins_look(watching: Watching) -> bool:
    """A further call; whether it is looked at."""
    if watching.is_due:
        watching.begin_look()
        return True
    watching.calls += 1
    return False


@pytest.mark.parametrize(
    "seconds, plain, looked_at", [(0.0, 1e-3, [2, 3, 4, 6, 8, 12, 16]), (2e-3, 1e-3, [20, 21, 22, 23, 24, 25, 26])]
)
def test_looks_wait_until_they_are_affordable(seconds: float, plain: float, looked_at: list[int]) -> None:
    watching = Watching({"x": 1}, seconds)
    watching.plain_seconds = plain
    found = [n for n in range(2, 60) if begins_look(watching)]
    assert found == looked_at
    assert watching.is_over


def test_values_of_objects_are_seen_without_code() -> None:
    def named(n: int) -> Any:
        return look(named, "named", [(Model(n), "m")], with_code=False)

    watching = Watching(named(1), 0.0)
    assert begins_look(watching) and not watching.sees_other(named(1))
    assert begins_look(watching) and watching.sees_other(named(2))


def test_a_generator_in_another_state_is_no_other_value() -> None:
    def drawn(x: Any) -> Any:
        return x + np.random.normal(size=x.shape)

    jitted = jitml.jit(drawn, verify="first")
    for seed in range(3):
        np.random.seed(seed)
        jitted(np.zeros(3))
    (variant,) = jitted.variants
    assert "for other values" not in variant.checked
