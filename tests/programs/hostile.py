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


ROWS: list[Row] = []


def calls(*arguments: tuple[Any, ...], most: int = 1) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        ROWS.append(Row(function, arguments, most))
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
