"""What is made only to be copied into a window of another array is stored there: when, and with the right answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.interpreter import run
from jitml.kernels.ir import Kernel, Store, walk
from jitml.kernels.program import KernelProgram, Region

rng = np.random.default_rng(0)
W, X = rng.normal(size=(64, 64)) / 8, rng.normal(size=(8, 16, 64))


def copies(program: KernelProgram) -> int:
    """The kernels that store in windows, and do nothing else."""
    own = 0
    for step in program.steps:
        if isinstance(step, Kernel) and step.updates:
            own += all(s.buffer in step.updates for s in walk(step.body) if isinstance(s, Store))
    return own + sum(copies(body) for step in program.steps if isinstance(step, Region) for body in step.bodies)


def history(w, xs):
    h, out = np.zeros((16, 64)), np.zeros(xs.shape)
    for t in range(len(xs)):
        h = np.tanh(xs[t] + h @ w)
        out[t] = h
    return h, out


def history_in_three_places(w, xs):
    h, out, again, last = np.zeros((16, 64)), np.zeros(xs.shape), np.ones(xs.shape), np.zeros((len(xs), 2, 16, 64))
    for t in range(len(xs)):
        h = np.tanh(xs[t] + h @ w)
        out[t], again[len(xs) - 1 - t], last[t, 1] = h, h, h
    return h, out, again, last


def two_histories(w, xs):
    h, c = np.zeros((16, 64)), np.zeros((16, 64))
    hs, cs = np.zeros(xs.shape), np.zeros((len(xs), 2, 16, 64))
    for t in range(len(xs)):
        h, c = np.tanh(xs[t] + c @ w), np.exp(-np.abs(h @ w))
        hs[t], cs[t, t % 2] = h, c
    return hs, cs


def backwards_and_sums(w, xs):
    h, out, sums = np.zeros((16, 64)), np.zeros(xs.shape), np.zeros((len(xs), 16))
    for t in range(len(xs)):
        h = np.exp(-np.abs(xs[t] + h @ w))
        s = h.sum(axis=1)
        h = h / s[:, None]
        out[len(xs) - 1 - t], sums[t] = h, s
    return h, out, sums


def old_window_is_needed(w, xs):
    h, out = np.zeros((16, 64)), xs.copy()
    for t in range(len(xs)):
        h = np.tanh(xs[t] + h @ w)
        before = out[t] @ w
        out[t] = h
        h = h + before
    return h, out


def written_twice(w, xs):
    h, out = np.zeros((16, 64)), np.zeros(xs.shape)
    for t in range(len(xs) - 1):
        h = np.tanh(xs[t] + h @ w)
        out[t] = h
        g = np.cos(h @ w)
        out[t + 1] = g
        h = h + g
    return h, out


def half_a_row(w, xs):
    h, out = np.zeros((16, 64)), np.zeros(xs.shape)
    for t in range(len(xs)):
        h = np.tanh(xs[t] + h @ w)
        out[t, :, :32] = h[:, 32:]
    return h, out


def of_a_product(w, xs):
    h, out = np.zeros((16, 64)), np.zeros(xs.shape)
    for t in range(len(xs)):
        h = h @ w + 0.1
        out[t] = h @ w
    return h, out


def slope(w, xs):
    def loss(w):
        h, c = np.zeros((16, 64)), np.zeros((16, 64))
        for t in range(len(xs)):
            gates = np.tanh(xs[t] + h @ w)
            c = np.cos(gates) * c + np.sin(c)
            h = np.exp(-c * c) * gates
        return (h * c).sum()

    return (jitml.grad(loss)(w),)


# The function, and how many kernels that do nothing but store in windows are left.
CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "history": (history, 0),
    "history in three places": (history_in_three_places, 0),
    "two histories": (two_histories, 1),
    "backwards and sums": (backwards_and_sums, 0),
    "where the old window is needed": (old_window_is_needed, 0),
    "written twice": (written_twice, 0),
    "half a row": (half_a_row, 1),
    "of a product": (of_a_product, 1),
    "what a derivative keeps": (slope, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_windows_are_filled_by_who_makes_their_contents(name: str) -> None:
    f, count = CASES[name]
    compiled = jitml.jit(f)
    lowered = compiled.lower(W, X)
    assert copies(lowered.program.kernels) == count
    for results in (compiled(W, X), run(lowered.program, [W, X])):
        for got, expected in zip(results, f(W, X), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)
