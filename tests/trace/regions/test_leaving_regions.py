"""What a branch or a loop makes, and what holds its numbers and arrays out of sight, is used after it."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

CALLS = ([1, 2, 3], [0, 1, 0], [5, 1, 2], [0, 0, 0], [0, 2, 1])


class Shift:
    def __init__(self, by: Any) -> None:
        self.by = by

    def of(self, x: Any) -> Any:
        return x + self.by


def shifted(x: Any, k: Any) -> Any:
    return x + k


def getter(x: Any) -> Any:
    if x.max() > 1:
        g = operator.itemgetter(int(x[0]) % 3)
    return g([1, 2, 3])


def partial_of_number(x: Any) -> Any:
    if x.max() > 1:
        g = functools.partial(shifted, k=x.sum())
    return g(x)


def own_object(x: Any) -> Any:
    if x.max() > 1:
        g = Shift(x.sum())
    return g.of(x), g.by


def bound_method(x: Any) -> Any:
    if x.max() > 1:
        g = functools.partial(Shift(x.sum()).of, x * 2)
    return g()


def default(x: Any) -> Any:
    if x.max() > 1:
        g = lambda v, k=x.sum(): v + k  # noqa: B008, E731
    return g(x)


def iterator(x: Any) -> Any:
    if x.max() > 1:
        g = iter([x.sum(), x.max()])
    return next(g)


def method_of_dict(x: Any) -> Any:
    if x.max() > 1:
        g = {"a": x.sum()}.get
    return g("a")


def exception(x: Any) -> Any:
    if x.max() > 1:
        g = ValueError(x.sum())
    return g.args[0]


def namespace(x: Any) -> Any:
    if x.max() > 1:
        g = types.SimpleNamespace(a=x.sum())
    return g.a


def inner_class(x: Any) -> Any:
    if x.max() > 1:

        class Kept:
            k = x.sum()

        g = Kept
    return g.k


def in_containers(x: Any) -> Any:
    if x.max() > 1:
        g = {3: [functools.partial(shifted, k=x.sum())]}
    return g[3][0](x)


def in_nested_branches(x: Any) -> Any:
    if x.max() > 1:
        if x[0] > 0:
            g = Shift(x.sum())
    return g.of(x)


def last_of_loop(x: Any) -> Any:
    total = 0
    for i in range(3):
        g = functools.partial(shifted, k=x[i])
        total = total + g(1)
    return total, g(1)


def last_of_while(x: Any) -> Any:
    i = 0
    while x[i] < 1:
        g = Shift(x[i])
        i += 1
    return g.of(x)


def branch_of_loop(x: Any) -> Any:
    for i in range(3):
        if x[i] > 1:
            g = operator.itemgetter(int(x[i]) % 3)
    return g([1, 2, 3])


FUNCTIONS = [
    getter, partial_of_number, own_object, bound_method, default, iterator, method_of_dict, exception,
    namespace, in_containers, in_nested_branches, last_of_loop, last_of_while, branch_of_loop,
]  # fmt: skip


def outcome(f: Callable[..., Any], x: Any) -> str:
    try:
        return repr(f(x))
    except (UnboundLocalError, IndexError) as error:
        return type(error).__name__


@pytest.mark.parametrize("f", [*FUNCTIONS, pytest.param(inner_class, marks=pytest.mark.loose)])
def test_it_is_as_in_python(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f, verify="never")
    for numbers in CALLS:
        x = np.array(numbers)
        assert outcome(fast, x) == outcome(f, x)
    assert fast.variants or f is inner_class


class Holder:
    def __init__(self) -> None:
        self.kept: Any = [[2], 1]


HOLDER = Holder()


def pair_then_loop(x: Any) -> Any:
    if x.max() > 0:
        v = (1, HOLDER.kept)
    for _ in range(3):
        q = [v[1], 1]
    return q


def loops_then_loop(x: Any) -> Any:
    k = 0
    while k < 4:
        k += 1
        if x.max() > 0:
            v = (1, HOLDER.kept)
    for _ in range(3):
        q = [v[1], 1]
    return q


def one_of_two(x: Any) -> Any:
    q = [HOLDER.kept] if x.max() > 0 else [[[1], 2]]
    for i in range(3):
        r = (q[0], i)
    return [r[0]]


@pytest.mark.parametrize("f", [pair_then_loop, loops_then_loop, one_of_two])
def test_a_list_from_outside_is_itself_after_a_branch_and_a_loop(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f, verify="never")
    for _ in range(2):
        assert fast(np.arange(3))[0] is HOLDER.kept


def in_a_group(x: Any) -> Any:
    try:
        if x[0] < 1:
            raise ExceptionGroup("two", [ValueError(1), KeyError(2)])
        return 0
    except* ValueError as group:
        found = len(group.exceptions)
    except* KeyError:
        found = found + 2
    return found


@pytest.mark.loose
def test_handlers_of_groups() -> None:
    fast = jitml.jit(in_a_group)
    for values in CALLS:
        assert fast(np.array(values)) == in_a_group(np.array(values))
