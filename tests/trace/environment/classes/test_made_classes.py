"""Classes that the function makes, by a statement or by a call, and instances that its own `__new__` makes."""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import inspect
import pathlib
import typing
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import pytest

import jitml

X = np.arange(1.0, 4.0)


class Meta(type):
    pass


MADE_BY_CALLS: dict[str, Callable[[Any], type]] = {
    "type": lambda x: type("C", (), {}),
    "type with keywords": lambda x: type("C", (Counted,), {}, count=3),
    "type in a loop": lambda x: [type("C", (), {}) for _ in range(2)][1],
    "a metaclass": lambda x: Meta("C", (), {}),
    "namedtuple": lambda x: collections.namedtuple("C", "a b"),
    "NamedTuple": lambda x: typing.NamedTuple("C", [("a", int)]),
    "TypedDict": lambda x: typing.TypedDict("C", {"a": int}),
    "Enum": lambda x: Enum("C", "a b"),
    "make_dataclass": lambda x: dataclasses.make_dataclass("C", ["a"]),
    "make_dataclass mapped": lambda x: next(map(dataclasses.make_dataclass, ["C"], [["a"]])),
    "make_dataclass in part": lambda x: functools.partial(dataclasses.make_dataclass, fields=["a"])("C"),
    "namedtuple in part": lambda x: functools.partial(functools.partial(collections.namedtuple), field_names="a")("C"),
    "Enum in part": lambda x: functools.partial(Enum, names="a b")("C"),
}


class Counted:
    count = 0

    def __init_subclass__(cls, count: int = 0) -> None:
        cls.count = count


@pytest.mark.parametrize("name", ["type", "namedtuple", "make_dataclass in part"])
def test_who_makes_a_class_is_refused_with_strict(name: str) -> None:
    with pytest.raises(jitml.UnsupportedError, match="a class is made in the jitted function"):
        jitml.jit(MADE_BY_CALLS[name])(1.0)
    with pytest.raises(jitml.UnsupportedError, match="a class is made in the jitted function"):
        jitml.jit(fields)(1.0)


@pytest.mark.loose
@pytest.mark.parametrize("name", MADE_BY_CALLS)
def test_a_class_made_by_a_call_is_of_the_users_module(name: str) -> None:
    made, expected = jitml.jit(MADE_BY_CALLS[name], verify="never")(1.0), MADE_BY_CALLS[name](1.0)
    assert (made.__module__, made.__qualname__) == (expected.__module__, expected.__qualname__)
    assert getattr(made, "count", None) == getattr(expected, "count", None) or "amed" in name  # there it is a tuple's method


def fields(x: Any) -> Any:
    @dataclasses.dataclass
    class Record:
        count: typing.ClassVar[int] = 3
        a: Any
        _: dataclasses.KW_ONLY
        scale: dataclasses.InitVar[float] = 2.0
        b: float

        def __post_init__(self, scale: float) -> None:
            self.a = self.a * scale

    made = Record(x, b=1.0), Record(x, b=2.0, scale=4.0)
    return [(r.a, r.b, r.count) for r in made], [(field.name, field.type) for field in dataclasses.fields(Record)]


def required(x: Any) -> Any:
    class Row(typing.TypedDict, total=False):
        a: float
        b: typing.Required[int]

    class Pair(typing.NamedTuple):
        first: float
        second: int = 2

    return Row.__required_keys__, Row(a=x, b=1), sorted(Pair.__annotations__), Pair(x)[1]


def of_local_types(x: Any) -> Any:
    found, kind = [], int

    class Outer:
        value: kind = 3
        __own: float = 1.0

        class Inner:
            value: float

        def get(self, y: kind) -> Any:
            z: int = y
            return z * self.__own

    for other in (int, float):

        class Last:
            value: other

        found.append(Last.__annotations__)
    return found, Outer.__annotations__, Outer.Inner.__annotations__, Outer.get.__annotations__, Outer().get(x)


def of_no_name(x: Any) -> Any:
    try:

        class A:
            value: no_name = 1  # noqa: F821

        return "deferred", A.value * x
    except NameError as error:
        return str(error), x


ANNOTATED = [fields, required, of_local_types, of_no_name]
POSTPONED = "from __future__ import annotations\n"


@pytest.mark.loose
@pytest.mark.parametrize("is_postponed", [False, True])
@pytest.mark.parametrize("function", ANNOTATED)
def test_annotations_of_a_class_made_inside(
    function: Callable[[Any], Any], is_postponed: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = POSTPONED * is_postponed + "import dataclasses, typing\nfrom typing import Any\n" + inspect.getsource(function)
    name = f"annotated_{function.__name__}_{is_postponed}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    function = getattr(importlib.import_module(name), function.__name__)
    compiled = jitml.jit(function, verify="never")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (2.0, 3.0):
            assert repr(compiled(x)) == repr(function(x))


class Registered:
    known: ClassVar[dict[int, Any]] = {}

    def __new__(cls, key: int) -> Any:
        if key not in cls.known:
            cls.known[key] = super().__new__(cls)
        return cls.known[key]

    def __init__(self, key: int) -> None:
        self.key = key


class Tallied:
    made = 0

    def __new__(cls) -> Any:
        cls.made += 1
        return super().__new__(cls)


class Summed:
    def __new__(cls, x: Any) -> Any:
        made = object.__new__(cls)
        made.sum = x.sum()
        return made


class Pair(collections.namedtuple("Pair", "a b")):
    __slots__ = ()

    def __new__(cls, a: Any, b: float = 2.0) -> Any:
        return super().__new__(cls, a, b)


class Tagged(list[Any]):
    def __new__(cls, items: Any) -> Any:
        made = super().__new__(cls)
        made.tag = len(items)
        return made


class Doubled:
    def __new__(cls, x: Any) -> Any:
        return x * 2


def registers(x: Any) -> Any:
    a, b = Registered(1), Registered(1)
    a.z = x[0]
    return x, a is b, b.z, len(Registered.known)


def counts(x: Any) -> Any:
    for _ in range(3):
        Tallied()
    return x, Tallied.made


def sums(x: Any) -> Any:
    total = 0.0
    for n in range(3):
        total += Summed(x * n).sum
    return total


MADE: list[Callable[[Any], Any]] = [
    *(registers, pytest.param(counts, marks=pytest.mark.loose), sums),
    lambda x: (Pair(x[0]).b, Pair(x[1], x[2]).a),
    lambda x: (list(Tagged([1, 2])), Tagged([x]).tag),
    lambda x: (Doubled(x), Doubled(3)),
]


@pytest.mark.loose("registers")
@pytest.mark.parametrize("f", MADE)
def test_new_of_the_users_is_called_at_each_call(f: Callable[[Any], Any]) -> None:
    compiled, found = jitml.jit(f), []
    for function in (compiled, f):
        Registered.known.clear()
        Tallied.made = 0
        found.append([function(X) for _ in range(3)])
    np.testing.assert_equal(*found)
