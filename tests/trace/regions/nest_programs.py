"""Nests, ranges and sequences, what loops carry beside arrays, and loops and branches as functions.

The rows are as in `region_programs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.trace.regions.region_programs import Array, integers, matrix, program_list, two, vector

import jitml

PROGRAMS: list[Any] = []
program = program_list(PROGRAMS)


# Nests, ranges, sequences.


@program(vector, "l")
def pairs(x: Array) -> Any:
    n = 0
    for i in range(10):
        for j in range(i + 1, 10):
            if x[i] < x[j] and x[i] > 0.1:
                n += 1
    return n


@program(matrix, "l")
def triangle(x: Array) -> Any:
    for i in range(6):
        x[i, :i] = 0
        x[i, i + 1 :] *= 2
    return x


@program(two, "l")
def enumerated(x: Array, y: Array) -> Any:
    for i, v in enumerate(y):
        x[i] = v * i
    for i, (a, b) in enumerate(zip(x, y), 1):
        x[i % 10] = a - b
    return x


@program(two, "l")
def zipped(x: Array, y: Array) -> Any:
    s = 0.0
    for a, b, k in zip(x, y[1:], range(20)):
        s += a * b * k
    return s, k


@program(integers, "l")
def histogram(x: Array) -> Any:
    counts = np.zeros(5, dtype=int)
    for v in x:
        counts[v] += 1
    return counts


@program(two, None)
def list_items(x: Array, y: Array) -> Any:
    weights = [1.0, 2.0, 3.0]
    s = x * 0
    for i in range(3):
        s = s + weights[i] * y
    return s


@program(two, None)
def dict_items(x: Array, y: Array) -> Any:
    parts = {"a": x, "b": y}
    for key in parts:
        parts[key] = parts[key] * 2
    return parts["a"] + parts["b"]


@program(two, "l")
def appended(x: Array, y: Array) -> Any:
    rows = []
    for i in range(5):
        rows.append(x * i + y)
    return np.array(rows), np.stack(rows), len(rows), rows[-1]


@program(two, "l")
def appended_between_others(x: Array, y: Array) -> Any:
    rows = [y, x * 2]
    for i in range(5):
        rows.append(x * i + y)
    rows.append(x)
    return np.array(rows), np.stack(rows, axis=1), np.concatenate(rows), len(rows), rows[0], rows[-1]


@program(two, "l")
def appended_numbers_of_several_types(x: Array, y: Array) -> Any:
    values = [True, 3]
    for i in range(10):
        x[i] += y[i]
        values.append(x.sum())
    return np.array(values)


@program(two, "l")
def appended_numbers(x: Array, y: Array) -> Any:
    values = []
    for i in range(10):
        x[i] += y[i]
        values.append(x.sum())
    return np.array(values)


@program(two, "l")
def own_list_inside(x: Array, y: Array) -> Any:
    for i in range(10):
        parts = []
        parts.append(x[i])
        parts.append(y[i])
        y[i] = max(parts)
    return y


@dataclass
class Particle:
    position: Any
    speed: Any


@program(two, "l")
def dataclass_state(x: Array, y: Array) -> Any:
    p = Particle(x, y)
    for _ in range(10):
        p = Particle(p.position + 0.1 * p.speed, p.speed * 0.9)
    return p.position, p.speed


@program(vector, "l")
def formatted_outside(x: Array) -> Any:
    for i in range(10):
        x[i] += 1
    return f"{i}", x


@program(vector, None)
def alternates(x: Array) -> Any:
    for i in range(10):
        if i % 2 == 0:
            x[i] = 0.0
        else:
            x[i] += i
    return x


@program(matrix, "l")
def shrinking_windows(x: Array) -> Any:
    s = 0.0
    for i in range(1, 6):
        s += x[i:, :i].sum() + x[:i, i].max()
    return s


@program(lambda rng: (rng.random(8), 3), "l")
def bound_from_argument(x: Array, n: int) -> Any:
    for i in range(n):
        x[i] = x[i + n]
    return x


@program(lambda rng: (rng.random(20), np.array([0, 3, 3, 9, 14, 20])), "l")
def rows_by_pointer(values: Array, pointers: Array) -> Any:
    sums = np.zeros(5)
    for i in range(5):
        for k in range(pointers[i], pointers[i + 1]):
            sums[i] += values[k]
    return sums


@program(vector, None)
def swapped_elements(x: Array) -> Any:
    for i in range(9):
        for j in range(9 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


@program(vector, None)
def insertion_sort(x: Array) -> Any:
    for i in range(1, 10):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


@program(vector, "l")
def closures(x: Array) -> Any:
    scale = x[0]

    def inside(v: Any) -> Any:
        return v * scale

    for i in range(1, 10):
        x[i] = inside(x[i])
    return x


@program(vector, None)
def nothing_to_do(x: Array) -> Any:
    for i in range(0):
        x[i] = 1
    for i in range(1):
        x[i] = 2
    for _ in range(3):
        pass
    return x


# Loops and branches as functions.


@program(two, None)
def explicit_cond(x: Array, y: Array) -> Any:
    return jitml.cond(y.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, x, y)


@program(vector, "w")
def explicit_while(x: Array) -> Any:
    return jitml.while_loop(lambda s: s[0].max() < 100, lambda s: (s[0] * 2, s[1] + 1), (x, 0))


@program(two, "l")
def explicit_fori(x: Array, y: Array) -> Any:
    return jitml.fori_loop(2, 9, lambda i, total: total + x[i] * y[i - 1], 0.0)


@program(two, "l")
def explicit_scan(x: Array, y: Array) -> Any:
    return jitml.scan(lambda c, v: (c + v["a"], {"sum": c * v["b"], "both": (c, v["a"])}), 0.0, {"a": x, "b": y})


@program(vector, "l")
def explicit_scan_without_inputs(x: Array) -> Any:
    return jitml.scan(lambda c, _: (c * 0.5, c), x, length=6)


@program(matrix, "l")
def rows_stacked(x: Array) -> Any:
    means, rows = [], []
    for row in x:
        row /= row.sum()
        rows.append(row * 2)
        means.append(row.mean())
    total = 0.0
    for m in means:
        total += m
    return np.stack(rows, axis=1), total, [*means], rows[2], len(rows)


def two_long(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.random(200), rng.random(200) - 0.5


@program(two_long, "l")
def arrays_that_change_names(u, v):
    for _ in range(5):
        v[1:-1] = (u[:-2] + u[2:]) / 2
        u, v = v, u
    return u, v


@program(two_long, "l")
def three_arrays_in_turn(x, y):
    z = x + y
    for _ in range(7):
        x, y, z = y, z, np.sin(x) + y[::-1]
    return x, y, z


@program(two_long, "w")
def made_anew_until_it_settles(x, y):
    change = 1.0
    while change > 1e-3:
        new = 0.5 * x + 0.25 * (np.roll(x, 1) + np.roll(x, -1))
        change = np.max(np.abs(new - x))
        x = new
    return x, y
