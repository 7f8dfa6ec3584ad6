"""Limits of one program: what is beyond them is refused, at the loop that is unrolled or the statement that has brought most."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitml.config import CONFIG
from jitml.errors import Cause, UnsupportedError
from jitml.records import replace
from jitml.trace.speculation import limits
from jitml.trace.speculation.compile_cost import ProgramSize
from jitml.trace.speculation.limits import TraceLimits, TraceProfile, too_large
from jitml.trace.trace import trace

Array = np.ndarray[Any, Any]
LINES = Path(__file__).read_text().splitlines()
TIGHT = TraceLimits(iterations=32, nodes=300, seconds=2.0, tracing=0.3)


def many_iterations(x: Array) -> Array:
    y = x + 1
    for i in [*range(400)]:  # here
        y = y * i
    return y


def in_a_branch(x: Array) -> Array:
    if x.sum() > 0:
        for i in [*range(400)]:  # here
            x = x * i
    return x


def in_a_callee(x: Array) -> Array:
    y = many_iterations(x)  # here
    return y + 1


def short_around_long(x: Array) -> Array:
    for _ in [1, 2, 3]:
        for k in [*range(31)]:  # here
            x = np.sin(x * k) + np.cos(x) - 1
    return x


def long_around_short(x: Array) -> Array:
    for k in [*range(31)]:  # here
        for _ in [1, 2]:
            x = np.sin(x * k) + np.cos(x) - 1
    return x


def two_loops(x: Array) -> Array:
    for k in [*range(10)]:
        x = x * k
    for k in [*range(31)]:  # here
        x = np.sin(np.cos(x * k) * np.sin(x)) + np.cos(x) - 1
    return x


def a_while(x: Array) -> Array:
    k = 0
    while k < 31:  # here
        x = np.sin(np.cos(x * k) * np.sin(x)) + np.cos(x) - 1
        k = int(str(k + 1))
    return x


def _polynomial(x: Array) -> Array:
    return (
        1 + x * (2 + x * (3 + x * (4 + x * (5 + x * (6 + x * (7 + x * (8 + x * (9 + x * (10 + x))))))))) + np.sin(x) * np.cos(x)
    )


def _large(x: Array) -> Array:
    x = _polynomial(_polynomial(_polynomial(_polynomial(x))))
    return _polynomial(_polynomial(_polynomial(_polynomial(x))))


def large_callee(x: Array) -> Array:
    y = np.sin(x)
    y = _large(_large(y))  # here
    return np.cos(y)


def _fibonacci(n: int) -> int:
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


def python_alone(x: Array) -> Array:
    y = x + 1
    n = _fibonacci(30)  # here
    return y + n


def python_in_a_loop(x: Array) -> Array:
    seen = {}
    for i in [*range(10**6)]:  # here
        seen[str(i)] = i
    return x + len(seen)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (many_iterations, Cause.UNROLLED),
        (in_a_branch, Cause.UNROLLED),
        (in_a_callee, Cause.UNROLLED),
        (short_around_long, Cause.UNROLLED),
        (long_around_short, Cause.UNROLLED),
        (two_loops, Cause.UNROLLED),
        (a_while, Cause.UNROLLED),
        (large_callee, Cause.SLOW),
        (python_alone, Cause.SLOW),
        (python_in_a_loop, Cause.UNROLLED),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_is_beyond_the_limits_has_a_place(function: Callable[..., Any], cause: Cause) -> None:
    with pytest.raises(UnsupportedError) as refused:
        trace(function, (np.ones(3),), {}, limits=TIGHT)
    first = refused.value.stack[0]
    assert first.function == function.__name__
    assert LINES[first.line - 1].endswith("# here")
    assert refused.value.cause is cause


def straight(x: Array) -> Array:
    x = _polynomial(x)
    x = _polynomial(x)
    x = _polynomial(x)
    x = _polynomial(x)
    x = _polynomial(x)  # here
    x = _polynomial(x)  # here
    x = _polynomial(x)
    x = _polynomial(x)
    x = _polynomial(x)
    return _polynomial(x)


def test_what_is_large_everywhere_is_cut_in_the_middle() -> None:
    tight = TraceLimits(nodes=10_000, seconds=0.05)
    refused = too_large(trace(straight, (np.ones(3),), {}, limits=tight), tight)
    assert refused is not None
    assert "to compile" in refused.message
    assert LINES[refused.stack[0].line - 1].endswith("# here")


def test_a_program_within_its_limits_is_not_too_large() -> None:
    assert too_large(trace(many_iterations, (np.ones(3),), {}), TraceLimits()) is None
    assert too_large(trace(_polynomial, (np.ones(3),), {}, limits=TIGHT), TIGHT) is None


def test_bodies_count_as_operations() -> None:
    def sums(x: Array) -> Any:
        total = 0.0
        for v in x:
            total += np.sin(v) * np.cos(v) + v
        return total

    traced = trace(sums, (np.ones(50),), {}, limits=TIGHT)
    assert len(traced.graph.nodes) < 10
    assert too_large(traced, TraceLimits(nodes=10)) is not None


def test_more_loop_nests_take_longer() -> None:
    def cumulated(x: Array) -> Any:
        for _ in [*range(n)]:
            x = np.cumsum(np.sort(x))
        return x

    n = 1
    few = ProgramSize.of(trace(cumulated, (np.ones(5),), {}).graph.nodes).compile_seconds()
    n = 30
    many = ProgramSize.of(trace(cumulated, (np.ones(5),), {}).graph.nodes)
    assert 0.01 < few < many.compile_seconds() / 2
    assert many.compile_seconds(10) > 10 * (many.compile_seconds() - few)


def a_list(x: Array) -> Array:
    for i in [*range(60)]:
        x = x * i
    return x


def enumerated(x: Array) -> Array:
    names: dict[str, int] = {}
    for i, k in enumerate([*range(60)]):
        names[str(k)] = i
        x = x * len(names)
    return x


def zipped(x: Array) -> Array:
    names: dict[str, int] = {}
    for i, k in zip(range(60), map(str, [*range(70)])):
        names[k] = i
        x = x * len(names)
    return x


def rows(x: Array) -> Array:
    names: dict[str, int] = {}
    y = np.ones((60, 3)) * x
    total = x
    for row in y:
        names[str(len(names))] = 1
        total = total + row * len(names)
    return total


def nested(x: Array) -> Array:
    for i in [*range(5)]:
        for j in [*range(6)]:
            for k in [*range(5)]:
                x = x * (i + j + k)
    return x


@pytest.mark.parametrize("function", [a_list, enumerated, zipped, rows, nested])
def test_a_loop_goes_on_to_an_end_that_is_in_sight(function: Callable[..., Any]) -> None:
    generous = TraceLimits(iterations=4, nodes=1000, seconds=2.0, tracing=1.0)
    traced = trace(function, (np.ones(3),), {}, limits=generous)
    assert too_large(traced, generous) is None
    with pytest.raises(UnsupportedError, match=r"after (4|8) iterations"):
        trace(function, (np.ones(3),), {}, limits=replace(generous, nodes=60))
    with pytest.raises(UnsupportedError, match=r"after (4|8) iterations"):
        trace(function, (np.ones(3),), {}, limits=replace(generous, seconds=0.04))


def of_unknown_length(x: Array) -> Array:
    for i in (k for k in range(60)):
        x = x * len(str(i))
    return x


def one_long_loop_in_another(x: Array) -> Array:
    for _ in (k for k in "ab"):
        for i in [*range(60)]:
            x = x * i
    return x


@pytest.mark.parametrize("function", [of_unknown_length, one_long_loop_in_another])
def test_no_loop_goes_on_whose_end_nobody_knows(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="after 4 iterations"):
        trace(function, (np.ones(3),), {}, limits=TraceLimits(iterations=4, nodes=1000, seconds=2.0, tracing=1.0))


def left_early(x: Array) -> Array:
    for i in [*range(100)]:
        x = x * i
        if i == 2:
            break
    for i in [*range(60)]:
        x = x + i
    return x


def test_what_is_left_of_a_loop_that_was_left_does_not_count() -> None:
    trace(left_early, (np.ones(3),), {}, limits=TraceLimits(iterations=4, nodes=200, seconds=2.0, tracing=1.0))


def test_what_is_to_come_is_what_was_times_the_iterations_that_are_left() -> None:
    profile = TraceProfile()
    assert profile.left(0) is None
    outer = profile.loop("outer", recorded=0, length=4)
    outer.go_on(0)
    inner = profile.loop("inner", recorded=10, length=5)
    inner.go_on(10)
    inner.go_on(20)
    left = profile.left(30)  # two of five iterations have brought 20
    assert left is not None
    assert left.recorded == 30 + 3 * 60
    profile.ended(inner)
    left = profile.left(60)
    assert left is not None
    assert left.recorded == 3 * 60


def test_without_limits_a_loop_is_unrolled_as_ever() -> None:
    assert CONFIG.max_unroll == 1000
    assert len(trace(many_iterations, (np.ones(3),), {}).graph.nodes) >= 40


def test_seconds_of_earlier_attempts_count_and_operations_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(limits, "thread_time", lambda: float(next(clock)))
    profile = TraceProfile()
    for _ in range(2):
        profile.begin()
        loop = profile.loop("here", recorded=0, length=None)
        for recorded in (10, 20, 30):
            loop.go_on(recorded)
    assert loop.brought.recorded == pytest.approx(30 * 2 / 3)
    assert loop.brought.seconds == pytest.approx(2 * 3 * 2 / 3)
    profile.recorded[()] = 100
    profile.seconds[()] = 7
    assert profile.heaviest("seconds") == (loop.stack, True)


class Clock:
    """Seconds that a thread has run: so many more each time that somebody looks."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("function", [a_while, of_unknown_length, many_iterations, a_list], ids=lambda f: f.__name__)
def test_a_loop_that_takes_long_is_given_up_unless_its_end_is_in_sight(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    generous = TraceLimits(iterations=32, nodes=10_000, seconds=20.0, tracing=1.0)
    monkeypatch.setattr(limits, "thread_time", Clock(0.04))
    with pytest.raises(UnsupportedError, match=r"after ([2-9]|10) iterations") as refused:
        trace(function, (np.ones(3),), {}, limits=generous)
    assert refused.value.cause is Cause.UNROLLED
    assert refused.value.stack[0].function == function.__name__


def test_a_loop_that_takes_long_goes_on_to_an_end_that_is_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    generous = TraceLimits(iterations=4, nodes=10_000, seconds=20.0, tracing=1.0)
    monkeypatch.setattr(limits, "thread_time", Clock(0.004))
    assert len(trace(a_list, (np.ones(3),), {}, limits=generous).graph.nodes) >= 60


def test_a_first_iteration_that_takes_longer_than_others_is_no_measure_of_them() -> None:
    profile = TraceProfile()
    loop = profile.loop("here", recorded=0, length=10)
    for recorded in (0, 100, 110, 120):
        loop.go_on(recorded)
    left = profile.left(130)
    assert left is not None
    assert left.recorded == 6 * 10


def test_without_limits_of_seconds_no_loop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "thread_time", Clock(10.0))
    assert len(trace(a_list, (np.ones(3),), {}, limits=TraceLimits(iterations=100)).graph.nodes) >= 60
