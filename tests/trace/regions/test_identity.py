"""`x is y` of arrays, and whether they share memory: Python's own answer, in each iteration, out of branches and loops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from programs.comparing import difference

Array = np.ndarray[Any, Any]
ROWS: list[Callable[..., Any]] = []


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS.append(function)
    return function


@row
def the_argument_in_the_first_iteration(x, y, n):
    a, same = x, 0
    for _ in range(4):
        same += a is x
        a = a + 1
    return same, a


@row
def in_a_while(x, y, n):
    a, other = x, 0
    while a.sum() < n:
        if a is not x:
            other += 1
        a = a + 1
    return other


@row
def a_view_taken_again(x, y, n):
    v = w = x[1:]
    k = x[0]
    while k > 0:
        v = x[1:]
        k = k - 1
    return v is w


@row
def a_view_in_a_pair_taken_again(x, y, n):
    pair = (x[1:], n)
    v = pair[0]
    if x[1] > 0:
        pair = (x[1:], n)
    w, k = pair[0], x[0]
    while k > 1:
        pair = (x[1:], n)
        k = k - 1
    return v is w, w is pair[0]


@row
def copied_when_first_written(x, y, n):
    a = x
    for i in range(n):
        if a is x:
            a = a.copy()
        a[0] += i
    return a, x


@row
def two_names_in_a_loop(x, y, n):
    a = x * 2
    b, same = a, 0
    for _ in range(n):
        same += a is b
        b = a
        a = a + 1
    return same


@row
def made_in_this_iteration(x, y, n):
    a, same = x, 0
    for _ in range(n):
        b = a + 1
        same += b is a
        a = b
        same += a is b
    return same, a


@row
def a_view_of_before(x, y, n):
    v, w, same = x[...], x[...], 0
    for _ in range(n):
        same += v is w
        v = x[...]
        w = v
    return same, v is w


@row
def exchanged(x, y, n):
    a, b, same = x, y, 0
    for _ in range(n):
        same += a is x
        a, b = b, a
    return same, a is y


@row
def in_a_loop_inside(x, y, n):
    a, same = x, 0
    for _ in range(n):
        for _ in range(2):
            same += a is x
        a = a + 1
    return same


@row
def after_a_branch(x, y, n):
    a = x if x.sum() > n else y
    b = a if y.sum() > n else x * 2
    return a is x, a is y, b is a, b is x, b is not y


@row
def after_a_loop(x, y, n):
    a = x
    while a.sum() < n:
        a = a + 1
    return 1 if a is x else 2


@row
def in_a_list(x, y, n):
    first = x[:1]
    a, found = first, 0
    for _ in range(n):
        found += any(a is b for b in (y, first)) + (a in [first])
        a = a * 0 + 5
    return found


@row
def as_a_function(x, y, n):
    a, same = x, 0
    for _ in range(n):
        same += operator.is_(a, x) + 10 * operator.is_not(a, x)
        a = a + 1
    return same


@row
def between_three(x, y, n):
    a = b = x
    same = 0
    for _ in range(n):
        same += a is b is x
        a = a + 1
    return same


@row
def memory_shared_in_the_first_iteration(x, y, n):
    a, shared = x, 0
    for _ in range(n):
        shared += np.shares_memory(a, x[1:])
        a = a + 1
    return shared


@row
def memory_shared_after_a_branch(x, y, n):
    a = x * 2
    b = a if x.sum() > n else a + 1
    return np.shares_memory(a, b), np.may_share_memory(b[1:], a[:1])


@row
def memory_of_two_arguments(x, y, n):
    x += 1
    return np.shares_memory(x, y), np.shares_memory(x[1:], y), np.may_share_memory(x, x[::-1])


@row
def never_the_same(x, y, n):
    a, same = x, 0
    for _ in range(n):
        same += (a is None) + (a is n) + (a is x.dtype) + (a is x[:]) + (a is a[:])
        a = a + 1
    return same


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_identity(function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function)
    for x, y, n in ((0, 1, 3), (3, 0, 3), (1, -1, 2), (0, 1, 4)):
        eager, jitted = ((np.full(3, x), np.full(3, y), n) for _ in range(2))
        want, got = function(*eager), compiled(*jitted)
        assert not difference((got, jitted[0]), (want, eager[0]), np.array_equal)


def test_a_loop_that_does_not_ask_stays_one() -> None:
    def f(x: Array) -> Array:
        best = None
        for i in range(9):
            if best is None or i > 3:
                best = x * i
            x = x + best
        return x

    x = np.arange(3.0)
    np.testing.assert_array_equal(jitml.jit(f)(x), f(x))
    assert "loop" in str(jitml.jit(f).lower(x).graph)
