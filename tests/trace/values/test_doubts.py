"""Numbers that are an int in one call and a float in another, after a branch that the program decides: who sees the type?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def joined(x: Any, n: Any) -> Any:
    if x.sum() > 3:
        n = n * 0.5
    return n


def nested(x: Any, n: Any) -> Any:
    if x.sum() > 3:
        n = joined(x - 1, n)
    return n


SEEN: list[Callable[[Any], Any]] = [
    lambda x: joined(x, 2),
    lambda x: nested(x, 2),
    lambda x: [joined(x, 2), {"a": -joined(x, 4)}],
    lambda x: joined(x, 2) + 1,
    lambda x: (abs(joined(x, -3)), joined(x, 3) // 2, joined(x, 3) ** 2),
    lambda x: x * joined(x, 2),
    lambda x: np.array([joined(x, 2), 1]),
    lambda x: np.full(3, joined(x, 2)),
    lambda x: np.where(x > 0, x, joined(x, 2)),
    lambda x: max(x[0] * 0.5, 1.0, 2),
    lambda x: x.astype(np.float32) * max(x[0] * 0.5, 1.0),
    lambda x: (x[1] if x[0] > 1 else 3) * np.int8(3),
]

# Which is Python's and which is NumPy's, one program can say.
TOLD: list[Callable[[Any], Any]] = [
    lambda x: max(x[0] * 0.5, 1.0),
    lambda x: min(1, x[0]),
    lambda x: [(x[1] if x[0] > 1 else 3), max(x[0], 1)],
    lambda x: bool(x[0]) if x[1] > 1 else x[0] > 1,
]

UNSEEN: list[Callable[[Any], Any]] = [
    lambda x: x * 0.5 + joined(x, 2),
    lambda x: joined(x, 2) * 1.5,
    lambda x: joined(x, 2) / 2,
    lambda x: joined(x, 2) < 2,
    lambda x: np.sqrt(max(x[0] * 0.5, 1.0)) + x,
    lambda x: x.sum() / joined(x, 2),
]

CALLS = [np.array(x) for x in ([1, 0, 0], [2, 3, 4], [0, 0, 0], [-1, 2, 3])]


@pytest.mark.parametrize("number", range(len(SEEN)))
def test_whoever_sees_the_type_sees_the_right_one(number: int) -> None:
    agrees(SEEN[number], variants=3)


@pytest.mark.parametrize("number", range(len(TOLD)))
def test_the_program_says_whose_number_it_is(number: int) -> None:
    agrees(TOLD[number], variants=1)


@pytest.mark.parametrize("number", range(len(UNSEEN)))
def test_where_nobody_sees_it_one_program_serves_all_calls(number: int) -> None:
    agrees(UNSEEN[number], variants=1)


def agrees(function: Callable[[Any], Any], *, variants: int) -> None:
    compiled = jitml.jit(function)
    for x in CALLS:
        assert repr(compiled(x.copy())) == repr(function(x.copy()))
    assert 1 <= len(compiled.variants) <= variants


def test_the_array_of_a_list_that_stays_empty_is_numpys() -> None:
    def f(x: Any) -> Any:
        found = []
        for i in range(int(x.sum())):
            found.append(i)
        return np.array(found)

    compiled = jitml.jit(f)
    for x in (np.array([1, 2]), np.array([0, 0]), np.array([1, 0])):
        assert repr(compiled(x)) == repr(f(x))


class Amount:
    """An object whose attributes are called as those of numbers in a trace are."""

    kind = "money"
    dtype = np.dtype(np.int8)

    def __init__(self, n: float) -> None:
        self.n = n

    @property
    def value(self) -> float:
        raise AssertionError("nobody asks an Amount for its value")

    def __add__(self, other: Any) -> Any:
        return self.n + other

    __radd__ = __add__


AMOUNT = Amount(3.0)


def among_numbers(x: Any) -> Any:
    last: Any = None
    for i in range(len(x)):
        if x[i] > 0:
            last = AMOUNT
    return 0 if last is None else x[0] + last


@pytest.mark.parametrize(
    "function", [lambda x: x[0] + AMOUNT, lambda x: AMOUNT + x, lambda x: sum([x[0], AMOUNT, x.sum()]), among_numbers]
)
def test_an_object_of_the_users_is_no_number_whatever_its_attributes_are(function: Callable[[Any], Any]) -> None:
    agrees(function, variants=4)
