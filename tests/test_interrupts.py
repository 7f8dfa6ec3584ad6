"""An exception that comes from outside, at any moment, leaves nothing behind; neither does a fork."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.autograd.tape.tape import current_tape
from jitml.forks import holding, lock
from jitml.functions import is_seen
from jitml.interrupts import contained, is_own_thread, leave_if_abandoned, preserve, uninterrupted
from jitml.process import Setting, fewer_collections, room_for_nests
from jitml.trace.record.recording import current_trace
from support.alarms import Alarm, alarms

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # some come while objects are freed
]


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    with alarms() as soon:
        yield soon


def state() -> tuple[Any, ...]:
    limits = sys.getrecursionlimit(), gc.get_threshold(), threading.stack_size()
    return current_trace(), *limits, np.geterr(), sys.gettrace()


def positive(x: np.ndarray) -> Any:
    total = 0.0
    for v in x:
        if v > 0:
            total += np.exp(v)
    return total + np.median(x)


def noisy(x: np.ndarray, rng: np.random.Generator) -> Any:
    return x + rng.standard_normal(len(x))


@pytest.mark.parametrize(
    "derive", [jitml.jit, lambda f: jitml.jit(jitml.grad(f)), jitml.grad], ids=["jit", "jit of grad", "grad"]
)
def test_a_first_call_that_is_interrupted_at_any_moment_leaves_nothing(alarm: Callable[[float], None], derive: Any) -> None:
    x, drawn = np.linspace(-1, 1, 9), random.Random(7)
    expected, before, interrupted = derive(positive)(x), state(), 0
    whole = min(timeit.repeat(lambda: derive(positive)(x), number=1, repeat=3))
    for _ in range(20):
        f = derive(positive)
        try:
            alarm(drawn.uniform(1e-4, whole))
            f(x)
            alarm(0)
        except Alarm:
            interrupted += 1
        assert state() == before
        np.testing.assert_array_equal(f(x), expected)
    assert interrupted


def test_generators_are_free_after_an_interruption(alarm: Callable[[float], None]) -> None:
    f, x, drawn = jitml.jit(noisy), np.ones(30), random.Random(1)
    f(x, np.random.default_rng(0))
    for _ in range(100):
        rng = np.random.default_rng(3)
        with pytest.raises(Alarm):
            alarm(drawn.uniform(1e-5, 1e-3))
            while True:
                f(x, rng)
        free: list[bool] = []
        other = threading.Thread(target=lambda lock=rng.bit_generator.lock, free=free: free.append(lock.acquire(timeout=2)))
        other.start()
        other.join()
        assert free == [True]


@pytest.mark.parametrize("make", [lock, lambda: holding(np.random.PCG64(1).lock)], ids=["ours", "NumPy's"])
def test_locks_are_free_after_an_interruption(alarm: Callable[[float], None], make: Callable[[], Any]) -> None:
    """From Python 3.14 on, that of a `with` of a lock in C is not."""
    drawn = random.Random(1)
    for _ in range(100):
        guard, free = make(), []
        with pytest.raises(Alarm):
            alarm(drawn.uniform(1e-5, 1e-4))
            while True:
                with guard, guard:
                    pass
        taken = getattr(guard, "_lock", guard)
        other = threading.Thread(target=lambda taken=taken, free=free: free.append(taken.acquire(blocking=False)))
        other.start()
        other.join()
        assert free == [True]


def test_what_is_contained_gives_back_what_it_has_changed_and_keeps_what_it_has_done() -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)
    before = state()

    def end(error: type[BaseException] | None) -> None:
        room_for_nests().__enter__()
        fewer_collections().__enter__()
        np.seterr(all="raise")
        variable.set(1)
        if error is not None:
            raise error

    with pytest.raises(Alarm):
        contained(lambda: end(Alarm))
    assert state() == before and variable.get() == 0
    contained(lambda: variable.set(2))
    assert variable.get() == 2
    contained(lambda: np.seterr(all="raise"))
    assert state() == before


def test_an_exception_while_the_error_state_of_a_host_call_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def __enter__(self) -> None:
            np.seterr(all="raise")
            raise Alarm

        def __exit__(self, *error: object) -> None:
            """It is not reached."""

    fast, x = jitml.jit(lambda x: np.linalg.eigvals(x * 2.0) + 1.0), np.array([[2.0, 1.0], [1.0, 2.0]])
    expected, before = fast(x), state()
    monkeypatch.setattr("jitml.codegen.llvm.runtime.host.raising_at", lambda source: Interrupted())
    with pytest.raises(Alarm):
        fast(x)
    assert state() == before
    monkeypatch.undo()
    np.testing.assert_array_equal(fast(x), expected)


def added_up(x: np.ndarray) -> Any:
    parts = list(iter(x * x))
    return sum(parts) + len(str(time.time_ns())) * 0.0


@pytest.mark.loose
@pytest.mark.parametrize(
    ("derive", "f", "room"),
    [(jitml.jit, positive, "trace.record.recording"), (jitml.grad, added_up, "autograd.tape.tape")],
    ids=["a trace", "a tape"],
)
def test_an_exception_as_a_recording_ends(monkeypatch: pytest.MonkeyPatch, derive: Any, f: Callable[..., Any], room: str) -> None:
    """Nobody may go on looking at calls: no function would be entered by machine code any more."""

    def interrupted(viewer: object) -> None:
        raise Alarm

    gc.collect()
    assert not is_seen()
    with monkeypatch.context() as patch, pytest.raises(Alarm):
        patch.setattr(f"jitml.{room}.look_away", interrupted)
        derive(f)(np.linspace(-1, 1, 9))
    assert current_trace() is current_tape() is None
    gc.collect()
    assert not is_seen()


def test_a_setting_is_given_back_that_a_thread_of_ours_is_changing_just_then(alarm: Callable[[float], None]) -> None:
    value = [1]

    def write(new: int) -> None:
        value[0] = new
        if new == 10 and is_own_thread():  # until the alarm has come, and who is interrupted waits for this one or does not
            time.sleep(0.2)

    setting = Setting(lambda: value[0], write, lambda own: 10 * own)
    ended = threading.Event()

    def work() -> None:
        try:
            with setting.changed():
                leave_if_abandoned()
        finally:
            ended.set()

    alarm(0.05)
    with pytest.raises(Alarm):
        contained(lambda: uninterrupted(work))
    assert ended.wait(5)
    assert value == [1]


@pytest.mark.parametrize("moment", [10, 1], ids=["entering", "leaving"])
def test_a_setting_is_given_back_whose_change_is_interrupted(moment: int) -> None:
    value, alarms_to_come = [1], 1

    def write(new: int) -> None:
        nonlocal alarms_to_come
        value[0], before = new, value[0]
        if (before, new) == (11 - moment, moment) and alarms_to_come:
            alarms_to_come, value[0] = 0, 10
            raise Alarm

    setting = Setting(lambda: value[0], write, lambda own: 10 * own)
    with pytest.raises(Alarm), setting.changed():
        pass
    assert value == [1] and not alarms_to_come


def test_what_others_keep_for_a_thread_is_given_back() -> None:
    kept = [1]
    preserve(lambda: kept[0], lambda value: kept.__setitem__(0, value))

    def change() -> None:
        kept[0] = 2
        raise Alarm

    with pytest.raises(Alarm):
        contained(change)
    assert kept == [1]


def test_work_of_our_own_threads_goes_on_until_it_asks(alarm: Callable[[float], None]) -> None:
    ended, left = threading.Event(), threading.Event()

    def work() -> None:
        time.sleep(0.2)
        ended.set()
        try:
            leave_if_abandoned()
        except BaseException:
            left.set()
            raise

    with pytest.raises(Alarm):
        alarm(0.02)
        uninterrupted(work)
    assert not ended.is_set()
    assert left.wait(5) and ended.is_set()
    assert uninterrupted(is_own_thread) and not is_own_thread()
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 / 0)


def test_what_is_compiled_first_as_the_process_ends() -> None:
    program = (
        "import atexit, jitml, numpy as np; f = jitml.jit(lambda x: (x * 2).sum()); atexit.register(lambda: print(f(np.ones(3))))"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert ran.stdout == "6.0\n", ran.stderr


def made(k: float) -> Any:
    return jitml.jit(lambda x: np.cos(x).mean(axis=1) * k + np.exp(-x * x).sum(axis=1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_compile_that_are_forked_while_another_thread_does() -> None:
    x, ending = np.ones((4, 5)), threading.Event()

    def compile_on() -> None:
        while not ending.is_set():
            made(time.time())(x)

    made(0.5)(x)
    other = threading.Thread(target=compile_on)
    other.start()
    try:
        for n in range(8):
            child = os.fork()
            if not child:
                signal.alarm(20)
                os._exit(0 if np.isfinite(made(n)(x)).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ending.set()
        other.join()


def test_a_short_campaign() -> None:
    """The whole one is `make interrupts`."""
    program = Path(__file__).parent / "programs" / "interrupts.py"
    counts = ["--exceptions", "25", "--forks", "2", "--starved", "2", "--seed", "3"]
    ran = subprocess.run([sys.executable, str(program), *counts], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_a_processor_that_llvm_does_not_know_is_named() -> None:
    program = "import jitml; jitml.jit(lambda x: x * 2).lower(1.5).compile()"
    environment = {**os.environ, "JITML_CPU": "garbage"}
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 1 and "JITML_CPU='garbage' is no processor that LLVM knows" in ran.stderr


@pytest.mark.parametrize("verify", ["first", "always"])
def test_an_error_that_a_handler_raises_is_not_taken_for_the_functions(verify: str) -> None:
    def late(*args: object) -> None:
        raise TimeoutError("late")

    def endless(x: float) -> float:
        while x > 0:
            x = x * 0.5 + 1
        return x

    before = signal.signal(signal.SIGALRM, late)
    fast = jitml.jit(endless, verify=verify)
    fast(-1.0)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.7, 2)  # the plain function would be interrupted, too
        start = time.perf_counter()
        with warnings.catch_warnings(), pytest.raises(TimeoutError):
            warnings.simplefilter("error")
            jitml.jit(endless, verify=verify)(1.0)
        assert time.perf_counter() - start < 2.5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert fast(-1.0) == -1.0


def unrolled(x: Any) -> Any:
    squares = {str(i): i * i for i in range(2000)}
    for key in squares:
        squares[key] += len(key)
    return x * sum(squares.values())


def inverted(x: Any) -> Any:
    for _ in range(4_000):
        x = np.linalg.inv(x)
    return x


@pytest.mark.parametrize(("f", "warm"), [(unrolled, False), (inverted, True)], ids=["tracing", "host calls"])
def test_what_a_handler_raises_is_the_callers(f: Callable[..., Any], warm: bool) -> None:
    """It was taken for the function's own, which plain Python then ran from its beginning."""

    def late(*args: object) -> None:
        raise TimeoutError("late")

    x = np.eye(9)  # of which the inverse is a call of NumPy
    before = signal.signal(signal.SIGALRM, late)
    try:
        for n in range(1, 6):
            fast = jitml.jit(f, verify="never")
            if warm:
                fast(x)
            signal.setitimer(signal.ITIMER_REAL, 0.004 * n)
            with pytest.raises(TimeoutError, match="late"):
                fast(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
