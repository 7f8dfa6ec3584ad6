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


def test_one_that_is_called_has_its_caller_run_as_python() -> None:
    hidden = made("f = lambda x: x * random.random()")

    def caller(x: Any) -> Any:
        total = 0.0
        for _ in range(2):
            try:
                total = total + hidden(x)
            except Exception:  # of ours, which must not be what the function does
                total = -1.0
        return total

    compiled = jitml.jit(caller)
    with pytest.warns(UncompiledWarning, match=r"caller runs as plain Python from now on: the source of <lambda> was not found"):
        first = compiled(X)
    assert np.all(compiled(X) != first) and np.all(first > 0)
