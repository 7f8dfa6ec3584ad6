"""Functions as people write them that jitml once refused or got wrong: the rows of `test_hostile.py`.

Each comes with the argument lists of its calls, and the most variants that they may compile.
"""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

X = np.random.default_rng(0).standard_normal(20)


@dataclass
class Row:
    function: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]
    most: int
    as_python: bool


ROWS: list[Row] = []


def calls(*arguments: tuple[Any, ...], most: int = 1, as_python: bool = False) -> Callable[[Any], Any]:
    """A row; `as_python`: some of it is left to Python."""

    def add(function: Any) -> Any:
        ROWS.append(Row(function, arguments, most, as_python))
        return function

    return add


@calls((X,), (X * 3,))
def forever_until_return(x):
    while True:
        x = x / 2
        if abs(x).max() < 0.1:
            return x


@calls((X,), (X * 1000,))
def forever_until_one_of_two_returns(x):
    n = 0
    while 1:
        x = x / 2
        n += 1
        if abs(x).max() < 0.1:
            return x, n
        else:
            if n > 5:
                return x, n


@calls((X, 1e-6), (X * 2, 1e-3), (X, -1.0))
def forever_until_return_or_raise(x, tol):
    it = 0
    while True:
        it += 1
        y = np.cos(x)
        if np.abs(y - x).max() < tol:
            return y, it
        if it > 1000:
            raise RuntimeError("no convergence")
        x = y


@calls((X,), (-X,))
def forever_inside_a_branch(x):
    if x.sum() > 0:
        while True:
            x = x * 0.5
            if x.sum() < 1e-3:
                return x
    return x - 1


@calls((X,), (X[:7],), most=2, as_python=True)
def nonlocal_sum_in_a_loop(x):
    total = 0

    def double(a, i):
        a[i] *= 2
        return a[i]

    def add(v):
        nonlocal total
        total += v

    for i in range(len(x)):
        add(double(x, i))
    return total


@calls((X,), as_python=True)
def nonlocal_array_in_a_loop(x):
    s = np.zeros(3)

    def step():
        nonlocal s
        s = s + x[:3]

    for _ in range(100):
        step()
    return s


@calls((X,), (-X,), as_python=True)
def nonlocal_in_loops_and_branches_of_the_helper(x):
    count = 0

    def visit(v):
        nonlocal count
        if v > 0:
            count += 1
        for k in range(3):
            count += k

    for v in x:
        visit(v)
    while count < 1000:
        visit(x[0])
        count *= 2
    return count


@calls((X,), as_python=True)
def bisection_that_counts_evaluations(x):
    evaluations = 0

    def f(t):
        nonlocal evaluations
        evaluations += 1
        return np.cos(t) - t

    low, high = 0.0, 2.0
    while high - low > 1e-8:
        middle = (low + high) / 2
        if f(middle) * f(low) <= 0:
            high = middle
        else:
            low = middle
    return low + x[0], evaluations


@calls((X,), as_python=True)
def nonlocal_of_a_closure_that_was_returned(x):
    def accumulator():
        total = 0

        def add(v):
            nonlocal total
            total = total + v
            return total

        return add

    add = accumulator()
    out = []
    for v in x:
        out.append(add(v))
    return np.array(out)


@calls((X,), (-X,), as_python=True)
def nonlocal_of_a_function_that_is_called_in_a_loop(x):
    def halved(v):
        steps = 0

        def half(y):
            nonlocal steps
            steps += 1
            return y * 0.5

        while v > 0.1:
            v = half(v)
        return v + steps

    for i in range(len(x)):
        x[i] = halved(x[i])
    return x


@calls((X,), (-X,), (X[::-1],), most=2, as_python=True)
def nonlocal_bound_by_an_operand(x):
    count = 0

    def positive():
        nonlocal count
        count += 1
        return x[0] > 0

    both = x[1] > 0 and positive()
    return both, count


@calls((X,), (-X,), (abs(X),), most=3, as_python=True)
def nonlocal_bound_by_a_callback_of_a_helper(x):
    count = 0

    def seen():
        nonlocal count
        count += 1

    def helper(v, callback):
        if v > 0:
            callback()

    for v in x:
        helper(v, seen)
    return count


@calls((X[:6],), (X[:6] * 2,))
def recursion_on_sizes_from_data(x):
    def sort(x):
        if len(x) <= 1:
            return x
        pivot = x[len(x) // 2]
        return np.concatenate([sort(x[x < pivot]), x[x == pivot], sort(x[x > pivot])])

    return sort(x)


@calls((np.array([0.0, 1.0]),), (np.array([0.0, 1.1]),), (np.array([0.0, 4.0]),), most=3, as_python=True)
def recursion_that_divides_until_two_conditions_hold(x):
    evaluated = 0

    def slope(t):
        nonlocal evaluated
        evaluated += 1
        return np.exp(-t) * np.sin(5 * t)

    def integral(low, high, coarse, depth):
        middle = (low + high) / 2
        left, right = (middle - low) * slope((low + middle) / 2), (high - middle) * slope((middle + high) / 2)
        if abs(left + right - coarse) > 1e-2:
            if high - low > 1e-3:
                return integral(low, middle, left, depth + 1) + integral(middle, high, right, depth + 1)
        return left + right

    return integral(x[0], x[1], (x[1] - x[0]) * slope((x[0] + x[1]) / 2), 0), evaluated
