"""Attributes that a function deletes, which Python does, are gone: of arguments, globals, slots, cached properties."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.loose


class Model:
    shift = 10.0

    def __init__(self) -> None:
        self.w = np.arange(3.0)
        self.n = 2
        self.cache: Any = np.ones(3)
        self.shift = 1.0

    @functools.cached_property
    def total(self) -> Any:
        return self.w.sum()

    def step(self, x: Any) -> Any:
        before = self.total
        self.w += x
        del self.total
        return self.total - before

    def scaled(self, x: Any) -> Any:
        return x * self.shift


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a, self.b = 1.0, np.ones(2)


class Falling:
    def __init__(self) -> None:
        self.a = 2.0

    def __getattr__(self, name: str) -> Any:
        if name == "a":
            return self.b * 3.0
        raise AttributeError(name)


@dataclass
class Record:
    a: Any
    b: Any


class Deleter:
    def __init__(self) -> None:
        self._v, self.n = 5.0, 0

    @property
    def v(self) -> Any:
        return self._v

    @v.deleter
    def v(self) -> None:
        self.n += 1
        del self._v


ROWS: list[tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = []


def row(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda function: ROWS.append((make, function))


@row(Model)
def plain(o: Any, x: Any) -> Any:
    y = x * o.n
    del o.cache
    return y


@row(lambda: SimpleNamespace(a=1, b=np.ones(2)))
def of_a_namespace(o: Any, x: Any) -> Any:
    o.c = o.b * x
    o.a += 1
    del o.b
    return o.c, o.a


@row(Model)
def cached_property_invalidated(o: Any, x: Any) -> Any:
    return o.step(x)


@row(Model)
def cached_property_left_away(o: Any, x: Any) -> Any:
    y = o.total + x
    o.w[0] = x
    del o.total
    return y


@row(Model)
def set_again(o: Any, x: Any) -> Any:
    del o.cache
    o.cache = x + 1.0
    return o.cache * 2


@row(Model)
def set_again_in_another_order(o: Any, x: Any) -> Any:
    del o.n
    o.late = x
    o.n = 3
    del o.late
    o.later = x * o.n
    o.late = o.later + 1


@row(Model)
def never_there_before(o: Any, x: Any) -> Any:
    o.tmp = x * 2
    y = o.tmp + 1
    del o.tmp
    return y, hasattr(o, "tmp")


@row(Model)
def the_class_shines_through(o: Any, x: Any) -> Any:
    a = o.scaled(x)
    del o.shift
    return a, o.scaled(x), o.shift, hasattr(o, "shift"), getattr(o, "cache", None) is None


@row(Model)
def by_function(o: Any, x: Any) -> Any:
    delattr(o, "n")
    object.__delattr__(o, "cache")
    return hasattr(o, "n"), getattr(o, "cache", x)


@row(Model)
def under_a_condition(o: Any, x: Any) -> Any:
    if x > 2.0:
        del o.cache
    else:
        o.n = 7
    return x


@row(Model)
def in_a_loop(o: Any, x: Any) -> Any:
    for name in ("cache", "n"):
        if hasattr(o, name):
            delattr(o, name)
            x = x + 1
    return x


@row(Model)
def what_is_missing(o: Any, x: Any) -> Any:
    try:
        del o.nothing
    except AttributeError as error:
        x = x + len(str(error))
    del o.cache
    try:
        return o.cache
    except AttributeError as error:
        x = x + len(str(error))
    try:
        del o.cache
    except AttributeError:
        x = x + 100
    return x


@row(Slotted)
def slots(o: Any, x: Any) -> Any:
    y = o.b * x
    del o.b
    return y, hasattr(o, "b")


@row(Slotted)
def slots_set_again(o: Any, x: Any) -> Any:
    y = o.a * x
    del o.a
    o.a = y
    del o.b
    try:
        return o.b
    except AttributeError as error:
        return str(error)


@row(Slotted)
def slots_deleted_twice(o: Any, x: Any) -> Any:
    del o.b
    try:
        del o.b
    except AttributeError as error:
        return str(error), x


@row(Falling)
def what_getattr_says(o: Any, x: Any) -> Any:
    o.b = x
    del o.a
    return o.a


@row(lambda: Record(1.0, np.ones(2)))
def of_a_dataclass(o: Any, x: Any) -> Any:
    y = o.b + o.a
    del o.b
    return y, hasattr(o, "b"), getattr(o, "b", None)


@row(lambda: Record(1.0, np.ones(2)))
def of_a_dataclass_set_again(o: Any, x: Any) -> Any:
    del o.a
    o.a = x
    return o.a + o.b


@row(lambda: Record(Model(), 2.0))
def of_an_object_inside(o: Any, x: Any) -> Any:
    del o.a.cache
    return x * o.a.n


@row(Deleter)
def by_the_property(o: Any, x: Any) -> Any:
    y = o.v * x
    del o.v
    return y, o.n


def seen(x: Any) -> Any:
    """What others see of an object, in order."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, (Model, Falling, Record, Deleter, SimpleNamespace)):
        return [(key, seen(value)) for key, value in vars(x).items()]
    return [(key, seen(getattr(x, key))) for key in x.__slots__ if hasattr(x, key)] if isinstance(x, Slotted) else x


@pytest.mark.parametrize(("make", "function"), ROWS, ids=[f.__name__ for _, f in ROWS])
def test_attributes_are_gone(make: Callable[[], Any], function: Callable[..., Any]) -> None:
    f = jitml.jit(function)
    for v in (1.5, 2.5, 3.5, 2.25):
        for kind in (np.float64, float):
            expected, found = make(), make()
            want, got = function(expected, kind(v)), f(found, kind(v))
            assert repr(got) == repr(want)
            assert seen(found) == seen(expected)


MODEL = Model()


def forget(x: Any) -> Any:
    if hasattr(MODEL, "cache"):
        y = MODEL.cache * x
        del MODEL.cache
        return y
    MODEL.cache = x * np.ones(2)
    return x


def test_a_global_loses_and_gets_it_again() -> None:
    f, states = jitml.jit(forget), []
    for function in (forget, f):
        MODEL.cache = np.ones(3)
        states.append([(repr(function(np.float64(v))), seen(MODEL)) for v in (1.0, 2.0, 3.0, 4.0, 5.0)])
    assert states[0] == states[1]


def test_who_deletes_an_attribute_is_refused_with_strict() -> None:
    for make in (Model, lambda: Record(1.0, 2.0)):
        with pytest.raises(jitml.UnsupportedError, match=r"is changed in it|deletes an attribute of o"):
            jitml.jit(lambda o, x: (delattr(o, "w" if hasattr(o, "w") else "a"), x)[1], strict=True)(make(), np.float64(1.0))


def test_what_is_gone_at_a_later_call_raises_as_in_python() -> None:
    f, o = jitml.jit(lambda o, x: (delattr(o, "cache"), x)[1]), Model()
    f(o, np.float64(1.0))
    with pytest.raises(AttributeError, match="cache"):
        f(o, np.float64(1.0))
    o.cache = 1
    f(o, np.float64(1.0))
    assert not hasattr(o, "cache")


def test_a_cached_property_deleted_outside_is_computed_of_what_the_function_has_set() -> None:
    def step(model: Any, x: Any) -> Any:
        model.w = model.w + x
        return model.total

    def asked(model: Any, x: Any) -> Any:
        model.b = x[0]
        return model.a

    for f, make, names in ((step, Model, ("total",)), (asked, Falling, ("a",))):
        compiled, one, other = jitml.jit(f, verify="never"), make(), make()
        for call in range(4):
            x = np.arange(3.0) + call
            assert compiled(one, x) == f(other, x)
            if call == 1:
                for name in names:
                    one.__dict__.pop(name), other.__dict__.pop(name)
        assert sorted(vars(one)) == sorted(vars(other))


def test_a_record_that_lacks_a_field_is_for_python() -> None:
    record = Record(2.0, np.ones(2))
    del record.b
    for _ in range(3):
        assert jitml.jit(lambda o, x: o.a * x)(record, 3.0) == 6.0


@dataclass
class Defaulted:
    a: float = 1.0
    b: float = 2.0


def test_a_field_that_only_the_class_shows_is_none_of_the_record() -> None:
    def without(x: Any) -> Any:
        record = Defaulted(b=x)
        del record.a
        return record

    def kept(record: Defaulted, x: Any) -> Any:
        record.b = x + record.a
        return record

    given = Defaulted()
    del given.a
    for x in (3.0, 4.0):
        assert vars(jitml.jit(without, verify="never")(x)) == {"b": x}
        assert vars(jitml.jit(kept, verify="never")(given, x)) == {"b": x + 1}


class Space(SimpleNamespace):
    pass


def test_a_namespace_of_a_class_of_its_own_is_returned() -> None:
    def made(x: Any) -> Any:
        space = Space(a=x + 1)
        space.b = x * 2
        return space

    compiled = jitml.jit(made, verify="never")
    for x in (3.0, 4.0):
        assert compiled(x) == made(x)
