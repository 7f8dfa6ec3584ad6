"""Loops over Python numbers, and recursion, that are run while a function is traced are refused before they take for ever."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG
from jitml.errors import UnsupportedError
from jitml.trace.speculation import budget
from jitml.trace.speculation.budget import Budget

Array = np.ndarray[Any, Any]


@pytest.fixture
def soon() -> Iterator[None]:
    """A third of a second will do."""
    before = CONFIG.trace_seconds
    object.__setattr__(CONFIG, "trace_seconds", 0.3)
    yield
    object.__setattr__(CONFIG, "trace_seconds", before)


def texts(x: Array, n: int) -> Any:
    text = ""
    for i in [*range(n)]:
        text = (text + "." * (i % 3))[-50:]
    return x + len(text)


def orders(x: Array, n: int) -> Any:
    return x + max(p[0] - p[1] for p in itertools.permutations(range(n)))


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursion(x: Array, n: int) -> Any:
    return x + fibonacci(n)


def recursion_inside(x: Array, n: int) -> Any:
    def inner(n: int) -> int:
        return n if n < 2 else inner(n - 1) + inner(n - 2)

    return x + inner(n)


def keys(x: Array, n: int) -> Any:
    seen = {}
    text = "a"
    while len(seen) < n * 1000:
        text = str(len(text)) + text[:20]
        seen[text + str(len(seen))] = x
    return seen["1a0"]


@pytest.mark.parametrize(
    ("function", "n"), [(texts, 10**7), (orders, 11), (recursion, 40), (recursion_inside, 40), (keys, 10**4)]
)
def test_what_python_runs_without_end_is_refused(function: Any, n: int, soon: None) -> None:
    with pytest.raises(UnsupportedError, match=r"tracing finds no end: after \d+ iterations and calls") as refusal:
        jitml.jit(function)(np.ones(3), n)
    assert "JITML_TRACE_SECONDS" in refusal.value.remedy
    source = refusal.value.source
    assert source is not None
    assert source.file == __file__


@pytest.mark.parametrize(("function", "n"), [(texts, 2000), (orders, 6), (recursion, 12), (recursion_inside, 12)])
def test_what_ends_soon_is_compiled(function: Any, n: int) -> None:
    x = np.ones(3)
    np.testing.assert_array_equal(jitml.jit(function)(x, n), function(x, n))


def test_few_steps_may_take_long() -> None:
    spent = Budget()
    spent._spent = 1e6
    assert not any(spent.step(recorded=0) for _ in range(CONFIG.max_unroll))
    assert any(spent.step(recorded=0) for _ in range(20))


def test_memory_counts_where_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    has = iter(range(1 << 28, 1 << 60, 1 << 28))
    monkeypatch.setattr(budget, "_resident_bytes", lambda: next(has))
    monkeypatch.setattr(budget, "thread_time", iter(range(10**6)).__next__)
    monkeypatch.setattr(budget, "_RECORDING", 1e9)
    recording, idle = Budget(), Budget()
    assert not any(recording.step(recorded=n) for n in range(1, 10 * CONFIG.max_unroll))
    monkeypatch.setattr(budget, "_RECORDING", 1)
    idle._spent = -1e9
    assert "MiB" in next(filter(None, (idle.step(recorded=0) for _ in range(10 * CONFIG.max_unroll))))


def descent(n: int) -> Any:
    slope, r = 0.0, 10.0
    for _ in range(n):
        slope = 100 * (r - 0.95)
        if abs(slope) > 0.2:
            r = r - 0.005 * slope
    moving = abs(slope) > 0.2 or r > 3.0
    return moving, r


def test_a_condition_on_what_a_long_loop_over_numbers_makes_does_not_run_the_loop_to_be_known() -> None:
    compiled = jitml.jit(descent)
    assert compiled(1_000_000) == descent(1_000_000)
    assert len(compiled.variants) == 1


def steps_of(grows: Any, n: int) -> int:
    """How many functions are called while a container grows to so many items."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        jitml.jit(grows).lower(np.ones(3), n)
    finally:
        sys.setprofile(before)
    return calls


class Item:
    def __init__(self, value: int) -> None:
        self.value = value


def appends(x: Array, n: int) -> Any:
    items = []
    for i in [*range(n)]:
        items.append(Item(i))
    return x + items[3].value


def looks_up(x: Array, n: int) -> Any:
    found = {}
    for i in [*range(n)]:
        found[i, 0] = x[i % 3] + found.get((i - 1, 0), 0)
    return found[7, 0]


@pytest.mark.parametrize("grows", [appends, looks_up])
def test_a_container_of_twice_as_many_items_takes_twice_as_long(grows: Any) -> None:
    steps_of(grows, 50)
    few, many = (steps_of(grows, n) for n in (200, 800))
    assert many < 5 * few
