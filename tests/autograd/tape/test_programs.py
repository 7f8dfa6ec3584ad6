"""Functions that no graph can hold, differentiated as they run: slopes, and what Python does besides."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import grad, hessian, jacobian, jvp, value_and_grad, vjp

pytestmark = pytest.mark.loose

x3 = np.array([0.3, -0.8, 1.1])
A = np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 1.0]])


class Bar:
    """A progress bar: it goes on only once, and counts what it shows."""

    def __init__(self, items: Any) -> None:
        self.items, self.seen, self.texts = iter(items), 0, []

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.seen += 1
            yield item

    def show(self, **values: Any) -> None:
        self.texts.append(", ".join(f"{name}={value:.3f}" for name, value in values.items()))


def slopes(f: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """Central differences."""
    steps = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps]).reshape(x.shape)


def same(found: Any, expected: Any, rtol: float = 1e-6) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-7)


def training(w: Any) -> Any:
    bar, losses = Bar(range(6)), []
    velocity = np.zeros(3)
    for step in bar:
        residual = A @ w - np.array([1.0, 0.5, -0.2])
        loss = float(residual @ residual)
        losses.append(loss)
        bar.show(loss=loss, step=step)
        velocity = 0.9 * velocity - 0.05 * (A.T @ residual)
        w = w + velocity
        if loss < 1e-6:
            break
    assert bar.seen == len(bar.texts) == len(losses)
    return losses[-1] + sum(losses) / len(losses)


def minibatches(rows: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def by_batches(w: Any) -> Any:
    total, data = 0.0, np.arange(18.0).reshape(6, 3) / 10
    for batch in minibatches(data, 2):
        p = 1 / (1 + np.exp(-batch @ w))
        total -= np.log(p).mean()
    return total


def drawing(w: Any) -> Any:
    rng = random.Random(3)
    order = [0, 1, 2]
    rng.shuffle(order)
    noise = [rng.gauss(0, 1) for _ in order]
    return sum(w[i] ** 2 * e for i, e in zip(order, noise)) + math.sin(w[order[0]])


def growing(w: Any) -> Any:
    path = [w]
    while len(path) < 5 and np.abs(path[-1]).max() < 10:
        path.append(np.tanh(path[-1]) * 1.5 + path[0])
    stacked = np.array(path)
    return (stacked[1:] * stacked[:-1]).sum() / len(path)


def writing(w: Any) -> Any:
    out = np.zeros((3, 3))
    for i in range(3):
        out[i] = w * i
        out[i, 0] += w[i]
    out[:, 1] *= 2
    view = out.T[1:]
    view[0] = view[1] * w
    out.ravel()[4] = 0.5
    return (out**2).sum()


def trying(w: Any) -> Any:
    found = {}
    for name in ("0", "1", "x", "2"):
        try:
            found[name] = w[int(name)] * 2
        except ValueError as error:
            found["error"] = len(str(error)) * 0.0
        finally:
            found["last"] = w.sum()
    return sum(found.values())


@dataclass
class Layer:
    weights: Any

    def __post_init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return np.tanh(self.weights * x)


def with_objects(w: Any) -> Any:
    layers = [Layer(w), Layer(w[::-1])]
    x = np.ones(3)
    for layer in layers:
        x = layer(x) + 0.1 * layer.calls
    return x @ x


def recursive(w: Any, depth: int = 4) -> Any:
    return w.sum() if depth == 0 else recursive(np.sin(w) * depth, depth - 1)


def looping_until(w: Any) -> Any:
    x, steps = w, iter(range(100))
    for n in steps:
        x = x * 0.7
        if np.linalg.norm(x) < 0.3:
            return x.sum() * n
    return x.sum()


PROGRAMS = [training, by_batches, drawing, growing, writing, trying, with_objects, recursive, looping_until]


@pytest.fixture
def never_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function is one that cannot be captured."""
    from jitml.autograd.api import transform_driver

    capture = transform_driver.run

    def refuse(*args: Any) -> Any:
        if transform_driver.current_trace() is None:
            raise jitml.UnsupportedError("not this time")
        return capture(*args)

    monkeypatch.setattr(transform_driver, "run", refuse)
    monkeypatch.setattr(transform_driver, "_refused", type(transform_driver._refused)())


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.usefixtures("never_captured")
def test_slopes_are_those_of_differences(f: Any) -> None:
    value, slope = value_and_grad(f)(x3)
    assert value == f(x3) and type(slope) is np.ndarray
    same(slope, slopes(f, x3))
    along = np.array([0.5, -1.0, 0.25])
    same(jvp(f, (x3,), (along,))[1], slope @ along, 1e-10)
    assert vjp(f, x3)[1](2.0)[0] == pytest.approx(2 * slope)


@pytest.mark.parametrize("f", [training, growing, writing, recursive, by_batches])
@pytest.mark.usefixtures("never_captured")
def test_second_derivatives(f: Any) -> None:
    expected = np.stack([(grad(f)(x3 + step) - grad(f)(x3 - step)) / 2e-6 for step in 1e-6 * np.eye(3)])
    same(hessian(f)(x3), expected, 1e-5)
    same(jacobian(grad(f))(x3), expected, 1e-5)
    same(jitml.hvp(f, (x3,), (np.ones(3),)), expected @ np.ones(3), 1e-5)
    same(grad(lambda x: grad(f)(x) @ np.array([1.0, -2.0, 0.5]))(x3), expected @ [1.0, -2.0, 0.5], 1e-5)


def test_what_cannot_be_captured_runs_once_a_call() -> None:
    """A generator is used up once; what is drawn, appended and printed is that of one run."""
    log: list[Any] = []

    def f(x: Any, bar: Any) -> Any:
        for n in bar:
            x = x * (1 + 0.1 * n)
            log.append(x.sum())
        return x.sum()

    for _ in range(3):
        log.clear()
        bar = Bar(range(4))
        same(grad(f)(x3, bar), np.full(3, 1.1 * 1.2 * 1.3))
        assert bar.seen == len(log) == 4
        assert all(type(x) is np.float64 for x in log)


def test_it_is_asked_once_whether_a_function_can_be_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    from jitml.autograd.api import transform_driver

    tried = []
    capture = transform_driver.run
    monkeypatch.setattr(transform_driver, "run", lambda *args: [tried.append(args), capture(*args)][1])

    def f(x: Any, bar: Any) -> Any:
        return sum((x * n).sum() for n in bar)

    for n in (2, 3, 4):
        same(grad(f)(x3, Bar(range(n))), np.full(3, sum(range(n))))
    assert len(tried) == 1


def test_explain_says_that_a_function_runs_on_the_tape() -> None:
    def f(x: Any, bar: Any) -> Any:
        return sum((x * n).sum() for n in bar)

    text = jitml.explain(grad(f), x3, Bar(range(2)))
    assert "grad of " in text and "runs as Python, on a tape" in text and "test_programs.py:" in text
    with pytest.raises(jitml.UnsupportedError):
        jitml.vmap(f, in_axes=(0, None))(np.ones((2, 3)), Bar(range(2)))


def test_strict_functions_are_refused() -> None:
    from jitml.config import CONFIG

    object.__setattr__(CONFIG, "strict", True)
    with pytest.raises(jitml.UnsupportedError, match="generator"):
        grad(lambda x, items: sum(x * n for n in items))(2.0, (n for n in range(3)))
