"""Arrays that a loop has put into a list, returned beside it: each is the very item of the list that it is in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def last(x: Any, y: Any) -> Any:
    rows = [y.copy() for _ in range(2)]
    return rows, rows[-1], rows[0][:]


def in_one_branch(x: Any, y: Any) -> Any:
    rows = [y.copy() for _ in range(2)]
    if x.any():
        first = rows[0]
        found = rows[-1]
        first[0] = 5.0
    return rows, found


def one_of_two(x: Any, y: Any) -> Any:
    rows = [y.copy() for _ in range(len(x))]
    found = rows[-1] if x.any() else rows[0]
    return rows, found


def found_by_loop(x: Any, y: Any) -> Any:
    rows = [y.copy() for _ in range(len(x))]
    found = None
    for i in range(len(x)):
        if x[i] > 1:
            found = rows[i]
    return rows, found


def least(x: Any, y: Any) -> Any:
    rows = []
    for i in range(len(x)):
        rows.append(y * i)
    best = rows[0]
    for row in rows:
        if row.sum() < best.sum():
            best = row
    return {"rows": rows, "best": best}


def greatest(x: Any, y: Any) -> Any:
    rows = [y * i for i in range(len(x))]
    return rows, max(rows, key=lambda row: row.sum())


def written(x: Any, y: Any) -> Any:
    rows = [y.copy() for _ in range(len(x))]
    if x.any():
        found = rows[-1]
    found[0] = 7.0
    return rows, found


def read_twice(x: Any, y: Any) -> Any:
    rows = [y * i for i in range(len(x))]
    return rows[0] is rows[0], rows[0] is rows[1], rows[-1] is rows[len(x) - 1], rows[:][1] is rows[1], rows[0] is rows[0][:]


def one_often(x: Any, y: Any) -> Any:
    rows = [y for _ in range(len(x))]
    return rows[0] is y, rows[0] is rows[1], [row is y for row in rows]


def among(x: Any, y: Any) -> Any:
    rows = [y * i for i in range(len(x))]
    chosen = rows[1]
    return [row for row in rows if row is not chosen], [row is rows[2] for row in rows]


def in_both(x: Any, y: Any) -> Any:
    rows = [y.copy() for _ in range(len(x))]
    return rows, rows, [rows[1], rows[1]]


def ids(result: Any) -> list[int]:
    """Which of the objects before it each one is."""
    found: list[Any] = []

    def go(x: Any) -> None:
        found.append(x)
        for part in x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ():
            go(part)

    go(result)
    return [next(n for n, other in enumerate(found) if other is x) for x in found]


@pytest.mark.parametrize("f", [last, in_one_branch, one_of_two, found_by_loop, least, greatest, written, in_both])
@pytest.mark.loose
def test_it_is_the_item(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f, verify="never")
    for x in (np.arange(3), np.array([5, 1, 0])):
        got, expected = fast(x, np.ones(3)), f(x, np.ones(3))
        assert ids(got) == ids(expected)
        assert repr(got) == repr(expected)


@pytest.mark.parametrize("f", [read_twice, one_often, among])
def test_an_item_is_itself_in_a_list_of_any_length(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f, verify="never")
    for length in (3, 5, 4):
        x, y = np.arange(length), np.ones(3)
        assert repr(fast(x, y)) == repr(f(x, y))
