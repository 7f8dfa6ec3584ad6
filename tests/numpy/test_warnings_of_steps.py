"""Floating-point errors of what tracing knows, of steps that are run late, and of sizes: said at every call as NumPy says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.numpy.floating_point import ORDINARY, Array, outcome

import jitml

LIMIT = np.int8(100)
NOTHING = np.float64(0)


def of_numbers(x: Array) -> Any:
    return x + 1 / NOTHING, LIMIT + LIMIT


def of_numbers_in_a_branch(x: Array) -> Any:
    if x[0] > 1:
        1 / NOTHING
    return x


def of_constants(x: Array) -> Any:
    return x + np.zeros(9) / 0, np.sqrt(np.full(9, -1.0)), np.array([1, 2]) // 0


def of_numbers_in_silence(x: Array) -> Any:
    with np.errstate(all="ignore"):
        return x + 1 / NOTHING


def of_constants_for_an_inner_branch(x: Array) -> Any:
    if x[0] > 0:
        v = np.sqrt(np.full(4, -1.0))
        if x[1] > 1e3:
            x[2] = v.sum()
    return x


@pytest.mark.parametrize(
    "f", [of_numbers, of_numbers_in_a_branch, of_constants, of_constants_for_an_inner_branch, of_numbers_in_silence]
)
def test_what_is_known_while_tracing_is_said_at_every_call(f: Callable[[Array], Any]) -> None:
    jitted = jitml.jit(f)
    for state in ({"all": "ignore"}, {}, {"all": "raise"}, {}):
        for x in (ORDINARY, -ORDINARY):
            assert outcome(jitted, x.copy(), state)[1:] == outcome(f, x.copy(), state)[1:]


@pytest.mark.parametrize("n", [False, 2])
def test_a_python_number_beside_an_unsigned_scalar_may_overflow(n: int) -> None:
    def difference(x: Any, n: int) -> Any:
        return n - x.sum()

    x = np.arange(5, dtype=np.uint32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in scalar subtract"):
        assert jitml.jit(difference)(x, n) == difference(x, n)


def test_errors_from_before_a_call_into_numpy_are_not_forgotten() -> None:
    def scaled(x: Any, y: Any) -> Any:
        z = y % (x & 1)
        return np.power(x, y.max()), z

    x, y = np.arange(1, 5), np.arange(2, 6)
    x[0] = 2
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in remainder"):
        np.testing.assert_array_equal(jitml.jit(scaled)(x, y)[0], x**5)


def divided(x: Array) -> None:
    for i in range(1, len(x)):
        x[i] = x[i] / x[i - 1]


def raised(x: Array) -> None:
    for i in range(len(x)):
        x[i] = x[i] ** 2.5


def scaled(x: Array) -> None:
    for i in range(len(x)):
        x[i] *= 1e300


def narrowed(x: Array) -> None:
    x[:] = x.astype(np.float32)


def summed(x: Array) -> None:
    x[:] = x.sum()


def accumulated(x: Array) -> None:
    x[:] = np.cumprod(x)


def multiplied(x: Array) -> None:
    x[:] = x @ x


def doubled(x: Array) -> None:
    for i in range(len(x)):
        x[i] = x[i] + x[i]


@pytest.mark.parametrize(
    ("f", "kind", "bad"),
    [
        (divided, "f8", 0.0), (raised, "f8", 1e300), (scaled, "f8", 1e300), (narrowed, "f8", 1e300), (summed, "f8", 1e308),
        (accumulated, "f8", 1e300), (multiplied, "f8", 1e300), (doubled, "i8", 2**62),
    ],
)  # fmt: skip
def test_a_late_error_is_called_as_numpy_calls_it(f: Callable[[Array], None], kind: str, bad: float) -> None:
    """Large arrays that are written are not copied for an error that has never been: then NumPy cannot be asked."""
    jitted, x = jitml.jit(f), np.ones(5000, kind)
    assert outcome(jitted, x.copy(), {})[2] == []
    x[7:9] = bad
    late, want = outcome(jitted, x.copy(), {})[2], outcome(f, x.copy(), {})[2]
    assert {w[0] for w in late} == {w[0] for w in want}


def told_by_what_is_divided(y: Array, x: Array) -> None:
    k = 0
    while y.max() != k and k < 3:
        k += 1
        y = y // (x - x)


def told_by_what_is_written(y: Array, x: Array) -> None:
    k = 0
    while (np.max(y) != k) & (k < 3):
        k += 1
        y %= np.argmin(x, keepdims=True)


def told_by_a_quotient(y: Array, x: Array) -> None:
    while (y // (x - x)).sum() > 100:
        y = y - 1


def told_within_a_loop(y: Array, x: Array) -> None:
    k = 0
    for _ in range(2):
        z = y
        while z.sum() > 5 and k < 9:
            z = z % (x - x)
            k += 1


def left_by_what_is_divided(y: Array, x: Array) -> None:
    for _ in range(4):
        if y.max() > 1000:
            break
        y = y // (x - x)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(
    "f", [told_by_what_is_divided, told_by_what_is_written, told_by_a_quotient, told_within_a_loop, left_by_what_is_divided]
)
def test_what_only_ends_a_loop_warns(f: Callable[[Array, Array], None], dtype: type) -> None:
    jitted, x = jitml.jit(f), np.arange(1, 5).astype(dtype)
    for _ in range(2):
        want, got = (outcome(lambda x, g=g: g(x + 1, x), x, {}) for g in (f, jitted))  # type: ignore[misc]
        assert set(got[2]) == set(want[2]) != set()


def test_sizes_that_are_left_open_are_not_blamed() -> None:
    def scaled(x: Array) -> Array:
        x[:2] *= np.exp(x[::2])[:2]
        return x

    jitted = jitml.jit(scaled)
    for n in (4, 5, 6, 7):
        want, got = (outcome(f, np.full(n, 1000.0), {}) for f in (scaled, jitted))
        assert got[1:] == want[1:]
        assert want[2]
