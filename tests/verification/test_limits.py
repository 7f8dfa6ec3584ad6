"""A function is stopped after some time, between two of its own steps, and nothing comes afterwards."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.verification.test_constants import ask_instead

import jitml
from jitml.config import CONFIG
from jitml.errors import WrongResultWarning
from jitml.verification import time_limits, verification
from jitml.verification.time_limits import OutOfTime, limited


def forever() -> None:
    while True:
        pass


def in_numpy() -> None:
    while True:
        np.median(np.arange(1000.0))


def stubborn() -> None:
    stops = 0
    while stops < 2:
        try:
            forever()
        except BaseException:
            stops += 1
    forever()


def in_a_library() -> None:
    threading.Event().wait()


@pytest.mark.parametrize("function", [forever, in_numpy, in_a_library])
def test_what_takes_too_long_is_stopped(function: Callable[[], None]) -> None:
    threads = threading.active_count()
    began = time.monotonic()
    if function is in_a_library:  # where only a lock would end it
        function = lambda: time.sleep(0.3)  # noqa: E731
    with pytest.raises(OutOfTime):
        limited(function, 0.1)
    assert 0.05 < time.monotonic() - began < 5
    assert threading.active_count() == threads


def test_one_that_catches_everything_is_stopped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.verification.time_limits._AGAIN", 0.05)
    with pytest.raises(OutOfTime):
        limited(stubborn, 0.05)


def test_nothing_comes_after_the_end() -> None:
    """Limits about as long as what they limit: the exception comes inside, or not at all."""
    stopped = 0
    for n in range(300):
        try:
            limited(lambda: time.sleep(0.001), 0.0005 + n * 4e-6)
        except OutOfTime:
            stopped += 1
        for _ in range(200):
            pass
    assert stopped < 300
    lines = []
    sys.settrace(lambda frame, event, arg: lines.append(event))
    try:
        limited(lambda: None, None)
    finally:
        sys.settrace(None)
    assert lines  # nothing keeps the interpreter from tracing


def stopped_after(seconds: float) -> float:
    began = time.monotonic()
    with pytest.raises(OutOfTime):
        limited(forever, seconds)
    return time.monotonic() - began


def test_threads_have_limits_of_their_own() -> None:
    """The shorter ones come later, when the thread that watches sleeps for longer."""
    took: dict[float, float] = {}
    threads = [threading.Thread(target=lambda s=s: took.setdefault(s, stopped_after(s))) for s in (0.9, 0.5, 0.3, 0.1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(took, key=took.__getitem__) == sorted(took)
    assert len(took) == 4 and took[0.1] < 0.9


def test_who_watches_goes_when_there_is_nothing_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "_IDLE", 0.05)
    limited(lambda: time.sleep(0.1), 1.0)
    until = time.monotonic() + 5
    while time_limits._WATCH.thread in sys._current_frames() and time.monotonic() < until:
        time.sleep(0.01)
    assert time_limits._WATCH.thread not in sys._current_frames()
    assert not time_limits._WATCH.limits
    assert stopped_after(0.1) < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_the_child_of_a_fork_has_limits() -> None:
    stopped_after(0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are other threads
        child = os.fork()
    if not child:
        try:
            os._exit(0 if stopped_after(0.05) < 5 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_results_and_exceptions_come_out() -> None:
    assert limited(lambda: 3, 1.0) == limited(lambda: 3, None) == 3
    with pytest.raises(ZeroDivisionError):
        limited(lambda: 1 // 0, 1.0)


def collatz(x: Any, n: int) -> Any:
    steps = 0
    for _ in range(n):
        k = 27
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
    x[0] += steps
    return x.sum() + steps


def with_limit(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(verification, "CONFIG", type("", (), {"verify_seconds": seconds, "verify_bytes": CONFIG.verify_bytes}))


@pytest.mark.parametrize("size", [4, 10_000])
def test_a_first_call_does_not_wait_for_slow_python(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    with_limit(monkeypatch, 0.2)
    f = jitml.jit(collatz, verify="first")
    x = np.zeros(size)
    assert f(x, 300_000) == 300_000 * 111 * 2
    assert x[0] == 300_000 * 111
    assert f.variants[0].checked == "not checked: the plain function had not ended after 0.2 s"
    assert f(x, 300_000) == 300_000 * 111 * 3


def test_what_it_has_changed_by_then_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with_limit(monkeypatch, 0.1)
    f = jitml.jit(lambda x, seen: seen.append(x.sum()), verify="first")
    f(np.ones(3), seen := [1.0])
    f = jitml.jit(lambda x, seen: seen.append(x.sum()), verify="first")
    ask_instead(f, endless)
    f(np.ones(3), seen)
    assert seen == [1.0, 3.0, 3.0]


def endless(x: Any, seen: list[Any]) -> None:
    try:
        while True:
            seen.append(0)
            x[:] = 7
    finally:
        seen.clear()


def test_later_calls_are_not_checked_if_the_first_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def slow(x: Any, n: int) -> Any:
        return x * n

    def called(x: Any, n: int) -> Any:
        calls.append(n)
        time.sleep(0.15)
        return x * n

    f = jitml.jit(slow, verify="first")
    ask_instead(f, called)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WrongResultWarning)
        for n in (2, 3, 4):
            f(np.ones(3), n)
    assert len(calls) <= 2
