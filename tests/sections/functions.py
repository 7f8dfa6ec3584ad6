"""Functions whose statements break in all kinds of places; each is called with what stands beside it in `CALLS`."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any

import numpy as np


def stop() -> float:
    """What no program can be compiled with."""
    return random.random()


def branches(x: Any, n: int) -> Any:
    s = 0.0
    for i in range(n):
        stop()
        y = x * i
        if y.sum() > 20:
            s = s + y.max()
            continue
        if i > 8:
            break
        s = s + y.min()
    else:
        s = -1.0
    return s, y


def leaves_early(x: Any, n: int) -> Any:
    for i in range(n):
        y = np.sin(x) + i
        stop()
        if y[0] > 3:
            return y, i
        x = x + y * 0.5
    return x, -1


def views(x: Any) -> Any:
    v = x[1:]
    stop()
    v += 1.0
    w = v[::2]
    stop()
    w *= 2.0
    u = x
    stop()
    u = u + 0
    return x, v, w, w.base is x, u is x


def one_object(x: Any) -> Any:
    y = x
    stop()
    z = y
    t = y * 2 + 1
    stop()
    z += t
    return x is y, z is y, x, t


def handles(x: Any, n: int) -> Any:
    out = []
    for i in range(n):
        try:
            y = x / (i - 2)
            out.append(y[i])
            stop()
            z = y * 2 + x[i]
        except IndexError:
            out.append(np.float64(-1.0))
            z = y
        finally:
            x = x + 1
    return out, z


def handles_a_librarys(x: Any, n: int) -> Any:
    steps = 0
    for i in range(n):
        stop()
        try:
            a = x + i
            steps += 1
            b = np.linalg.inv(a.reshape(2, 3) @ a.reshape(3, 2) * (i % 2))
            steps += 1
        except np.linalg.LinAlgError:
            b = a
    return steps, b


def raises(x: Any, n: int) -> Any:
    s = x * 2
    stop()
    t = s + 1
    u = t[n] * 3
    return u


def bound_by_a_loop(x: Any, n: int) -> Any:
    stop()
    for i in range(n):
        last = x * i
    stop()
    return last + i


def maybe_bound(x: Any, n: int) -> Any:
    if n > 3:
        y = x * 2
    stop()
    z = x + 1
    if n > 3:
        z = y + z
    return z


def closures(x: Any) -> Any:
    c = 1.0

    def g(a: Any) -> Any:
        return a * c

    stop()
    y = g(x) + 1
    c = 2.0
    stop()
    y = y + g(x)
    return y, sorted([3, 1, 2], key=lambda t: -t)


def counts_by_nonlocal(x: Any, n: int) -> Any:
    count = 0

    def tell(y: Any) -> Any:
        nonlocal count
        count += 1
        return y + count

    for _ in range(n):
        x = tell(x * 2)
        stop()
    return x, count


def deletes(x: Any) -> Any:
    y = x * 2
    stop()
    z = y + 1
    del y
    stop()
    z = z * 3
    try:
        return z, y  # noqa: F821
    except UnboundLocalError:
        return z


def generates(x: Any, n: int) -> Generator[Any, Any, Any]:
    for i in range(n):
        y = np.exp(-x * i) + x
        got = yield y.sum(), y
        if got is not None:
            x = x + got
        z = x * 2 + 1
    return z


def recurs(x: Any, n: int) -> Any:
    if n == 0:
        return x
    stop()
    y = np.sin(x) + n
    return recurs(y, n - 1) * 0.5


def goes_on(x: Any) -> Any:
    k = 0
    while True:
        x = x * 0.7 + 0.1
        k += 1
        stop()
        if np.abs(x).max() < 0.4 or k > 30:
            break
    return x, k


def fills_lists(x: Any, n: int) -> Any:
    rows: list[Any] = []
    table: dict[str, Any] = {"sum": 0.0, "rows": []}
    for i in range(n):
        y = np.cos(x) * i
        rows.append(y)
        table["sum"] += y.sum()
        table["rows"].append(y.max())
        stop()
    a = np.array(rows) * 2
    return rows, table, a.mean()


def shares_rows(x: Any, n: int) -> Any:
    t = [[0.0] * 3] * 2
    for i in range(n):
        t[i % 2][i % 3] = x[i] * 2 + 1
        stop()
    return t, t[0] is t[1]


def swallows(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        with np.errstate(all="ignore"):
            y = x / i
            stop()
            total += np.nan_to_num(y, posinf=0.0, neginf=0.0).sum()
    return total


def matches(x: Any, n: int) -> Any:
    s = 0.0
    for i in range(n):
        stop()
        match i % 3:
            case 0:
                s = s + x.sum()
            case 1:
                s = s * 0.5 + x[0]
            case k:
                s = s + k
    return s


def names_like_ours(_t: Any, _s: Any) -> Any:
    _r = _t * 2 + _s
    stop()
    tuple, type = _r + 1, _r * 3
    return tuple, type


class Model:
    """Keeps what it has learned, and a log."""

    def __init__(self) -> None:
        self.w = np.ones(4)
        self.__hidden = 2.0
        self.log: list[float] = []

    def step(self, x: Any) -> Any:
        self.w = self.w + x * self.__hidden
        stop()
        self.w *= 0.5
        self.log.append(float(self.w[0]))
        stop()
        return self.w.sum()


class Child(Model):
    """Calls what it inherits."""

    def step(self, x: Any) -> Any:
        y = x * 2 + 1
        stop()
        return super().step(y) + y.sum()


def mean_and(x: Any, *more: Any, **named: Any) -> Any:
    stop()
    return round(float(np.mean(x)), 6), more, sorted(named)


def cut_in_order(x: Any, n: int) -> Any:
    """What is evaluated before a part of a statement, and has effects, comes first."""
    log: list[Any] = []

    def told(k: Any, *more: Any) -> Any:
        log.append((k, more, len(log)))
        stop()
        return len(log)

    rows, found = {1: [x], 2: [x + 1]}, []
    for k in range(n):
        y = x * k + 1
        told(float(np.mean((y - x) ** 2)), told(k), np.sum(y * x))
        z = mean_and(told(1) + np.exp(x) * 2 + y, np.sum(x * y), *[told(k), 2], k=np.sum(y + x), **{"m": np.sum(x * y + 1)})
        found += [z, f"{told(2):.1f} {np.sum(x * y):.3f} {told(3)!r} {np.mean(x * y):.2f} {mean_and(x * 2 + y)}"]
        found.append(
            (rows[told(4) % 2 + 1][int(np.sum(x * 0)) : told(5)], np.max(y * x), [np.sum(y * y), told(6), np.sum(x * y)])
        )
        if np.abs(y - x).max() * told(k) > 400:
            break
        n += mean_and(y * 2 + x)[0] * 0 + int(np.sum(x * y) * 0)
        found += [mean_and(x)[0] if stop() < 2 and np.sum(x * y) > 1 else None, [w + 1 for w in x * mean_and(y + x * 2)[0]]]
    return mean_and(np.tanh(x * 2 + 1)), found, log


def raises_in_a_part(x: Any, n: int) -> Any:
    kept = [stop()]
    kept.append(mean_and(x, np.sum(x[: n - 1] * x[1:n]), stop()))
    return kept[1], mean_and(np.sum(x * 2) + kept[n - 4])


X = np.linspace(0, 1, 6)
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((branches, (X, 12)), (branches, (X * 0, 30)), (leaves_early, (X, 5)), (views, (X,)), (one_object, (X,)), (handles, (X, 8))),
    *((handles_a_librarys, (X, 5)), (raises, (X, 2)), (raises, (X, 99)), (bound_by_a_loop, (X, 4)), (bound_by_a_loop, (X, 0))),
    *((maybe_bound, (X, 5)), (maybe_bound, (X, 1)), (closures, (X,)), (counts_by_nonlocal, (X, 4)), (deletes, (X,))),
    *((generates, (X, 4)), (recurs, (X, 4)), (goes_on, (X,)), (fills_lists, (X, 12)), (shares_rows, (X, 6)), (swallows, (X, 4))),
    *((matches, (X, 7)), (names_like_ours, (X, 2.0)), (Model.step, (Model(), X[:4])), (Child.step, (Child(), X[:4]))),
    *(
        (cut_in_order, (X, 6)),
        (cut_in_order, (X, 2)),
        (raises_in_a_part, (X, 5)),
        (raises_in_a_part, (X, 4)),
        (raises_in_a_part, (X, 9)),
    ),
]
