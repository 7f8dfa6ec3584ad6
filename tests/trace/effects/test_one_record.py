"""A dataclass of the caller's that is reached in several ways, or bound by a loop, is one object."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


@dataclasses.dataclass
class Particle:
    k: float = 1.0
    path: list[Any] = dataclasses.field(default_factory=list)

    def move(self, v: Any) -> Any:
        self.k = self.k * 2 + v
        return self.k


BOX: dict[str, Particle] = {}


def _is_it(o: Particle, x: Any) -> Any:
    return BOX["o"] is o


def _changed_there(o: Particle, x: Any) -> Any:
    BOX["o"].k = x[0]
    return o.k


def _changed_here(o: Particle, x: Any) -> Any:
    o.k = x[0]
    return BOX["o"].k


def _both(o: Particle, x: Any) -> Any:
    found = [BOX["o"], o]
    return found[0] is found[1], BOX["p"] is o


def _bound_in_a_loop(o: Particle, x: Any) -> Any:
    k = 0
    while k < 3:
        k += 1
        held = {"a": BOX["o"]}
    return held["a"].move(x[0])


def _compared_after_a_loop(o: Particle, x: Any) -> Any:
    for _ in range(3):
        held = {"a": BOX["o"]}
        x = x + 1
    return held["a"].move(x[0]), held["a"] is o


def _path_in_a_loop(o: Particle, x: Any) -> Any:
    BOX["o"].path.append(len(x))
    while x[0] < 9:
        x = x + 1
        held = (1, BOX["o"])
    held[1].path.append(2)
    return held[1].k


@pytest.mark.parametrize("same", [(False, True, False), (True, False, True)])
@pytest.mark.parametrize(
    "function",
    [_is_it, _changed_there, _changed_here, _both, _bound_in_a_loop, _compared_after_a_loop, _path_in_a_loop],
)
def test_it_is_one_object(function: Callable[..., Any], same: tuple[bool, ...]) -> None:
    def outcome(f: Callable[..., Any], is_same: bool) -> Any:
        o = Particle()
        BOX.update(o=o if is_same else Particle(2.0), p=Particle(3.0))
        return repr(f(o, np.full(2, 4.0))), o, BOX["o"], BOX["p"]

    compiled = jitml.jit(function, verify="never")
    for is_same in same:
        assert outcome(compiled, is_same) == outcome(function, is_same)


def test_it_is_returned_as_it_is() -> None:
    @jitml.jit(verify="never")
    def f(x: Any) -> Any:
        for _ in range(3):
            held = {"a": BOX["o"]}
            x = x + 1
        return held, x

    BOX["o"] = Particle()
    assert f(np.ones(2))[0]["a"] is BOX["o"]
