"""Names that are one array or another, or None, as data say: what is written into them, and what raises, is Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.values.test_perhaps import COUNT, assert_same, calls

import jitml
from jitml.errors import UnsupportedError

Function = Callable[[Any], Any]


def written_all_the_time(x: Any) -> Any:
    best, w = None, np.zeros(3)
    for i in range(len(x)):
        w[i % 3] += x[i]
        if x[i] > 2:
            best = w
    return best, w


def written_after_the_loop(x: Any) -> Any:
    best, w = None, np.zeros(3)
    for i in range(len(x)):
        if x[i] > 2:
            best = w
    w[0] = 7
    return best, w


def written_in_the_iteration(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        w = np.full(2, x[i])
        if x[i] > 2:
            best = (w, i)
        w[0] += 1
    return best


def written_as_the_best(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = np.full(3, x[i])
        if best is not None:
            best[0] += 1
    return best


def the_argument(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = x
    return best is x, best


def a_view_of_the_argument(x: Any) -> Any:
    best = None
    for i in range(len(x) - 3):
        if x[i] > 2:
            best = x[i : i + 2]
        x[i] = -1
    return best


def two_greatest(x: Any) -> Any:
    best = second = None
    for i in range(len(x)):
        v = np.full(2, x[i])
        if best is None or v[0] > best[0]:
            best, second = v, best
        elif second is None or v[0] > second[0]:
            second = v
    return best, second


def exchanged(x: Any) -> Any:
    a = b = None
    for i in range(len(x)):
        if x[i] > 2:
            a = np.full(2, x[i])
        a, b = b, a
    return a, b


def in_a_branch(x: Any) -> Any:
    best = None
    if x[0] > 2:
        best = x
    if best is None:
        best = np.zeros(3)
    best[1] = 5
    return best


def of_a_helper_that_takes_none(x: Any) -> Any:
    def value(found: Any) -> Any:
        return 0.0 if found is None else found[1]

    best, total = None, 0.0
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
        total += value(best)
    return total


def seen_by_a_function_inside(x: Any) -> Any:
    def get() -> Any:
        return best

    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
    return get()


def shown(x: Any, best: Any = None) -> Any:
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
    return best == None, best != None, f"{best}", [best]  # noqa: E711


def read_though_it_is_none(x: Any) -> Any:
    best, total = None, 0.0
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
        if i > len(x) // 2:
            total += best[1]  # type: ignore[index]  # the error is what is tested
    return total


def caught(x: Any) -> Any:
    best = None
    try:
        for i in range(len(x)):
            if x[i] > 2:
                best = (i, x[i])
        return best[0]  # type: ignore[index]  # the same
    except TypeError:
        return "none"


def deleted(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
    n = 0 if best is None else 1
    del best
    return n


SHORT: list[Function] = [
    written_all_the_time, written_after_the_loop, written_in_the_iteration, written_as_the_best, the_argument,
    a_view_of_the_argument, two_greatest, exchanged, in_a_branch, of_a_helper_that_takes_none, seen_by_a_function_inside, shown,
    read_though_it_is_none, caught, deleted,
]  # fmt: skip


@pytest.mark.parametrize(
    "function", [pytest.param(f, marks=[pytest.mark.loose] * (f is caught)) for f in SHORT], ids=lambda f: f.__name__
)
def test_memory_and_errors_are_pythons(function: Function) -> None:
    compiled = jitml.jit(function)
    for x in calls(20, float) * 2:
        got, wanted = (made_of(f, x.copy()) for f in (compiled, function))
        assert_same(got, wanted)


def made_of(function: Function, x: Any) -> Any:
    """What a function makes, what it has written, and which of the arrays are one."""
    try:
        result = function(x)
    except TypeError as error:
        return str(error)
    arrays = [leaf for leaf in (*result, x) if isinstance(leaf, np.ndarray)] if isinstance(result, tuple) else [result, x]
    return result, x, [a is b for a in arrays for b in arrays]


@pytest.mark.parametrize("function", [written_all_the_time, written_as_the_best], ids=lambda f: f.__name__)
def test_what_may_be_an_array_that_is_written_is_refused_in_long_loops(function: Function) -> None:
    with pytest.raises(UnsupportedError):
        jitml.jit(function)(calls(COUNT, float)[0])
