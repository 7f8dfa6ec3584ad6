"""Containers from outside: `is` between those of which the function has copies, and mappings that are no dicts."""

from __future__ import annotations

import collections
import functools
import os
import sys
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

DEFAULTS = {"rate": np.ones(2)}
CHOSEN = DEFAULTS
TABLE = collections.UserDict(rate=2.0)


def chosen(x: Any) -> Any:
    return x * 2 if CHOSEN is DEFAULTS else x


def given(x: Any, options: Any) -> Any:
    return x * 2 if options is DEFAULTS else x


@pytest.mark.parametrize(
    "make", [lambda: [np.ones(2)], lambda: [1, 2], lambda: {"k": np.ones(2)}, lambda: collections.deque([1])]
)
def test_arguments(make: Any) -> None:
    function = jitml.jit(lambda a, b, x: x + (a is b), verify="never")
    one = make()
    for a, b in ((one, one), (one, make()), (make(), one), (one, one)):
        assert (function(a, b, np.ones(2)) == 1.0 + (a is b)).all()


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = jitml.jit(chosen, verify="never"), np.ones(2)
    for value in (DEFAULTS, dict(DEFAULTS), DEFAULTS):
        monkeypatch.setattr(sys.modules[__name__], "CHOSEN", value)
        assert (function(x) == chosen(x)).all()


def test_an_argument_and_a_global() -> None:
    function, x = jitml.jit(given, verify="never"), np.ones(2)
    for options in (DEFAULTS, dict(DEFAULTS), DEFAULTS):
        assert (function(x, options) == given(x, options)).all()


def _rate(**options: float) -> float:
    return options["rate"]


@pytest.mark.loose
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * dict(TABLE)["rate"],
        lambda x: x * {**TABLE}["rate"],
        lambda x: x * _rate(**TABLE),
        lambda x: x * collections.OrderedDict(TABLE)["rate"],
    ],
)
def test_mappings_that_are_no_dicts(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = jitml.jit(function, verify="never"), np.ones(2)
    for rate in (2.0, 3.0):
        monkeypatch.setitem(TABLE, "rate", rate)
        assert (compiled(x) == rate).all()


@pytest.mark.loose
@pytest.mark.parametrize("function", [lambda x: x * float(dict(os.environ)["RATE"]), lambda x: x * float({**os.environ}["RATE"])])
def test_the_environment_as_a_dict(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = jitml.jit(function, verify="never"), np.ones(2)
    for rate in ("2", "3"):
        monkeypatch.setenv("RATE", rate)
        assert (compiled(x) == float(rate)).all()


HELD = {"items": collections.defaultdict(lambda: 1.0)}
ROW = np.array([1.0, 2.0])


def missing(x: Any) -> Any:
    return x * HELD["items"]["k"]


def missing_of_argument(x: Any, items: Any) -> Any:
    return x * items["k"]


@pytest.mark.loose
def test_what_a_defaultdict_makes_of_missing_keys() -> None:
    found = jitml.jit(missing, verify="never"), jitml.jit(missing_of_argument, verify="never")
    for make in (lambda: 1.0, lambda: 5.0, float, functools.partial(np.copy, ROW), ROW.sum):
        for value in (1.0, 7.0):
            ROW[0] = value
            HELD["items"].clear()
            HELD["items"].default_factory = make
            items = collections.defaultdict(make)
            results = found[0](np.ones(2)), found[1](np.ones(2), items)
            np.testing.assert_array_equal(results, [np.ones(2) * make()] * 2)
            np.testing.assert_array_equal([items["k"], HELD["items"]["k"]], [make(), make()])


def exchange(items: Any, x: Any) -> Any:
    items.default_factory = None if x[0] > 0 else int
    return x


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
def test_a_factory_that_is_set() -> None:
    compiled, items = jitml.jit(exchange, verify="never"), collections.defaultdict(float)
    for x in (1.0, -1.0, 1.0):
        compiled(items, np.full(2, x))
        assert items.default_factory is (None if x > 0 else int)
    with pytest.raises(UnsupportedError, match="is from outside the jitted function and is changed in it"):
        jitml.jit(exchange, strict=True)(items, np.ones(2))
