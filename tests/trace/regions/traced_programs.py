"""Functions whose branches depend on array values, as people write them: the rows of `test_traced_control.py`."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[..., Any]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


@program
def if_else(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@program
def if_only(x):
    y = x
    if x[0] > 0:
        y = x + 1
    return y


@program
def bound_anew_and_written(x):
    y = x * 2
    if x[0] > 0:
        y = x * 3
    y[0] = 1
    return y


@program
def bound_anew_in_a_try_and_written(x):
    y = x * 2
    try:
        if x[0] > 0:
            y = x * 3
        elif x[1] < -0.5:
            y = y + 1
    except ValueError:
        pass
    y[0] = 1
    return y


@program
def early(x):
    if x.sum() > 0:
        return x * 2
    y = x + 1
    if y[0] > -1:
        return y
    return -y


@program
def early_scalar(x):
    if x.sum() > 0:
        return 1.0
    return 2.0


@program
def early_mixed(x):
    if x.sum() > 0:
        return x.max()
    return x.min()


@program
def write_branch(x):
    if x[0] > 0:
        x[1:3] = 0
    else:
        x[:] = 7
    return x


@program
def elifs(x):
    s = x.sum()
    if s > 100:
        r = 1
    elif s > 10:
        r = 2
    elif s > 0:
        r = 3
    else:
        r = 4
    return r * x


@program
def tern(x):
    return x * 2 if x[0] > 0 else x


@program
def ands(x):
    return 1.0 if (x[0] > 0 and x[1] > 0) or not x[2] > 0 else 2.0


@program
def chain(x):
    if 0 < x[0] < 5:
        return x + 1
    return x


@program
def asserts(x):
    assert x.sum() > 0, "negative"
    return x


@program
def raises(x):
    if x.sum() < 0:
        raise ValueError(f"bad {len(x)}")
    return x * 2


@program
def unbound(x):
    if x[0] > 0:
        y = 1.0
    return y


@program
def helper(x):
    def sign(v):
        if v > 0:
            return 1.0
        elif v < 0:
            return -1.0
        return 0.0

    return sum(sign(x[i]) for i in range(8)), sign(x[0])


@program
def lambda_(x):
    f = lambda v: v * 2 if v > 0 else -v
    return f(x[0])
