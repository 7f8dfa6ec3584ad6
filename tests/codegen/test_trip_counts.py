"""Which whiles are known to end by a counter, so that short ones of them need not look whether the program is to end?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.loops.safepoints import SHORT_TRIPS
from jitml.codegen.llvm.loops.trip_counts import course_of
from jitml.kernels.ir import Kernel, While, walk


def whiles(function: Callable[..., Any], *args: Any) -> list[While]:
    steps = jitml.jit(function).lower(*args).program.kernels.steps
    return [s for step in steps if isinstance(step, Kernel) for s in walk(step.body) if isinstance(s, While)]


def up(x: Any) -> Any:
    j = 0
    while j < len(x) and x[j] < 3:
        j += 2
    return j


def down(x: Any) -> Any:
    for i in range(1, len(x)):
        key, j = x[i], i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def from_the_right(x: Any) -> Any:
    j = 0
    while len(x) > j:
        x[j] += 1
        j += 1
    return x


@pytest.mark.parametrize(("function", "rises"), [(up, True), (down, False), (from_the_right, True)])
def test_a_counter_that_moves_to_a_bound_ends_a_while(function: Callable[..., Any], rises: bool) -> None:
    x = np.array([2.0, 1.0, 5.0, 0.0])
    (course,) = [course_of(loop) for loop in whiles(function, x)]
    assert course is not None and course.rises == rises
    np.testing.assert_array_equal(jitml.jit(function)(x.copy()), function(x.copy()))


def sometimes(x: Any) -> Any:
    j = 0
    while j < len(x):
        if x[j] < 3:
            j += 1
    return j


def moving_bound(x: Any) -> Any:
    j, n = 0, len(x)
    while j < n and x[0] < 9:
        j, n, x[0] = j + 1, n + 1, x[0] + 1
    return j


def stored_bound(x: Any) -> Any:
    j = 0
    while j < x[0]:
        j, x[0] = j + 1, x[0] + 1
    return j


def away(x: Any) -> Any:
    j = 0
    while j < len(x) and x[0] < 9:
        j, x[0] = j - 1, x[0] + 1
    return j


def either(x: Any) -> Any:
    j = 0
    while j < len(x) or x[0] < 9:
        j, x[0] = j + 1, x[0] + 1
    return j


def not_at(x: Any) -> Any:
    j = 0
    while j != 4:
        j, x[0] = j + 1, x[0] + 1
    return j


@pytest.mark.parametrize("function", [sometimes, moving_bound, stored_bound, away, either, not_at])
def test_a_while_that_may_go_on_is_not_taken_for_one_that_ends(function: Callable[..., Any]) -> None:
    found = whiles(function, np.array([2, 1, 1, 0]))
    assert found and not any(map(course_of, found))


def test_a_bound_is_no_nearer_than_what_cuts_the_counter() -> None:
    (loop,) = whiles(up, np.ones(4))
    course = course_of(loop)
    assert course is not None and course.conditions
    assert SHORT_TRIPS < 1 << 24  # at some nanoseconds an iteration nobody waits for that


def test_what_a_choice_implies_ends_a_while_and_one_known_to_be_short_is_written_once() -> None:
    def escapes(x: Any, y: Any) -> Any:
        n = 0
        while n < 50 and x * x + y * y < 4.0:
            x, y, n = x * x - y * y + 0.3, 2.0 * x * y, n + 1
        return n

    def all_of(xs: Any) -> Any:
        out = np.zeros(len(xs), np.int64)
        for k in range(len(xs)):
            out[k] = escapes(xs[k], 0.1)
        return out

    xs = np.linspace(-2, 2, 40)
    assert None not in [course_of(loop) for loop in whiles(all_of, xs)]
    np.testing.assert_array_equal(jitml.jit(all_of)(xs), all_of(xs))
    lines = jitml.jit(all_of).lower(xs).llvm.splitlines()
    assert sum(line.startswith("while.") for line in lines) == 1
