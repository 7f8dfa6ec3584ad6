"""Lists in lists that loops fill: an item is one object, whoever holds it, and all of them see what is written into it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError


def outcome(x: Any, known: dict[int, int]) -> Any:
    """A result as plain text, in which an object that has been met before is only a number."""
    if isinstance(x, (np.ndarray, np.generic)):
        return str(x.dtype), x.tolist()
    if id(x) in known:
        return f"the same as {known[id(x)]}"
    if isinstance(x, (list, dict)):
        known[id(x)] = len(known)
    if isinstance(x, dict):
        return [(key, outcome(item, known)) for key, item in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [outcome(item, known) for item in x]
    if dataclasses.is_dataclass(x):
        return outcome(vars(x), known)
    return type(x).__name__, x


def table(x: Any) -> Any:
    t = [[0.0] * 4 for _ in range(3)]
    for i in range(3):
        for j in range(4):
            t[i][j] = 2 * x[i][j]
    return t


def appended(x: Any) -> Any:
    t = []
    for _ in range(3):
        t.append([0, 0])
    t[0][1] = x[0, 1]
    return t


def places_in_the_data(x: Any) -> Any:
    t = [[0.0] * 4 for _ in range(3)]
    for i in range(3):
        t[int(x[i, 0]) // 5][int(x[0, i])] += x[i, 1]
    return t


def three_deep(x: Any) -> Any:
    t = [[[0.0] * 2 for _ in range(2)] for _ in range(2)]
    for i in range(2):
        t[i][1][0] = x[i, i]
    return t


def one_row_many_times(x: Any) -> Any:
    row, t = [0.0, 0.0], []
    for _ in range(3):
        t.append(row)
    t[0][1] = x[0, 1]
    return t, row


def one_row_changed_between(x: Any) -> Any:
    row, t = [0.0, 0.0], []
    for i in range(3):
        row[0] = x[i, 1]
        t.append(row)
    return t


def written_after_it_was_appended(x: Any) -> Any:
    t = []
    for i in range(3):
        row = [0.0, 0.0]
        t.append(row)
        row[1] = x[i, 1]
    return t


def twice_in_an_iteration(x: Any) -> Any:
    t = []
    for i in range(3):
        row = [x[i, 0], 0.0]
        t.append(row)
        t.append(row)
    return t


def many_times_in_an_inner_loop(x: Any) -> Any:
    t = []
    for i in range(2):
        row = [x[i, 0]]
        for _ in range(2):
            t.append(row)
    return t


def an_item_once_more(x: Any) -> Any:
    t = [[x[0, 0]]]
    for i in range(3):
        t.append(t[-1] if i % 2 else [x[i, 1]])
    for _ in range(3):
        t.append(t[0])
    return t


def the_last_one(x: Any) -> Any:
    t = []
    for i in range(3):
        row = [x[i, 0], 0.0]
        t.append(row)
    row[1] = x[1, 1]
    return t


def kept_in_a_dict(x: Any) -> Any:
    t, kept = [], {}
    for i in range(3):
        row = [x[i, 0], 0.0]
        t.append(row)
        kept["last"] = row
    kept["last"][1] = 5.0
    return t, kept


def appended_under_a_condition(x: Any) -> Any:
    t = []
    for i in range(3):
        row = [x[i, 0], 0.0]
        if x[i, 1] > 2:
            t.append(row)
        row[1] = 1.0
    return t


def from_before(x: Any) -> Any:
    row = [1.0, 1.0]
    t = [row]
    for i in range(3):
        t.append([0.0, x[i, 0]])
    row[0] = x[2, 2]
    return t


def copies(x: Any) -> Any:
    t = [[0.0, 0.0] for _ in range(3)]
    deep, shallow, part, rows = copy.deepcopy(t), copy.copy(t), t[1:], list(t)
    deep[0][0], shallow[1][0], part[1][1], rows[0][1] = x[0, 1], x[0, 2], x[1, 1], x[1, 2]
    return t, deep, shallow, part, rows


def in_a_for(x: Any) -> Any:
    t = [[0.0, 0.0] for _ in range(3)]
    for n, row in enumerate(t):
        row[1] = x[n, 2]
    for row, v in zip(t, x):
        row[0] = v[0]
    return t, [list(c) for c in zip(*t)]


def swapped_and_assigned(x: Any) -> Any:
    t = [[i * 1.0, 0.0] for i in range(3)]
    t[0], t[2] = t[2], t[0]
    t[1] = t[0]
    t[1][1] = x[0, 1]
    return t


def methods(x: Any) -> Any:
    t = [[x[i, 0]] for i in range(3)]
    t[0].append(x[0, 1])
    t[1] += [1.0]
    t[2].insert(0, 4.0)
    t[0].reverse()
    del t[1][0]
    return t


def chosen(x: Any) -> Any:
    t = [[x[i, 0], 0.0] for i in range(3)]
    row = t[0] if x[0, 1] > 1 else t[1]
    row[1] = 8.0
    return t


def under_a_condition(x: Any) -> Any:
    t = [[0.0] * 2 for _ in range(3)]
    for i in range(3):
        if x[i, 0] > 3:
            t[i][0] = x[i, 0]
    return t


def by_a_helper(x: Any) -> Any:
    def put(row: Any, v: Any) -> None:
        row[0] = v

    t = [[0.0] * 2 for _ in range(3)]
    put(t[1], x[0, 1])
    return t


def dicts(x: Any) -> Any:
    t = [{"a": 0.0, "b": x[i, 0]} for i in range(3)]
    t[1]["a"] = x[0, 1]
    t[0].update(c=2.0)
    return t


def in_tuples(x: Any) -> Any:
    t = [(i, [0.0]) for i in range(3)]
    for i, row in t:
        row[0] = x[i, 0]
    return t


@dataclasses.dataclass
class Point:
    a: Any
    b: Any


def records(x: Any) -> Any:
    t = [Point(x[i, 0], 0.0) for i in range(3)]
    t[1].b = x[0, 1]
    return t


def a_row_beside_the_list(x: Any) -> Any:
    t = [[x[i, 0]] for i in range(3)]
    return t, t[0]


def two_readings_of_a_row(x: Any) -> Any:
    t = [[x[i, 0]] for i in range(3)]
    return t[0], t[0], t[1]


def compared(x: Any) -> Any:
    t = [[x[i, 0]] for i in range(3)]
    row = t[0]
    return row is t[0], row is t[1], row == t[0]


def of_arrays(x: Any) -> Any:
    t = [[np.zeros(2)] for _ in range(3)]
    t[0][0] = x[0]
    t[1][0][0] = x[0, 1]
    return t


NO_PROGRAMS = (outcome, Point)
PROGRAMS = [f for f in list(globals().values()) if getattr(f, "__module__", "") == __name__ and f not in NO_PROGRAMS]


@pytest.mark.loose
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_an_item_is_one_object(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f)
    for x in (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4) + 1):
        assert outcome(compiled(x), {}) == outcome(f(x), {})


def test_lists_from_outside_are_written_and_grow() -> None:
    def f(t: Any, x: Any) -> Any:
        t[0][1] = x[0]
        for i in range(3):
            row = [x[i], 0.0]
            t.append(row)
        row[1] = 6.0
        return x.sum()

    mine, theirs = [[0.0, 0.0]], [[0.0, 0.0]]
    compiled = jitml.jit(f)
    for x in (np.arange(3.0), np.arange(3.0) + 1):
        f(mine, x)
        compiled(theirs, x)
        assert outcome(theirs, {}) == outcome(mine, {})


@pytest.mark.loose
def test_items_of_long_lists_of_lists_are_pythons() -> None:
    def f(x: Any) -> Any:
        t = [[v, 2 * v] for v in x]
        return t[0][1] + t[-1][0]

    x = np.arange(1.0, 5001.0)  # of which no loop could be unrolled
    assert jitml.jit(f)(x) == f(x)


def test_a_table_too_large_to_be_written_item_by_item_is_refused() -> None:
    def f(x: Any) -> Any:
        t = [[0.0] * 200 for _ in range(200)]
        for i in range(200):
            for j in range(200):
                t[i][j] = x[i, j] + i
        return t[3][4]

    with pytest.raises(UnsupportedError, match="unrolled") as raised:
        jitml.jit(f)(np.zeros((200, 200)))
    assert "in f" in str(raised.value)


def a_row(x: Any) -> Any:
    t = [[None] * 3 for _ in range(3)]
    for _ in range(x.shape[0]):
        t[0] += [float(x.min())]
    return t


def a_value_of_a_dict(x: Any) -> Any:
    t = {"a": [1.0]}
    for v in x:
        t["a"] += [float(v), 2]
    return t


def until_it_is_long(x: Any) -> Any:
    t = [[x[0]], []]
    for v in x:
        t[0] += [v]
        if len(t[0]) > 3:
            break
    return t, len(t[0])


def in_a_helper(x: Any) -> Any:
    t = [[1.0]]

    def grow(t: Any, v: Any) -> None:
        t[0] += [v]

    for v in x:
        grow(t, v)
    return t


def in_an_argument(x: Any, t: Any = None) -> Any:
    t = [[1.0], x] if t is None else t
    for v in x:
        t[0] += [float(v)]
    return t


@pytest.mark.parametrize("f", [a_row, a_value_of_a_dict, until_it_is_long, in_a_helper, in_an_argument])
def test_an_item_that_is_a_list_grows_in_a_loop(f: Any) -> None:
    compiled = jitml.jit(f, verify="never")
    for n in (3, 4, 90):
        x = np.arange(float(n)) - 1
        assert repr(compiled(x)) == repr(f(x))
    mine, theirs = [[5.0]], [[5.0]]
    if f is in_an_argument:
        assert repr((compiled(x, theirs), theirs)) == repr((f(x, mine), mine))


def without_dimensions(x: Any) -> Any:
    ys = []
    for v in x:
        ys.append(np.array(v * 2))
    return ys, ys[1], [type(y).__name__ for y in ys[:2]]


@pytest.mark.loose
def test_items_are_arrays_of_no_dimensions() -> None:
    x = np.arange(5.0)
    assert repr(jitml.jit(without_dimensions, verify="never")(x)) == repr(without_dimensions(x))
