"""Programs with loops, whiles and branches on arrays, as people write them; `test_regions.py` runs them traced and eagerly.

Each row of PROGRAMS: a function, a function that makes its arguments from a generator, and the kinds of regions that its graph
has outside any other (`l` loops, `w` whiles, `c` conds; None: whatever it has).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import jitml

Array = Any
PROGRAMS: list[tuple[Callable[..., Any], Callable[[np.random.Generator], tuple[Any, ...]], str | None]] = []


def program(arguments: Callable[[np.random.Generator], tuple[Any, ...]], regions: str | None = None) -> Any:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, arguments, regions))
        return function

    return register


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
