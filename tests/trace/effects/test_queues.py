"""Queues from outside, which other threads may have, are used by Python itself."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

X = np.array([1.0, 2.0, 3.0])
KINDS = [queue.Queue, queue.LifoQueue, queue.PriorityQueue]


def put_and_got(q: Any, x: Any) -> Any:
    q.put(1)
    q.put(x.sum())
    return q.get_nowait(), q.qsize(), q.empty(), q is q


def emptied(q: Any, x: Any) -> Any:
    total = 0
    while not q.empty():
        total += q.get_nowait()
    return total


def in_a_loop(q: Any, x: Any) -> Any:
    for v in x:
        q.put(v)
    q.task_done()
    return q.get(), q.unfinished_tasks


def in_a_while_loop(q: Any, x: Any) -> Any:
    i = 0
    while x[i] < x.max():
        q.put(x[i])
        i += 1
    return q.qsize()


def branched(q: Any, x: Any) -> Any:
    if x.sum() > 10:
        q.put(1)
    else:
        q.put(2)
        q.put(3)
    return q.get_nowait()


def nothing_there(q: Any, x: Any) -> Any:
    try:
        while True:
            q.get_nowait()
    except queue.Empty:
        return -1


def full(q: Any, x: Any) -> Any:
    try:
        for i in range(9):
            q.put_nowait(i)
    except queue.Full:
        return "full", q.qsize(), q.full()
    return q.qsize()


def raising(q: Any, x: Any) -> Any:
    q.put(5)
    if x[0] > 1:
        raise ValueError(float(x[0]))
    return q.qsize()


def by_other_names(q: Any, x: Any) -> Any:
    put, waiting = q.put, [q]
    put(x[1])
    waiting[0].put_nowait(2)
    return q.queue[0], waiting[0].get(block=False)


def told(function: Callable[[Any, Any], Any], q: Any, x: Any) -> str:
    try:
        result = repr(function(q, x))
    except ValueError as error:
        result = repr(error)
    return f"{result} {list(q.queue)} {q.unfinished_tasks}"


@pytest.mark.loose
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "function",
    [put_and_got, emptied, in_a_loop, in_a_while_loop, branched, nothing_there, full, raising, by_other_names],
)
def test_three_calls(function: Callable[[Any, Any], Any], kind: Callable[..., Any]) -> None:
    compiled = jitml.jit(function, verify="never")
    room = 5 if function is full else 0
    mine, theirs = ([kind(room), kind(room)] for _ in range(2))
    for n in range(4):
        for q in (mine[n % 2], theirs[n % 2]):
            if n > 1 and not q.full():
                q.put(n)
        assert told(compiled, mine[n % 2], X + n) == told(function, theirs[n % 2], X + n)


@pytest.mark.loose
def test_who_waits_is_woken() -> None:
    q: Any = queue.Queue()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(q.get()), daemon=True)
    waiting.start()
    jitml.jit(lambda q, x: q.put(x[0]), verify="never")(q, X)
    waiting.join(10)
    assert found == [1.0]


@pytest.mark.parametrize("call", [lambda q: q.get(), lambda q: q.put(2), lambda q: q.qsize(), lambda q: q.empty()])
def test_a_program_does_not_use_them(call: Callable[[Any], Any]) -> None:
    q: Any = queue.Queue()
    q.put(1)
    with pytest.raises(jitml.UnsupportedError, match="from outside"):
        jitml.jit(lambda q, x: (call(q), x), verify="never")(q, X)
