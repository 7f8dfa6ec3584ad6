"""What a function asks Python itself is asked at each call: which modules there are, and what a class is an instance of."""

from __future__ import annotations

import abc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(3.0)
NAME = "module_that_comes_and_goes"
LIMIT = [1]


class Meta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return x.q > LIMIT[0]

    def __subclasscheck__(cls, other: Any) -> bool:
        return LIMIT[0] < 2


class Checked(metaclass=Meta):
    pass


class Plain:
    q = 2


PLAIN = Plain()


def by_item(x: Any) -> Any:
    try:
        return sys.modules[NAME].__name__
    except KeyError:
        return x


def by_alias(x: Any) -> Any:
    import sys as system

    return NAME in system.modules


MODULES: list[Callable[[Any], Any]] = [
    lambda x: (x + 1, NAME in sys.modules),
    lambda x: (x + 1, NAME not in sys.modules),
    lambda x: sys.modules.get(NAME) is None,
    lambda x: x if sys.modules.get(NAME) is None else sys.modules[NAME].sum(x),
    lambda x: (NAME in sys.modules.keys(), NAME in list(sys.modules), any(name == NAME for name in sys.modules)),  # noqa: SIM118
    lambda x: [name for name, _ in sys.modules.items() if name == NAME],
    lambda x: sys.modules[__name__].LIMIT[0],  # type: ignore[attr-defined]
    lambda x: isinstance(sys.modules, dict),
    by_item,
    by_alias,
]
CHECKS: list[Callable[[Any], Any]] = [
    lambda x: (x, isinstance(PLAIN, Checked)),
    lambda x: isinstance(PLAIN, (int, Checked)),
    lambda x: issubclass(int, Checked),
    lambda x: Checked.__instancecheck__(PLAIN),
    lambda x: type(Checked).__instancecheck__(Checked, PLAIN),
    lambda x: Checked.__subclasscheck__(int),
]


def agree(f: Callable[[Any], Any], change: Callable[[int], None], values: tuple[int, ...]) -> None:
    fast = jitml.jit(f, verify="never")
    for value in values:
        change(value)
        assert repr(fast(X)) == repr(f(X))


@pytest.mark.loose
@pytest.mark.parametrize("number", range(len(MODULES)))
def test_modules(number: int) -> None:
    def change(value: int) -> None:
        LIMIT[0] = value
        if value:
            sys.modules[NAME] = np
        else:
            sys.modules.pop(NAME, None)

    agree(MODULES[number], change, (0, 1, 0))


@pytest.mark.loose
@pytest.mark.parametrize("number", range(len(CHECKS)))
def test_checks_of_metaclasses(number: int) -> None:
    agree(CHECKS[number], lambda value: LIMIT.__setitem__(0, value), (0, 5, 0))


@pytest.mark.loose
def test_registered_between_calls_and_asked_by_the_method() -> None:
    for ask in (lambda kind: kind.__instancecheck__(PLAIN), lambda kind: kind.__subclasscheck__(Plain)):

        class Abstract(abc.ABC):  # noqa: B024
            """Nothing is registered here yet."""

        fast = jitml.jit(lambda x, ask=ask, kind=Abstract: ask(kind), verify="never")
        assert fast(X) is False
        Abstract.register(Plain)
        assert fast(X) is True


def test_a_dtype_of_a_number() -> None:
    f = jitml.jit(lambda x, n: (np.dtype((float, n)).shape, np.dtype([("a", float, int(x[0]))]).itemsize), verify="never")
    for n in (2, 3):
        assert f(np.array([n, 1.0]), n) == ((n,), 8 * n)
    with pytest.raises(jitml.UnsupportedError, match="dtype"):
        jitml.jit(lambda n: np.zeros(2, (float, n)))(2)
