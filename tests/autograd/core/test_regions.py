"""Derivatives through loops and branches of programs as people write them: forward = reverse = finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
Program = Callable[..., Any]
rng = np.random.default_rng(0)


def smoothing_in_place(u: Array) -> Any:
    u = u.copy()
    for _ in range(50):
        u[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
    return (u * u).sum()


def nonlinear_stencil(u: Array) -> Any:
    for _ in range(10):
        u[1:-1] += 0.1 * (np.sin(u[2:]) - u[1:-1] * u[:-2])
    return (u**3).sum()


def two_dimensional_stencil(u: Array) -> Any:
    new = u.copy()
    for _ in range(5):
        new[1:-1, 1:-1] = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] * u[1:-1, :-2]) / 3
        u, new = new, u
    return (u * np.cos(u)).sum()


def two_that_swap_places(x: Array, y: Array) -> Any:
    u, v = x, y
    for i in range(len(x)):
        new = u.copy()
        new[i] = x[i] * y[i - 1]
        u, v = v, new
    return (u * v * y).sum()


def recurrence(x: Array) -> Any:
    y = np.zeros(10)
    y[0] = x[0]
    for i in range(1, 10):
        y[i] = np.sin(y[i - 1]) * x[i]
    return y.sum()


def exponential_average(x: Array) -> Any:
    averages = []
    s = 0.0
    for i in range(20):
        s = s * 0.9 + 0.1 * x[i] ** 2
        averages.append(s)
    return (np.array(averages) * x).sum()


def branch_in_a_loop(x: Array) -> Any:
    s = 0.0
    for i in range(20):
        if x[i] > 0:
            s = s + x[i] ** 2
        else:
            s = s * x[i]
    return s


def loop_in_a_branch(x: Array) -> Any:
    s = x.sum()
    if s > 0:
        for i in range(5):
            s = s * np.cos(x[i])
    else:
        for i in range(3):
            s = s - x[i] * s
    return s


def writes_in_a_branch(x: Array) -> Any:
    for i in range(1, 20):
        if x[i] > x[i - 1]:
            x[i] = x[i] * x[i - 1]
        elif x[i] < -1:
            x[i] *= 0.5
    return (x * x).sum()


def triangular_solve(lower: Array, b: Array) -> Any:
    x = np.zeros(6)
    for i in range(6):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return (x * x).sum()


def cholesky(a: Array) -> Any:
    n = 5
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - lower[i, :j] @ lower[j, :j]
            if i == j:
                lower[i, j] = np.sqrt(s)
            else:
                lower[i, j] = s / lower[j, j]
    return np.log(np.diag(lower)).sum() + lower[3, 1]


def rows_by_earlier_rows(a: Array) -> Any:
    n = 4
    for i in range(n):
        for j in range(i):
            a[i, j] = a[i, j] * a[j, j] + np.sin(a[i, j - 1])
        a[i] = a[i] / (1 + np.abs(a[i]).sum())
    return (a**2).sum()


def leapfrog(x: Array, v: Array) -> Any:
    for _ in range(100):
        v = v - 0.01 * np.sin(x)
        x = x + 0.01 * v
    return (x * x).sum() + v[0]


def all_pairs(x: Array) -> Any:
    energy = 0.0
    for i in range(8):
        for j in range(i + 1, 8):
            energy += 1 / (1 + (x[i] - x[j]) ** 2)
    return energy


def gathered(x: Array) -> Any:
    order = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    s = 1.0
    for i in range(8):
        s = s * 0.5 + np.exp(-x[order[i]]) * s / 2
        x[order[i]] += np.sin(s)
    return s + (x * x).sum()


def matrix_powers(a: Array, x: Array) -> Any:
    for _ in range(6):
        x = np.tanh(a @ x)
    return (x * x).sum()


def list_of_states(a: Array, x: Array) -> Any:
    states = [x]
    for _ in range(6):
        states.append(np.tanh(a @ states[-1]))
    return sum((s * s).sum() for s in states)


def masked_mean(x: Array) -> Any:
    return (x[x > 0] ** 2).mean()


def sorted_part(x: Array) -> Any:
    y = np.sort(x[x > 0])
    return (np.cumsum(y) * y).sum()


def products_of_a_part(x: Array) -> Any:
    y = x[x > 0]
    return y.prod() + (np.cumprod(y) ** 2).sum() + np.cumprod(y[::-1])[0] * x[x > 9].prod()


def products_of_beginnings(x: Array) -> Any:
    s = 0.0
    for k in range(4):
        s += x[:k].prod() * k
    return s


def mask_in_a_loop(x: Array) -> Any:
    s = 0.0
    for k in range(4):
        x[x > 0.2 * k] *= 0.9
        s += x.sum() ** 2
    return s


def newton(a: Array) -> Any:
    root = a.sum()
    while abs(root * root - a[0]) > 1e-13:
        root = 0.5 * (root + a[0] / root)
    return root * a[1]


def jacobi_in_place(a: Array, b: Array) -> Any:
    x = np.zeros(5)
    d = np.diag(a)
    change = 1.0
    while change > 1e-13:
        new = (b - a @ x + d * x) / d
        change = np.abs(new - x).max()
        x[:] = new
    return (x * x).sum()


def until_it_breaks(x: Array) -> Any:
    s = x[0]
    for i in range(30):
        s = s * 1.5 + x[i % 4]
        if s > 20:
            break
    return s * s


def early_return(x: Array) -> Any:
    s = 1.0
    for i in range(8):
        if x[i] < -1:
            return s * x[i]
        s = s * np.exp(x[i])
    return s


def loop_in_a_while(x: Array) -> Any:
    s = x[0] ** 2 + 1
    while s < 50:
        for i in range(3):
            s = s + s * x[i] ** 2
        s += 1
    return s


def while_in_a_loop(x: Array) -> Any:
    total = 0.0
    for i in range(4):
        s = x[i] ** 2 + 0.5
        while s < 3:
            s = s * 1.3 + 0.1 * x[i]
        total += np.sin(s)
    return total


def nothing_happens(x: Array) -> Any:
    for _ in range(0):
        x = x * 2
    return (x * x).sum()


def spd(n: int) -> Array:
    a = rng.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


PROGRAMS: list[tuple[Program, tuple[Array, ...]]] = [
    (smoothing_in_place, (rng.random(30),)),
    (nonlinear_stencil, (rng.random(12),)),
    (two_dimensional_stencil, (rng.random((5, 6)),)),
    (two_that_swap_places, (np.linspace(1, 2, 6), np.linspace(3, 4, 6))),
    (recurrence, (rng.random(10),)),
    (exponential_average, (rng.random(20),)),
    (branch_in_a_loop, (rng.normal(size=20),)),
    (loop_in_a_branch, (rng.random(6),)),
    (loop_in_a_branch, (-rng.random(6),)),
    (writes_in_a_branch, (rng.normal(size=20),)),
    (triangular_solve, (rng.random((6, 6)) + np.eye(6), rng.random(6))),
    (cholesky, (spd(5),)),
    (rows_by_earlier_rows, (rng.random((4, 4)),)),
    (leapfrog, (rng.random(3), rng.random(3))),
    (all_pairs, (rng.normal(size=8),)),
    (gathered, (rng.random(10) / 4,)),
    (matrix_powers, (rng.normal(size=(4, 4)) / 2, rng.normal(size=4))),
    (list_of_states, (rng.normal(size=(4, 4)) / 2, rng.normal(size=4))),
    (masked_mean, (rng.normal(size=10),)),
    (products_of_a_part, (rng.normal(size=10),)),
    (products_of_beginnings, (rng.normal(size=10),)),
    (sorted_part, (rng.normal(size=10),)),
    (mask_in_a_loop, (rng.normal(size=10),)),
    (newton, (np.array([3.0, 2.0]),)),
    (jacobi_in_place, (rng.random((5, 5)) + 5 * np.eye(5), rng.random(5))),
    (until_it_breaks, (rng.random(4),)),
    (early_return, (np.array([0.3, -0.2, 0.7, -1.5, 0.1, 0.2, 0.3, 0.4]),)),
    (early_return, (rng.random(8),)),
    (loop_in_a_while, (rng.random(3),)),
    (while_in_a_loop, (rng.random(4),)),
    (nothing_happens, (rng.normal(size=3),)),
]


@pytest.fixture(params=[lambda f: f, jitml.jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def differences(f: Program, args: tuple[Array, ...], h: float = 1e-3) -> list[Array]:
    """The gradient by central differences of the sixth order."""
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
    found = []
    for k, x in enumerate(args):
        slope = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            for distance, weight in weights.items():
                for sign in (1, -1):
                    moved = [a.copy() for a in args]
                    moved[k][place] += sign * distance * h
                    slope[place] += sign * weight * f(*moved) / h
        found.append(slope)
    return found


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_reverse_forward_and_differences_agree(f: Program, args: tuple[Array, ...], finish: Any) -> None:
    expected = differences(f, args)
    slopes = finish(jitml.grad(f, tuple(range(len(args)))))(*args)
    for got, wanted in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-7)
    directions = tuple(np.cos(np.arange(a.size)).reshape(a.shape) for a in args)
    y, dy = finish(lambda *xs: jitml.jvp(f, xs, directions))(*args)
    np.testing.assert_allclose(y, f(*(a.copy() for a in args)), rtol=1e-12)
    np.testing.assert_allclose(dy, sum((s * d).sum() for s, d in zip(slopes, directions)), rtol=1e-9, atol=1e-11)


SMOOTH = [(f, args) for f, args in PROGRAMS if f not in (smoothing_in_place, nothing_happens)]


@pytest.mark.parametrize(("f", "args"), SMOOTH, ids=[f.__name__ for f, _ in SMOOTH])
def test_second_order(f: Program, args: tuple[Array, ...]) -> None:
    direction = np.cos(np.arange(args[0].size)).reshape(args[0].shape)

    def slope(x: Array) -> Any:
        return (jitml.grad(f)(x, *args[1:]) * direction).sum()

    reverse = jitml.grad(slope)(args[0])
    forward = jitml.jvp(lambda x: jitml.grad(f)(x, *args[1:]), (args[0],), (direction,))[1]
    np.testing.assert_allclose(reverse, forward, rtol=1e-8, atol=1e-9)
    h = 1e-5
    nearby = [jitml.grad(f)(args[0] + sign * h * direction, *args[1:]) for sign in (1, -1)]
    np.testing.assert_allclose(forward, (nearby[0] - nearby[1]) / (2 * h), rtol=1e-5, atol=1e-6)
