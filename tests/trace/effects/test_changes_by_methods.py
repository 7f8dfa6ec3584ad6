"""What methods and iterators change outside the function: at every call as in Python, or refused; never once, while tracing."""

from __future__ import annotations

import array
import collections
import functools
import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
LOG: list[Any] = []
ROWS: list[Callable[..., Any]] = []


class Doubling(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value * 2)
        LOG.append(key)


class Filling(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        LOG.append(key)
        self[key] = np.zeros(2) + len(self)
        return self[key]


class Recording:
    def __init__(self) -> None:
        self.items: dict[str, Any] = {"a": np.ones(2)}

    def __setitem__(self, key: str, value: Any) -> None:
        self.items[key] = value + 1

    def __getitem__(self, key: str) -> Any:
        return self.items[key]


class Halved:
    def __init__(self) -> None:
        self._w = np.ones(2)

    @property
    def w(self) -> Any:
        return self._w

    @w.setter
    def w(self, value: Any) -> None:
        self._w = value / 2


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS.append(function)
    return function


@row
def the_users_setitem(x):
    d, r = Doubling(), Recording()
    d["a"] = x
    d["a"] += x
    r["a"] *= x
    return dict(d), r.items


@row
def the_users_missing(x):
    m = Filling()
    m["a"] += x
    return m["a"] + m["b"], dict(m)


@row
def the_users_property(x):
    h = Halved()
    h.w += x
    return h.w


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_at_every_call(function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function)
    for x in (np.arange(2.0), np.ones(2), -np.ones(2)):
        LOG.clear()
        want, said = function(x), list(LOG)
        LOG.clear()
        got = compiled(x)
        assert repr(got) == repr(want)
        assert said == LOG


def test_of_arguments() -> None:
    def f(d, m, h, x):
        d["a"] = x
        d["a"] += x
        h.w += x
        m["b"] += x
        return h.w

    compiled = jitml.jit(f)
    for x in (np.arange(2.0), np.ones(2)):
        mine, theirs = ((Doubling(), Filling(), Halved(), x) for _ in range(2))
        np.testing.assert_array_equal(compiled(*mine), f(*theirs))
        assert repr(mine[:2]) == repr(theirs[:2])


NUMBERS = iter(range(9))
LETTERS = {"all": iter("abc")}
FLOATS = array.array("d", [1.0, 2.0])
QUEUE: queue.Queue[int] = queue.Queue()
ITEMS = [3, 1, 2]
NAMES = collections.UserList(["a"])
KEPT = Doubling()


def goes_on(x):
    return x + next(NUMBERS)


def goes_through(x):
    return x + sum(NUMBERS)


def goes_on_in_a_branch(x):
    if x.sum() > 9:
        x = x + len(next(LETTERS["all"]))
    return x * 2


def zips(x):
    return [n * v for n, v in zip(NUMBERS, x)]


def adds_by_a_partial(x):
    if x.sum() > 9:
        functools.partial(ITEMS.append, 4)()
    return x * 2


def updates_its_own_kind(x):
    if x.sum() > 9:
        KEPT.update(a=1)
    return x * 2


def adds_in_place(x):
    names = NAMES
    names += ["b"]
    return x * 2


REFUSED = [goes_on, goes_through, zips, adds_in_place]
DECIDED = [goes_on_in_a_branch, adds_by_a_partial, updates_its_own_kind]


def _state() -> tuple[Any, ...]:
    return list(FLOATS), QUEUE.qsize(), list(ITEMS), list(NAMES), dict(KEPT), NUMBERS.__reduce__(), LETTERS["all"].__reduce__()


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_is_refused_before_anything_changes(function: Callable[..., Any]) -> None:
    before = repr(_state())
    with pytest.raises(jitml.UnsupportedError, match="outside"):
        jitml.jit(function)(np.ones(2))
    assert repr(_state()) == before


@pytest.mark.parametrize("function", DECIDED, ids=lambda f: f.__name__)
def test_of_a_branch_that_is_not_taken(function: Callable[..., Any]) -> None:
    before = repr(_state())
    np.testing.assert_array_equal(jitml.jit(function)(np.ones(2)), [2, 2])
    assert repr(_state()) == before


@pytest.mark.loose
def test_what_python_changes_is_changed_once_in_each_call() -> None:
    def swaps(x: Array) -> Array:
        FLOATS.byteswap()
        return x

    before, jitted = FLOATS.tobytes(), jitml.jit(swaps)
    for n in range(4):
        jitted(np.ones(2))
        assert (FLOATS.tobytes() == before) == (n % 2 == 1)
