"""Functions of the user's that a library calls are called by Python: the statement is a break, and does what Python does."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import jitml
from jitml.errors import Cause, UnsupportedError

X = np.array([1.0, 2.0, 3.0])
GAIN = np.array([2.0])
RNG = np.random.default_rng(0)
PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def as_before(v: Any) -> Any:
    return v - GAIN[0]


@program
def initial_value_problem(x: Any) -> Any:
    k = x.sum()

    def slope(t: Any, y: Any) -> Any:
        return -k * y * GAIN[0]

    return scipy.integrate.odeint(slope, x, np.linspace(0, 1, 5), tfirst=True)


@program
def partly_applied(x: Any) -> Any:
    return scipy.integrate.quad(functools.partial(lambda a, t: a * t, x[1]), 0, 1)[0]


@program
def in_a_loop(x: Any) -> Any:
    out = np.zeros(3)
    for i in range(3):
        out[i] = scipy.optimize.brentq(lambda v: v**3 - x[i], 0, 5)  # noqa: B023  # called at once
    return out


@program
def writes_first(x: Any) -> Any:
    x[0] += 1
    y = x[0] * 2
    return scipy.optimize.brentq(lambda v: v - y - np.sum(x), -50, 50), x


@program
def of_a_function_from_outside(x: Any) -> Any:
    return x * scipy.optimize.brentq(as_before, -50, 50)


class Residual:
    def __init__(self) -> None:
        self.gain = GAIN

    def at(self, v: Any) -> Any:
        return v - self.gain[0]

    def __call__(self, v: Any) -> Any:
        return v - 2 * self.gain[0]


RESIDUAL = Residual()


@program
def of_a_method(x: Any) -> Any:
    return x * scipy.optimize.brentq(RESIDUAL.at, -50, 50)


@program
def of_an_object(x: Any) -> Any:
    return x * scipy.optimize.brentq(RESIDUAL, -50, 50)


@program
def counting(x: Any) -> Any:
    n = 0

    def f(v: Any) -> Any:
        nonlocal n
        n += 1
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), n


@program
def appending(x: Any) -> Any:
    history: list[Any] = []

    def f(v: Any) -> Any:
        history.append(v)
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), len(history)


@program
def filling(x: Any) -> Any:
    buffer = np.zeros(1)

    def f(v: Any) -> Any:
        buffer[0] = v - x[0]
        return buffer[0]

    return scipy.optimize.brentq(f, -50, 50), buffer


class Box:
    count = 0


@program
def counting_in_an_object(x: Any) -> Any:
    box = Box()

    def f(v: Any) -> Any:
        box.count += 1
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), box.count


@program
def changed_between(x: Any) -> Any:
    """What is in the object when the program runs is what tracing has left there."""
    box = Box()
    first = scipy.integrate.quad(lambda v: v + box.count, 0, 1)[0]
    box.count = 5
    return first + x, scipy.integrate.quad(lambda v: v + box.count, 0, 1)[0]


@program
def going_on_with_an_iterator(x: Any) -> Any:
    numbers = itertools.count()
    return scipy.optimize.brentq(lambda v: v - x[0] + 0 * next(numbers), -50, 50), next(numbers)


@program
def printing(x: Any) -> Any:
    def f(v: Any) -> Any:
        print(v)
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50)


@program
def drawing(x: Any) -> Any:
    return scipy.optimize.brentq(lambda v: v - x[0] + 0 * RNG.random(), -50, 50)


@program
def drawing_as_ever(x: Any) -> Any:
    return scipy.optimize.brentq(lambda v: v - x[0] + 0 * np.random.random(), -50, 50)


@program
def written_before(x: Any) -> Any:
    GAIN[0] = x[0]
    return scipy.optimize.brentq(lambda v: v - GAIN[0], -50, 50)


@program
def written_in_a_loop(x: Any) -> Any:
    y = 0.0
    for i in range(3):
        y += scipy.optimize.brentq(as_before, -50, 50)
        GAIN[0] = x[i]
    return y


@pytest.mark.loose
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_agrees(function: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]) -> None:
    compiled = jitml.jit(function)
    for x in (X, X + 1, X[::-1].copy(), X):
        answers = []
        for call in (function, compiled):
            GAIN[0], RNG.bit_generator.state = x[1], np.random.default_rng(3).bit_generator.state
            np.random.seed(0)
            given = x.copy()
            answers.append((call(given), given, GAIN.copy(), RNG.random(), np.random.random(), capsys.readouterr().out))
        np.testing.assert_equal(answers[1], answers[0])


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_refused_if_all_is_to_be_compiled(function: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"is given .*, (a function|an object) that Python alone can use") as caught:
        jitml.jit(function)(X.copy())
    assert caught.value.cause is Cause.LIBRARY
