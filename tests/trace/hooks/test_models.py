"""Is a new kind of value one class of models and one row of the table? Every hook asks its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.objects import ObjectModel
from jitml.trace.hooks.models.table import MODELS

X = np.arange(1.0, 5.0)


class Cell:
    """Python can do nothing with one but load `value`."""

    def __init__(self, value: Any) -> None:
        self.value = value


class CellModel(ObjectModel):
    """What code does with a cell it does with what is in it, times ten."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return x.value * 10 if name == "tenfold" else super().attribute(hooks, x, name)

    def has(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return name == "tenfold"

    def class_of(self, x: Any) -> type:
        return list

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        return x.value if hasattr(x, "value") else x

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        return x.value[index] * 10

    def callee(self, hooks: ModelHooks, x: Any) -> Any:
        return lambda y: x.value * 10 + y

    def operate(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        return getattr(x.value * 10, method)(other)

    def compare(self, hooks: ModelHooks, x: Any, name: str, other: Any) -> Any:
        return getattr(x.value * 10, f"__{name}__")(other)

    def truth(self, hooks: ModelHooks, x: Any) -> Any:
        return x.value[0] > 2

    def length(self, hooks: ModelHooks, x: Any) -> Any:
        return 10

    def contains(self, hooks: ModelHooks, x: Any, item: Any) -> Any:
        return np.any(x.value * 10 == item)

    def iterated(self, hooks: ModelHooks, x: Any) -> Any:
        return x.value * 10


def attribute(c: Any) -> Any:
    return c.tenfold


def has(c: Any) -> Any:
    return hasattr(c, "tenfold"), hasattr(c, "value")


def class_of(c: Any) -> Any:
    return type(c) is list


def target(c: Any) -> Any:
    c[1] = 7.0
    return c.value


def item(c: Any) -> Any:
    return c[2]


def call(c: Any) -> Any:
    return c(1.0)


def left(c: Any) -> Any:
    return c - 1.0


def right(c: Any) -> Any:
    return 1.0 - c


def smaller(c: Any) -> Any:
    return c < 20.0


def greater(c: Any) -> Any:
    return 20.0 < c  # noqa: SIM300  # the right operand is asked


def truth(c: Any) -> Any:
    return 1.0 if c else 2.0


def negated(c: Any) -> Any:
    return not c


def length(c: Any) -> Any:
    return len(c)


def contains(c: Any) -> Any:
    return 30.0 in c, 3.0 in c


def loop(c: Any) -> Any:
    total = 0.0
    for x in c:
        total += x
    return total


def unpacked(c: Any) -> Any:
    a, *_ = c
    return a


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (attribute, X * 10),
        (has, (True, False)),
        (class_of, True),
        (target, [1.0, 7.0, 3.0, 4.0]),
        (item, 30.0),
        (call, X * 10 + 1),
        (left, X * 10 - 1),
        (right, 1 - X * 10),
        (smaller, X * 10 < 20),
        (greater, X * 10 > 20),
        (truth, 2.0),
        (negated, True),
        (length, 10),
        (contains, (True, False)),
        (loop, 100.0),
        (unpacked, 10.0),
    ],
    ids=lambda x: getattr(x, "__name__", "gives"),
)
def test_each_hook_asks_the_model(use: Callable[[Any], Any], expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, Cell, CellModel())

    @jitml.jit(verify="never")
    def f(x: Any) -> Any:
        return use(Cell(x.copy()))

    np.testing.assert_array_equal(f(X), expected)


def filled(x: Any) -> Any:
    items = []
    for v in x:
        items.append(v * 2)
    return type(items) is list, isinstance(items, list), items[1]


def grown(x: Any, items: Any) -> Any:
    for v in x:
        items.append(v)
    return type(items) is list, isinstance(items, list)


def test_type_is_that_which_a_stand_in_stands_for() -> None:
    x = np.arange(50.0)
    assert jitml.jit(verify="never")(filled)(x) == filled(x)
    assert jitml.jit(verify="never")(grown)(x, []) == grown(x, [])


def test_what_has_no_row_is_an_object() -> None:
    assert type(MODELS[Cell]) is ObjectModel
    assert Cell not in MODELS
