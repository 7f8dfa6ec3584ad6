"""Products that are added to arrays where those lie: when, and with the right answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.interpreter import run
from jitml.kernels.program import Call, KernelProgram, Region
from jitml.kernels.text.printer import show_program
from jitml.kernels.text.program_parser import parse_program

rng = np.random.default_rng(0)
S, X, Y = rng.normal(size=(3, 64, 64))


def added(program: KernelProgram) -> int:
    """The products that add."""
    own = sum(isinstance(step, Call) and step.name == "gemm" and bool(step.updates) for step in program.steps)
    return own + sum(added(body) for step in program.steps if isinstance(step, Region) for body in step.bodies)


def in_a_loop(s, x, y):
    t = s * 1.0
    for i in range(100):
        t = t + x.T @ (y * i)
    return t


def written_into(s, x, y):
    s += x @ y
    return x[0, 0]


CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "sum": (lambda s, x, y: s + x @ y, 1),
    "the other way round": (lambda s, x, y: x @ y + s, 1),
    "transposed": (lambda s, x, y: s + x.T @ y.T, 1),
    "of an argument that is written into": (written_into, 1),
    "in a loop": (in_a_loop, 1),
    "two": (lambda s, x, y: s + x @ y + y @ x, 0),
    "vectors": (lambda s, x, y: s[0] + x @ y[0], 0),
    "of one number": (lambda s, x, y: s[0, 0] + x[0] @ y[0], 0),
    "of what is multiplied": (lambda s, x, y: s + s @ y, 0),
    "turned, too": (lambda s, x, y: (s + x @ y, (x @ y).T.copy()), 0),
    "returned too": (lambda s, x, y: (lambda z: (s + z, z))(x @ y), 0),
    "with something else": (lambda s, x, y: np.tanh(s + x @ y), 0),
    "to a row": (lambda s, x, y: s[0] + x @ y, 0),
    "in another order": (lambda s, x, y: s.T + x @ y, 0),
    "small": (lambda s, x, y: s[:4, :4] * 1.0 + x[:4, :4] @ y[:4, :4], None),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_products_that_add(name: str, dtype: Any) -> None:
    f, count = CASES[name]
    args = [a.astype(dtype) for a in (S, X, Y)]
    compiled, mine, theirs = jitml.jit(f), [a.copy() for a in args], [a.copy() for a in args]
    program = compiled.lower(*args).program.kernels
    assert count is None or added(program) == count
    assert show_program(parse_program(show_program(program))) == show_program(program)
    digits = 1e-12 if dtype == np.float64 else 2e-4
    for _ in range(2):
        got, expected = compiled(*mine), f(*theirs)
        for g, e in zip(got, expected) if isinstance(expected, tuple) else [(got, expected)]:
            assert g.dtype == e.dtype
            np.testing.assert_allclose(g, e, rtol=digits, atol=digits)
        for g, e in zip(mine, theirs):
            np.testing.assert_allclose(g, e, rtol=digits, atol=digits)


def test_the_interpreter_adds() -> None:
    lowered = jitml.jit(CASES["in a loop"][0]).lower(S, X, Y)
    (got,) = run(lowered.program, [S, X, Y])
    np.testing.assert_allclose(got, in_a_loop(S, X, Y), rtol=1e-12, atol=1e-12)


def test_weights_of_a_recurrent_network_are_added_to_in_place() -> None:
    def loss(w, xs):
        h = np.zeros((16, 64))
        for x in xs:
            h = np.tanh(x + h @ w)
        return (h * h).sum()

    xs = rng.normal(size=(50, 16, 64))
    lowered = jitml.jit(jitml.grad(loss)).lower(S / 8, xs)
    assert added(lowered.program.kernels) >= 1
    np.testing.assert_allclose(jitml.jit(jitml.grad(loss))(S / 8, xs), jitml.grad(loss)(S / 8, xs), rtol=1e-10, atol=1e-12)
