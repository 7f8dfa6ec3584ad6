"""Flags of arrays from outside: a program that was made of a read-only array does not answer for one that may be written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from sections.forced_breaks import no_trials

Array = np.ndarray[Any, Any]


class Holder:
    def __init__(self, a: Array) -> None:
        self.a = a


def tries_to_write(x: Array) -> Any:
    try:
        x[0] = 7
    except ValueError:
        return -x.sum()
    return x.sum()


def asks(x: Array) -> Any:
    return x.flags.writeable, x[1:].flags["W"], x.flags.owndata, x[1:].flags.owndata


def asks_an_attribute(x: Array) -> Any:
    holder = Holder(x)
    return holder.a.flags.writeable


def gives_a_view(x: Array) -> Any:
    return x[1:]


def requires(x: Array) -> Any:
    return np.require(x, requirements="W")


def asks_in_a_loop(x: Array) -> Any:
    total = 0.0
    for n in range(3):
        if not x.flags.writeable:
            total += 1
        total += x[n]
    return total


def writes(x: Array) -> Any:
    x += 1
    return x


FUNCTIONS = [tries_to_write, asks, asks_an_attribute, gives_a_view, requires, asks_in_a_loop, writes]


def owned() -> Array:
    return np.arange(4.0)


def shown() -> Array:
    return np.arange(9.0)[:4]


def read_only() -> Array:
    x = np.arange(4.0)
    x.setflags(write=False)
    return x


def outcome(f: Callable[[Array], Any], x: Array) -> Any:
    try:
        result = f(x)
    except ValueError as error:
        result = str(error)
    return str(result), isinstance(result, np.ndarray) and result.flags.writeable, x.tolist()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_flags_are_those_of_the_call(function: Callable[[Array], Any]) -> None:
    for makers in itertools.permutations((owned, shown, read_only)):
        with no_trials():
            jitted = jitml.jit(function, strict=False)
            for make in makers * 2:
                assert outcome(jitted, make()) == outcome(function, make()), makers


def test_what_asks_no_flag_has_one_program() -> None:
    f = jitml.jit(lambda x: x * 2)
    for make in (owned, shown, read_only):
        f(make())
    assert len(f.variants) == 1
