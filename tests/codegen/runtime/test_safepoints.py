"""Long compiled programs end soon after a signal whose handler raises, wherever they are; short ones never look."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.ir.conventions import LOOK
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.codegen.llvm.runtime.cpu import usable_cores
from support.alarms import Alarm, alarms

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer") or not native_calls(), reason="needs signals and native calls")

SOON = 0.2 + (0.3 if usable_cores() < 4 else 0.1)  # 0.2 s is what a machine needs that has nothing else to do


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    with alarms() as soon:
        yield soon


def counting(x: Any, n: Any) -> Any:
    while n > 0:
        x, n = x * 0.5 + 1.0, n - 1.0
    return x


def powers(x: Any, n: Any) -> Any:
    """A loop between kernels and calls of BLAS."""
    y = x
    while n > 0:
        y, n = np.tanh(y @ x), n - 1.0
    return y


def recurrence(x: Any, n: Any) -> Any:
    """Iterations too short for a look at each."""
    s = 0.0
    for _ in range(int(n)):
        for v in x:
            s = s * 0.5 + v
    return s


def nested(x: Any, n: Any) -> Any:
    """Short `while`s in a loop that is long."""
    s = 0.0
    for k in range(int(n)):
        v = float(k % 7) + x[0]
        while v > 1.0:
            v = v * 0.5
        s += v
    return s


def counted(x: Any, n: Any) -> Any:
    """A `while` that looks only where its counter has far to go."""
    s, k, last = 0.0, 0, int(n)
    while k < last:
        s, k = s * 0.5 + x[0], k + 1
    return s


def rows(x: Any, n: Any) -> Any:
    """One kernel, whose rows threads share."""
    out = np.empty(len(x))
    for i in range(len(x)):
        s = 0.0
        for k in range(int(n)):
            s = s * 0.5 + np.sin(x[i] + k)
        out[i] = s
    return out


LONG: dict[str, tuple[Callable[..., Any], Any]] = {
    "while": (counting, 1.0),
    "region": (powers, np.full((3, 3), 0.1)),
    "recurrence": (recurrence, np.ones(1000)),
    "whiles in a loop": (nested, np.ones(3)),
    "counted": (counted, np.ones(3)),
    "rows": (rows, np.ones(3)),
    "gradient": (jitml.grad(lambda x, n: counting(x, n) ** 2), 1.0),
}


@pytest.mark.parametrize(("f", "x"), LONG.values(), ids=LONG)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_ends_soon(alarm: Callable[[float], None], f: Callable[..., Any], x: Any, threads: int) -> None:
    fast = jitml.jit(f, threads=threads)
    expected = fast(x, 2.0)
    fast(x, 3.0)
    alarm(0.1)
    start = time.perf_counter()
    with pytest.raises(Alarm):
        fast(x, 4e9)
    assert time.perf_counter() - start < 0.1 + SOON
    np.testing.assert_array_equal(fast(x, 2.0), expected)


def test_a_long_kernel_ends_soon_in_all_threads(alarm: Callable[[float], None]) -> None:
    def f(x: Any) -> Any:
        return sum(np.sin(x * k) for k in range(1, 60)).sum()

    x = np.linspace(0, 1, 4_000_000)
    fast = jitml.jit(f, threads=2)
    fast(x[:10]), fast(x[:20])
    start = time.perf_counter()
    expected = fast(x)
    whole = time.perf_counter() - start
    alarm(0.05)
    start = time.perf_counter()
    with pytest.raises(Alarm):
        while True:
            fast(x)
    assert time.perf_counter() - start < max(0.05 + SOON, whole / 2)
    assert fast(x) == expected


def test_large_products_end_between_pieces(alarm: Callable[[float], None]) -> None:
    x = np.ones((3000, 3000))
    fast = jitml.jit(lambda x: x @ x @ x @ x, threads=1)
    lowered = fast.lower(x)
    assert LOOK in lowered.llvm
    executable = lowered.compile()
    alarm(0.1)
    start = time.perf_counter()
    with pytest.raises(Alarm):
        executable(x)
    assert time.perf_counter() - start < 0.1 + SOON + 0.3


def test_what_may_be_half_written_is_named(alarm: Callable[[float], None]) -> None:
    def fill(into: Any, n: Any) -> None:
        for i in range(len(into)):
            into[i] = counting(1.0, n)

    fast, x = jitml.jit(fill, threads=1), np.zeros(3)
    fast(x, 2.0), fast(x, 3.0)
    alarm(0.05)
    with pytest.raises(Alarm) as caught:
        fast(x, 4e9)
    assert "was writing into: some" in caught.value.__notes__[0]
    alarm(0.05)
    with pytest.raises(Alarm) as caught:
        jitml.jit(counting)(1.0, 4e9)
    assert not hasattr(caught.value, "__notes__")


def test_handlers_run_and_the_program_goes_on_unless_they_raise() -> None:
    heard: list[float] = []
    fast = jitml.jit(counting)
    expected = fast(1.0, 3e7)
    before = signal.signal(signal.SIGALRM, lambda *args: heard.append(fast(1.0, 2.0)))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert fast(1.0, 3e7) == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard == [1.75]


def test_an_exception_from_another_thread_ends_a_threads_loop_and_no_other() -> None:
    fast, ended = jitml.jit(counting), threading.Event()
    fast(1.0, 2.0)

    def run() -> None:
        try:
            fast(1.0, 1e12)
        except Alarm:
            ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Alarm))
    assert fast(1.0, 2.0) == 1.75
    assert ended.wait(2)
    thread.join()


def test_short_programs_do_not_look() -> None:
    x = np.ones((50, 50))
    for f in (lambda x: np.exp(x) @ x, lambda x: x.sum(axis=0), np.cumsum):
        assert LOOK not in jitml.jit(f).lower(x).llvm
    assert LOOK in jitml.jit(counting).lower(1.0, 2.0).llvm


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_loops_of_a_child_end_soon(alarm: Callable[[float], None]) -> None:
    fast = jitml.jit(counting)
    fast(1.0, 1e6)
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGALRM))
            alarm(0.05)
            fast(1.0, 1e12)
        except Alarm:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
