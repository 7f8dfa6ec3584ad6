"""What the function has changed of what is outside, and code that is not converted reads: the same as Python, or refused."""

from __future__ import annotations

import copy
import functools
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

LIST, DICT, DEQUE, OBJECT, ARRAY = [1], {"a": 1}, deque([1]), SimpleNamespace(z=1), np.ones(1)
NAME = 1


def total() -> Any:
    return LIST[0] + DICT["a"] + DEQUE[0] + OBJECT.z + int(ARRAY[0]) + NAME


class Key:
    def __init__(self, v: int) -> None:
        self.v = v

    def __lt__(self, other: Key) -> bool:
        return bool(self.v * total() < other.v * total())

    def __eq__(self, other: object) -> bool:
        return total() == 7

    def __hash__(self) -> int:
        return 1

    def __index__(self) -> int:
        return int(total()) % 5


KEYS = [Key(n) for n in (1, 2, 3)]


@functools.lru_cache
def kept(v: int) -> Any:
    return v + total()


@functools.cache
def kept_of_an_object(o: Any) -> Any:
    return o.v


def in_list(x: Any) -> None:
    LIST[0] = -40


def in_front(x: Any) -> None:
    LIST.insert(0, -40)


def by_appending(x: Any) -> None:
    for n in range(3):
        LIST.append(n)
    LIST[0] = -40


def in_dict(x: Any) -> None:
    DICT["a"] = -40


def in_deque(x: Any) -> None:
    DEQUE.appendleft(-40)


def in_object(x: Any) -> None:
    OBJECT.z = -40


def in_array(x: Any) -> None:
    ARRAY[0] = -40


def to_name(x: Any) -> None:
    global NAME
    NAME = -40


CHANGES = (in_list, in_front, by_appending, in_dict, in_deque, in_object, in_array, to_name)
USES: dict[str, Callable[[], Any]] = {
    "sorted": lambda: [key.v for key in sorted(KEYS)],
    "max": lambda: max(KEYS).v,
    "a size": lambda: np.zeros(KEYS[1]).shape,
    "a bound": lambda: [10, 20, 30, 40, 50][: KEYS[0]],
    "an index": lambda: [10, 20, 30, 40, 50][KEYS[2]],
    "a key": lambda: KEYS[2] in {KEYS[0]: 1},
    "a cached function": lambda: kept(3),
    "cached before": lambda: kept(4),
}

# What others read of objects from outside, and what others keep.
LEFT = ("sorted", "max", "a size", "a key", "a cached function", "cached before")


@pytest.fixture(autouse=True)
def as_it_was() -> Any:
    outside = globals()
    names = ("LIST", "DICT", "DEQUE", "OBJECT", "ARRAY", "NAME")
    before = {name: copy.deepcopy(outside[name]) for name in names}
    yield
    outside |= before


@pytest.mark.parametrize("use", [pytest.param(use, marks=[pytest.mark.loose] * (use in LEFT)) for use in USES])
@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_seen_or_refused(change: Callable[[Any], None], use: str) -> None:
    def function(x: Any) -> Any:
        change(x)
        return USES[use](), x + 1

    def outcome(f: Callable[[Any], Any]) -> Any:
        for name, value in {"LIST": [1], "DICT": {"a": 1}, "DEQUE": deque([1]), "NAME": 1}.items():
            globals()[name] = value
        OBJECT.z, ARRAY[0] = 1, 1.0
        kept.cache_clear()
        if use == "cached before":
            kept(4)
        try:
            return repr(f(np.ones(2)))
        except ValueError as error:
            return repr(error)

    expected = outcome(function)
    compiled = jitml.jit(function, verify="never")
    for _ in range(2):
        try:
            found = outcome(compiled)
        except UnsupportedError as error:
            assert "is changed" in str(error) or "is written" in str(error) or "assigns the global" in str(error)
        else:
            assert found == expected


@pytest.mark.loose
def test_a_cached_function_is_called_before_what_changes_later() -> None:
    def function(x: Any) -> Any:
        found = kept(5)
        LIST[0] = 3
        return found, x

    kept.cache_clear()
    assert jitml.jit(function, verify="never")(np.ones(2))[0] == 11
    assert LIST == [3]


def test_a_cached_function_of_an_object_that_has_changed() -> None:
    def function(o: Any, x: Any) -> Any:
        o.v = 9
        return kept_of_an_object(o), x

    with pytest.raises(UnsupportedError, match="answers with what it has kept"):
        jitml.jit(function, verify="never")(Key(1), np.ones(2))
