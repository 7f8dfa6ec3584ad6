"""Numbers of the user's own classes do what their methods say, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.loose


class Doubled(np.float64):
    def __mul__(self, other: Any) -> Any:
        return 99.0


class Seven(np.int64):
    def __int__(self) -> int:
        return 7


class Plain(float):
    def __mul__(self, other: Any) -> Any:
        return 98.0


X = np.ones(3)
OUTSIDE = Doubled(2.0)
NUMBERS = [Doubled(2.0), Seven(2), Plain(2.0), np.float32(2), np.int8(2)]
PLACES: dict[str, Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "argument": lambda k: (lambda x, k: k * 2 + int(k) + x, (k,)),
    "attribute": lambda k: (lambda x, o: o.k * 2 + int(o.k) + x, (SimpleNamespace(k=k),)),
    "item": lambda k: (lambda x, d: d["k"] * 2 + int(d["k"]) + x, ({"k": k},)),
    "in a list": lambda k: (lambda x, items: sum(v * 2 + int(v) for v in items) + x, ([k, k],)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "number", [Doubled(2.0), Seven(2), Plain(2.0), np.float32(2), np.int8(2)], ids=lambda n: type(n).__name__
)
def test_their_methods_are_asked(place: str, number: Any) -> None:
    function, args = PLACES[place](number)
    jitted, expected = jitml.jit(function), function(X, *args)
    for _ in range(4):
        got = jitted(X, *args)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_a_name_outside() -> None:
    def program(x: np.ndarray) -> Any:
        return OUTSIDE * 2 + x

    jitted = jitml.jit(program)
    for _ in range(3):
        np.testing.assert_array_equal(jitted(X), 100.0)


def test_strict_says_whose_class_it_is() -> None:
    with pytest.raises(jitml.UnsupportedError, match=r"argument k is a Doubled(.|\n)*np.float64\(k\)"):
        jitml.jit(lambda x, k: x * k, strict=True)(X, Doubled(2.0))
