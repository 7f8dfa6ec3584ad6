"""Loops that end, or whose iterations go their ways, as array values say, as people write them: rows of `test_traced_control.py`."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from tests.trace.regions.traced_programs import Program

LOOPS: list[Program] = []


def loop(function: Program) -> Program:
    LOOPS.append(function)
    return function


@loop
def while_simple(x):
    s = 0.0
    i = 0
    while s < 10 and i < 8:
        s += abs(x[i])
        i += 1
    return s, i


@loop
def newton(x):
    y = x.copy()
    err = 1.0
    n = 0
    while err > 1e-10:
        z = 0.5 * (y + x * x / y)
        err = np.abs(z - y).max()
        y = z
        n += 1
    return y, n


@loop
def while_true_break(x):
    y = x * 1.0
    n = 0
    while True:
        y = y * 0.5
        n += 1
        if np.abs(y).max() < 1e-3:
            break
    return y, n


@loop
def for_break(x):
    s = 0.0
    for i in range(8):
        if x[i] > 4:
            break
        s += x[i]
    return s


@loop
def for_break_i(x):
    s = 0.0
    for i in range(8):
        if x[i] > 4:
            break
        s += x[i]
    return s, i


@loop
def for_else(x):
    for i in range(len(x)):
        if x[i] > 4:
            r = i
            break
    else:
        r = -1
    return r


@loop
def for_continue(x):
    s = 0.0
    for i in range(8):
        if x[i] < 2:
            continue
        s += x[i]
    return s


@loop
def ret_in_loop(x):
    for i in range(8):
        if x[i] > 4:
            return i
    return -1


@loop
def ret_in_nested(x):
    for i in range(8):
        for j in range(i):
            if x[i] + x[j] > 10:
                return x[i] * x[j]
    return 0.0


@loop
def rows(x):
    s = 0.0
    for v in x:
        s = s * 0.5 + v
    return s


@loop
def rows2(x):
    s = np.zeros(2)
    for r in x.reshape(4, 2):
        s = s * 0.5 + r
    return s


@loop
def enum(x):
    y = np.zeros(8)
    for i, v in enumerate(x):
        y[i] = v * i
    return y


@loop
def zips(x):
    s = 0.0
    for a, b in zip(x, x[1:]):
        s += a * b
    return s


@loop
def list_break(x):
    s = 0.0
    for k in [1, 2, 3]:
        s += x[k]
        if s > 4:
            break
    return s


@loop
def list_break_k(x):
    s = 0.0
    for k in [1, 2, 3]:
        s += x[k]
        if s > 4:
            break
    return s, k


@loop
def append(x):
    ys = []
    for i in range(8):
        ys.append(x[i] * 2)
    return np.array(ys)


@loop
def append2(x):
    ys = []
    y = x
    for i in range(5):
        y = y * 0.5 + 1
        ys.append(y)
    return np.stack(ys)


@loop
def dictstore(x):
    d = {}
    for i in range(4):
        d[i] = x[i]
    return d[2]


@loop
def nested(x):
    A = np.zeros((8, 8))
    for i in range(8):
        for j in range(i + 1):
            if x[j] > 0:
                A[i, j] = x[i] * x[j]
            else:
                A[i, j] = -1
    return A


@loop
def bubble(x):
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


@loop
def while_swapped(x):
    swapped = True
    while swapped:
        swapped = False
        for j in range(7):
            if x[j] > x[j + 1]:
                t_ = x[j]
                x[j] = x[j + 1]
                x[j + 1] = t_
                swapped = True
    return x


@loop
def raises_in_loop(x):
    for i in range(8):
        if x[i] > 8:
            raise KeyError("big")
        x[i] += 1
    return x


@loop
def try_fin(x):
    s = 0.0
    try:
        for i in range(8):
            if x[i] > 4:
                return s
            s += x[i]
    finally:
        x[0] = 100.0
    return -s


@loop
def with_err(x):
    with np.errstate(all="ignore"):
        for i in range(8):
            if x[i] > 4:
                return np.log(x)
    return x


@loop
def bisect(x):
    lo, hi = 0, 8
    xs = np.sort(x)
    while lo < hi:
        mid = (lo + hi) // 2
        if xs[mid] < 3.5:
            lo = mid + 1
        else:
            hi = mid
    return lo


@loop
def collatz(x):
    n = int(abs(x[0]))
    k = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        k += 1
    return k


@loop
def walrus(x):
    y = x * 1.0
    while (m := np.abs(y).max()) > 0.1:
        y = y / 3
    return y, m


@loop
def maxloc(x):
    best = -np.inf
    at = -1
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
            at = i
    return best, at


@loop
def while_else(x):
    i = 0
    while i < 8:
        if x[i] > 5:
            break
        i += 1
    else:
        return -1
    return i


@loop
def two_breaks(x):
    n = 0
    for i in range(8):
        for j in range(8):
            if x[j] > x[i]:
                break
            n += 1
        else:
            n += 100
            continue
        if n > 20:
            break
    return n


@loop
def deflist(x):
    out = []
    for i in range(8):
        if i % 2:
            continue
        out.append(x[i])
    return out


@loop
def swapbuf(x):
    a = x.copy()
    b = np.zeros(8)
    for k in range(5):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a, b


@loop
def flat_in_loop(x):
    for i in range(8):
        x.flat[i] = x[i] * 2
        if x[i] > 6:
            x.flat[::3] = [1, 2]
    return x


@loop
def not_(x):
    done = False
    k = 0
    while not done:
        k += 1
        x = x * 0.5
        done = x.max() < 0.1
    return x, k
