"""`while` loops as people write them over plain Python numbers, and tests that do more than compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.trace.regions.region_programs import Array, matrix, program_list, spd, vector

Rng = np.random.Generator
PROGRAMS: list[Any] = []
program = program_list(PROGRAMS)


@program(lambda rng: (50,), "w")
def sieve(n: int) -> Any:
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i < n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return np.nonzero(prime)[0]


@program(vector, "w")
def count_up(x: Array) -> Any:
    i = 0
    while i < 3000:
        x[i % 5] += i
        i += 1
    return i


@program(vector, "w")
def count_down(x: Array) -> Any:
    i = len(x) - 1
    while i > 0:
        x[i] += x[i - 1]
        i -= 1
    return i


@program(vector, "w")
def two_pointers(x: Array) -> Any:
    low, high = 0, len(x) - 1
    while low < high:
        if x[low] < 0.5:
            low += 1
        else:
            x[low], x[high] = x[high], x[low]
            high -= 1
    return low


@program(vector, "w")
def bubble(x: Array) -> Any:
    n = len(x)
    swapped = True
    while swapped:
        swapped = False
        for i in range(1, n):
            if x[i - 1] > x[i]:
                x[i - 1], x[i] = x[i], x[i - 1]
                swapped = True
        n -= 1
    return n


@program(vector, "w")
def nested_counters(x: Array) -> Any:
    i = 0
    total = 0.0
    while i < len(x):
        j = i
        while j < len(x) and x[j] > 0.3:
            total += x[j]
            j += 1
        i = j + 1
    return total


@program(lambda rng: (rng.random(6), 27), None)
def collatz(x: Array, n: int) -> Any:
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
        x[steps % 6] += n
    return steps


@program(lambda rng: (rng.random(5), 1.0), "w")
def floats(x: Array, end: float) -> Any:
    t = 0.0
    while t < end:
        x += 0.001 * x
        t += 0.001
    return t


@program(vector, None)
def never(x: Array) -> Any:
    k = 5
    while k < 3:
        x[k] = np.nan
        k += 1
    while False:
        x[0] = 1
    return k


@program(vector, "")
def a_python_stack(x: Array) -> Any:
    todo = [(0, len(x))]
    while todo:
        low, high = todo.pop()
        if high - low > 2:
            todo += [(low, (low + high) // 2), ((low + high) // 2, high)]
        x[low:high] += high
    return x


@program(vector, None)
def size_after_the_loop(x: Array) -> Any:
    k = 1
    while k < x.size:
        k *= 2
    padded = np.zeros(k)
    padded[: x.size] = x
    return padded


@program(lambda rng: (rng.random(3), np.random.default_rng(rng.integers(100))), None)
def test_draws(x: Array, rng: Rng) -> Any:
    n = 0
    while rng.random() < 0.7:
        n += 1
        x[0] += rng.random()
    return n


@program(vector, None)
def test_writes(x: Array) -> Any:
    def halve(y: Array) -> Any:
        y *= 0.5
        return y.max()

    n = 0
    while halve(x) > 1e-3:
        n += 1
        if n > 50:
            break
    return n


@program(spd, None)
def until_no_change(a: Array) -> Any:
    while True:
        b = a / 2
        if np.abs(b).max() < 1:
            break
        a = b
    return a, b


@program(matrix, None)
def walk_the_rows(a: Array) -> Any:
    i, best = 0, -1.0
    while i < a.shape[0]:
        j = 0
        while j < a.shape[1]:
            if a[i, j] > best:
                best = a[i, j]
            j += 1
        i += 1
    return best
