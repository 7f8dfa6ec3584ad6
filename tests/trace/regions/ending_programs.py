"""Loops that end early, and whiles, on arrays.

The rows are as in `region_programs.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.trace.regions.region_programs import Array, integers, matrix, program_list, spd, vector

PROGRAMS: list[Any] = []
program = program_list(PROGRAMS)


# Loops that end early.


@program(vector, "w")
def breaks(x: Array) -> Any:
    for i in range(10):
        if x[i] > 0.5:
            x[i] = 0
            break
    else:
        return -1
    return i


@program(vector, "l")
def continues(x: Array) -> Any:
    s = 0.0
    for i in range(10):
        if x[i] < 0.5:
            continue
        s += x[i]
    return s


@program(vector, None)
def returns_from_loop(x: Array) -> Any:
    for i in range(10):
        if x[i] > 0.9:
            return x[i] * 2
    return x[0]


@program(matrix, None)
def breaks_out_of_inner(x: Array) -> Any:
    n = 0
    for i in range(6):
        for j in range(6):
            if x[i, j] > 0.8:
                break
            n += 1
    return n


@program(matrix, None)
def returns_from_inner(x: Array) -> Any:
    for i in range(6):
        for j in range(6):
            if x[i, j] > 0.95:
                return i, j
    return -1, -1


@program(vector, None)
def else_of_loop(x: Array) -> Any:
    found = 0
    for v in x:
        if v > 2:
            break
        found += 1
    else:
        found = -found
    return found


# Whiles.


@program(vector, "w")
def until_small(x: Array) -> Any:
    err, n = 10.0, 0
    while err > 1e-3:
        x *= 0.5
        err = np.abs(x).max()
        n += 1
    return n, err


@program(vector, None)
def while_true(x: Array) -> Any:
    n = 0
    while True:
        x *= 0.5
        n += 1
        if x.sum() < 0.01:
            break
    return n


@program(vector, None)
def while_with_counter(x: Array) -> Any:
    k = 0
    while x[0] < 100 and k < 50:
        x += x.max() + 0.1
        k += 1
    return k


@program(spd, None)
def power_iteration(a: Array) -> Any:
    v = np.ones(len(a))
    old = 0.0
    value = 1.0
    while abs(value - old) > 1e-10:
        w = a @ v
        old, value = value, np.linalg.norm(w)
        v = w / value
    return value, v


@program(vector, None)
def while_else(x: Array) -> Any:
    n = 0
    while x.max() > 0.01:
        x *= 0.25
        n += 1
        if n > 50:
            break
    else:
        n = -n
    return n


@program(lambda rng: (rng.random(10), 5.0), None)
def time_steps(x: Array, end: float) -> Any:
    t = 0.0
    dt = 0.3
    while t < end:
        x += dt * np.sin(x)
        t += dt
    return x, t


@program(integers, None)
def collatz(x: Array) -> Any:
    steps = np.zeros(9, np.int64)
    for i in range(9):
        n = x[i] + 1
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps[i] += 1
    return steps
