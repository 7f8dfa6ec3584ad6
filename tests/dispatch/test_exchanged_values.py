"""Numbers, objects and functions that are others at each call: one variant serves all, or two, unless they have to be known."""

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


class Owner:
    """Makes what it is asked to keep."""

    def __init__(self, k: float, function: Callable[[Any], Any] | None = None) -> None:
        self.part = Scaled(k)
        self.method = self.part.__call__
        self.function = function or (lambda x: k * x + self.part(x))
        self.function.slope = lambda x: k + 0 * x  # type: ignore[attr-defined]  # an attribute of a function
        self.others = [Scaled(k), Shifted(k)]


def _of_owner(m: Any) -> Any:
    total = m.function(X) + m.function.slope(X) + m.method(X)
    for part in m.others:
        total = part(total)
    return total


def test_what_an_argument_holds_is_as_exchangeable_as_itself() -> None:
    jitted = jitml.jit(_of_owner)
    for k in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(jitted(Owner(k)), _of_owner(Owner(k)))
    assert len(jitted.variants) == 1


def test_functions_of_other_code_or_with_other_values_are_not_taken_for_the_same() -> None:
    def made(n: int) -> Callable[[Any], Any]:
        return (lambda x: x + n) if n < 3 else (lambda x: x - n)

    jitted = jitml.jit(_of_owner)
    for n in (1, 2, 3, 4, 1, 3):
        np.testing.assert_array_equal(jitted(Owner(1.0, made(n))), _of_owner(Owner(1.0, made(n))))


def _compared(m: Any) -> Any:
    return m.f(X), m.f is m.g, {m.f: 1}.get(m.g, 0)


def test_functions_are_compared() -> None:
    def pair(k: float, is_one: bool) -> Any:
        functions = [lambda x: x * k for _ in range(2)]
        return SimpleNamespace(f=functions[0], g=functions[0 if is_one else 1])

    jitted = jitml.jit(_compared)
    for k, is_one in ((1.0, True), (2.0, False), (3.0, True), (4.0, False)):
        np.testing.assert_equal(jitted(pair(k, is_one)), _compared(pair(k, is_one)))


@pytest.mark.loose
def test_what_a_held_function_binds_is_its_own() -> None:
    def counter(start: float) -> Any:
        count = start

        def count_on(x: Any) -> Any:
            nonlocal count
            count += 1.0
            return x * count

        return SimpleNamespace(f=count_on, seen=lambda: count)

    jitted = jitml.jit(lambda m: m.f(X))
    for start in (1.0, 5.0, 1.0):
        mine, plain = counter(start), counter(start)
        np.testing.assert_array_equal(jitted(mine), plain.f(X))
        assert mine.seen() == plain.seen()


def test_many_held_objects_are_told_apart() -> None:
    def total(m: Any) -> Any:
        return sum((part(X) for part in m.parts), start=0 * X), [part is m.parts[0] for part in m.parts]

    jitted = jitml.jit(total)
    for is_one in (False, True, False):
        one = Scaled(2.0)
        m = SimpleNamespace(parts=[one if is_one and n % 5 == 0 else Scaled(float(n)) for n in range(20)])
        np.testing.assert_equal(jitted(m), total(m))
