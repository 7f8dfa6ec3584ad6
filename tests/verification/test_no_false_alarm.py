"""Programs that are right are found right: those of other tests, and such as rounding, chance or unused memory decide.

All of them, with each answer checked:

    JITML_VERIFY=always python -m pytest tests/programs -W error::jitml.errors.WrongResultWarning
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse
import scipy.special

import jitml
from jitml.config import CONFIG
from jitml.errors import WrongResultWarning
from jitml.verification.trial import Trial
from programs.drawn.choices import Choices
from programs.drawn.inputs import CALLS
from programs.drawn.outcomes import call, module
from programs.drawn.program import write_program
from programs.hostile import ROWS as HOSTILE
from programs.test_everyday import ROWS as EVERYDAY

RNG = np.random.default_rng(3)
X = RNG.standard_normal(64)
TIES = RNG.integers(0, 5, 1000)
MATRIX = RNG.standard_normal((20, 20))


def checked(function: Callable[..., Any], verify: Any = "always", **options: Any) -> Any:
    return jitml.jit(function, verify=verify, **options)


@pytest.fixture(autouse=True)
def loud() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", WrongResultWarning)
        yield


def chaos(x: Any) -> Any:
    for _ in range(300):
        x = 2.0 * np.sin(x * 3)
    return x, x.argmax(), x > 0


def converging(x: Any) -> Any:
    steps, far = 0, 1.0
    while far > 1e-16 and steps < 100:
        new = np.cos(x)
        far, x, steps = np.abs(new - x).sum(), new, steps + 1
    return steps


def thresholds(x: Any) -> Any:
    p = np.exp(x) / np.exp(x).sum()
    return p > p.mean(), np.floor(p * 1e15), int(p.sum() * 1e16), np.argsort(np.sin(x) ** 2 + np.cos(x) ** 2)


def garbage(n: int) -> Any:
    a, b = np.empty(n), np.empty((n, n), np.float32)
    a[0] = 1
    return a, b, np.empty_like(b)


def shuffled(rng: Any, x: Any) -> Any:
    rng.shuffle(x)
    return x[:3].sum() + rng.normal() + np.random.rand()


PROGRAMS: dict[str, tuple[Any, ...]] = {
    "sums of float32": (
        lambda x: (x.sum(), x.mean(), x.std(), np.cumsum(x)[-1], x @ x),
        RNG.standard_normal(100_000).astype("f4"),
    ),
    "sums of float16": (lambda x: (x.sum(), np.exp(x), x @ x, np.cumsum(x)), X.astype(np.float16)),
    "chaos": (chaos, X),
    "a loop until it converges": (converging, X),
    "thresholds": (thresholds, X),
    "ties": (lambda x: (np.argsort(x), np.argsort(x * 1.0), np.argmax(x), np.unique(x, return_index=True)), TIES),
    "partitions": (lambda x: (np.partition(x, 9), np.argpartition(x, 9)[:9], x[np.argpartition(x, 9)[:9]]), TIES),
    "factorizations": (lambda a: (np.linalg.eig(a), np.linalg.svd(a), np.linalg.qr(a), np.linalg.inv(a)), MATRIX),
    "an ill-conditioned matrix": (lambda a: (np.linalg.inv(a), np.linalg.det(a), np.linalg.solve(a, a[0])), MATRIX * 1e-9 + 1),
    "degenerate eigenvalues": (lambda a: (np.linalg.eigh(a), np.linalg.svd(a)), np.ones((6, 6))),
    "complex numbers": (lambda z: (np.abs(z), z / z[::-1], np.fft.fft(z), z**2.5, np.sqrt(z)), X + 1j * X[::-1]),
    "cancellation": (
        lambda x: ((x - x.mean()).sum(), np.sum(np.array([1e16, x[0], -1e16, 1.0])), np.sin(x) ** 2 + np.cos(x) ** 2 - 1),
        X,
    ),
    "unused memory": (garbage, 5),
    "random numbers": (shuffled, np.random.default_rng(0), X.copy()),
    "numbers without a seed": (lambda: np.random.default_rng().standard_normal(3),),
    "special functions": (lambda x: (scipy.special.gammaln(np.abs(x)), scipy.special.erfinv(np.tanh(x))), X),
    "a gradient": (jitml.grad(lambda x: np.sum(np.tanh(x) * np.exp(-x * x))), X),
    "warnings": (lambda x: (np.log(x), np.sqrt(-np.abs(x)), x / 0.0), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sensitive_programs(name: str) -> None:
    function, *args = PROGRAMS[name]
    jitted = checked(function)
    for _ in range(3):
        jitted(*args)


def the_better(x: Any, best: Any) -> Any:
    y = x / 3
    return {True: y, False: best}[bool(np.sum(np.exp(y) * y) <= np.dot(np.exp(y), y))]


def test_a_path_that_rounding_decides() -> None:
    """Compiled code takes it, and neither plain Python nor the program's graph, run by NumPy."""
    jitted, best = checked(the_better), np.ones(1001)
    for seed in range(12):
        jitted(np.random.default_rng(seed).random(1001), best)
    assert jitted.variants


def test_arguments_are_moved_before_the_graph_is_run_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes many times as long as the plain function."""
    asked: list[Any] = []
    monkeypatch.setattr(Trial, "_interpreted", lambda self, seed: asked.append(seed))
    x = X.copy()
    jitted = checked(lambda x: chaos(x)[0])
    jitted(x)
    assert "rounding" in str(jitted.variants[0].checked)
    assert not asked
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fast_arithmetic(dtype: Any) -> None:
    checked(lambda x: (np.exp(x).sum() / x.sum(), (x * x + x).mean(), x.std()), fastmath=True)(X.astype(dtype))


@pytest.mark.parametrize("row", [row for row in EVERYDAY if row.refused is None][::8], ids=lambda row: row.name)
def test_everyday_programs(row: Any) -> None:
    object.__setattr__(CONFIG, "strict", row.as_python is None)  # the others as of a test that is `loose`
    row.run(partial(checked, verify="first"))


@pytest.mark.parametrize("row", HOSTILE[1::5], ids=lambda row: row.function.__name__)
def test_hostile_programs(row: Any) -> None:
    jitted = checked(row.function)
    for args in row.calls:
        try:
            jitted(*args)
        except Exception as error:  # what they raise is compared elsewhere
            assert not isinstance(error, WrongResultWarning)


@pytest.mark.parametrize("number", range(8))
def test_drawn_programs(number: int) -> None:
    program = write_program(Choices.seeded(f"first answers:{number}"))
    names = module(program.text)
    jitted = checked(names["program"])
    for k in range(CALLS):
        told = call(jitted, names, k).warnings
        assert WrongResultWarning not in [kind for kind, _ in told]
