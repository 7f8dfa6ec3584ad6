"""How many paths, decisions and attempts are too many?  What is refused then, and at which line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
import jitml.wiring
from jitml.config import CONFIG
from jitml.errors import UnsupportedError
from jitml.trace.speculation import modes

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
Array = np.ndarray[Any, Any]


def test_too_many_paths_are_refused() -> None:
    def f(x: Array) -> Any:
        return ["a"] * int(x[0])

    compiled = jitml.jit(f)
    for n in range(CONFIG.max_paths):
        assert compiled(np.array([float(n)])) == ["a"] * n
    with pytest.raises(UnsupportedError, match=r"compiled for a path no\. 17") as refusal:
        compiled(np.array([50.0]))
    assert refusal.value.source is not None
    assert 'return ["a"]' in refusal.value.source.text
    assert compiled(np.array([3.0])) == ["a"] * 3


def test_too_many_decisions_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        jitml.jit(decided_each_time)(np.ones(CONFIG.max_unroll + 1))


def decided_each_time(x: Array) -> Any:
    kept = []
    for value in x:
        if value > 0:
            kept = [*kept, value]
    return kept


def test_a_trace_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    function, said = decided_each_time, "2 attempts: after a branch on a traced condition kept is"
    monkeypatch.setattr(modes, "_MOST_RECORDED", 0)
    with pytest.raises(UnsupportedError, match=rf"tracing finds no end: \d+ operations have been recorded in {said}") as refusal:
        jitml.jit(function)(np.ones(3))
    assert refusal.value.source is not None
    assert refusal.value.source.function == function.__name__


def turned(x: Array) -> Any:
    ys = [v * 2 for v in x]
    ys.reverse()
    return ys


def all_but_one(x: Array) -> Any:
    ys = [v * 2 for v in x]
    return ys[1:]


def test_items_of_a_long_list_that_a_loop_has_filled_are_not_taken_one_by_one() -> None:
    with pytest.raises(UnsupportedError, match="4999 items of a list that a loop has filled are taken one by one"):
        jitml.jit(all_but_one)(np.ones(5000))


@pytest.mark.loose
@pytest.mark.parametrize("function", [turned, all_but_one])
def test_long_lists_are_as_python_has_them(function: Any) -> None:
    assert jitml.jit(function)(np.arange(5000.0)) == function(np.arange(5000.0))


@pytest.mark.loose
def test_a_long_list_that_a_loop_has_filled_is_cut_or_cleared() -> None:
    def f(x: Array) -> Any:
        ys = [v * 2 for v in x]
        first = ys[:3]
        ys.clear()
        ys.append(first[1])
        return first, ys

    x = np.arange(5000.0)
    assert jitml.jit(f)(x) == f(x)


def refused_below_zero(x: Array) -> Any:
    for _ in range(500_000):  # tracing looks at the first few iterations only
        x = x - 1
    return None if x[0] > 0 else iter([x])


def test_which_way_a_long_loop_tells_is_not_guessed() -> None:
    compiled = jitml.jit(refused_below_zero)
    with pytest.raises(UnsupportedError, match="which way the function goes depends on what a long loop computes"):
        compiled(np.array([10.0]))
