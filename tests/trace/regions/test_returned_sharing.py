"""Results that may be one array, of which no name is left when they are returned: they are one where NumPy's are."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = Any


def itself_or_a_copy(x: Array) -> tuple[Array, ...]:
    a = x * 1
    b = a + 1
    if x[0] > 0:
        b = a
    return (b if x[1] > 0 else b.copy()), b


def exchanged(x: Array) -> tuple[Array, ...]:
    a = x * 1
    b = a + 1
    if x[0] > 0:
        b, a = a, b + 1
    c = b
    if x[1] > 0:
        c = b.copy()
    return c, b


def each_may_be_the_third(x: Array) -> tuple[Array, ...]:
    a = x * 1
    b = a + 1 if x[0] < 0 else a
    c = a if x[1] > 0 else a + 2
    return b, c


def views_that_overlap(x: Array) -> tuple[Array, ...]:
    a = x * 1
    b = a[1:3] if x[0] > 0 else a[1:3] + 1
    c = a[:2] if x[1] > 0 else a[:2] + 1
    return b, c


def one_may_be_two_others(x: Array) -> tuple[Array, ...]:
    a = x * 1
    b = a if x[0] > 0 else a + 1
    c = a if x[1] > 0 else a + 2
    d = a if x[2] > 0 else b
    return b, c, d


def one_of_two_that_may_be_one(x: Array) -> tuple[Array, ...]:
    a = x * 1
    b = a if x[0] > 0 else a + 1
    c = a if x[1] > 0 else a + 2
    return (b if x[2] > 0 else c), c


def of_the_last_iteration(x: Array) -> tuple[Array, ...]:
    for _ in range(3):
        a = x * 1
        b = a if x[0] > 0 else a + 1
        c = a if x[1] > 0 else a + 2
    return b, c


def two_views_of_one(x: Array) -> tuple[Array, ...]:
    for i in range(4):
        if x[i] < 0:
            continue
        a = x * 1
    a[1:] += 1
    return np.expand_dims(a, 0), a


FUNCTIONS = (
    itself_or_a_copy,
    exchanged,
    each_may_be_the_third,
    views_that_overlap,
    one_may_be_two_others,
    one_of_two_that_may_be_one,
    of_the_last_iteration,
    two_views_of_one,
)


def _sharing(arrays: tuple[Array, ...]) -> list[tuple[bool, bool]]:
    return [(a is b, np.shares_memory(a, b)) for a, b in itertools.combinations(arrays, 2)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_share_memory_where_numpy_s_do(function: Callable[[Array], tuple[Array, ...]]) -> None:
    compiled = jitml.jit(function)
    for signs in itertools.product((-1, 1), repeat=3):
        x = np.array([*signs, 1]) * np.arange(3.0, 7.0)
        expected, results = function(x.copy()), compiled(x.copy())
        for a, b in zip(expected, results, strict=True):
            np.testing.assert_array_equal(b, a)
        assert _sharing(results) == _sharing(expected), signs
    assert compiled.variants, "nothing was compiled"


P = np.polynomial.Polynomial([1, 0, 2])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (P * P).coef,
        lambda x: (P + 1).coef[::2],
        lambda x: np.polynomial.Chebyshev([1.0, 2.0]).deriv().coef,
        lambda x: copy.copy(P).coef,
        lambda x: [(P * 2).coef for _ in x][1],
    ],
)
@pytest.mark.loose
def test_an_array_of_an_object_made_inside_is_new_at_each_call(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f, verify="never")
    x = np.ones(3)
    for _ in range(3):
        found = compiled(x)
        np.testing.assert_array_equal(found, f(x))
        found[0] = 99.0


@pytest.mark.loose
def test_an_array_of_an_object_made_inside_is_one_object() -> None:
    def f(x: Any) -> Any:
        q = P * P
        return q.coef, q.coef, q.coef[1:], P.coef

    first, second, part, outside = jitml.jit(f, verify="never")(np.ones(3))
    assert first is second and np.shares_memory(first, part) and outside is P.coef


def put_beside(x: Array) -> list[Array]:
    rows = [x.copy() for _ in range(3)]
    rows[1] = rows[0]
    rows[-2][0] = 7
    return rows


def put_beside_or_not(x: Array) -> list[Array]:
    rows = [x.copy() for _ in range(3)]
    if x[0] > 0:
        rows[1] = rows[-3]
    return rows


def copied(x: Array) -> list[Array]:
    rows = [x * i for i in range(3)]
    others = rows.copy()
    others[2] = rows[0]
    return [*rows, *others, *rows[1:]]


@pytest.mark.loose
@pytest.mark.parametrize("f", [put_beside, put_beside_or_not, copied])
def test_rows_of_a_list_are_one_object_each(f: Callable[[Array], list[Array]]) -> None:
    compiled = jitml.jit(f, verify="never")
    for x in (np.ones(2), -np.ones(2), np.ones(3)):
        found, expected = compiled(x), f(x)
        np.testing.assert_array_equal(found, expected)
        assert [[a is b for b in found] for a in found] == [[a is b for b in expected] for a in expected]


def part_of_the_last_row(x: Array) -> tuple[Array, Array]:
    for i, row in enumerate(x):
        if x[i, i] > 0:
            last = row
    return last[::-1], last[1:]


def test_a_view_of_what_may_be_one_row_or_another_is_of_the_right_one() -> None:
    compiled = jitml.jit(part_of_the_last_row, verify="never")
    for positive in ((0,), (1,), (0, 2), (3,)):
        x = np.arange(16.0).reshape(4, 4) - 100 * np.eye(4)
        x[positive, positive] = 5
        for found, expected in zip(compiled(x), part_of_the_last_row(x)):
            np.testing.assert_array_equal(found, expected)
            assert np.shares_memory(found, x)
