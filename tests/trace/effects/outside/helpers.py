"""Functions that do something beside what they return: decorated, generators, handed to others, in exceptions."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import collections
import contextlib
import functools

import numpy as np
from tests.trace.effects.outside.rows import row


@row
def a_decorator_that_counts():
    def counting(f):
        @functools.wraps(f)
        def inner(*args):
            inner.calls += 1
            return f(*args)

        inner.calls = 0
        return inner

    @counting
    def helper(v):
        return v * 2

    def act(v):
        return helper(v)

    return act, lambda: helper.calls


@row
def a_timer():
    spent = {"n": 0}

    @contextlib.contextmanager
    def timed():
        spent["n"] += 1
        yield

    def act(v):
        with timed():
            return v + 1

    return act, lambda: dict(spent)


@row
def exit_stack():
    log = []

    def act(v):
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, 1)
        return v

    return act, lambda: list(log)


@row
def exit_that_keeps():
    class Scope:
        def __init__(self):
            self.depth, self.deepest = 0, 0

        def __enter__(self):
            self.depth += 1
            self.deepest += self.depth
            return self

        def __exit__(self, *error):
            self.depth -= 1

    scope = Scope()

    def act(v):
        with scope:
            with scope:
                return v + 1

    return act, lambda: (scope.depth, scope.deepest)


@row
def generator_helper_that_counts():
    log = []

    def numbers():
        log.append(1)
        yield 1.0

    def act(v):
        return v + sum(numbers())

    return act, lambda: list(log)


@row
def generator_expression_that_counts():
    log = []

    def tell(i):
        log.append(i)
        return i

    def act(v):
        return v + sum(tell(i) for i in range(2))

    return act, lambda: list(log)


@row
def library_that_counts():
    c = collections.Counter()

    def act(v):
        c.update(["a"])
        return v + c["a"]

    return act, lambda: dict(c)


@row
def warnings_registry():
    calls = []

    def act(v):
        return v + len(sorted([3, 1], key=lambda y: calls.append(y) or y))

    return act, lambda: list(calls)


@row
def filter_with_effect():
    calls = []

    def act(v):
        return v + len(list(filter(lambda y: calls.append(y) or y > 1, [3, 1])))

    return act, lambda: list(calls)


@row
def singledispatch_helper():
    calls = []

    @functools.singledispatch
    def tell(y):
        calls.append(1)
        return y

    def act(v):
        return v + tell(2.0)

    return act, lambda: list(calls)


@row
def vectorized_effect():
    calls = []

    def tell(y):
        calls.append(1)
        return y

    vectorized = np.vectorize(tell, otypes=[float])

    def act(v):
        return v + vectorized(np.ones(2))[0]

    return act, lambda: len(calls)


@row
def apply_along_axis_effect():
    calls = []

    def tell(y):
        calls.append(1)
        return y.sum()

    def act(v):
        return v + np.apply_along_axis(tell, 0, np.ones((2, 2)))[0]

    return act, lambda: len(calls)


@row
def fromfunction_effect():
    calls = []

    def tell(y):
        calls.append(1)
        return y * 2.0

    def act(v):
        return v + np.fromfunction(tell, (2,))[1]

    return act, lambda: len(calls)


@row
def exception_that_is_counted():
    calls = []

    def act(v):
        try:
            raise ValueError("a")
        except ValueError:
            calls.append(1)
        finally:
            calls.append(2)

    return act, lambda: list(calls)


@row
def exception_with_state():
    class Trouble(Exception):
        count = 0

        def __init__(self, *args):
            super().__init__(*args)
            Trouble.count += 1

    def act(v):
        try:
            raise Trouble("a")
        except Trouble:
            pass

    return act, lambda: Trouble.count


@row
def function_code():
    def helper(v):
        return v

    def act(v):
        helper.__doc__ = "called"
        return helper(v)

    return act, lambda: helper.__doc__


@row
def inner_function_changes_outside():
    log = []

    def act(v):
        def tell(y):
            log.append(y)
            return y

        return sum(map(tell, [1.0, 2.0])) + v

    return act, lambda: list(log)
