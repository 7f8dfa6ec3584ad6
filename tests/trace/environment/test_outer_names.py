"""Global and nonlocal names that a function assigns, which Python does: whoever loads them sees them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import jitml
from jitml.errors import UnsupportedError

pytestmark = [
    pytest.mark.loose,
    pytest.mark.filterwarnings("error::jitml.errors.WrongResultWarning", "ignore::RuntimeWarning"),
]
Array = np.ndarray[Any, Any]
HERE: Any = sys.modules[__name__]
step: Any = 0
best: Any = None
W: Any = np.zeros(2)
rate: Any = 0.5
log: Any = []


def reset() -> None:
    global step, best, W, rate, log
    step, best, W, rate, log = 0, None, np.zeros(2), 0.5, []


def state() -> str:
    return repr((step, best, W, rate, log))


def ten_times() -> Any:
    return step * 10


def counts(x: Array) -> Any:
    global step
    step += 1
    return x * step, ten_times(), HERE.step


def keeps_the_best(x: Array) -> Any:
    global best
    if best is None or x.sum() > best:
        best = x.sum()
    return best


def in_place(x: Array) -> Any:
    global W, rate
    before = W
    W += x.sum()
    rate *= 0.5
    return W * rate, before is W


def several(x: Array) -> Any:
    global W, step
    W, step = x * 2, step + 1
    return W, step


def by_a_helper(x: Array) -> Any:
    global best
    for n in range(3):
        best = x * n
    advance()
    advance()
    return best, step


def advance() -> None:
    global step
    step = step + 1


def inside(x: Array) -> Any:
    def inner() -> Any:
        global step
        step += 2
        return step

    return inner() * x + inner(), [step * v for v in x]


def containers(x: Array) -> Any:
    global log
    log = [x, step]
    log.append({"a": x[0]})
    return len(log), log[0]


def and_back(x: Array) -> Any:
    global step
    kept = step
    step = x.sum()
    y = ten_times()
    step = kept
    return y


def data_decide(x: Array) -> Any:
    global step
    if x[0] > 2.0:
        step += 1
    return x * step


def in_a_long_loop(x: Array) -> Any:
    global rate
    for n in range(20):
        rate = rate * 0.5 + x[n % 2]
    return rate


def fails(x: Array) -> Any:
    global step
    step += 1
    return x[step]


FUNCTIONS = [
    counts, keeps_the_best, in_place, several, by_a_helper, inside, containers, and_back, data_decide, in_a_long_loop, fails,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_globals_are_bound(function: Callable[..., Any]) -> None:
    histories = []
    f = jitml.jit(function)
    for g in (function, f):
        reset()
        history: list[str] = []
        for v in (1.0, 3.0, 2.0, 5.0, 5.0):
            try:
                history.append(repr(g(np.ones(2) * v)))
            except IndexError as error:
                history.append(str(error))
            history.append(state())
        histories.append(history)
    reset()
    assert histories[0] == histories[1]


def test_a_counter_counts() -> None:
    reset()
    f = jitml.jit(counts)
    for _ in range(9):
        f(np.ones(2))
    assert step == 9
    reset()


def test_nonlocals_are_bound() -> None:
    def made() -> tuple[Any, Any]:
        n, best, kept = 0, None, np.zeros(2)

        def count(x: Array) -> Any:
            nonlocal n, best, kept
            n += 1
            kept = kept + x
            if best is None or x[0] > best:
                best = x[0]
            return x * n, best

        return count, lambda: (n, best, kept)

    histories = []
    for wrap in (lambda f: f, jitml.jit):
        function, look = made()
        f = wrap(function)
        histories.append([repr((f(np.ones(2) * v), look())) for v in (1.0, 2.0, 0.5, 4.0)])
    assert histories[0] == histories[1]


class Asked:
    def __lt__(self, other: Any) -> bool:
        return bool(step < 5)


ASKED = [Asked(), Asked()]


def read_unseen(x: Array) -> Any:
    global step
    step += 10
    return x * len(sorted(ASKED))


def differentiated(x: Array) -> Any:
    def inner(y: Array) -> Any:
        global best
        best = y.sum()
        return best * 2

    return jitml.grad(inner)(x)


def read_by_a_callback(x: Array) -> Any:
    global step
    step += 5
    return scipy.integrate.quad(lambda t: t * step, 0, 1)[0] * x


class Counter:
    n: Any = 1


def a_class_read_by_a_callback(x: Array) -> Any:
    Counter.n += 1
    return scipy.integrate.quad(lambda t: t * Counter.n, 0, 1)[0] * x


def a_module_read_by_a_callback(x: Array) -> Any:
    global step
    step += 1
    return scipy.integrate.quad(lambda t: t * HERE.step, 0, 1)[0] * x


def assigned_by_a_callback(x: Array) -> Any:
    return scipy.integrate.quad(assigns, 0, 1)[0] * x


def assigns(t: Any) -> Any:
    global step
    step += 1
    return t * t


def test_what_others_would_not_see_is_refused() -> None:
    reset()
    with pytest.raises(UnsupportedError, match="assigns the global or nonlocal name"):
        jitml.jit(differentiated, strict=True)(np.ones(2))
    assert step == 0 and best is None


@pytest.mark.loose
@pytest.mark.parametrize(
    "function",
    [read_unseen, read_by_a_callback, a_class_read_by_a_callback, a_module_read_by_a_callback, assigned_by_a_callback],
)
def test_what_a_library_calls_sees_all_that_has_been_changed(function: Callable[..., Any]) -> None:
    told = []
    for call in (function, jitml.jit(function)):
        reset()
        Counter.n = 1
        told.append([(call(np.ones(2)).tolist(), step, Counter.n) for _ in range(3)])
    assert told[0] == told[1]
