"""Functions whose statements break where exceptions, scopes or generators look back at what sections have left."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np

from sections.functions import X, stop

p = q = "a global"  # which no function here is to read


def fails(x: Any) -> Any:
    raise ValueError(f"no {x.size}")


def raises_and_reads(x: Any) -> Any:
    try:
        y = np.sin(x) * 2 + 1
        stop()
        raise ValueError
    except ValueError:
        return y


def binds_again(x: Any) -> Any:
    y = x + 0
    try:
        y = np.sin(x) * 2 + 1
        stop()
        y = fails(x)
    except ValueError:
        return y


def returns_what_fails(x: Any) -> Any:
    z = x
    try:
        z = np.sin(x) * 2 + 1
        stop()
        return fails(x)
    except ValueError as error:
        return z, str(error)


def reads_finally(x: Any, out: list[Any]) -> Any:
    try:
        z = np.sin(x) * 2 + 1
        stop()
        return out
    finally:
        out.append(z.sum())


def swallows_and_reads(x: Any) -> Any:
    z = x
    for i in range(3):
        with contextlib.suppress(ValueError):
            z = np.sin(x) * i + 1
            stop()
            z = fails(x)
    return z


def divides(x: Any, n: int) -> Any:
    r = 0
    try:
        r = n * 2 + 1
        stop()
        r = 10 / n + x.sum()
    except ZeroDivisionError:
        return r
    return r


def pattern_binds(x: Any, pair: Any) -> Any:
    stop()
    match pair:
        case (p, *q):
            y = np.sin(x) * p + len(q) * 2
            stop()
            return y, q


def if_binds(x: Any) -> Any:
    stop()
    if (q := x.sum() * 2 + 1) > 0:
        stop()
        z = np.sin(x) * q + 1
        return z


def return_binds(x: Any) -> Any:
    y = 1.0

    def g() -> Any:
        return y

    stop()
    return (y := x.sum() * 3) + g() * 2


def reraises_nothing(x: Any) -> Any:
    y = np.sin(x) * 2 + 1
    stop()
    if y[0] > 0:
        raise  # noqa: PLE0704


def asks_what_is_handled(x: Any, n: int) -> Any:
    for i in range(n):
        y = np.sin(x) * 2 + i
        stop()
        z = y[i] * 2 + (sys.exc_info()[0] is None)
    return z


def continues_in_else(x: Any, n: int) -> Any:
    for i in range(n):
        y = np.sin(x) * i
        for j in range(i):
            y = y + j
            if j > 2:
                stop()
                break
        else:
            y = y * 2 + 1
            continue
        x = x * 0.5 + y.mean()
    return x


def goes_on_later(x: Any) -> Any:
    c = x.sum() * 2 + 1
    g = (np.sin(v) * c for v in x)
    stop()
    c = c * 5 + 1
    stop()
    return list(g), c


def private_list(x: Any) -> Any:
    __log = [1.0]
    stop()
    for i in range(5):
        __log[0] = __log[0] * 2 + x[i]
        y = x * __log[0] + np.sin(x)
    return y, __log


async def asynchronous(x: Any, n: int) -> Any:
    async def numbers() -> AsyncIterator[int]:
        for i in range(n):
            yield i

    s = x * 0
    async for i in numbers():
        s = s + np.sin(x) * i
    values = [v * 2 async for v in numbers()]
    return s * 2 + 1, values


class Base:
    """What is inherited."""

    def step(self, x: Any) -> Any:
        return x * 2 + 1


class Child(Base):
    """Its names sort before `self`."""

    def step(self, x: Any) -> Any:
        a = np.sin(x) + 1
        stop()
        z = super().step(a) * stop() * 0 + a
        return z, super().step(z)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *(
        (raises_and_reads, (X,)),
        (binds_again, (X,)),
        (returns_what_fails, (X,)),
        (reads_finally, (X, [])),
        (swallows_and_reads, (X,)),
    ),
    *((divides, (X, 0)), (divides, (X, 2)), (pattern_binds, (X, (2.0, 3.0))), (if_binds, (X + 1,)), (return_binds, (X,))),
    *((reraises_nothing, (X,)), (asks_what_is_handled, (X, 3)), (asks_what_is_handled, (X, 9)), (continues_in_else, (X, 8))),
    *((goes_on_later, (X,)), (private_list, (X,)), (asynchronous, (X, 3)), (Child.step, (Child(), X))),
]
