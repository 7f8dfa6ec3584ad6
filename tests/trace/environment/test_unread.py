"""Functions without source: they run as plain Python, unless they can only compute; nothing in them is frozen."""

from __future__ import annotations

import itertools
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UncompiledWarning
from sections.forced_breaks import no_trials

X = np.array([1.0, 2.0])


class Noisy:
    def __mul__(self, other: Any) -> Any:
        return random.random() * other


def made(text: str, **names: Any) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np, "random": random, "time": time, "W": np.array([2.0, 3.0]), "k": 2, **names}
    exec(text, space)
    return space["f"]


FORMULAS = {
    "ufuncs": "f = lambda x: np.exp(-x) * 2 + np.maximum(x, 1.0)",
    "arrays": "f = lambda x: x * W + W[0] - k",
    "a tuple": "f = lambda x: (x + 1, x[0], x[::-1])",
    "methods": "f = lambda x: x.sum() / x.size + x.T",
    "in its scope": "def f(x, y=W):\n    z = x * y\n    z += 1\n    return z > 2",
    "one calls another": "g = lambda x: np.sin(x)\nf = lambda x: g(x) * g(W)",
    "by its own name": "exp = np.exp\nf = lambda x: exp(x)",
}
IMPURE = {
    "a draw": "f = lambda x: x * random.random()",
    "NumPy's draw": "f = lambda x: x * np.random.rand()",
    "a draw by another name": "draw = random.random\nf = lambda x: x * draw()",
    "a module by another name": "def f(x):\n    m = np\n    return x * m.random.rand()",
    "a clock": "f = lambda x: x + time.perf_counter_ns()",
    "an import": "def f(x):\n    import random as r\n    return x * r.random()",
    "a builtin": "f = lambda x: x + next(ticks)",
    "a loop": "def f(x):\n    s = 0.0\n    for _ in range(3):\n        s = s + random.random()\n    return x * s",
    "in a function it calls": "def g(): return random.random()\nf = lambda x: x * g()",
    "in a default": "def f(x, draw=random.random): return x * draw()",
    "in a closure": "def around(draw): return lambda x: x * draw()\nf = around(random.random)",
    "in a lambda inside": "def f(x): return (lambda y: y * random.random())(x)",
    "in a comprehension": "def f(x): return x * sum([random.random() for _ in range(2)])",
    "in an object": "f = lambda x: noisy * x",
    "in a class": "class A:\n    def __init__(self): self.r = random.random()\nf = lambda x: A().r * x",
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_run_as_python_too(name: str) -> None:
    plain = made(FORMULAS[name])
    compiled = jitml.jit(plain)
    with pytest.warns(UncompiledWarning, match=r"the source of .* was not found"):
        np.testing.assert_equal(compiled(X), plain(X))
    np.testing.assert_equal(compiled(X + 1), plain(X + 1))
    assert not compiled.variants


@pytest.mark.parametrize("name", IMPURE)
def test_what_may_be_impure_runs_as_python_with_one_warning(name: str) -> None:
    compiled = jitml.jit(made(IMPURE[name], noisy=Noisy(), ticks=itertools.count()))
    with pytest.warns(UncompiledWarning, match=r"runs as plain Python from now on: the source of .* was not found") as caught:
        first = compiled(X)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.any(compiled(X) != first) and not compiled.variants
    compiled.clear_cache()
    with pytest.warns(UncompiledWarning):
        compiled(X)


def _caller(hidden: Callable[..., Any]) -> Callable[..., Any]:
    def caller(x: Any) -> Any:
        total = 0.0
        for _ in range(2):
            try:
                total = total + hidden(x)
            except Exception:  # of ours, which must not be what the function does
                total = -1.0
        return total

    return caller


@pytest.mark.loose
def test_one_that_is_called_breaks_its_caller() -> None:
    compiled = jitml.jit(_caller(made("f = lambda x: x * random.random()")))
    with warnings.catch_warnings(), no_trials():
        warnings.simplefilter("error")
        first = compiled(X)
        assert np.all(compiled(X) != first) and np.all(first > 0)
    (split,) = compiled.splits
    assert [place.text for place in split.breaks.values()] == ["try", "total = total + hidden(x)"]


@pytest.mark.loose
def test_a_lambda_that_calls_one_runs_as_python_with_one_warning() -> None:
    hidden = made("f = lambda x: x * random.random()")
    compiled = jitml.jit(lambda x: hidden(x) + 1)
    with pytest.warns(UncompiledWarning, match=r"<lambda> runs as plain Python from now on: the source of"):
        first = compiled(X)
    assert np.all(compiled(X) != first)


def _with(hidden: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions that call one without source, whose sections must see all that it does."""

    def written(x: Any) -> Any:
        y = x * 2
        hidden(y)
        y[0] += x[1]
        return y * 3, x

    def the_same_array(x: Any) -> Any:
        y = hidden(x)
        y += 1
        z = x * 2
        return y, z, y is x

    def raised(x: Any) -> Any:
        x += 1
        y = x * 2
        try:
            hidden(y)
        except ZeroDivisionError:
            y = y + 1
        x *= 3
        return y

    def raised_on(x: Any) -> Any:
        x += 1
        hidden(x)
        x += 1
        return x

    def yielded(x: Any) -> Any:
        total = np.zeros(2)
        for k in hidden(3):
            total += x * k
            x = x + total
        return total

    def recurs(x: Any, n: int = 3) -> Any:
        x = x * 2 + n
        return x if n == 0 else hidden(lambda: recurs(x, n - 1)) + 1

    def appended(x: Any) -> Any:
        found: list[Any] = []
        for k in range(3):
            hidden(found)
            found.append(x * k)
        return found

    return {f.__name__: f for f in (written, the_same_array, raised, raised_on, yielded, recurs, appended)}


HIDDEN = {
    "written": "def f(y):\n    y *= 5",
    "the_same_array": "f = lambda x: x",
    "raised": "f = lambda y: (y.__iadd__(1), 1 / 0)",
    "raised_on": "f = lambda y: (y.__iadd__(1), 1 / 0)",
    "yielded": "def f(n):\n    yield from range(1, n)",
    "recurs": "f = lambda call: call() * 2",
    "appended": "f = lambda found: found.append(len(found))",
}


@pytest.mark.loose
@pytest.mark.parametrize("name", HIDDEN)
def test_sections_see_what_one_without_source_does(name: str) -> None:
    plain = _with(made(HIDDEN[name]))[name]
    compiled = jitml.jit(plain)

    def outcome(function: Callable[..., Any]) -> Any:
        x = X.copy()
        try:
            return function(x), x
        except ZeroDivisionError as error:
            return str(error), x

    with no_trials():
        for _ in range(4):
            np.testing.assert_equal(outcome(compiled), outcome(plain))
    assert [*compiled.splits] and (compiled.all_variants or name == "raised_on")  # which is left before anything is compiled
