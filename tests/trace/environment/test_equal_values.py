"""Values that are equal and not the same: members of sets, ranges, slices, and what a class of the user's adds to a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(4.0)
BOX: list[Any] = [None]


class Alike:
    """All of a number are equal, whatever they weigh."""

    __slots__ = ("n", "weight")

    def __init__(self, weight: float, n: int = 1) -> None:
        self.n, self.weight = n, weight

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self.n == other.n

    def __hash__(self) -> int:
        return self.n


class AlikeWithNamespace(Alike):
    pass


class Node:
    """Equal to itself alone."""

    def __init__(self, weight: float) -> None:
        self.weight = weight


def _with_weight(x: Any, weight: float) -> Any:
    x.weight = weight
    return x


class Count(int):
    weight = 0.0


class Length(float):
    weight = 0.0


class Name(str):
    weight = 0.0


class Group(frozenset[int]):
    weight = 0.0


class Part(Fraction):
    weight = 0.0


def signs(x: Any, some: Any) -> Any:
    return x + sum(math.copysign(2.0, v) for v in some)


def texts(x: Any, some: Any) -> Any:
    return x + sum(len(str(v)) for v in some)


def weights(x: Any, some: Any) -> Any:
    total = 0.0
    for one in some:
        total = total + one.weight
    return x * total


def weight(x: Any, one: Any) -> Any:
    return x * one.weight


def stop(x: Any, one: Any) -> Any:
    return x * one.stop


CASES: list[tuple[Callable[..., Any], list[Callable[[], Any]]]] = [
    (signs, [lambda: {0.0}, lambda: {-0.0}, lambda: {0.0}]),
    (signs, [lambda: frozenset([0.0]), lambda: frozenset([-0.0])]),
    (texts, [lambda: {(1, 2)}, lambda: {(True, 2)}, lambda: {(1.0, 2)}]),
    (texts, [lambda: frozenset([(1, 2)]), lambda: frozenset([(True, 2)])]),
    (weights, [lambda: {Alike(2.0)}, lambda: {Alike(5.0)}]),
    (weights, [lambda: {AlikeWithNamespace(2.0)}, lambda: {AlikeWithNamespace(5.0)}]),
    (weights, [lambda: frozenset([Alike(2.0)]), lambda: frozenset([Alike(5.0)])]),
    (weights, [lambda: {Alike(2.0): 1}, lambda: {Alike(5.0): 1}]),
    (stop, [lambda: range(0, 4, 2), lambda: range(0, 3, 2)]),
    *((weight, [lambda kind=kind, v=v, w=w: _with_weight(kind(v), w) for w in (2.0, 7.0)])
      for kind, v in ((Count, 3), (Length, 3.0), (Name, "a"), (Group, (1, 2)), (Part, "1/3"))),
]  # fmt: skip


@pytest.mark.loose("signs-makers0", "texts-makers2", "weights-makers4", "weights-makers5")
@pytest.mark.parametrize(("f", "makers"), CASES)
def test_they_are_told_apart(f: Callable[..., Any], makers: list[Callable[[], Any]]) -> None:
    fast = jitml.jit(f, verify="never")
    boxed = jitml.jit(lambda x: f(x, BOX[0]), verify="never")
    for make in makers:
        BOX[0] = make()
        assert repr(fast(X, make())) == repr(f(X, make()))
        assert repr(boxed(X)) == repr(f(X, make()))


def test_bounds_of_a_slice_are_of_their_types() -> None:
    def f(x: Any) -> Any:
        return x[BOX[0]], type(BOX[0].start).__name__

    fast = jitml.jit(f, verify="never")
    for start in (0, False, np.int64(0), 0):
        BOX[0] = slice(start, 2)
        assert repr(fast(X)) == repr(f(X))


@pytest.mark.loose
def test_objects_in_sets_that_are_equal_to_themselves_alone_may_change() -> None:
    fast = jitml.jit(weights, verify="never")
    node = Node(1.0)
    for n in range(4):
        node.weight = float(n)
        assert repr(fast(X, {node})) == repr(X * n)
