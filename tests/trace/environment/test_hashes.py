"""`hash(x)` reads what `__hash__` of a class reads: the user's, a data class's, of objects inside tuples, too."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = [pytest.mark.loose, pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")]


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int = 1
    name: str = "a"


@dataclasses.dataclass(unsafe_hash=True)
class Loose:
    k: int = 1


class Users:
    def __init__(self, k: int) -> None:
        self.k = k

    def __hash__(self) -> int:
        return hash(("user", self.k))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Users) and self.k == other.k


class Outer:
    def __init__(self, k: int) -> None:
        self.inner = Loose(k)

    def __hash__(self) -> int:
        return hash(self.inner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outer) and self.inner == other.inner


Pair = namedtuple("Pair", "one other")
FROZEN, LOOSE, USERS, OUTER = Frozen(5), Loose(5), Users(5), Outer(5)
PAIR, LIST, DICT = Pair(LOOSE, 2), [LOOSE], {"w": LOOSE}

FUNCTIONS: list[Callable[[], Any]] = [
    lambda: hash(FROZEN) == hash(Frozen(2)),
    lambda: hash(USERS) == hash(Users(2)),
    lambda: hash(LOOSE) % 13,
    lambda: hash(OUTER) % 13,
    lambda: hash((FROZEN, 1)) % 13,
    lambda: hash((1, (LOOSE, 2))) % 13,
    lambda: hash(LIST[0]) % 13,
    lambda: hash(DICT["w"]) % 13,
    lambda: hash(PAIR) % 13,
    lambda: hash(tuple(LIST)) % 13,
    lambda: hash(frozenset(LIST)) % 13,
    lambda: OUTER in {Outer(2)},
    lambda: [Outer(4), OUTER].index(Outer(2)) if Outer(2) == OUTER else -1,
    lambda: list(map(hash, [FROZEN, LOOSE]))[1] % 13,
    lambda: max([LOOSE, Loose(4)], key=hash).k,
    lambda: sorted([LOOSE, Loose(4)], key=lambda x: hash(x) % 7)[0].k,
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_a_hash_is_that_of_this_call(number: int) -> None:
    function = FUNCTIONS[number]

    def f(x: Any) -> Any:
        return function(), x + 1

    fast = jitml.jit(f, verify="never")
    for k in (5, 2, 2, 3):
        for x in (FROZEN, LOOSE, USERS, OUTER.inner):
            object.__setattr__(x, "k", k)
        assert fast(np.arange(2))[0] == function()
