"""Fault injection: exceptions from outside, forks and want, at drawn moments; after each the next call is as if nothing had been.

    python tests/programs/interrupts.py [--exceptions 2000] [--forks 100] [--starved 100] [--seed 0]

Exceptions come from a signal's handler, or from another thread, over first and later calls of functions that loop, branch, call
libraries, draw random numbers, and of gradients.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("JITML_TRIAL", "0")  # what is compiled only when it has paid would run as Python here

import jitml
from jitml.dispatch.renting import RUNNING
from jitml.trace.record.recording import current_trace

Array = np.ndarray[Any, Any]


class Alarm(BaseException):
    """What comes from outside."""


def products(x: Array) -> Any:
    z = np.exp(x) @ x.T
    for k in range(10):
        z = z * 0.5 + k
    return z.sum(axis=0)


def branches(x: Array) -> Any:
    total = 0.0
    for row in x:
        if row[0] > 0:
            total += np.median(row)
        else:
            total -= 1
    return total


def masked(x: Array) -> Any:
    return x[x > 0].sum() + np.linalg.det(x @ x.T)


def looping(x: Array) -> Any:
    n, s = 3e5, 1.0
    while n > 0:
        s, n = s * 0.5 + x[0, 0], n - 1.0
    return s


def drawing(x: Array, rng: np.random.Generator) -> Any:
    return x + rng.standard_normal(x.shape)


def slope(x: Array) -> Any:
    return jitml.grad(lambda y: (np.sin(y) * y).sum())(x)


def in_sections(x: Array) -> Any:
    for n in range(6):
        SEEN[:] = [id(SEEN), n]
        x = np.sin(x) + 0.1
    return x


SEEN: list[int] = []
X = np.random.default_rng(5).normal(size=(4, 4))
FUNCTIONS: tuple[Callable[..., Any], ...] = (products, branches, masked, looping, drawing, slope, in_sections)


def arguments(f: Callable[..., Any]) -> tuple[Any, ...]:
    return (X.copy(), np.random.default_rng(7)) if f is drawing else (X.copy(),)


EXPECTED = {f: f(*arguments(f)) for f in FUNCTIONS}


def state() -> tuple[Any, ...]:
    return (
        RUNNING.level,
        current_trace(),
        sys.getrecursionlimit(),
        gc.get_threshold(),
        np.geterr(),
        sys.gettrace(),
        threading.stack_size(),
    )


def check(f: Callable[..., Any], fast: Callable[..., Any], before: tuple[Any, ...]) -> str:
    """What is not as if nothing had been, after an exception; empty if all is."""
    if state() != before:
        return f"{state()} where there was {before}"
    answers: list[Any] = []
    other = threading.Thread(target=lambda: answers.append(fast(*arguments(f))), daemon=True)
    other.start()
    other.join(30)
    if not answers:
        return "another thread hangs, or fails"
    return "" if np.allclose(answers[0], EXPECTED[f]) else f"{answers[0]} where {EXPECTED[f]} is right"


def exceptions(count: int, drawn: random.Random) -> list[str]:
    """Alarms in this thread by a signal; every fifth in another one."""

    def raise_alarm(*args: object) -> None:
        raise Alarm

    known = signal.signal(signal.SIGALRM, raise_alarm)
    found: list[str] = []
    try:
        for n in range(count):
            before = state()
            f = drawn.choice(FUNCTIONS)
            fast = jitml.jit(f, strict=False)
            delay = drawn.choice([drawn.uniform(1e-5, 2e-3), drawn.uniform(1e-4, 0.1)])
            (_in_thread if n % 5 == 4 else _here)(fast, f, delay)
            if problem := check(f, fast, before):
                found.append(f"exception {n}, {f.__name__} after {delay:.5f} s: {problem}")
    finally:
        signal.signal(signal.SIGALRM, known)
    return found


def _here(fast: Callable[..., Any], f: Callable[..., Any], delay: float) -> None:
    calls = arguments(f), arguments(f)  # an interrupted SeedSequence leaves NumPy's error state as it needs it
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            for given in calls:
                fast(*given)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        return


def _in_thread(fast: Callable[..., Any], f: Callable[..., Any], delay: float) -> None:
    given = arguments(f)

    def run() -> None:
        try:
            fast(*given)
        except Alarm:
            return

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(delay)
    if thread.is_alive():  # else another one may have its number
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Alarm))
    thread.join()


def scaled(k: float) -> Callable[[Array], Any]:
    return lambda x: np.cos(x).mean() * k


def forks(count: int) -> list[str]:
    """Children that compile, forked while another thread does."""
    found, ending = [], threading.Event()

    def compile_on() -> None:
        while not ending.is_set():
            jitml.jit(scaled(time.time()))(X)

    other = threading.Thread(target=compile_on)
    other.start()
    for n in range(count):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)
            os._exit(0 if np.allclose(jitml.jit(masked)(X), EXPECTED[masked]) else 1)
        if status := os.waitpid(child, 0)[1]:
            found.append(f"child {n} of a fork ended with {status}")
    ending.set()
    other.join()
    return found


_STARVED = """
import resource, sys
import numpy as np
from jitml import jit
def small(x):
    return np.exp(x).sum(axis=0) * 2
def product(x):
    return np.exp(-x) @ x
def long(x):
    for k in range(100):
        x = np.sin(x) * 0.25 + np.maximum(x[::-1], k) * 0.25
    return x
what, much, f = sys.argv[1], int(sys.argv[2]), globals()[sys.argv[3]]
x = np.ones((60, 60))
expected = f(x)
if what == "memory":
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + much, resource.RLIM_INFINITY))
else:
    resource.setrlimit(getattr(resource, what), (much, resource.getrlimit(getattr(resource, what))[1]))
assert np.allclose(jit(f)(x), expected)
"""


def starved(count: int, drawn: random.Random) -> list[str]:
    """Children without memory, threads or files: they answer, if need be as plain Python."""
    found = []
    for n in range(count):
        memory = "memory", drawn.choice([drawn.randrange(1 << 20, 600 << 20), drawn.randrange(250 << 20, 350 << 20)])
        what, much = drawn.choice([memory, memory, memory, ("RLIMIT_NPROC", 1), ("RLIMIT_NOFILE", 3)])
        program = drawn.choice(["small", "product", "long"])
        if problem := starve(what, much, program):
            found.append(f"starved child {n} ({program}, {what} {much}): {problem}")
    return found


def starve(what: str, much: int, program: str) -> str:
    """How a child ended that has so much of something, unless well."""
    command = [sys.executable, "-c", _STARVED, what, str(much), program]
    try:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "it hung"
    return f"it ended with {ran.returncode}: {ran.stderr[-300:]}" if ran.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("exceptions", 2000), ("forks", 100), ("starved", 100), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    drawn = random.Random(asked.seed)
    found = [*exceptions(asked.exceptions, drawn), *forks(asked.forks), *starved(asked.starved, drawn)]
    print("\n".join(found))
    print(f"{asked.exceptions} exceptions, {asked.forks} forks, {asked.starved} starved children: {len(found)} left something")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
