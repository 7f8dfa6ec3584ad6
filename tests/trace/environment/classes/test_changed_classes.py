"""Classes of the user's that change between calls: methods replaced, subclasses registered, attributes that come later."""

from __future__ import annotations

import abc
import dataclasses
import functools
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(1.0, 4.0)


def make() -> Any:
    class A:
        def __init__(self, v: float = 2.0) -> None:
            self.v = v

        def __call__(self, x: Any) -> Any:
            return x * 2

        def __str__(self) -> str:
            return "old"

        def __repr__(self) -> str:
            return "old"

        def __format__(self, spec: str) -> str:
            return "old"

        def __enter__(self) -> float:
            return 2.0

        def __exit__(self, *error: object) -> None:
            return None

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

        def __lt__(self, other: Any) -> bool:
            return bool(self.v < other.v)

        def __index__(self) -> int:
            return 2

        def step(self, x: Any) -> Any:
            return x * 2

        @classmethod
        def of_class(cls, x: Any) -> Any:
            return x * 2

    return A


def entered(a: Any, x: Any) -> Any:
    with a as v:
        return x * v


def called_in_a_loop(a: Any, x: Any) -> Any:
    for _ in range(3):
        x = a(x)
    return x


def matched(a: Any, x: Any) -> Any:
    match a:
        case 1:
            return x
        case _:
            return x * 2


# What is called with the class, an object of it and X; the name of what is replaced, and by what.
CASES: dict[str, tuple[Callable[[Any, Any, Any], Any], str, Any]] = {
    "called": (lambda A, a, x: a(x), "__call__", lambda self, x: x * 9),
    "called in a loop": (lambda A, a, x: called_in_a_loop(a, x), "__call__", lambda self, x: x * 1.5),
    "mapped": (lambda A, a, x: sum(map(a, [x, x])), "__call__", lambda self, x: x * 9),
    "a partial of it": (lambda A, a, x: functools.partial(a)(x), "__call__", lambda self, x: x * 9),
    "a key": (lambda A, a, x: x * sorted([1.0, 2.0], key=a)[0], "__call__", lambda self, x: -x),
    "differentiated": (lambda A, a, x: jitml.grad(lambda v: a(v).sum())(x), "__call__", lambda self, x: x * 9),
    "made": (lambda A, a, x: x * A().v, "__init__", lambda self: setattr(self, "v", 9.0)),
    "made and called": (lambda A, a, x: A()(x), "__call__", lambda self, x: x * 9),
    "made and used": (lambda A, a, x: A().step(x), "step", lambda self, x: x * 9),
    "made otherwise": (lambda A, a, x: x * A().v, "__new__", staticmethod(lambda cls: Other())),
    "a text": (lambda A, a, x: str(a), "__str__", lambda self: "new"),
    "in braces": (lambda A, a, x: f"{a}", "__format__", lambda self, spec: "new"),
    "by a template": (lambda A, a, x: "%s" % a, "__str__", lambda self: "new"),  # noqa: UP031
    "shown": (lambda A, a, x: repr([a]), "__repr__", lambda self: "new"),
    "entered": (lambda A, a, x: entered(a, x), "__enter__", lambda self: 9.0),
    "found": (lambda A, a, x: x * [a, 1].index(1), "__eq__", lambda self, other: False),
    "matched": (lambda A, a, x: matched(a, x), "__eq__", lambda self, other: False),
    "hashed": (lambda A, a, x: x * hash(a), "__hash__", lambda self: 9),
    "sorted": (lambda A, a, x: x * sorted([A(1.0), A(2.0)])[0].v, "__lt__", lambda self, other: self.v > other.v),
    "an index": (lambda A, a, x: x * len(range(a)), "__index__", lambda self: 9),
    "of the class": (lambda A, a, x: a.of_class(x), "of_class", classmethod(lambda cls, x: x * 9)),
    "added": (lambda A, a, x: x * (2 if a else 3), "__len__", lambda self: 0),
}


class Other:
    v = 9.0


# What Python alone can say: texts, and what special methods of objects from outside read where no converted code calls them.
LEFT = ("a text", "in braces", "by a template", "shown", "found", "matched", "hashed", "sorted", "entered")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.loose] * (name in LEFT)) for name in CASES])
def test_a_method_replaced(name: str) -> None:
    function, attribute, other = CASES[name]
    A = make()
    a = A()
    compiled = jitml.jit(lambda x: function(A, a, x))
    for _ in range(2):
        assert np.array_equal(compiled(X), function(A, a, X))
    setattr(A, attribute, other)
    assert np.array_equal(compiled(X), function(A, a, X))


def test_a_method_that_a_subclass_gets() -> None:
    base = make()
    derived: Any = type("Derived", (base,), {"__module__": __name__})
    a = derived()
    compiled = jitml.jit(lambda x: a.step(x) + a(x))
    np.testing.assert_array_equal(compiled(X), X * 4)
    derived.step = lambda self, x: x * 9
    np.testing.assert_array_equal(compiled(X), X * 11)
    base.__call__ = lambda self, x: x
    np.testing.assert_array_equal(compiled(X), X * 10)


@pytest.mark.loose
def test_methods_of_a_transform_and_of_other_kinds_of_classes() -> None:
    class Kind(type):
        def __instancecheck__(cls, x: object) -> bool:
            return True

    class A(metaclass=Kind):
        pass

    @dataclasses.dataclass
    class Record:
        a: float

        def __post_init__(self) -> None:
            self.b = self.a

    class Choice(Enum):
        ONE = 1

        def __str__(self) -> str:
            return "old"

    programs: list[Callable[[Any], Any]] = [
        lambda x: x * (2 if isinstance(1, A) else 3),
        lambda x: x * Record(3.0).b,
        lambda x: str(Choice.ONE),
    ]
    compiled = [*map(jitml.jit, programs)]
    assert all(np.array_equal(f(X), g(X)) for f, g in zip(compiled, programs))
    mutable: Any = Kind, Record, Choice
    mutable[0].__instancecheck__ = lambda cls, x: False
    mutable[1].__post_init__ = lambda self: setattr(self, "b", 9.0)
    mutable[2].__str__ = lambda self: "new"
    assert all(np.array_equal(f(X), g(X)) for f, g in zip(compiled, programs))


def test_an_object_with_a_call_that_is_transformed() -> None:
    A = make()
    a = A()
    rows = jitml.vmap(a)
    np.testing.assert_array_equal(rows(X), X * 2)
    A.__call__ = lambda self, x: x * 9
    np.testing.assert_array_equal(rows(X), X * 9)


def abstract() -> Any:
    class B(abc.ABC):
        @abc.abstractmethod
        def value(self) -> float: ...

    return B


def in_a_pattern(a: Any, A: Any, B: Any) -> bool:
    match [a, 1]:
        case [B(), 1]:
            return True
    return False


ASKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an instance": lambda a, A, B: isinstance(a, B),
    "one made inside": lambda a, A, B: isinstance(A(), (int, (str, B))),
    "a union": lambda a, A, B: isinstance(a, int | B),
    "a class": lambda a, A, B: issubclass(A, B),
    "in map": lambda a, A, B: list(map(isinstance, [a], [B])),
    "a pattern": in_a_pattern,
    "a number": lambda a, A, B: isinstance(2.0, B),
}


@pytest.mark.loose("a class", "a number", "a union", "an instance", "in map", "one made inside")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.loose] * (name == "a pattern")) for name in ASKS])
def test_a_class_that_is_registered_between_calls(name: str) -> None:
    B = abstract()

    class A:
        pass

    a, ask = A(), ASKS[name]
    compiled = jitml.jit(lambda x: (x, ask(a, A, B)), verify="never")
    assert compiled(1.0) == (1.0, ask(a, A, B))
    B.register(float if name == "a number" else A)
    assert [compiled(1.0), compiled(1.0)] == [(1.0, ask(a, A, B))] * 2
    assert ask(a, A, B) in (True, [True])


@typing.runtime_checkable
class Valued(typing.Protocol):
    v: float


@pytest.mark.loose
def test_a_protocol_of_attributes() -> None:
    """Python 3.12 asks the class for its annotations, and from then on they stand in it."""
    a, b = make()(), Enum("Value", "one").one

    def function(x: float) -> Any:
        return x, isinstance(a, Valued), isinstance(b, Valued), isinstance(x, Valued)

    compiled = jitml.jit(function, verify="never")
    assert compiled(1.0) == function(1.0) == (1.0, True, False, False)
    del a.v
    assert compiled(1.0) == function(1.0)


@pytest.mark.loose
def test_a_pattern_of_an_attribute_that_comes_later() -> None:
    a, A = make()(), make()

    class B(A):
        pass

    b = B()

    def function(x: float) -> Any:
        found = []
        for one in (a, b):
            match one:
                case B(late=late):
                    found.append(x * late)
                case B(v=v):
                    found.append(x + v)
                case _:
                    found.append(x)
        return found

    compiled = jitml.jit(function, verify="never")
    for _ in range(2):
        assert compiled(1.5) == function(1.5) == [1.5, 3.5]
        b.late = 7.0
        assert compiled(1.5) == function(1.5) == [1.5, 10.5]
        del b.late


def test_who_asks_for_annotations_compiles_nothing_again() -> None:
    a = make()()
    compiled = jitml.jit(lambda x: x * a.v)
    assert [compiled(1.0), typing.get_type_hints(type(a)), type(a).__annotations__, compiled(1.0)] == [2.0, {}, {}, 2.0]
    assert len(compiled.variants) == 1


def test_what_python_keeps_in_a_class_is_no_change() -> None:
    class Plain:
        x = 1.0

    a = Plain()
    compiled = jitml.jit(lambda x: x * a.x)
    compiled(X)
    a.__reduce_ex__(4)  # keeps the names of slots in the class
    compiled(X)
    assert len(compiled.variants) == 1


def test_methods_are_compared_where_attributes_of_the_class_are_bound_anew() -> None:
    class A:
        scale: Any = 1.0

        def step(self, x: Any) -> Any:
            return x * self.scale

    a = A()
    compiled = jitml.jit(A.step)
    for scale in (1.0, 3.0, 3.0, np.ones(3) * 4, np.ones(3) * 5, 2.0):
        A.scale = scale
        np.testing.assert_array_equal(compiled(a, X), X * scale)
    A.__call__ = lambda self, x: x  # type: ignore[attr-defined]
    A.step = lambda self, x: x * 7  # type: ignore[method-assign]
    np.testing.assert_array_equal(jitml.jit(lambda a, x: a.step(x))(a, X), X * 7)
    called = jitml.jit(lambda a, x: a(x) + a.scale)
    np.testing.assert_array_equal(called(a, X), X + 2)
    A.scale = 5.0
    A.__call__ = lambda self, x: x * 2  # type: ignore[attr-defined]
    np.testing.assert_array_equal(called(a, X), X * 2 + 5)
