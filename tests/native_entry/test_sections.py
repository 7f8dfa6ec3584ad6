"""Native entries of sections: machine code answers what the frame asks, and Python whatever else comes."""

from __future__ import annotations

import ast
import gc
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.dispatch.renting import Rent
from sections.forced_breaks import in_sections, no_trials, split_of, trials

pytestmark = pytest.mark.skipif(not native_calls(), reason="arrays of this interpreter cannot be read in place")
X, Y = np.array([1.0, -2.5, 3.0]), np.array([0.5, 4.0, -1.0])


@pytest.fixture(autouse=True)
def bought() -> Iterator[None]:
    with no_trials():
        yield


def cut(function: Callable[..., Any]) -> Any:
    """The function in sections, between statements that are expressions."""
    return in_sections(function, lambda statement: isinstance(statement, ast.Expr))


def hits(f: Any) -> int:
    """How many sections machine code has answered."""
    return sum(s._entries.hits for s in split_of(f).sections if s._entries is not None)


def same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted), (got, wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            same(a, b)
    else:
        np.testing.assert_array_equal(got, wanted)
        if isinstance(wanted, np.ndarray):
            assert (got.dtype, got.strides, got.flags.writeable) == (wanted.dtype, wanted.strides, wanted.flags.writeable)


def steps(x: Any, y: Any, n: int, log: list[Any]) -> Any:
    for k in range(n):
        log.append(k)
        a = x * 0.5 + y
        b = a * y - x
        log.append(len(log))
        x = a - b * 0.25
        if k % 3 == 2:
            x = -x
    return x


def containers(x: Any, y: Any, n: int, log: list[Any]) -> Any:
    seen, last = [], {"x": x}
    for k in range(n):
        log.append(k)
        a = x * 0.5 + y
        last["x"] = a - y
        seen.append(last["x"].sum())
        x = a + seen[-1] * 0.125
        log.append(seen[-1])
        del seen[1:]
    return x, seen, [*last.values()]


def in_place(x: Any, y: Any, n: int, log: list[Any]) -> Any:
    x = x * 1.0
    view = x[1:]
    for k in range(n):
        log.append(k)
        x *= 0.5
        view += y[-1]
        log.append(None)
        x[0], x[-1] = x[-1], x[0] + y[-1]
    return x, view


def numbers(x: Any, y: Any, n: int, log: list[Any]) -> Any:
    total, count, pair = 0.0, 0, (0.5, 1)
    for k in range(n):
        log.append(k)
        total = total * 0.5 + k
        count = count + k * 2
        pair = (pair[0] * 0.5 + total, count % 7)
        log.append(None)
        total = total + pair[0] - pair[1] * 0.25
    return total, count, pair, x


ALL = [steps, containers, in_place, numbers]
KINDS = [
    (X, Y),
    (X.astype(np.float32), Y),
    (X.astype(">f8"), Y),
    (X[::-1], Y),
    (np.repeat(X, 2)[::2], Y),
    (X[:1], Y),
    (X.reshape(1, 3) * np.ones((3, 1)), Y),
    (np.array([np.nan, np.inf, -0.0]), Y),
]


@pytest.mark.parametrize("function", ALL)
def test_answers_are_numpys(function: Callable[..., Any]) -> None:
    f = cut(function)
    with np.errstate(all="ignore"):
        for x, y in [*KINDS, *KINDS]:
            got, wanted = [], []  # type: ignore[var-annotated]  # of anything
            same(f(x, y, 12, got), function(x, y, 12, wanted))
            same(got, wanted)
    assert hits(f) > 20


@pytest.mark.parametrize("function", [steps, in_place])
def test_other_arguments_in_the_midst_of_a_loop_are_answered_by_python(function: Callable[..., Any]) -> None:
    class Log(list[Any]):
        """It changes what the loop computes with."""

        def append(self, what: Any) -> None:
            super().append(what)
            if len(self) == 30:
                y[:] = [np.inf, np.nan, -0.0]
            if len(self) == 40:
                y.resize(6, refcheck=False)
                y.resize(3, refcheck=False)

    f, y = cut(function), Y.copy()
    for _ in range(3):
        with np.errstate(all="ignore"):
            y[:] = Y
            got = f(X, y, 30, Log())
            y[:] = Y
            same(got, function(X, y, 30, Log()))


class Metres(np.float64):
    def __mul__(self, other: Any) -> Any:
        return Metres(100.0)


def weighed(x: Any, by: Any, n: int, log: list[Any]) -> Any:
    for k in range(n):
        log.append(k)
        a = x + 0.5
        x = by * a + a * 0.25
    return x


@pytest.mark.parametrize("by", [0.5, np.float64(0.5), 2, True, np.float32(0.5), Metres(0.5), np.array(0.5), np.array([0.5])])
def test_numbers_of_all_classes(by: Any) -> None:
    f = cut(weighed)
    for each in (0.5, by, 0.25, by):
        same(f(2.0, each, 12, []), weighed(2.0, each, 12, []))
        same(f(X, each, 12, []), weighed(X, each, 12, []))
    assert hits(f) or isinstance(by, (np.float32, Metres))


def picked(x: Any, y: Any, n: int, log: list[Any]) -> Any:
    total = 0.0
    for k in range(n):
        log.append(k)
        a = x * 0.5
        total = total + a[k] * y[k]
    return total


def test_exceptions_are_told_at_the_users_line() -> None:
    f = cut(picked)
    for _ in range(20):
        same(f(X, Y, 3, []), picked(X, Y, 3, []))
    assert hits(f)
    found = []
    for function in (f, picked):
        log: list[Any] = []
        with pytest.raises(IndexError) as error:
            function(X, Y, 5, log)
        assert log == [0, 1, 2, 3]
        found.append((str(error.value), traceback.extract_tb(error.tb)[-1].lineno, error.value.__context__))
    assert found[0] == found[1]


def test_warnings_are_told_and_may_be_errors() -> None:
    def divided(x: Any, y: Any, n: int, log: list[Any]) -> Any:
        for k in range(n):
            log.append(k)
            a = x / y
            x = a - 0.5 * x
        return x

    f, zero = cut(divided), np.array([1.0, 0.0, 2.0])
    f(X, Y, 20, [])
    assert hits(f)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(X, zero, 1, [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log: list[Any] = []
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            f(X, zero, 3, log)
        assert log == [0]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        f(X, zero, 3, [])


def test_watchers_see_all_lines() -> None:
    f = cut(steps)
    f(X, Y, 20, [])
    before, lines = hits(f), []
    assert before

    def watch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_name == "steps" and event == "line":
            lines.append(frame.f_lineno - steps.__code__.co_firstlineno)
        return watch

    sys.settrace(watch)
    try:
        f(X, Y, 5, [])
    finally:
        sys.settrace(None)
    assert hits(f) == before
    assert {3, 4, 6} <= set(lines)
    f(X, Y, 5, [])
    assert hits(f) > before


def test_nothing_is_answered_while_jitml_is_disabled() -> None:
    f = cut(steps)
    f(X, Y, 20, [])
    before = hits(f)
    with jitml.disable():
        same(f(X, Y, 5, []), steps(X, Y, 5, []))
    assert hits(f) == before > 0


def test_derivatives_go_through() -> None:
    f = cut(steps)
    f(X, Y, 20, [])
    assert hits(f)
    np.testing.assert_allclose(
        jitml.grad(lambda x: f(x, Y, 4, []).sum())(X), jitml.grad(lambda x: steps(x, Y, 4, []).sum())(X), rtol=1e-14
    )


def test_threads_and_recursion() -> None:
    def nested(x: Any, y: Any, depth: int, log: list[Any]) -> Any:
        a = x * 0.5 + y
        b = a * y - x
        log.append(depth)
        if depth:
            a = f(b, y, depth - 1, log)
        return a - b * 0.25

    f, wrong = cut(nested), []
    wanted = nested(X, Y, 0, [])

    def call() -> None:
        for _ in range(200):
            if not np.array_equal(f(X, Y, 0, []), wanted):
                wrong.append(1)

    for _ in range(5):
        f(X, Y, 20, [])
    assert hits(f)
    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_both_are_timed_again_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rent, "is_small", False)
    with trials():
        f = cut(steps)
        f(X, Y, 50, [])
        split_of(f).race.is_over = True  # whether the whole is faster
        for section in split_of(f).sections:
            section.rent.spent = 10.0  # seconds
        f.go_on()
        for _ in range(50):
            f(X, Y, 50, [])
        section = next(s for s in split_of(f).sections if s._is_entered)
        assert section.contest.is_won
        assert section.calls <= section._next_look
        looks, look = [], section._look
        section._look = lambda args: looks.append(section.calls) or look(args)  # type: ignore[func-returns-value,method-assign]
        for _ in range(200):
            f(X, Y, 50, [])
        assert looks
        assert section.calls > 2000


def test_it_is_collected() -> None:
    def make() -> Any:
        def own(x: Any, y: Any, n: int, log: list[Any]) -> Any:
            for k in range(n):
                log.append(k)
                a = x * 0.5 + y
                x = a * y - x
            return x

        f = cut(own)
        f(X, Y, 20, [])
        assert hits(f)
        return weakref.ref(f), weakref.ref(own), weakref.ref(split_of(f))

    found = make()
    for _ in range(100):  # until its program has been written to the disk
        gc.collect()
        if found[0]() is None:
            break
        sleep(0.05)
    assert [known() for known in found] == [None] * 3
