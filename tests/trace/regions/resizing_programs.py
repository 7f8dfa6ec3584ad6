"""Loops that carry arrays whose sizes change: masks that shrink, frontiers that grow, lists of indices.

The rows are as in `region_programs.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.trace.regions.region_programs import Array, program_list, vector

PROGRAMS: list[Any] = []
program = program_list(PROGRAMS)


def two(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.random(10), rng.random(8)


def matrix(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.random((30, 4)),)


def graph(rng: np.random.Generator) -> tuple[Any, ...]:
    """Edges sorted by where they start: the first of each node, and where they end."""
    starts = np.sort(rng.integers(0, 40, 90))
    return np.searchsorted(starts, np.arange(41)), rng.integers(0, 40, 90)


# Smaller in each iteration.


@program(vector, "w")
def until_none_are_left(x: Array) -> Any:
    t = 0.0
    while x.size:
        x = x[x > t]
        t = t + 0.1
    return t


@program(vector, "w")
def together(x: Array) -> Any:
    y, t, n = 2 * x, 0.0, 0
    while x.size > 3:
        keep = x > t
        x, y = x[keep], y[keep]
        y = y + x
        t, n = t + 0.1, n + 1
    return x, y, n


@program(lambda rng: (rng.integers(0, 9, 30),), "l")
def places(level: Array) -> Any:
    alive = np.arange(level.size)
    for i in range(8):
        alive = alive[level[alive] > i]
    return alive


@program(matrix, "l")
def rows(A: Array) -> Any:
    for k in range(10):
        A = A[A.sum(axis=1) > 1.5 + k * 0.05] * 1.01
    return A


@program(vector, "w")
def in_a_tuple(x: Array) -> Any:
    state = (x, x * 2)
    while state[0].size > 5:
        a, b = state
        state = (a[a < a.mean()], b[a < a.mean()])
    return state


@program(vector, None)
def written_first(x: Array) -> Any:
    t = 0.01
    while x.size:
        x -= t
        x = x[x > 0]
        t = t * 1.1
    return t


@program(vector, "l")
def distinct(x: Array) -> Any:
    n = (x * 4000).astype(int)
    for _ in range(12):
        n = np.unique(n // 2)
    return n


@program(lambda rng: (41,), "w")
def the_last_one(n: int) -> Any:
    people, k = np.arange(n), 0
    while people.size > 1:
        k = (k + 2) % people.size
        people = np.delete(people, k)
    return people


@program(vector, "w")
def under_another_name(x: Array) -> Any:
    y, t = x, 0.1
    while y.size > 2:
        y = y[y > t]
        t += 0.05
    return x.max(), y


@program(vector, "w")
def ends_early(x: Array) -> Any:
    n = 0
    for i in range(1000):
        x = x[x > 0.03 * i]
        if x.size == 0:
            break
        n = i
    return n, x


@program(vector, "l")
def goes_on_sometimes(x: Array) -> Any:
    for i in range(10):
        if x.size < 5:
            continue
        x = x[x > 0.1 * i]
    return x


@program(vector, "w")
def returned(x: Array) -> Any:
    t = 0.0
    while True:
        x = x[x > t]
        if x.size < 4:
            return x
        t += 0.1


@program(two, "l")
def exchanged(x: Array, y: Array) -> Any:
    for i in range(6):
        x, y = y[y > 0.1 * i], x[x > 0.12 * i]
    return x, y


@program(two, "l")
def apart(x: Array, y: Array) -> Any:
    """Both begin with one size, and go on with sizes of their own."""
    z = x * 0.5
    for i in range(5):
        x, z = x[x > 0.1 * i], z[z > 0.1 * i]
        y = y[: 8 - i] if i > 100 else y
    return x, z, y


# Larger.


@program(vector, "l")
def doubled(x: Array) -> Any:
    y = np.array([1.0])
    for i in range(8):
        y = np.concatenate([y, y[y > 0.5] * x[i]])
    return y


@program(lambda rng: (rng.random(100),), "l")
def one_by_one(x: Array) -> Any:
    path = np.zeros(1)
    for i in range(100):
        path = np.append(path, path[-1] + x[i])
    return path


@program(lambda rng: (100,), "w")
def primes(n: int) -> Any:
    candidates, found = np.arange(2, n), np.zeros(0, dtype=int)
    while candidates.size:
        found = np.append(found, candidates[0])
        candidates = candidates[candidates % candidates[0] != 0]
    return found


@program(graph, "w")
def breadth_first(first: Array, ends: Array) -> Any:
    depth = np.full(first.size - 1, -1)
    depth[0] = 0
    frontier, level = np.array([0]), 0
    while frontier.size > 0:
        level += 1
        counts = first[frontier + 1] - first[frontier]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        reached = np.unique(ends[np.repeat(first[frontier], counts) + within])
        frontier = reached[depth[reached] < 0]
        depth[frontier] = level
    return depth
