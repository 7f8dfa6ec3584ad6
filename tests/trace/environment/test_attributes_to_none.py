"""Attributes and entries of objects from outside that become None, or of another type: what is read then, and what stays."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


class Filter:
    factor = 3.0

    def __init__(self) -> None:
        self.kept: Any = 5.0
        self.unset: Any = None
        self.items: Any = [1.0, None]
        self.named: Any = {"a": 1.0, "b": None}

    @property
    def through(self) -> Any:
        return self.kept

    @through.setter
    def through(self, value: Any) -> None:
        self.kept = value


@dataclasses.dataclass
class Record:
    kept: Any = 5.0


class Slotted:
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: Any = 5.0


def state(x: Any) -> Any:
    return {name: getattr(x, name) for name in ("kept", "unset", "items", "named", "factor", "new") if hasattr(x, name)}


def forgotten(f: Any, z: Any) -> Any:
    f.kept = None
    return f.kept is None


def forgotten_unread(f: Any, z: Any) -> Any:
    f.kept = None
    return z


def computed_again(f: Any, z: Any) -> Any:
    f.kept = None
    if f.kept is None:
        f.kept = z.sum()
    return f.kept


def by_setattr(f: Any, z: Any) -> Any:
    setattr(f, "kept", None)  # noqa: B010  # what the test is about
    return getattr(f, "kept", 3)


def a_text(f: Any, z: Any) -> Any:
    f.kept = "text"
    return f.kept


def under_a_condition(f: Any, z: Any) -> Any:
    if z.sum() > 2:
        f.kept = None
    return z


def in_a_loop(f: Any, z: Any) -> Any:
    for v in z:
        f.kept = None
        if f.kept is None:
            f.kept = v
    return f.kept


def through_a_property(f: Any, z: Any) -> Any:
    f.through = None
    return f.through is None


def over_the_class(f: Any, z: Any) -> Any:
    f.factor = None
    return f.factor is None


def new(f: Any, z: Any) -> Any:
    f.new = None
    return z


def exchanged(f: Any, z: Any) -> Any:
    f.kept, f.unset = f.unset, f.kept
    return f.unset


def a_list(f: Any, z: Any) -> Any:
    f.items = [z.sum()]
    f.items = None
    return f.items is None


def entries(f: Any, z: Any) -> Any:
    f.named["a"] = None
    f.items[0], f.items[1] = None, z.sum()
    return f.named["a"] is None, f.items[1], f.named.pop("b")


WHOLE = [by_setattr, a_text, in_a_loop, through_a_property, over_the_class, new, exchanged, a_list, entries]


ANYWHERE = [forgotten, forgotten_unread, under_a_condition, computed_again]
CASES = [*itertools.product(ANYWHERE, (Filter, Record, Slotted)), *((f, Filter) for f in WHOLE)]


@pytest.mark.parametrize(("f", "kind"), CASES, ids=lambda x: x.__name__)
@pytest.mark.parametrize("is_global", [False, True], ids=["argument", "global"])
def test_what_is_put_there_is_read_and_stays(f: Callable[..., Any], kind: Any, is_global: bool) -> None:
    mine, theirs = kind(), kind()
    compiled = jitml.jit((lambda z: f(theirs, z)) if is_global else f)
    for z in (np.ones(2), np.ones(2) + 1):
        expected = f(mine, z)
        got = compiled(z) if is_global else compiled(theirs, z)
        assert np.array_equal(got, expected) if got is not None else expected is None
        assert repr(state(theirs)) == repr(state(mine))
        mine, before = kind(), theirs
        for name in ("kept", "unset", "items", "named"):
            if hasattr(mine, name):
                setattr(before, name, copy.copy(getattr(mine, name)))


def test_a_record_from_outside_that_is_returned_is_that_very_one() -> None:
    mine = Record()

    def f(x: Any) -> Any:
        mine.kept = x.sum()
        return mine

    assert jitml.jit(f)(np.ones(3)) is mine
    assert mine.kept == 3.0
