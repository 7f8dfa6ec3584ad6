"""Products that are only parts of a larger array are written there: when, and with the right answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.interpreter import run
from jitml.kernels.metrics import bytes_moved
from jitml.kernels.program import Call

rng = np.random.default_rng(0)
A, B, C = rng.normal(size=(40, 30)), rng.normal(size=(30, 20)), rng.normal(size=(30, 24))
Q, K = rng.normal(size=(2, 16, 4, 12)), rng.normal(size=(2, 16, 4, 12))


def side_by_side(a, b, c):
    return np.concatenate((a @ b, np.sin(a[:, :5]), a @ c), axis=1)


def on_top_of_each_other(a, b, c):
    return np.concatenate((a @ b, b.T @ b, a @ b * 2), axis=0)


def in_a_row(a, b, c):
    return np.stack((a @ b, a @ (b + 1), a @ (b * b)))


def between(a, b, c):
    return np.stack((a @ b, a @ (b + 1)), axis=1)


def heads(q, k):
    parts = (q.transpose((0, 2, 1, 3)), k.transpose((0, 2, 1, 3)))
    scores = parts[0] @ parts[1].transpose((0, 1, 3, 2))
    mixed = [scores @ parts[0], scores @ parts[1], scores.transpose((0, 1, 3, 2)) @ parts[0]]
    return np.concatenate([x.transpose((0, 2, 1, 3)).reshape((2, 16, 48)) for x in mixed], axis=-1)


def written_into(a, b, c):
    out = np.sin(np.arange(2500.0)).reshape(50, 50)
    square = out @ out
    out[3:43, 10:30] = a @ b
    return out, square


def in_pieces(a, b, c):
    out = np.ones((50, 50))
    out[3:43, 10:30] = a @ b
    out[5:45, 1:10] = (a @ c)[:, 3:12]
    return out


def twice(a, b, c):
    z = a @ b
    return np.concatenate((z, z), axis=1), np.concatenate((a @ c, a), axis=1)


def seen_by_others(a, b, c):
    z = a @ b
    return np.concatenate((z, a @ c), axis=1), z


def the_old_one_is_seen(a, b, c):
    out = np.sin(np.arange(2500.0)).reshape(50, 50) + a[0, 0]
    before, z = out @ out, a @ b
    total = (out @ before).sum()
    out[3:43, 10:30] = z
    return out @ before, total


def with_steps_between(a, b, c):
    out = np.ones((80, 40))
    out[::2, ::2] = a @ b
    return out


def of_itself(a, b, c):
    out = np.ones((60, 60)) * a[0, 0]
    out[:, :30] = out[:, 30:] @ b[:, :1] + np.zeros((1, 30))
    out[:40, :20] = out[:40, 20:50] @ b
    return out


def in_a_loop(a, b, c):
    out = np.zeros((5, 40, 20))
    for n in range(5):
        out[n] = (a + n) @ b
    return out


# How many products are written as parts of something else.
ROWS = [
    (side_by_side, (A, B, C), 2),
    (on_top_of_each_other, (A, B, C), 1),
    (in_a_row, (A, B, C), 3),
    (between, (A, B, C), 2),
    (heads, (Q, K), 3),
    (written_into, (A, B, C), 1),
    (in_pieces, (A, B, C), 0),
    (twice, (A, B, C), 1),
    (seen_by_others, (A, B, C), 1),
    (the_old_one_is_seen, (A, B, C), 0),
    (with_steps_between, (A, B, C), 0),
    (of_itself, (A, B, C), 0),
]


def checked(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    lowered = jitml.jit(f).lower(*args)
    expected, results = f(*args), jitml.jit(f)(*args)
    for got, wanted in zip(*((y if isinstance(y, tuple) else (y,)) for y in (results, expected))):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    for got, wanted in zip(run(lowered.program, args), expected if isinstance(expected, tuple) else (expected,)):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    return lowered.program


@pytest.mark.parametrize(("f", "args", "products"), ROWS, ids=lambda x: getattr(x, "__name__", ""))
def test_products_are_written_where_they_will_be(f: Callable[..., Any], args: tuple[Any, ...], products: int) -> None:
    steps = checked(f, args).kernels.steps
    assert sum(isinstance(step, Call) and step.name == "gemm" and bool(step.updates) for step in steps) == products


def test_no_copy_of_the_array_is_made_for_its_parts() -> None:
    program = checked(heads, (Q, K))
    result = Q.nbytes * 3
    assert program.arena_size == 2 * 4 * 16 * 16 * 8
    assert bytes_moved(program.kernels) == 2 * Q.nbytes + 4 * program.arena_size + 3 * Q.nbytes + result


def test_loops() -> None:
    checked(in_a_loop, (A, B, C))
