"""Keys of dicts that are equal and of other types, or hold something else: each call has its own."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import jitml


class Level(IntEnum):
    LOW = 1


class Alike:
    """All are equal."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    def __hash__(self) -> int:
        return 3

    def __repr__(self) -> str:
        return f"Alike({self.k})"


@dataclass(frozen=True)
class Point:
    row: float


GLOBAL: dict[Any, Any] = {}
ONES: list[Any] = [1, True, 1.0, np.float64(1), np.int64(1), Level.LOW, Fraction(1), 1 + 0j, 1]
OTHERS = [
    [0.0, -0.0, 0, False],
    [(1, 2), (True, 2), (1.0, 2)],
    [frozenset([1]), frozenset([1.0])],
]
OBJECTS = [[Alike(1), Alike(2)], [Point(1), Point(1.0), Point(True)]]  # which Python alone looks up


def listed(x: Any, d: Any) -> Any:
    return list(d), [type(k).__name__ for k in d]


def looked_up(x: Any, d: Any) -> Any:
    return d[next(iter(d))] + 1, next(iter(d))


def rebuilt(x: Any, d: Any) -> Any:
    return {**d, "q": 1}


def of_global(x: Any, d: Any) -> Any:
    return [(value, key) for key, value in GLOBAL.items()]


def nested(x: Any, d: Any) -> Any:
    return [(key, value) for key, value in [{"a": d}][0]["a"].items()]


@pytest.mark.parametrize("keys", [ONES, *OTHERS, *(pytest.param(keys, marks=pytest.mark.loose) for keys in OBJECTS)])
@pytest.mark.parametrize("f", [listed, looked_up, rebuilt, of_global, nested])
def test_keys_are_those_of_this_call(f: Callable[..., Any], keys: list[Any]) -> None:
    fast = jitml.jit(f, verify="never")
    for key in keys:
        GLOBAL.clear()
        GLOBAL[key] = 2.0
        assert repr(fast(np.arange(2), {key: 2.0})) == repr(f(np.arange(2), {key: 2.0}))


@pytest.mark.parametrize("kind", [OrderedDict, lambda d: defaultdict(list, d), Counter])
def test_other_dicts_too(kind: Callable[..., Any]) -> None:
    fast = jitml.jit(listed, verify="never")
    for key in (1, True, 1.0):
        assert repr(fast(np.arange(2), kind({key: 2}))) == repr(listed(np.arange(2), kind({key: 2})))


def test_equal_keys_of_one_type_are_compiled_once() -> None:
    fast = jitml.jit(looked_up, verify="never")
    for n in range(4):
        assert fast(np.arange(2), {(1, 2.5): float(n), Point(3.0): 1.0})[0] == n + 1
    assert len(fast.variants) == 1
