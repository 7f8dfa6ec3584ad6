"""Programs with loops, whiles and branches on arrays, as people write them; `test_regions.py` runs them traced and eagerly.

Each row of PROGRAMS: a function, a function that makes its arguments from a generator, and the kinds of regions that its graph
has outside any other (`l` loops, `w` whiles, `c` conds; None: whatever it has).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Row = tuple[Callable[..., Any], Callable[[np.random.Generator], tuple[Any, ...]], str | None]
PROGRAMS: list[Row] = []


def program_list(programs: list[Row]) -> Any:
    """What registers a program there."""

    def program(arguments: Callable[[np.random.Generator], tuple[Any, ...]], regions: str | None = None) -> Any:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            programs.append((function, arguments, regions))
            return function

        return register

    return program


program = program_list(PROGRAMS)


def vector(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.random(10),)


def two(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.random(10), rng.random(10) - 0.5


def matrix(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.random((6, 6)),)


def spd(rng: np.random.Generator) -> tuple[Any, ...]:
    a = np.eye(6) * 6 + rng.random((6, 6))
    return (a @ a.T,)


def integers(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.integers(0, 5, 9),)


def small(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.random(10).astype(np.float32),)


# Loops that write.


@program(vector, "l")
def recurrence(x: Array) -> Any:
    for i in range(1, 10):
        x[i] = x[i - 1] * 2 + 1
    return x.sum()


@program(matrix, "l")
def rows_in_place(x: Array) -> Any:
    for row in x:
        row += row.mean()
    return x.sum()


@program(matrix, "l")
def row_afterwards(x: Array) -> Any:
    for row in x:
        row *= 2
    row[0] = 7
    return x, i_of(x)


def i_of(x: Array) -> int:
    return len(x)


@program(spd, "l")
def cholesky(a: Array) -> Any:
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
    return a


@program(spd, "l")
def lu(a: Array) -> Any:
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return None


@program(two, "l")
def view_from_outside(x: Array, y: Array) -> Any:
    inner = x[2:8]
    for i in range(6):
        inner[i] += x[i] * y[i]
    return x, inner


@program(two, "l")
def base_written_view_read(x: Array, y: Array) -> Any:
    back = x[::-1]
    for i in range(10):
        x[i] = back[i] + y[i]
    return back


@program(vector, "l")
def two_names_one_array(x: Array) -> Any:
    y = x
    for i in range(9):
        y[i + 1] += x[i]
    return x is not None, y


def deposit(target: Array, i: int, value: Any) -> None:
    target[i] += value


@program(two, "l")
def helper_writes(x: Array, y: Array) -> Any:
    for i in range(10):
        deposit(x, i, y[i])
        deposit(y, 0, 1.0)


@program(matrix, "l")
def columns(x: Array) -> Any:
    for j in range(1, x.shape[1]):
        x[:, j] += x[:, j - 1]
    return x


@program(matrix, "l")
def gauss_seidel(u: Array) -> Any:
    for i in range(1, 5):
        for j in range(1, 5):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


@program(vector, "l")
def backwards(x: Array) -> Any:
    for i in range(8, -1, -1):
        x[i] += x[i + 1]
    for i in reversed(range(9)):
        x[i] -= 0.5 * x[i + 1]
    return x


@program(vector, "l")
def by_threes(x: Array) -> Any:
    s = 0.0
    for i in range(1, 10, 3):
        s += x[i]
        x[i - 1 : i + 1] = s
    return s, i


# Carried names.


@program(vector, "l")
def sum_from_int(x: Array) -> Any:
    s = 0
    for i in range(10):
        s += x[i]
    return s


@program(small, "l")
def sum_of_small_floats(x: Array) -> Any:
    s = 0.0
    for v in x:
        s += v
    return s


@program(small)
def precision_grows(x: Array) -> Any:
    s = np.float32(0)
    for i in range(10):
        s = s + x[i] * np.float64(1.5)
    return s


@program(integers, "l")
def integer_sum(x: Array) -> Any:
    total, largest = 0, -1
    for v in x:
        total += v
        largest = max(largest, v)
    return total, largest


@program(vector, "l")
def fresh_arrays(x: Array) -> Any:
    t = x
    for i in range(5):
        t = t + i
    return t


@program(two, "l")
def fresh_arrays_written(x: Array, y: Array) -> Any:
    t = x
    for i in range(5):
        t[i] = y[i]
        t = t * 2
    return t


@program(two, "l")
def exchanged(x: Array, y: Array) -> Any:
    for _ in range(7):
        y[1:-1] = 0.5 * (x[:-2] + x[2:])
        x, y = y, x
    return x


@program(two, "l")
def exchanged_in_a_cycle(x: Array, y: Array) -> Any:
    z = np.zeros(10)
    for k in range(8):
        z[:] = x + y * k
        x, y, z = y, z, x
    return x, y, z


@program(vector, "l")
def first_defined_inside(x: Array) -> Any:
    for i in range(10):
        last = x[i] * i
    return last, i


@program(vector, "l")
def tuples(x: Array) -> Any:
    state = (0.0, 1.0, x[0])
    for i in range(10):
        a, b, c = state
        state = (b, a + x[i], c * 0.5)
    return state


@program(vector, "l")
def counters(x: Array) -> Any:
    n = 0
    for i in range(10):
        n += 1
        x[i] += n
    return n


@program(vector, "l")
def fibonacci(x: Array) -> Any:
    a, b = 0, 1
    for _ in range(20):
        a, b = b, a + b
    return x * a


# Branches.


@program(two, "c")
def either_array(x: Array, y: Array) -> Any:
    if y.sum() > 0:
        z = x * 2
    else:
        z = x - 1
    return z


@program(two, "c")
def written_in_one_branch(x: Array, y: Array) -> Any:
    if y[0] > 0:
        x[2:5] = y[2:5]
    return x + 1


@program(two, None)
def numbers_from_branches(x: Array, y: Array) -> Any:
    if y[0] > 0.2:
        n, f, done = 1, 2.5, True
    elif y[0] > -0.2:
        n, f, done = 2, 0.5, False
    else:
        n, f, done = 3, -1.0, True
    return x * n, f, done, n


@program(two, "l")
def branch_in_loop(x: Array, y: Array) -> Any:
    s = 0.0
    for i in range(10):
        if y[i] < 0:
            x[i] = 0
        elif y[i] < 0.25:
            x[i] = -x[i]
            s += x[i]
        else:
            s -= 1
    return s


@program(two, "c")
def loop_in_branch(x: Array, y: Array) -> Any:
    if y.max() > 0:
        for i in range(9):
            x[i + 1] += x[i]
    else:
        for i in range(9):
            x[i] += x[i + 1]
    return x


@program(two, "l")
def largest(x: Array, y: Array) -> Any:
    best, where = y[0], 0
    for i in range(1, 10):
        if y[i] > best:
            best, where = y[i], i
    return best, where


@program(two, "l")
def logic(x: Array, y: Array) -> Any:
    n = 0
    for i in range(1, 9):
        if (y[i] > 0 and y[i - 1] < 0) or not x[i] < 0.5:
            n += 1
        if 0.2 < x[i] <= 0.7:
            n += 10
        n += 100 if x[i] > y[i] else 0
    return n


@program(two, "c")
def early_return(x: Array, y: Array) -> Any:
    if y[0] > 0:
        return x * 2
    z = x + y
    if y[1] > 0:
        return z
    return z * z


def positive(x: Any) -> Any:
    if x > 0:
        return x
    return 0.0


@program(two, "l")
def helper_branches(x: Array, y: Array) -> Any:
    for i in range(10):
        x[i] = positive(y[i])
    return x


@program(two, None)
def raises_rarely(x: Array, y: Array) -> Any:
    if y.max() > 10:
        raise ValueError(f"too large: {y.max()}")
    assert np.all(np.isfinite(x)), "not finite"
    return x + y


@program(two, "l")
def out_of_bounds_unless_guarded(x: Array, y: Array) -> Any:
    for i in range(10):
        left = x[i - 1] if i > 0 else 0.0
        right = x[i + 1] if i < 9 else 0.0
        y[i] = left + right
    return y


@program(two, "l")
def merged_name_then_used(x: Array, y: Array) -> Any:
    for i in range(10):
        if x[i] > 0.5:
            step = 2.0
        else:
            step = 0.5
        y[i] *= step
    return y
