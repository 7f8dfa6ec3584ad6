"""A fault in any one layer is found in the first call that shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
import jitml.trace.trace
from jitml.autograd.core.jvp import jvp
from jitml.codegen.llvm.runtime.executable import NativeExecutable
from jitml.errors import WrongResultWarning
from jitml.fusion.lower.points import Point, lowering
from jitml.ir import ops
from jitml.trace.record.guards import Host

X = np.linspace(0.1, 0.9, 7)


class Counter:
    def __init__(self) -> None:
        self.seen: list[float] = []
        self.total = 0.0


def test_a_wrong_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(p: Point) -> Any:
        return p.b.apply("exp2", (p.read(0, p.index),), p.node.output.dtype)

    monkeypatch.setitem(lowering._rules, ops.exp, wrong)
    with pytest.warns(WrongResultWarning, match="the result"):
        np.testing.assert_array_equal(jitml.jit(lambda x: np.exp(x) * 2, verify="first")(X), np.exp(X) * 2)


def test_a_lost_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(counter: Counter, x: Any) -> Any:
        counter.seen.append(x[0])
        counter.total += x.sum()
        return x * 2

    monkeypatch.setattr(jitml.trace.trace, "changes_of", lambda trace: ([], []))
    counter = Counter()
    with pytest.warns(WrongResultWarning, match="counter.total|counter.seen"):
        jitml.jit(add, verify="first")(counter, X)
    assert (counter.total, counter.seen) == (X.sum(), [X[0]])


def test_a_stale_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an argument, a global and an attribute, in the call in which it is another one for the first time."""

    class Model:
        power = 2

    def powers(model: Model, x: Any, n: int) -> Any:
        return [x**k for k in range(n)][-1] ** model.power

    monkeypatch.setattr(Host, "require", lambda self, slot, value: None)
    f, model = jitml.jit(powers, verify="first"), Model()
    np.testing.assert_array_equal(f(model, X, 2), X**2)
    with pytest.warns(WrongResultWarning, match="the result"):
        np.testing.assert_allclose(f(model, X, 3), X**4)
    g = jitml.jit(powers, verify="first")
    for _ in range(5):
        g(model, X, 2)
    model.power = 3
    with pytest.warns(WrongResultWarning, match="the result"):
        np.testing.assert_array_equal(g(model, X, 2), X**3)


def test_results_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    run = NativeExecutable.__call__
    monkeypatch.setattr(NativeExecutable, "__call__", lambda self, *args: run(self, *args)[::-1])
    with pytest.warns(WrongResultWarning, match=r"the result\[0\]"):
        first, _ = jitml.jit(lambda x: (x + 1, x - 1), verify="first")(X)
    np.testing.assert_array_equal(first, X + 1)


def test_a_wrong_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(out: Any, primals: Any, tangents: Any) -> Any:
        return ops.mul(tangents[0], 1.0 - out)

    monkeypatch.setitem(jvp._rules, ops.tanh, wrong)

    def f(x: Any) -> Any:
        return np.sum(np.tanh(x) * x)

    with pytest.warns(WrongResultWarning, match="grad of f is its derivative along a random direction"):
        jitml.jit(jitml.grad(f), verify="always")(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.maximum(x - x[0], 0.0)),  # a kink
        lambda x: np.sum(np.sqrt(x - x.min())),  # an end of the domain
        lambda x: np.sum(np.floor(7 * x) * x),
        lambda x: np.sort(x)[::-1] @ np.arange(7.0),
        lambda x: np.sum(jitml.stop_gradient(x) * x),
        lambda x: np.sum(np.sin(1e4 * x)),
        lambda x: np.sum(x.astype(np.float32) ** 2),
        lambda x: np.abs(x - 0.5).max() + np.median(x) + np.linalg.norm(x),
    ],
)
def test_right_derivatives(f: Any, recwarn: pytest.WarningsRecorder) -> None:

    jitml.jit(jitml.grad(f), verify="always")(X)
    jitml.jit(lambda x: jitml.value_and_grad(f)(x * 2), verify="always")(X)
    jitml.jit(jitml.hessian(f), verify="always")(X)
    assert [str(w.message) for w in recwarn if w.category is WrongResultWarning] == []
