"""Special methods by which Python and C make numbers, sequences and memory of the user's objects: what they answer changes."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import struct
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UncompiledWarning


class Place:
    def __init__(self, at: int) -> None:
        self.at = at

    def __index__(self) -> int:
        return self.at


class Several(Place):
    def __iter__(self) -> Any:
        return iter(range(self.at))

    def __bool__(self) -> bool:
        return self.at > 1


class Points:
    def __init__(self, at: int) -> None:
        self.at = at

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([self.at, 1.0])


class Money:
    def __init__(self, at: int) -> None:
        self.at = at

    def __add__(self, other: Any) -> Any:
        return other + self.at

    __radd__ = __add__

    def __float__(self) -> float:
        return float(self.at)


PLACE, SEVERAL, POINTS, MONEY = Place(1), Several(1), Points(1), Money(1)
BOX = {"places": [PLACE], "slice": slice(PLACE, None)}
ITEMS = [10, 20, 30, 40, 50]


def stored(x: Any) -> Any:
    x[PLACE] = 7.0
    x[PLACE:] += 1.0
    x[: SEVERAL.at : PLACE] = 9.0
    return x


def stored_in_rows(x: Any) -> Any:
    y = x.reshape(5, 1).copy()
    y[PLACE, 0] = 3.0
    y[PLACE:, :PLACE] *= 2.0
    return y


def stored_in_a_list(x: Any) -> Any:
    items = [x * k for k in range(5)]
    items[PLACE] = x
    del items[PLACE:]
    items.insert(PLACE, x + 1)
    return items[-1], len(items), items.pop(PLACE if len(items) > 9 else 0)


def deleted(x: Any) -> Any:
    items = ITEMS.copy()
    del items[PLACE]
    return x * items[PLACE]


def counted(x: Any) -> Any:
    for _ in range(PLACE):
        x = x + 1
    for k in range(PLACE, 5, 2):
        x = x * k
    return x


def written_points(x: Any) -> Any:
    x[:2] = POINTS
    x[2:4] += POINTS
    return x


def as_key(x: Any) -> Any:
    found = {PLACE: 1, "b": 2}
    found[SEVERAL] = 5
    return x * len(found) * found[PLACE]


CASES: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (stored, stored_in_rows, stored_in_a_list, deleted, counted, written_points, as_key)
} | {
    "item": lambda x: x[PLACE],
    "slice": lambda x: x[PLACE:],
    "steps": lambda x: x[::PLACE],
    "both": lambda x: x[PLACE : PLACE.at + 2],
    "in a box": lambda x: x[BOX["places"][0] :],
    "a slice from outside": lambda x: x[BOX["slice"]],
    "made slice": lambda x: x[slice(None, PLACE)],
    "rows": lambda x: x.reshape(5, 1)[PLACE:, 0],
    "of a list": lambda x: x * ITEMS[PLACE],
    "slice of a list": lambda x: np.array(ITEMS[PLACE:]),
    "of a text": lambda x: x * ord("abcdef"[PLACE]),
    "of bytes": lambda x: x * b"abcdef"[PLACE],
    "of a range": lambda x: x * range(10)[PLACE],
    "slice of a range": lambda x: np.array(range(10)[PLACE:]),
    "repeated": lambda x: np.array([1.0, 2.0] * PLACE),
    "zeros": lambda x: np.zeros(PLACE),
    "table": lambda x: np.ones((PLACE, 2)),
    "full": lambda x: np.full(PLACE, 2.0),
    "eye": lambda x: np.eye(operator.index(PLACE)),
    "linspace": lambda x: np.linspace(0, 1, PLACE),
    "reshape": lambda x: np.ones(6).reshape(PLACE, -1),
    "reshaped": lambda x: np.ones(6).reshape((-1, PLACE)),
    "axis": lambda x: np.ones((2, 3, 4, 5)).sum(axis=PLACE),
    "axes": lambda x: np.ones((2, 3, 4, 5)).sum(axis=(0, PLACE)),
    "roll": lambda x: np.roll(x, PLACE),
    "repeat": lambda x: x.repeat(PLACE),
    "hex": lambda x: x * int(hex(PLACE), 16),
    "bin": lambda x: x * len(bin(PLACE)),
    "chr": lambda x: x * ord(chr(PLACE)),
    "bytes": lambda x: x * len(bytes(PLACE)),
    "comb": lambda x: x * math.comb(6, PLACE),
    "gcd": lambda x: x * math.gcd(12, PLACE),
    "shift": lambda x: x * (1 << operator.index(PLACE)),
    "islice": lambda x: np.array(list(itertools.islice(ITEMS, PLACE))),
    "pack": lambda x: x * sum(struct.pack("i", PLACE)),
    "round": lambda x: x * round(1.23456, PLACE),
    "sqrt": lambda x: x * math.sqrt(MONEY),
    "list": lambda x: np.array(list(SEVERAL)),
    "filter": lambda x: x * len(list(filter(None, [SEVERAL, 1]))),
    "Counter": lambda x: x * len(Counter(SEVERAL)),
    "fromkeys": lambda x: x * len(dict.fromkeys(SEVERAL, 0)),
    "OrderedDict": lambda x: x * len(OrderedDict.fromkeys(SEVERAL)),
    "extended": lambda x: np.array([*ITEMS, *SEVERAL]),
    "sum": lambda x: x * sum([1, 2], MONEY),
    "sum of": lambda x: x * sum([MONEY, MONEY]),
    "joined": lambda x: np.concatenate([x, POINTS]),
    "times": lambda x: x[:2] * POINTS,
    "set": lambda x: (x.__setitem__(slice(0, 2), POINTS), x)[1],
}


BREAKS: list[Callable[[Any], Any]] = [
    lambda x: x.take(PLACE) + 1,
    lambda x: x.take([PLACE, 0]) + 1,
    lambda x: x * np.float64(MONEY),
]


@pytest.mark.loose
@pytest.mark.parametrize("function", BREAKS)
def test_what_numpy_asks_of_an_object_is_a_break(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function)
    for at in (1, 2, 3, 2):
        PLACE.at = MONEY.at = at
        np.testing.assert_array_equal(compiled(np.arange(1.0, 6.0)), function(np.arange(1.0, 6.0)))


@pytest.mark.loose
@pytest.mark.parametrize("name", CASES)
def test_what_an_object_answers_is_asked_at_each_call(name: str) -> None:
    function = CASES[name]
    compiled = jitml.jit(function, verify="never")
    for at in (1, 2, 3, 2):
        for thing in (PLACE, SEVERAL, POINTS, MONEY):
            thing.at = at  # type: ignore[attr-defined]
        expected = function(np.arange(1.0, 6.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error", UncompiledWarning)
            got = compiled(np.arange(1.0, 6.0))
        assert str(got) == str(expected), at
        for a, b in zip(got if isinstance(got, tuple) else [got], expected if isinstance(expected, tuple) else [expected]):
            np.testing.assert_array_equal(a, b, strict=True)


class Sizes(Place):
    """A sequence and an integer: as a shape, NumPy takes it for a sequence, as an index for an integer."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, n: int) -> int:
        return (self.at, 3)[n]


class Numbers(list):  # type: ignore[type-arg]
    def __index__(self) -> int:
        return 2


GENERATOR = np.random.default_rng(7)
OF_ARGUMENTS: dict[str, Callable[..., Any]] = {
    "repeat": lambda o, x: x.repeat(o),
    "item": lambda o, x: x.item(o),
    "clip": lambda o, x: x.clip(operator.index(o)),
    "index": lambda o, x: x[o],
    "written": lambda o, x: (x.__setitem__(o, 9.0), x)[1],
    "zeros": lambda o, x: np.zeros(o),
    "full": lambda o, x: np.full(o, 2.0),
    "drawn": lambda o, x: GENERATOR.random(o).shape,
    "drawn inside": lambda o, x: np.random.default_rng(3).normal(0, 1, o),
    "permuted": lambda o, x: np.random.default_rng(3).permutation(o),
    "drawn by all": lambda o, x: np.random.uniform(size=o).shape,
}
OF_SEQUENCES: dict[str, Callable[..., Any]] = {
    "broadcast": lambda o, x: np.broadcast_to(1.0, o),
    "tile": lambda o, x: np.tile(x, o),
    "resize": lambda o, x: np.resize(x, o),
}


MAKERS: dict[str, Callable[[int], Any]] = {"an integer": Place, "both": Sizes, "a list": lambda at: Numbers([at, 3])}


@pytest.mark.loose
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", [*OF_ARGUMENTS, *OF_SEQUENCES])
def test_what_an_argument_answers_is_asked_at_each_call(name: str, kind: str) -> None:
    if kind == "an integer" and name in OF_SEQUENCES:
        pytest.skip("NumPy takes no such object")
    function = {**OF_ARGUMENTS, **OF_SEQUENCES}[name]

    def outcome(f: Callable[..., Any], at: int) -> str:
        try:
            return repr(f(MAKERS[kind](at), np.arange(6.0)))
        except (TypeError, IndexError, ValueError) as error:
            return repr(type(error))

    compiled = jitml.jit(function, verify="never")
    for at in (1, 2, 3, 2):
        assert outcome(compiled, at) == outcome(function, at), at


OF_MADE: dict[str, Callable[..., Any]] = {
    "range": lambda n, x: [x + i for i in range(Place(n))],
    "steps": lambda n, x: [*range(1, Place(7), Place(n))],
    "hex": lambda n, x: hex(Place(n)),
    "chr": lambda n, x: chr(Place(n)),
    "comb": lambda n, x: math.comb(7, Place(n)),
    "round": lambda n, x: round(1.23456, Place(n)),
    "enumerate": lambda n, x: [*enumerate([1, 2], Place(n))],
    "islice": lambda n, x: [*itertools.islice(ITEMS, Place(n))],
    "of a list": lambda n, x: ITEMS[Place(n)],
    "part of a list": lambda n, x: ITEMS[: Place(n)],
    "part": lambda n, x: x[Place(n) :],
    "parts": lambda n, x: x.reshape(2, 3)[:, Place(n) :],
    "written": lambda n, x: (x.__setitem__(Place(n), 9.0), x)[1],
}


@pytest.mark.parametrize("name", OF_MADE)
def test_objects_made_of_numbers_that_only_the_program_knows(name: str) -> None:
    function = OF_MADE[name]
    compiled = jitml.jit(function, verify="never")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncompiledWarning)
        for n in (2, 3, 1):
            assert repr(compiled(n, np.arange(6.0))) == repr(function(n, np.arange(6.0)))


def with_parts(p: Any, x: Any) -> Any:
    return len(p.args), p.args[0], p.func is np.multiply, p.keywords, p(x)


def test_parts_of_a_partial_that_is_an_argument() -> None:
    compiled = jitml.jit(with_parts, verify="never")
    for n in (2, 5, 3):
        given = functools.partial(np.multiply, n)
        assert repr(compiled(given, np.arange(3.0))) == repr(with_parts(given, np.arange(3.0)))


def chained(fs: Any, x: Any) -> Any:
    return functools.reduce(lambda f, g: lambda v: g(f(v)), fs)(x), fs[0].keywords


def scaled(v: Any, k: float = 1.0) -> Any:
    return v * k


def test_partials_in_a_list_that_python_goes_through() -> None:
    compiled = jitml.jit(chained, verify="never")
    for k in (2.0, 5.0, 3.0):
        given = [functools.partial(scaled, k=k), np.sin]
        assert repr(compiled(given, np.arange(3.0))) == repr(chained(given, np.arange(3.0)))
