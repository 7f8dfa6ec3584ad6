"""Attributes of classes that a function sets, which Python does: instances and subclasses see them meanwhile, and afterwards."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

pytestmark = pytest.mark.loose


class Counter(ABC):  # noqa: B024  # a metaclass that is none of the user's
    n: Any = 0
    total: Any = 0.5
    cache: Any = None
    log: Any = ()
    w: Any = np.zeros(2)

    def by_type(self, x: Any) -> Any:
        type(self).n += 1
        return x * self.n

    def by_name(self, x: Any) -> Any:
        Counter.total += x
        return self.total * x

    @classmethod
    def filled(cls, x: Any) -> Any:
        if cls.cache is None:
            cls.cache = x * 2
        return cls.cache + x

    def own(self, x: Any) -> Any:
        self.n += 1
        Counter.n += 10
        return self.n, Counter.n, x

    @property
    def twice(self) -> Any:
        return self.total * 2


class Sub(Counter):
    pass


class Between(Counter):
    n = 100


@dataclass
class Record:
    a: Any
    made: ClassVar[Any] = 0

    def step(self, x: Any) -> Any:
        Record.made += 1
        return self.a * x + self.made


def by_type(o: Any, x: Any) -> Any:
    return o.by_type(x)


def by_name(o: Any, x: Any) -> Any:
    return o.by_name(x), o.twice, Sub.total, Between().total


def filled(o: Any, x: Any) -> Any:
    return type(o).filled(x), o.cache, hasattr(o, "cache")


def of_its_own(o: Any, x: Any) -> Any:
    return o.own(x)


def new_ones(o: Any, x: Any) -> Any:
    had = hasattr(Counter, "late"), hasattr(o, "late")
    Counter.late = x + 1  # type: ignore[attr-defined]
    return had, hasattr(o, "late"), getattr(o, "late", 3.0), o.late


def arrays(o: Any, x: Any) -> Any:
    before = o.w
    Counter.w = before + x
    Counter.log = (*Counter.log, x)
    return o.w.sum(), before, len(o.log)


def in_place(o: Any, x: Any) -> Any:
    Counter.w += x
    return o.w


def under_a_condition(o: Any, x: Any) -> Any:
    if x > 2.0:
        Counter.n += 1
    else:
        type(o).total = x
    return o.n


def in_a_loop(o: Any, x: Any) -> Any:
    for _ in range(3):
        Counter.n += 1
        x = x + o.n
    return x


def made_inside(o: Any, x: Any) -> Any:
    Counter.n = Counter.n + 1
    made = Sub()
    return made.n, made.by_type(x), Sub.n, Counter.n


def by_function(o: Any, x: Any) -> Any:
    setattr(Counter, "n", getattr(Counter, "n") + 1)  # noqa: B009, B010  # what the test is about
    return x * o.n


def lists(o: Any, x: Any) -> Any:
    Counter.log = [x, x + 1]
    Counter.log.append(o.n)
    return len(o.log)


FUNCTIONS = [
    by_type, by_name, filled, of_its_own, new_ones, arrays, in_place, under_a_condition, in_a_loop, made_inside, by_function,
    lists,
]  # fmt: skip
CLASSES = (Counter, Sub, Between, Record)


def state() -> Any:
    def seen(x: Any) -> Any:
        return x.tolist() if isinstance(x, np.ndarray) else x

    return [{key: seen(v) for key, v in vars(c).items() if key[0] != "_" and not hasattr(type(v), "__get__")} for c in CLASSES]


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    kept = [(cls, dict(vars(cls))) for cls in CLASSES]

    def restore() -> None:
        for cls, space in kept:
            for name in [name for name in vars(cls) if name[:2] != "__" and name[:4] != "_abc"]:
                if name not in space:
                    delattr(cls, name)
            for name, value in space.items():
                if name[0] != "_" and vars(cls).get(name) is not value:
                    setattr(cls, name, value)
        Counter.w = np.zeros(2)

    return restore


def history(function: Callable[..., Any], kind: Any) -> Any:
    found: list[Any] = []
    o = kind()
    for v in (1.5, 2.5, 3.0, 0.5):
        found += [repr(function(o, np.float64(v))), repr(state()), repr(vars(o))]
    return found


@pytest.mark.parametrize("kind", [Counter, Sub, Between])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_classes_are_changed(function: Callable[..., Any], kind: Any, restored: Callable[[], None]) -> None:
    try:
        want = history(function, kind)
        restored()
        f = jitml.jit(function)
        got = history(f, kind)
        assert got == want
    finally:
        restored()


def test_a_counter_counts(restored: Callable[[], None]) -> None:
    f, o = jitml.jit(by_type), Counter()
    try:
        for _ in range(9):
            f(o, np.float64(1.5))
        assert Counter.n == 9
    finally:
        restored()


def test_a_dataclass_counts(restored: Callable[[], None]) -> None:
    f = jitml.jit(lambda r, x: r.step(x))
    try:
        assert [float(f(Record(2.0), np.float64(v))) for v in (1.0, 2.0, 3.0)] == [3.0, 6.0, 9.0] and Record.made == 3
    finally:
        restored()


def test_who_gets_an_attribute_of_its_own_is_seen(restored: Callable[[], None]) -> None:
    f, o, late = jitml.jit(by_name), Sub(), Sub()
    try:
        assert f(o, np.float64(1.0))[0] == 1.5
        late.total = 7.0
        assert f(late, np.float64(1.0))[0] == 7.0
        Sub.total = 9.0
        assert f(o, np.float64(1.0))[0] == 9.0 and Counter.total == 3.5
    finally:
        del Sub.total
        restored()


class Meta(type):
    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)


class OfMeta(metaclass=Meta):
    n = 0


class Described:
    @property
    def n(self) -> int:
        return 1


def counted(x: Any) -> Any:
    Counter.n += 1
    return x


def a_metaclass_that_sets(x: Any) -> Any:
    OfMeta.n = 1
    return x


def a_property_replaced(x: Any) -> Any:
    Described.n = 3  # type: ignore[method-assign, assignment]
    return x


def a_method_replaced(x: Any) -> Any:
    Counter.by_name = lambda self, x: x  # type: ignore[method-assign]
    return x


def deleted(x: Any) -> Any:
    del Counter.cache
    return x


@pytest.mark.parametrize("function", [counted, a_metaclass_that_sets, a_property_replaced, a_method_replaced, deleted])
def test_what_changes_a_class_is_left_to_python(function: Callable[..., Any]) -> None:
    with pytest.raises(
        UnsupportedError, match=r"is from outside the jitted function and is changed in it(.|\n)*in " + function.__name__
    ):
        jitml.jit(function, strict=True)(np.ones(2))


class Scaled:
    k, m, w = 2.0, 3, np.ones(2)


def test_what_an_object_made_inside_finds_in_its_class_is_todays(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        made = Scaled()
        return made.w * made.k * made.m + x

    g, x = jitml.jit(f), np.float64(1.0)
    for name, value in (("k", 2.0), ("k", 3.0), ("m", 7), ("w", np.zeros(2)), ("k", 4)):
        monkeypatch.setattr(Scaled, name, value)
        assert g(x).tolist() == f(x).tolist()
