"""Loops over single elements as people write them, under jit: one kernel each, and NumPy's answer from every layer below."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.interpreter import run
from jitml.kernels.ir import Apply, Cell, Check, Kernel, Loop, walk, walk_expressions
from jitml.pipeline import compile_graph

RNG = np.random.default_rng(0)
POSITIVE = RNG.normal(size=(7, 7))
POSITIVE = POSITIVE @ POSITIVE.T + 7 * np.eye(7)


def gauss_seidel(a: Any) -> None:
    for _ in range(3):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) / 5.0


def shortest_paths(d: Any) -> None:
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


def shortest_paths_by_rows(d: Any) -> None:
    for k in range(len(d)):
        for i in range(len(d)):
            d[i, :] = np.minimum(d[i, :], d[i, k] + d[k, :])


def lu(a: Any) -> None:
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= a[i, :i] @ a[:i, j]


def best_paths(score: Any, back: Any, step: Any) -> None:
    for t in range(1, len(score)):
        candidates = score[t - 1][:, None] + step
        back[t] = np.argmax(candidates, axis=0)
        score[t] = np.max(candidates, axis=0) + candidates.sum(axis=0) / 7


def primes(prime: Any) -> None:
    i = 2
    while i * i < len(prime):
        if prime[i]:
            prime[i * i :: i] = False
        i += 1


def cholesky(a: Any) -> None:
    for i in range(len(a)):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])


def triangular_solve(a: Any, x: Any, b: Any) -> None:
    for i in range(len(a)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]


def symmetric_update(c: Any, a: Any) -> None:
    for i in range(len(c)):
        for k in range(a.shape[1]):
            c[i, : i + 1] += 1.5 * a[i, k] * a[: i + 1, k]


def durbin(r: Any, y: Any) -> None:
    alpha, beta = -r[0], 1.0
    y[0] = alpha
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha


def distances(d: Any, a: Any, b: Any) -> None:
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)


def checksum(data: Any) -> Any:
    crc = 0xFFFF
    for byte in data:
        value = 0xFF & byte
        for _ in range(8):
            if (crc & 1) ^ (value & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            value >>= 1
    return crc


def escape_times(real: Any, imaginary: Any, count: Any) -> None:
    for i in range(count.shape[0]):
        for j in range(count.shape[1]):
            x = y = 0.0
            n = 0
            while x * x + y * y <= 4.0 and n < 30:
                x, y = x * x - y * y + real[i, j], 2.0 * x * y + imaginary[i, j]
                n += 1
            count[i, j] = n


def tridiagonal(a: Any, b: Any, c: Any, d: Any) -> None:
    n = len(d)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    d[n - 1] /= b[n - 1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]


def insertion(x: Any) -> None:
    for i in range(1, len(x)):
        v = x[i]
        j = i - 1
        while j >= 0 and x[j] > v:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = v


def first_beyond(x: Any, limits: Any, found: Any) -> None:
    for i in range(len(limits)):
        found[i] = -1
        for j in range(len(x)):
            if x[j] < 0:
                continue
            if x[j] > limits[i]:
                found[i] = j
                break


def scattered(h: Any, k: Any, w: Any) -> None:
    for i in range(len(k)):
        h[k[i]] += w[i]


def looked_up_where_it_lies(z: Any, y: Any) -> None:
    for i in range(3):
        y[1:] = z[i : i + 6][::-1][y[:-1]]  # what is stored is the place where the next element is looked up
        z[i] += y[i]


def until_columns_are_small(a: Any) -> Any:
    n = 0
    while np.max(a.sum(axis=0)) > 1.0:
        a[n % 3, :] *= 0.5
        n += 1
    return n


def two_results_of_one_array(x: Any, c: Any, y: Any) -> None:
    for i in range(len(c)):
        if c[i] > 0:
            x[i] += 1
            y[:] = x
            y[1] += 2
        else:
            x[i] -= 1
            y[:] = x
            y[0] = 5


def grid() -> Any:
    return RNG.random((6, 7))


PROGRAMS: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    gauss_seidel: lambda: (grid(),),
    shortest_paths: lambda: (RNG.random((6, 6)),),
    shortest_paths_by_rows: lambda: (RNG.random((9, 9)),),
    lu: lambda: (POSITIVE.copy(),),
    cholesky: lambda: (POSITIVE.copy(),),
    triangular_solve: lambda: (POSITIVE.copy(), np.zeros(7), RNG.random(7)),
    symmetric_update: lambda: (np.zeros((7, 7)), RNG.random((7, 4))),
    durbin: lambda: (RNG.random(8) / 8, np.zeros(8)),
    distances: lambda: (np.add.outer(np.arange(6), np.arange(8)), RNG.integers(0, 3, 5), RNG.integers(0, 3, 7)),
    checksum: lambda: (RNG.integers(0, 256, 20).astype(np.uint8),),
    escape_times: lambda: (RNG.normal(size=(4, 5)), RNG.normal(size=(4, 5)), np.zeros((4, 5), np.int64)),
    tridiagonal: lambda: (RNG.random(8), RNG.random(8) + 2, RNG.random(8), RNG.random(8)),
    insertion: lambda: (RNG.random(9),),
    first_beyond: lambda: (RNG.normal(size=12), RNG.random(5) * 2, np.zeros(5, np.int64)),
    best_paths: lambda: (np.zeros((5, 11)), np.zeros((5, 11), np.int64), RNG.random((11, 11))),
    primes: lambda: (np.ones(50, bool),),
    scattered: lambda: (np.zeros(4), RNG.integers(-4, 4, 9), RNG.random(9)),
    looked_up_where_it_lies: lambda: (np.array([3, 1, 4, 0, 5, 2, 2, 2, 3]), np.array([0, 5, 3, 1, 2, 4])),
    until_columns_are_small: lambda: (RNG.random((3, 4)) + 1,),
    two_results_of_one_array: lambda: (RNG.random(6), RNG.normal(size=6), np.zeros(6)),
}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function: Callable[..., Any]) -> None:
    arguments = PROGRAMS[function]()
    eager, mine, planned = ([np.array(x) for x in arguments] for _ in range(3))
    expected = function(*eager)
    compiled = jitml.jit(function)
    np.testing.assert_allclose(compiled(*mine), expected) if expected is not None else compiled(*mine)
    for x, y in zip(mine, eager, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    program = compiled.lower(*arguments).program
    assert any(isinstance(step, Kernel) and step.name.split("_")[-1] in ("loop", "while") for step in program.kernels.steps)
    outputs = run(program, planned)
    aliased = {program.kernels.outputs.index(out): program.kernels.inputs.index(x) for out, x in program.kernels.aliases.items()}
    for out, position in aliased.items():
        np.testing.assert_allclose(outputs[out], eager[position], rtol=1e-12)


def test_an_index_out_of_bounds_raises_what_numpy_raises_and_changes_what_numpy_changes() -> None:
    h, k, w = np.zeros(4), np.array([0, 1, 4, 2]), np.ones(4)
    compiled = jitml.jit(scattered)
    compiled(h, np.array([0, 1, 3, 2]), w)
    h[:] = 0
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        compiled(h, k, w)
    np.testing.assert_array_equal(h, [1, 1, 0, 0])


def doubled(x: Any, a: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        k = a[i : i + 1]
        if k[0] >= 0:
            if (k * 2)[0] < 10:
                total += x[k[0]]
    return total


def doubled_number(x: Any, a: Any) -> Any:
    total = 0.0
    with np.errstate(over="ignore"):
        for k in a:
            if k >= 0:
                if k * 2 < 10:
                    total += x[k]
    return total


def of_two_conditions(x: Any, a: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        k = int(a[i]) % 20
        if k >= 10 and a[i] < 100:
            total += 1
        else:
            total += x[k]
    return total


@pytest.mark.parametrize(
    "function, beyond",
    [(doubled, 2**62 + 2**50), (doubled_number, 2**62 + 2**50), (of_two_conditions, 115)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_check_stays_that_follows_from_nothing(function: Callable[..., Any], beyond: int) -> None:
    """What is compared may have wrapped around; where `a and b` is false, `a` may hold."""
    x, compiled = np.arange(10.0), jitml.jit(function)
    assert compiled(x, np.array([1, 2])) == function(x, np.array([1, 2]))
    with pytest.raises(IndexError):
        compiled(x, np.array([1, beyond]))


def test_sums_down_columns_have_columns_for_lanes() -> None:
    lowered = jitml.jit(best_paths).lower(*PROGRAMS[best_paths]())
    loops = [
        s for step in lowered.program.kernels.steps if isinstance(step, Kernel) for s in walk(step.body) if isinstance(s, Loop)
    ]
    columns = [loop for loop in loops if any(isinstance(s, Cell) for s in loop.body)]
    assert len(columns) == 3 and {loop.kind for loop in columns} == {"vector"}


def test_a_slice_with_a_step_that_the_run_tells_is_looked_at_once() -> None:
    """Its first and its last element say all; no element is compared with the array's length, nor counted from its end."""
    steps = jitml.jit(primes).lower(np.ones(50, bool)).program.kernels.steps
    loops = [s for step in steps if isinstance(step, Kernel) for s in walk(step.body) if isinstance(s, Loop)]
    assert len(loops) == 1 and not any(isinstance(s, Check) for s in walk(loops[0].body))
    assert not any(isinstance(e, Apply) and e.fn == "select" for e in walk_expressions(loops[0].body))


def test_costly_functions_of_many_elements_are_kernels_of_their_own() -> None:
    def forces(x: Any) -> Any:
        for _ in range(5):
            d = x[:, None] - x
            d[d > 0] = d[d > 0] ** (-1.5)
            x = x + 0.001 * (d * np.exp(-d * d)).sum(axis=1)
        return x

    def names(n: int) -> list[str]:
        return [
            step.name for step in jitml.jit(forces).lower(np.arange(float(n))).program.kernels.steps if isinstance(step, Kernel)
        ]

    assert any(name.endswith("loop") for name in names(10)) and not any(name.endswith("loop") for name in names(100))
    x = RNG.normal(size=100)
    np.testing.assert_allclose(jitml.jit(forces)(x), forces(x), rtol=1e-12)


def halved(a: Any) -> None:
    """Each branch of the body lies in the scope of the array that the one before it may have made."""
    for i in range(len(a)):
        row = a[i].copy()
        for least in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28):
            if row.sum() > least:
                row = row * 0.5
                row[0] = 1
        a[i] = row


def test_nests_may_be_deeper_than_recursion_of_the_program() -> None:
    a = 100 * RNG.random((3, 4))
    lowered = jitml.jit(halved).lower(a)
    limit = sys.getrecursionlimit()
    depth = len(inspect.stack()) + 60
    sys.setrecursionlimit(depth)
    try:
        executable = compile_graph(lowered.traced)
        assert sys.getrecursionlimit() == depth
    finally:
        sys.setrecursionlimit(limit)
    expected = a.copy()
    halved(expected)
    np.testing.assert_array_equal(executable(a)[0], expected)
