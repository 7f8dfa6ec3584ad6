"""What a signal's handler raises while a function is traced goes to the caller, and is not taken for the function's own."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


HANDLED = -1.0


class Late(Exception):
    pass


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def work(x: Any) -> Any:
    s = 0.0
    for i in range(30):
        s = s + i * x[i % 3]
        y = [s] * (i % 3)
        x = x + len(y)
    return s


def plain(x: Any) -> Any:
    return work(x)


def handles_all(x: Any) -> Any:
    try:
        return work(x)
    except Exception:
        return HANDLED


def handles_it(x: Any) -> Any:
    try:
        return work(x)
    except Late:
        return HANDLED


def handles_another(x: Any) -> Any:
    try:
        return work(x)
    except ValueError:
        return HANDLED


@pytest.mark.parametrize("f", [plain, handles_all, handles_it, handles_another])
@pytest.mark.loose
def test_the_next_call_is_as_if_nothing_had_been(f: Callable[[Any], Any]) -> None:
    x = np.array([1.0, 2.0, 3.0])
    expected = f(x)
    late = 0
    for milliseconds in (2, 4, 7):
        fast = jitml.jit(f, verify="never")
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
        try:
            got = fast(x)
        except Late:
            late += 1
        else:
            late += (is_handled := got == HANDLED and f in (handles_all, handles_it))  # it has come in the `try`
            assert is_handled or np.isclose(got, expected)
        signal.setitimer(signal.ITIMER_REAL, 0)
        np.testing.assert_allclose(fast(x), expected)
    assert late
