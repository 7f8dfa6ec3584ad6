"""Nothing of what a function has made, or closed over, is kept when it is gone: classes, their data, recordings."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.trace.record.recording import Trace

X = np.arange(4.0)


class Data:
    def __init__(self) -> None:
        self.w = np.ones(3)


def of_an_instance(data: Data) -> None:
    class Model:
        def step(self, x: Any) -> Any:
            return x * data.w[0]

    jitml.jit(lambda model, x: model.step(x), verify="never")(Model(), X)


def of_slots(data: Data) -> None:
    class Model:
        __slots__ = ("data",)

    model: Any = Model()
    model.data = data
    jitml.jit(lambda x: x * model.data.w[0])(X)


def of_keys(data: Data) -> None:
    class Item:
        @property
        def cost(self) -> Any:
            return data.w[0]

    items = [Item(), Item()]
    jitml.jit(lambda x: x * items.index(max(items, key=lambda item: item.cost)), verify="never")(X)


def recordings() -> int:
    gc.collect()
    return sum(type(x) is Trace for x in gc.get_objects())


@pytest.mark.skipif((3, 12) <= sys.version_info < (3, 12, 4), reason="inspect.getattr_static keeps classes (gh-118013)")
@pytest.mark.parametrize("run", [of_an_instance, of_slots, of_keys])
def test_nothing_is_kept(run: Callable[[Data], None]) -> None:
    before, data = recordings(), Data()
    gone = weakref.ref(data)
    run(data)
    del data
    gc.collect()
    assert recordings() <= before
    assert gone() is None


class Equal(type):
    """Of which one class is equal to another."""

    def __eq__(cls, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(cls) -> int:
        return 7


class First(metaclass=Equal):
    __slots__ = ("a",)


class Second(metaclass=Equal):
    __slots__ = ("b",)


def test_classes_that_are_equal_are_told_apart() -> None:
    first: Any = First()
    second: Any = Second()
    first.a, second.b = 2.0, 3.0
    for f, expected in ((lambda x: x * first.a, X * 2), (lambda x: x * second.b, X * 3)):
        np.testing.assert_array_equal(jitml.jit(f, verify="first")(X), expected)
