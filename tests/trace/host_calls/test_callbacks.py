"""Functions made inside a jitted one that a library calls: they run as written, on what they close over at each call."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

import jitml
from jitml.errors import UnsupportedError

X = np.array([1.0, 2.0, 3.0])
GAIN = np.array([2.0])
RNG = np.random.default_rng(0)
PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


@program
def initial_value_problem(x: Any) -> Any:
    k = x.sum()

    def slope(t: Any, y: Any) -> Any:
        return -k * y * GAIN[0]

    return scipy.integrate.odeint(slope, x, np.linspace(0, 1, 5), tfirst=True)


@program
def has_attributes(x: Any) -> Any:
    """SciPy looks at them."""

    def falls(t: Any, y: Any) -> Any:
        return y[0] - x[0] / 2

    falls.terminal = True  # type: ignore[attr-defined]
    found = scipy.integrate.solve_ivp(lambda t, y: -y, (0, 3), x, events=falls)
    return found.t[-1], found.y[:, -1]


@program
def calls_another(x: Any) -> Any:
    def scaled(v: Any) -> Any:
        return v * x

    def cost(v: Any) -> Any:
        return ((scaled(v) - 1) ** 2).sum()

    found = scipy.optimize.minimize(cost, np.zeros(3))
    return found.x, found.fun


@program
def on_several_lines(x: Any) -> Any:
    def cost(v: Any) -> Any:
        if v > 5:
            return v * v
        return min(
            (v - x[0]) ** 2,
            (v + 30) ** 2,
        )

    return scipy.optimize.minimize_scalar(cost, (0, 4)).x


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
def in_a_comprehension(x: Any) -> Any:
    return np.array([scipy.integrate.quad(lambda t: np.sin(t * v), 0, 1)[0] for v in x])  # noqa: B023  # called at once


@program
def with_defaults(x: Any, scale: float = 2.0) -> Any:
    def f(v: Any, s: Any = scale, *, shift: Any = x[1]) -> Any:
        return v**2 - s * x[0] - shift

    return scipy.optimize.brentq(f, 0, 10)


@program
def of_containers(x: Any) -> Any:
    d = {"a": x, "l": [x[0], 2.0]}
    return scipy.optimize.brentq(lambda v: v - d["a"][1] - d["l"][0], -50, 50)


@program
def bound_anew(x: Any) -> Any:
    y = x * 2
    f = lambda v: v - y[0]  # noqa: E731
    y = x * 3
    return scipy.optimize.brentq(f, -50, 50)


@program
def two_on_a_line(x: Any) -> Any:
    return scipy.optimize.least_squares(lambda p: p - x, np.zeros(3), jac=lambda p: np.eye(3)).x


@program
def recursive(x: Any) -> Any:
    def factorial(n: int) -> int:
        return 1 if n <= 1 else n * factorial(n - 1)

    return scipy.optimize.brentq(lambda v: v - factorial(3) * x[0], -50, 50)


@program
def writes_first(x: Any) -> Any:
    x[0] += 1
    y = x[0] * 2
    return scipy.optimize.brentq(lambda v: v - y - np.sum(x), -50, 50), x


@program
def raising(x: Any) -> Any:
    def f(v: Any) -> Any:
        if x[0] > 100:
            raise ValueError("too large")
        return v - x[0]

    return scipy.optimize.brentq(f, -500, 500)


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_agrees(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function)
    for x in (X, X + 1, X[::-1].copy()):
        theirs, ours = function(x.copy()), compiled(x.copy())
        assert type(ours) is type(theirs)
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (ours, theirs)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert len(compiled.variants) == 1
    assert not any(variant.replays for variant in compiled.variants)


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


def of_a_method(x: Any) -> Any:
    return x * scipy.optimize.brentq(RESIDUAL.at, -50, 50)


def of_an_object(x: Any) -> Any:
    return x * scipy.optimize.brentq(RESIDUAL, -50, 50)


FROM_OUTSIDE = [initial_value_problem, of_a_function_from_outside, of_a_method, of_an_object]


@pytest.mark.parametrize("function", FROM_OUTSIDE, ids=lambda f: f.__name__)
def test_what_it_reads_elsewhere_is_read_at_each_call(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function)
    for gain in (2.0, 3.0):
        GAIN[0] = gain
        np.testing.assert_allclose(compiled(X), function(X), rtol=1e-12)
    assert len(compiled.variants) == 1


def test_its_exception_is_raised() -> None:
    with pytest.raises(ValueError, match="too large"):
        jitml.jit(raising)(X + 200)


def counting(x: Any) -> Any:
    n = 0

    def f(v: Any) -> Any:
        nonlocal n
        n += 1
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), n


def appending(x: Any) -> Any:
    history: list[Any] = []

    def f(v: Any) -> Any:
        history.append(v)
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), len(history)


def filling(x: Any) -> Any:
    buffer = np.zeros(1)

    def f(v: Any) -> Any:
        buffer[0] = v - x[0]
        return buffer[0]

    return scipy.optimize.brentq(f, -50, 50), buffer


class Box:
    count = 0


def counting_in_an_object(x: Any) -> Any:
    box = Box()

    def f(v: Any) -> Any:
        box.count += 1
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), box.count


def changed_between(x: Any) -> Any:
    """What is in the object when the program runs is what tracing has left there."""
    box = Box()
    first = scipy.integrate.quad(lambda v: v + box.count, 0, 1)[0]
    box.count = 5
    return first + x, scipy.integrate.quad(lambda v: v + box.count, 0, 1)[0]


def test_an_object_of_its_own_that_changes_between_calls() -> None:
    compiled = jitml.jit(changed_between)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X)[0], changed_between(X)[0])


def counting_in_an_attribute(x: Any) -> Any:
    def f(v: Any) -> Any:
        f.count += 1  # type: ignore[attr-defined]
        return v - x[0]

    f.count = 0  # type: ignore[attr-defined]
    return scipy.optimize.brentq(f, -50, 50), f.count  # type: ignore[attr-defined]


def noting_in_a_set(x: Any) -> Any:
    seen = set[Any]()

    def f(v: Any) -> Any:
        seen.add(v)
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50), len(seen)


def going_on_with_an_iterator(x: Any) -> Any:
    numbers = itertools.count()
    return scipy.optimize.brentq(lambda v: v - x[0] + 0 * next(numbers), -50, 50), next(numbers)


def printing(x: Any) -> Any:
    def f(v: Any) -> Any:
        print(v)
        return v - x[0]

    return scipy.optimize.brentq(f, -50, 50)


def drawing(x: Any) -> Any:
    return scipy.optimize.brentq(lambda v: v - x[0] + 0 * RNG.random(), -50, 50)


def drawing_as_ever(x: Any) -> Any:
    return scipy.optimize.brentq(lambda v: v - x[0] + 0 * np.random.random(), -50, 50)


def written_before(x: Any) -> Any:
    GAIN[0] = x[0]
    return scipy.optimize.brentq(lambda v: v - GAIN[0], -50, 50)


class Model:
    gain = 1.0


MODEL = Model()


def bound_before(x: Any) -> Any:
    MODEL.gain = x[0]
    return scipy.optimize.brentq(lambda v: v - MODEL.gain, -50, 50)


def as_before(v: Any) -> Any:
    return v - GAIN[0]


def written_before_a_function_from_outside(x: Any) -> Any:
    GAIN[0] = x[0]
    return scipy.optimize.brentq(as_before, -50, 50)


def written_in_a_loop(x: Any) -> Any:
    y = 0.0
    for i in range(3):
        y += scipy.optimize.brentq(as_before, -50, 50)
        GAIN[0] = x[i]
    return y


def drawing_itself(x: Any) -> Any:
    return scipy.stats.norm.rvs(x)


def drawing_itself_later(x: Any) -> Any:
    return scipy.stats.norm(loc=x).rvs()


REFUSED = {
    **dict.fromkeys((drawing_itself, drawing_itself_later), "rvs draws random numbers, or calls a function that does"),
    **dict.fromkeys(
        (written_before, bound_before, written_before_a_function_from_outside, written_in_a_loop),
        "brentq is given a function that may read what the jitted one has changed",
    ),
    counting: "f is called by a library, and binds a name of the function around it",
    appending: "brentq calls a function that changes a list or a dict of the function around it",
    filling: "brentq calls a function that writes into an array of the function around it",
    counting_in_an_object: "brentq calls a function that uses a Box of the function around it, which changes",
    counting_in_an_attribute: "brentq calls a function that uses a function of the function around it, which changes",
    noting_in_a_set: "brentq calls a function that uses a set of the function around it, which changes",
    going_on_with_an_iterator: "<lambda> is called by a library, and has an iterator to go on with",
    printing: "f is called by a library, and does what others see",
    drawing: "<lambda> is called by a library, and draws random numbers",
    drawing_as_ever: "brentq draws random numbers, or calls a function that does",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_does_more_than_to_compute_is_refused(function: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]) -> None:
    before = np.random.get_state()[2], random.getstate(), RNG.bit_generator.state
    with pytest.raises(UnsupportedError, match=REFUSED[function]):
        jitml.jit(function)(X)
    assert (np.random.get_state()[2], random.getstate(), RNG.bit_generator.state) == before
    assert not capsys.readouterr().out
