"""Whether a list that a loop appends to is empty, asked anywhere: in what is appended, in a test, where an item goes."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import jitml

_VALUES = np.array([3.0, -1.0, 2.0, 0.0, 5.0, -4.0])


def other_first(x):
    s = []
    for v in x:
        s.append(v if not s else -v)
    return s


def text_first(x):
    s = []
    for i in range(len(x)):
        s.append(f"1/{i + 1}" if s else "1")
    return s


def both(x):
    s = []
    for v in x:
        s.append(v if s and v > 0 else -v)
    return s


def in_a_call(x):
    s = []
    for v in x:
        s.append(np.where(v > 1, 1.0 if s else 2.0, v))
    return s


def in_a_list(x):
    s = []
    for v in x:
        s.append([v] if s else [0.0])
    return s


def in_a_sum(x):
    s = []
    for v in x:
        s.append((y := v * 2) + (1.0 if s else 0.0))
    return s, y


def in_the_bounds_of_a_loop(x):
    s = []
    for v in x:
        for k in range(3 if s else 1):
            s.append(v + k)
    return s


def in_the_test_of_a_loop(x):
    s, above = [], []
    for v in x:
        while (s[-1] if s else -9.0) > v:
            s.pop()
        above.append(s[-1] if s else -1.0)
        s.append(v)
    return above


def where_an_item_goes(x):
    s, d = [], np.zeros(2)
    for v in x:
        s.append(v)
        if len(s) > 2:
            d[0 if s else 1] = s.pop()
    return s, d


def two_lists(x):
    s, t = [], []
    for v in x:
        s.append(v if t else -v)
        t.append(1.0 if s else 0.0)
        if v < 0:
            s.append(t.pop() if t else 7.0)
    return s, t


def of_a_deque(x):
    q = deque()
    for v in x:
        q.append(v if q else 0.0)
    return list(q)


_FUNCTIONS = [
    other_first, text_first, both, in_a_call, in_a_list, in_a_sum, in_the_bounds_of_a_loop, in_the_test_of_a_loop,
    where_an_item_goes, two_lists, of_a_deque,
]  # fmt: skip


@pytest.mark.parametrize("function", _FUNCTIONS, ids=lambda f: f.__name__)
def test_an_empty_list_is_false(function):
    jitted = jitml.jit(function, verify="never", strict=False)
    for x in (_VALUES, _VALUES[:1], np.arange(5.0)):
        assert repr(jitted(x)) == repr(function(x))
