"""What `operator` makes of names, as a key or a function that others call: it reads attributes of today's objects."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import itertools
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(4.0)
BY_COST, DOUBLED = operator.attrgetter("cost"), operator.methodcaller("times", 2, plus=0)


class Item:
    def __init__(self, cost: float, name: str) -> None:
        self.cost, self.name = cost, name

    def times(self, n: int, plus: int) -> float:
        return self.cost * n + plus


def as_list(items: list[Any]) -> Any:
    found = list(items)
    found.sort(key=operator.attrgetter("cost"))
    return found


CASES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "sorted": lambda x, items: x * items.index(sorted(items, key=BY_COST)[0]),
    "min": lambda x, items: x * items.index(min(items, key=BY_COST)),
    "max": lambda x, items: x * items.index(max(items, key=DOUBLED)),
    "sort": lambda x, items: x * items.index(as_list(items)[0]),
    "nsmallest": lambda x, items: x * items.index(heapq.nsmallest(1, items, key=BY_COST)[0]),
    "groupby": lambda x, items: x * len(list(itertools.groupby(items, key=BY_COST))),
    "takewhile": lambda x, items: x * len(list(itertools.takewhile(operator.attrgetter("cost"), items))),
    "starmap": lambda x, items: x * sum(itertools.starmap(getattr, [(item, "cost") for item in items])),
    "map": lambda x, items: x * sum(map(DOUBLED, items)),
    "reduce": lambda x, items: x * functools.reduce(operator.add, map(BY_COST, items)),
    "called": lambda x, items: x * BY_COST(items[0]) + len(operator.attrgetter("name", "cost")(items[0])[0]) + DOUBLED(items[1]),
    "object": lambda x, items: x * object.__getattribute__(items[0], "cost"),
}


@pytest.mark.loose
@pytest.mark.parametrize("name", CASES)
def test_attributes_are_those_of_this_call(name: str) -> None:
    f, items = CASES[name], [Item(1.0, "a"), Item(1.0, "b"), Item(5.0, "c")]
    fast = jitml.jit(lambda x: f(x, items), verify="never")
    for item, cost in ((0, 2.0), (2, 0.5), (1, 0.0), (0, 9.0)):
        np.testing.assert_array_equal(fast(X), f(X, items))
        items[item].cost = cost
        items[item].name += "q"
    np.testing.assert_array_equal(fast(X), f(X, items))


@pytest.mark.loose
def test_what_else_objects_hold_does_not_matter() -> None:
    items: list[Any] = [Item(1.0, "a"), Item(5.0, "b")]
    fast = jitml.jit(lambda x: x * items.index(max(items, key=BY_COST)), verify="never")
    for n in range(3):
        items[0].large = np.full(1 << 18, float(n))
        np.testing.assert_array_equal(fast(X), X)


@pytest.mark.loose
def test_attributes_that_the_function_has_set() -> None:
    def f(x: Any, items: list[Any]) -> Any:
        items[0].cost = 7.0
        return x * items.index(max(items, key=operator.attrgetter("cost")))

    items = [Item(1.0, "a"), Item(5.0, "b")]
    np.testing.assert_array_equal(jitml.jit(lambda x: f(x, items), verify="never")(X), X * 0)


@pytest.mark.loose
def test_namespaces_are_compared_at_each_call() -> None:
    a, b = SimpleNamespace(k=1), SimpleNamespace(k=1)
    fast = jitml.jit(lambda x: x * (2 if a == b else 3) + (a in [b]), verify="never")
    for b.k, factor in ((1, 2), (2, 3), (1, 2)):
        np.testing.assert_array_equal(fast(X), X * factor + (factor == 2))


@pytest.mark.loose
def test_classes_made_later_are_among_the_subclasses() -> None:
    class Base:
        weight = 1.0

    class One(Base):
        weight = 2.0

    fast = jitml.jit(lambda x: x * sum(cls.weight for cls in Base.__subclasses__()), verify="never")
    np.testing.assert_array_equal(fast(X), X * 2)

    class Two(Base):
        weight = 5.0

    np.testing.assert_array_equal(fast(X), X * 7)
    assert Two.weight + One.weight == 7


class Slotted:
    __slots__ = ("v",)
    v: float


@dataclasses.dataclass
class Fields:
    v: float = 1.0


SLOTTED, FIELDS = Slotted(), Fields()
READ = Slotted.v.__get__  # type: ignore[attr-defined]


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * Slotted.v.__get__(SLOTTED),  # type: ignore[attr-defined]
        lambda x: x * READ(SLOTTED, Slotted),
        lambda x: x * sum(map(READ, [SLOTTED])),
        lambda x: x * type(Slotted.v).__get__(Slotted.v, SLOTTED),
        lambda x: x * FIELDS.__eq__(Fields(1.0)),
        lambda x: x * Fields.__eq__(FIELDS, Fields(1.0)),
        lambda x: x * FIELDS.__reduce_ex__(2)[2]["v"],  # type: ignore[index,call-overload]
        lambda x: x * FIELDS.__getstate__()["v"],
        lambda x: x * ("w" in FIELDS.__dir__()),
    ],
)
def test_what_descriptors_and_methods_of_all_objects_read(function: Any) -> None:
    compiled, x = jitml.jit(function, verify="never"), np.ones(2)
    for value in (1.0, 1.0, 5.0):
        SLOTTED.v = FIELDS.v = value
        if value == 5.0:
            FIELDS.w = value  # type: ignore[attr-defined]
        np.testing.assert_array_equal(compiled(x), function(x))
    del FIELDS.w  # type: ignore[attr-defined]


@pytest.mark.loose
def test_a_slot_is_read_by_its_descriptor() -> None:
    for SLOTTED.v in (3.0, 4.0):
        assert (jitml.jit(lambda x: x * READ(SLOTTED))(np.ones(2)) == SLOTTED.v).all()


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
def test_a_namespace_that_is_filled_by_its_class() -> None:
    def fill(o: SimpleNamespace, x: Any) -> None:
        if x[0] > 0:
            SimpleNamespace.__init__(o, w=2.0)  # type: ignore[misc]

    compiled = jitml.jit(fill, verify="never")
    for x in (1.0, -1.0, 1.0, -1.0):
        found, expected = SimpleNamespace(v=1.0), SimpleNamespace(v=1.0)
        compiled(found, np.full(2, x))
        fill(expected, np.full(2, x))
        assert found == expected
