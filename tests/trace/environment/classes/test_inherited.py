"""What classes inherit from classes from outside is what those hold at each call: by `super()`, and in classes made inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")


def _classes() -> Any:
    class Doubling:
        def __get__(self, obj: Any, kind: Any) -> Any:
            return obj.size * 2

    class Shape:
        rate: Any = 2.0
        weights = np.ones(3)
        log: ClassVar[list[Any]] = []
        twice = Doubling()

        @property
        def area(self) -> Any:
            return self.rate * self.size

        @functools.cached_property
        def kept(self) -> Any:
            return self.rate + self.size

        @classmethod
        def of_class(cls) -> Any:
            return cls.rate

    class Middle(Shape):
        pass

    class Square(Middle):
        rate = 100.0

        def __init__(self) -> None:
            self.size: Any = 1.0

        @property
        def area(self) -> Any:
            return super().area + 1

        def constants(self, x: Any) -> Any:
            return super().rate * x, super().weights + x, super(Middle, self).rate

        def computed(self, x: Any) -> Any:
            self.size = x[0]
            return self.area, super().twice, super().of_class()

        def keeping(self, x: Any) -> Any:
            return super().kept * x

        def logging(self, x: Any) -> Any:
            super().log.append(x[0])
            return len(self.log)

        @classmethod
        def by_class(cls, x: Any) -> Any:
            return super().rate * x, super().of_class()

    return Shape, Middle, Square, Square()


def _compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    return jitml.jit(f, verify="never")


_BY_SUPER: list[Callable[..., Any]] = [
    lambda cls, obj, x: obj.constants(x),
    lambda cls, obj, x: obj.computed(x),
    lambda cls, obj, x: obj.keeping(x),
    lambda cls, obj, x: obj.logging(x),
    lambda cls, obj, x: cls().constants(x),
    lambda cls, obj, x: cls().computed(x),
    lambda cls, obj, x: cls.by_class(x),
]


_LEFT = (1, 2, 5)  # of which descriptors and cached properties are asked


@pytest.mark.parametrize("number", [pytest.param(n, marks=[pytest.mark.loose] * (n in _LEFT)) for n in range(len(_BY_SUPER))])
def test_by_super(number: int) -> None:
    f = _BY_SUPER[number]
    found = []
    for function in (f, _compiled(f)):
        base, middle, square, obj = _classes()
        results = []
        for call in range(4):
            base.rate, base.weights = 2.0 + call, np.ones(3) * call
            if call == 3:
                middle.rate = 50.0
            results.append(function(square, obj, np.arange(3.0) + call))
        found.append((repr(results), repr(vars(obj)), repr(base.log)))
    assert found[0] == found[1]


def _constant(base: Any, x: Any) -> Any:
    class Inner(base):  # type: ignore[misc]
        pass

    return Inner.rate * x, Inner().rate, Inner.weights + x


def _of_two(base: Any, x: Any) -> Any:
    class Named:
        name = "a"

    class Inner(Named, base):  # type: ignore[misc]
        def go(self) -> Any:
            return super().rate * x, super().name

    return Inner().go(), Inner.rate


def _grandchild(base: Any, x: Any) -> Any:
    class Inner(base):  # type: ignore[misc]
        @classmethod
        def go(cls) -> Any:
            return cls.rate

    class Last(Inner):
        pass

    return Last.go() * x, Last().rate, type("Made", (Last,), {})().rate


def _hidden(base: Any, x: Any) -> Any:
    class Inner(base):  # type: ignore[misc]
        pass

    inner = Inner()
    inner.rate = inner.rate * x[1]
    Inner.weights = Inner.weights + 1
    return inner.rate, Inner.rate, Inner.weights, base.weights


def _changed(base: Any, x: Any) -> Any:
    class Inner(base):  # type: ignore[misc]
        pass

    Inner.log.append(x[0])
    Inner().weights[1] = x[1]
    return len(base.log)


@pytest.mark.loose
@pytest.mark.parametrize("f", [_constant, _of_two, _grandchild, _hidden, _changed])
def test_classes_made_inside(f: Callable[..., Any]) -> None:
    found = []
    for function in (f, _compiled(f)):
        base, middle, *_ = _classes()
        results = []
        for call in range(4):
            base.rate, base.weights = 2.0 + call, np.ones(3) * call
            if call == 3:
                middle.rate = 50.0
            results.append((function(middle, np.arange(3.0) + call), repr(base.weights)))
        found.append((repr(results), repr(base.log)))
    assert found[0] == found[1]


def _of_base(obj: Any, base: type, x: Any) -> Any:
    return x * isinstance(obj, (int, base)), issubclass(type(obj), base)


def _handled(obj: Any, base: type, x: Any) -> Any:
    try:
        raise type(obj)(x[0])
    except base as error:  # type: ignore[misc]
        return error.args
    except Exception:
        return x


def _next(obj: Any, _: type, x: Any) -> Any:
    return obj.go() * x


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")  # a raised exception may be left to Python
@pytest.mark.parametrize("f", [_of_base, _handled, _next])
def test_bases_exchanged(f: Callable[..., Any]) -> None:
    class First(ValueError):
        def go(self) -> float:
            return 2.0

    class Second(ValueError):
        def go(self) -> float:
            return 3.0

    class Both(First):
        def go(self) -> float:
            return super().go() + 1

    compiled, obj = jitml.jit(f, verify="never"), Both(0)
    for base in (First, First, Second, First):
        Both.__bases__ = (base,)
        assert repr(compiled(obj, First, np.ones(2))) == repr(f(obj, First, np.ones(2)))
