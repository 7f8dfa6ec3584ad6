"""One array passed twice, two views of all of it, parts that overlap, arrays apart: each call gets its own answer.

What one call has taught (these are two arrays, those are one) must not answer another: `is`, sharing, results, written arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from programs.comparing import difference

Array = np.ndarray[Any, Any]
ROWS: list[Callable[..., Any]] = []

# From one array of five numbers: a list of two, and another one.
CALLS: dict[str, Callable[[Array], tuple[list[Array], Array]]] = {
    "one": lambda x: ([x, x], x),
    "one negative": lambda x: (lambda v: ([v, v], v))(-x),
    "first": lambda x: ([x, x * 2], x),
    "last": lambda x: ([x * 2, x], x),
    "a pair": lambda x: (lambda v: ([v, v], x))(x + 1),
    "views of all": lambda x: ([x[:], x], x[:]),
    "reversed": lambda x: ([x[::-1], x], x[::-1]),
    "parts": lambda x: ([x[1:], x[:-1]], x[1:]),
    "apart": lambda x: ([x * 2, x * 3], x),
}
ORDERS = [
    ("one", "first", "a pair", "last"),
    ("apart", "one", "views of all", "reversed"),
    ("reversed", "parts", "one", "apart"),
    ("one negative", "last", "views of all", "first"),
]


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS.append(function)
    return function


@row
def asked(xs, y):
    return xs[0] is xs[1], xs[0] is y, any(a is y for a in xs), sum(np.shares_memory(a, y) for a in xs)


@row
def written(xs, y):
    xs[0] += 1
    y[1:] *= 2
    return xs, y, xs[0] is xs[1]


@row
def asked_about_a_choice(xs, y):
    z = xs[0] if y.sum() > 3 else xs[0] * 2
    return z, z is xs[0], z is y, np.shares_memory(z, y)


@row
def asked_after_a_loop(xs, y):
    a = xs[0]
    while a.sum() < 3:
        a = a + 1
    return a, a is y, np.shares_memory(a[1:], y)


@row
def exchanged(xs, y):
    a, k = xs[0], 0
    while a[0] + k < 3:
        a, y = y, a
        k += 1
    return a, y, a is y


@row
def exchanged_in_the_list(xs, y):
    for _ in range(3):
        xs[0], xs[1] = xs[1], xs[0]
    return xs, y, xs[0] is y


@row
def replaced_under_a_condition(xs, y):
    if y.sum() > 3:
        xs[0] = xs[1]
    return xs, xs[0] is y


@row
def bound_on_both_sides(xs, y):
    if y[1] > 0:
        a = xs[0]
        b = a
    else:
        a = xs[1]
        b = y
    return a, b


@row
def found_in_a_loop(xs, y):
    found = y
    for a in xs:
        if a[1] > 1:
            found = a
    return found, found is y, found is xs[0]


@row
def returned_early(xs, y):
    for a in xs:
        if a[1] > 0:
            return a
    return y


@row
def written_through_a_helper(xs, y):
    def add(a, b=y):
        b += a
        return b

    return add(xs[0]), add(xs[1])


@row
def written_as_out(xs, y):
    np.multiply(xs[0], xs[1], out=y)
    return y, xs


@row
def in_a_dict(xs, y):
    d = {"a": xs[0], "b": xs[1], "c": y}
    d["a"][1:] -= 1
    return d["a"], d["c"], d["a"] is d["b"]


def _arrays(x: Any) -> Iterator[Array]:
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _arrays(item)
    elif isinstance(x, np.ndarray):
        yield x


def _relations(result: Any, arguments: Any) -> list[Any]:
    """Which results are which arguments or results before them, and which share memory."""
    results = list(_arrays(result))
    known = [*_arrays(arguments), *results]
    return [[(a is b, np.shares_memory(a, b)) for b in known] for a in results]


# What arrays are written that share memory in part with others, Python does.
WRITE = {"asked", "in_a_dict", "written", "written_as_out", "written_through_a_helper"}


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order[0])
@pytest.mark.parametrize(
    "function", [pytest.param(f, id=f.__name__, marks=[pytest.mark.loose] * (f.__name__ in WRITE)) for f in ROWS]
)
def test_each_call_has_its_own_answer(function: Callable[..., Any], order: tuple[str, ...]) -> None:
    compiled = jitml.jit(function)
    for name in order:
        mine, theirs = CALLS[name](np.arange(5.0)), CALLS[name](np.arange(5.0))
        got, want = compiled(*mine), function(*theirs)
        assert not difference((got, mine), (want, theirs), np.array_equal), name
        assert _relations(got, mine) == _relations(want, theirs), name
