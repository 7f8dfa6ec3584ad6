"""Jitted functions and methods that jitted ones call are part of them: what they change of what is from outside, too."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitml


class Counter:
    def __init__(self, factor: float) -> None:
        self.factor, self.calls, self.seen = factor, 0, list[int]()

    @jitml.jit
    def step(self, x: Any) -> Any:
        self.calls += 1
        self.seen.append(self.calls)
        return x * self.factor + self.calls

    @jitml.jit
    def twice(self, x: Any) -> Any:
        return self.step(x) + Counter.step(self, x)


class Scaled(Counter):
    @jitml.jit
    def step(self, x: Any) -> Any:
        return super().step(x) * 100


@jitml.jit
def bumped(state: dict[str, Any], counter: Counter, x: Any) -> Any:
    state["sum"] += x.sum()
    counter.factor *= 2
    return state["sum"]


@jitml.jit
def outer(state: dict[str, Any], counter: Counter, x: Any) -> Any:
    return [bumped(state, counter, x + i) for i in range(2)], counter.factor


def test_methods() -> None:
    counter, scaled = Counter(2.0), Scaled(3.0)
    x = np.ones(2)
    for n in range(3):
        a, b = 2 * n + 1, 2 * n + 2
        assert counter.twice(x).tolist() == [4.0 + a + b] * 2
        assert scaled.twice(x).tolist() == [(3.0 + a) * 100 + 3.0 + b] * 2
        assert counter.calls == scaled.calls == b and counter.seen == [*range(1, b + 1)]
    assert Counter.twice.variants and Scaled.step.variants == ()


def test_functions() -> None:
    state, counter = {"sum": 0.0}, Counter(1.0)
    assert outer(state, counter, np.ones(2)) == ([2.0, 6.0], 4.0)
    assert outer(state, counter, np.ones(2)) == ([8.0, 12.0], 16.0)
    assert state == {"sum": 12.0} and counter.factor == 16.0 and not bumped.variants


def test_a_transform_of_one_is_not_that_one() -> None:
    square = jitml.jit(lambda x: x * x)
    slope, compiled = jitml.grad(square), jitml.jit(jitml.grad(square))
    assert jitml.jit(lambda x: (square(x), slope(x), compiled(x)))(3.0) == (9.0, 6.0, 6.0)
