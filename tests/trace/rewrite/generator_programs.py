"""Functions that use generators, and context managers made of generators; each is called with an array of five numbers."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

STATE = SimpleNamespace(v=1)
LOG: list[Any] = []


def batches(x: Any, n: int) -> Iterator[Any]:
    for i in range(0, len(x), n):
        yield x[i : i + n]


def count(n: int) -> Iterator[int]:
    i = 0
    while i < n:
        yield i
        i += 1


def pairs(x: Any) -> Iterator[tuple[int, int]]:
    for i in range(len(x)):
        for j in range(i):
            yield i, j


def fibonacci(n: int) -> Iterator[int]:
    a, b = 1, 1
    for _ in range(n):
        yield a
        a, b = b, a + b


def positive(x: Any) -> Iterator[Any]:
    for v in x:
        if v > 1.5:
            yield v


def chained(x: Any) -> Iterator[Any]:
    yield from x
    yield from count(3)


def printing(n: int) -> Iterator[int]:
    try:
        for i in range(n):
            print("gives", i)
            yield i
    finally:
        print("closed")


def echo() -> Any:
    got = 0
    while True:
        r = yield got
        if r is None:
            return
        got += r * STATE.v


class Model:
    def __init__(self) -> None:
        self.w = 1.0

    def rows(self, x: Any) -> Iterator[Any]:
        for v in x:
            yield v * self.w

    @contextlib.contextmanager
    def with_weight(self, w: float) -> Iterator[Model]:
        before, self.w = self.w, w
        try:
            yield self
        finally:
            self.w = before


MODEL = Model()


def batches_in_a_loop(x: Any) -> Any:
    total = 0.0
    for batch in batches(x, 2):
        total += batch.sum()
    return total


def table_of_pairs(x: Any) -> Any:
    y = np.zeros((len(x), len(x)))
    for i, j in pairs(x):
        y[i, j] = x[i] - x[j]
    return y


def what_one_prints(x: Any) -> Any:
    for i in printing(STATE.v + 1):
        x = x + i
    return x


def closed_by_break(x: Any) -> Any:
    for i in printing(5):
        x = x + i
        if i == STATE.v:
            break
    return x


def sent_to(x: Any) -> Any:
    generator = echo()
    next(generator)
    return x * generator.send(2) * generator.send(3)


def steps_in_a_loop(x: Any) -> Any:
    generator = count(100)
    total = 0.0
    for _ in range(50):
        total = total + next(generator) * x
    return total


def generators_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(30):
        for batch in batches(x, 2):
            total = total + batch.sum() * k
    return total


def fitted(x: Any) -> Any:
    for v in MODEL.rows(x):
        MODEL.w = MODEL.w * 0.5 + v
    return MODEL.w


def made_inside(x: Any) -> Any:
    def inner(k: int) -> Iterator[Any]:
        for i in range(k):
            LOG.append(i)
            yield x[i] * STATE.v

    return sum(inner(2))


def gone_through_twice(x: Any) -> Any:
    generator = (v * 2 for v in x)
    return sum(generator) + sum(generator)


def one_of_two(x: Any) -> Any:
    generator = count(2) if x[0] > 1.5 else fibonacci(4)
    return x * sum(generator)


def until_it_stops(x: Any) -> Any:
    generator = batches(x, 2)
    try:
        while True:
            x = x + next(generator)[0]
    except StopIteration:
        return x


def written_views(x: Any) -> Any:
    y = x.copy()
    for batch in batches(y, 2):
        batch *= 2
    return y


def raising(x: Any) -> Any:
    def one() -> Iterator[float]:
        yield 1.0
        raise ValueError("end")

    try:
        for v in one():
            x = x + v
    except ValueError:
        return x * 2
    return x


class Steps:
    def __init__(self) -> None:
        self.n = 0

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> int:
        self.n += 1
        if self.n > 4:
            raise StopIteration
        LOG.append(self.n)
        return self.n


def doubled(v: int) -> int:
    print("doubles", v)
    return v * 2


def ended_by_a_value(x: Any) -> Any:
    for v in printing(3):
        if v == x[0] - 1:
            break
        x = x + 1
    return x


def ended_among_others(x: Any) -> Any:
    for i, v in enumerate(zip(printing(4), Steps())):
        if x[0] + i > 2:
            break
        x = x + v[0]
    return x


def ended_as_others_are_called(x: Any) -> Any:
    for v in map(doubled, [1, 2, 3]):
        if x[0] > 2:
            return x * v
        x = x + v
    for v in (doubled(q) for q in [1, 2, 3]):
        if x[0] > 9:
            break
        x = x + v
    return x


def gone_on_while(x: Any) -> Any:
    generator = printing(5)
    while x[0] < 3:
        x = x + next(generator)
    return x + next(generator)


def gone_on_if(x: Any) -> Any:
    generator = printing(5)
    if x[0] > 1:
        x = x + next(generator)
    return x + next(generator)


@contextlib.contextmanager
def scaled(k: Any) -> Iterator[Any]:
    yield k * STATE.v


@contextlib.contextmanager
def told(name: str) -> Iterator[None]:
    print("begin", name, STATE.v)
    try:
        yield
    finally:
        print("end", name)


@contextlib.contextmanager
def logged() -> Iterator[None]:
    LOG.append(STATE.v)
    yield
    LOG.append(-STATE.v)


@contextlib.contextmanager
def forgiving() -> Iterator[Any]:
    try:
        yield STATE.v
    except ZeroDivisionError:
        print("caught")


@contextlib.contextmanager
def chosen(x: Any) -> Iterator[float]:
    if x[0] > 1.5:
        yield 1.0
    else:
        yield 2.0


def in_a_manager(x: Any) -> Any:
    with scaled(3) as k:
        return x * k


def printed_around(x: Any) -> Any:
    with told("it"):
        return x * 2


def logged_around(x: Any) -> Any:
    with logged():
        return x * 2


def with_a_weight(x: Any) -> Any:
    with MODEL.with_weight(STATE.v * 5.0) as model:
        y = x * model.w
    return y * MODEL.w


def in_an_unrolled_loop(x: Any) -> Any:
    for i in range(3):
        with scaled(i) as k:
            x = x + k
    return x


def in_a_long_loop(x: Any) -> Any:
    for n in range(50):
        with scaled(1) as k:
            x = x + k * n
    return x


def forgiven(x: Any) -> Any:
    with forgiving() as k:
        x = x * k
        raise ZeroDivisionError
    return x


def under_a_condition(x: Any) -> Any:
    if x.sum() > 20:
        with told("more"):
            x = x * 2
    return x


def on_a_stack(x: Any) -> Any:
    with contextlib.ExitStack() as stack:
        return x * stack.enter_context(scaled(2))


def of_a_number(x: Any) -> Any:
    with scaled(x[0]) as k, chosen(x) as q:
        return x * k * q


PROGRAMS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        batches_in_a_loop, table_of_pairs, what_one_prints, closed_by_break, sent_to, steps_in_a_loop, generators_in_a_loop,
        fitted, made_inside, gone_through_twice, one_of_two, until_it_stops, written_views, raising, in_a_manager,
        printed_around, logged_around, with_a_weight, in_an_unrolled_loop, in_a_long_loop, forgiven, under_a_condition,
        on_a_stack, of_a_number, ended_by_a_value, ended_among_others, ended_as_others_are_called, gone_on_while, gone_on_if,
    )
} | {
    "sum": lambda x: x * sum(count(STATE.v + 2)),
    "list": lambda x: np.array(list(fibonacci(STATE.v + 5))) * x[0],
    "filtered": lambda x: sum(positive(x)),
    "chained": lambda x: max(chained(x)),
    "two steps": lambda x: (lambda g: x * (next(g) + 2 * next(g)))(count(10)),
    "zipped": lambda x: np.array([a + b for a, b in zip(count(3), fibonacci(3))]) * x[:3],
    "dict": lambda x: x * len({k: k * k for k in count(4)}),
    "fromiter": lambda x: np.fromiter(count(STATE.v + 1), float),
    "enumerated": lambda x: sum(v * i for i, v in enumerate(chained(x))),
    "next": lambda x: x * next(count(3)) + next(positive(x), -1.0),
    "stacked": lambda x: np.stack(list(batches(x, 1))),
    "concatenated": lambda x: np.concatenate([batch * 2 for batch in batches(x, 2)]),
    "any, all": lambda x: (any(v > 2 for v in positive(x)), all(v > 2 for v in positive(x))),
    "islice": lambda x: (list(itertools.islice(count(100), 3)), x),
    "unpacked": lambda x: [*chained(x[:1])],
}  # fmt: skip
