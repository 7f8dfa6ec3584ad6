"""Do Python's own functions give Python's answers when their arguments are traced?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
import jitml.numpy.python.builtins
import jitml.trace.rewrite.comprehensions

X = np.array([0.5, -1.5, 2.25, 0.0, -3.0])
N = np.array([3, -4, 7], np.int32)


def running_best(x: Any) -> Any:
    best = 0.0
    for i in range(x.size):
        best = max(best, x[i] * x[i])
    return best


def as_many_as(x: Any) -> Any:
    return np.zeros(int((x > 0).sum())) + 1


def truths_are_numbers(x: Any) -> Any:
    t = bool(x[0] > 0)
    return abs(t), -t, +t, ~t, t + t, t // True, t % True, t << 1, round(t), t & (x[1] < 0).item(), t | True, t ^ t


def sums(x: Any) -> Any:
    """Since Python 3.12 `sum` compensates what adding its own floats loses, up to the first item that is none."""
    floats, n = x.tolist(), int(x[1])
    known = sum([float(v) for v in x]), sum([float(v) for v in x if v > 1e20]), sum(floats), sum(floats, n), sum(floats, 0.5)
    rolled = sum(float(v) for v in x), sum((float(v) for v in x), n), sum((float(v) for v in x), 0.5), sum(v for v in x)
    mixed = sum([floats[0], n, n, floats[3]]), sum([floats[0], 1.0, 1.0, x[0], floats[3]]), sum([1e16, 1.0, n, -1e16])
    return *known, *rolled, *mixed, sum(float(v) for v in x[:0]), sum([-0.0 * floats[1]], -0.0), sum([0.1] * 10 + [n])


def in_order(x: Any) -> Any:
    less, more = sorted([x[1], x[0]])
    numbers = sorted([int(v) for v in x] + [2]), sorted([float(v) for v in x], reverse=True)
    return less, more, *sorted(x), *sorted((x[2], x[1], x[0]), reverse=True), *numbers[0], *numbers[1], *sorted(v > 0 for v in x)


def in_order_in_a_loop(x: Any) -> Any:
    total = 0
    for k in range(2000):
        i, j = sorted((x[k % x.size], x[(k + 1) % x.size]))
        total += j - i
    return total


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: (max(x), min(x)), X),
    (lambda x: (max(x), min(x)), np.array([np.nan, 1.0, 2.0])),
    (lambda x: (max(x), min(x)), np.array([1.0, np.nan, 2.0])),
    (lambda x: max(x[0], x[1], x[2]), X),
    (lambda x: min([x[0], x[1]]), N),
    (lambda x: (sum(x), sum(x > 0)), X),
    (sum, N),
    (lambda x: (any(x > 2), all(x > 2)), X),
    (lambda x: (any(x > 9), all(x < 9)), X),
    (lambda x: (float(x[0]) + 1, int(x[2] * 10), bool(x[3]), bool(x[0] > 0)), X),
    (lambda x: [int(v) for v in x], X),
    (lambda x: float(N[0] + x[0]), X),
    (len, X),
    (lambda x: (x[0].item() + 1, x.item(2), N[1:2].item() + x[0]), X),
    (truths_are_numbers, X),
    (truths_are_numbers, -X),
    (running_best, X),
    (as_many_as, X),
    (in_order, X),
    (in_order, np.array([0.0, -0.0, 0.0, -0.0, 1.0])),
    (in_order, N),
    (in_order_in_a_loop, N),
    (sorted, np.array([2.0, np.nan, 1.0])),
    (lambda x: sorted([x[0], 3, x[1]]), X),
    (lambda x: sorted([x[0], x[1], x[2]], key=abs), X),
    (sums, np.array([1e16, 1.0, 1.0, -1e16])),
    (sums, np.array([np.inf, 1.0, 1.0, -1e16])),
    (sums, np.array([1e308, 2.0, 1e308, -1e308])),
    (as_many_as, -abs(X)),
    (lambda n: (pow(int(n[0]), 5, 7), pow(2, int(n[2]), int(n[0])), pow(int(n[0]), -1, mod=7), pow(n, 2), pow(3, n[0])), N),
    (lambda x: list(zip(*np.nonzero(x > 0))), X),
    (lambda x: (list(enumerate(x[x > 0])), tuple(reversed(x[x > 0])), sorted(zip(x[x > 0], x))), X),
    (lambda n: (len(range(n[0])), list(range(int(n[2]))), bool(range(n[1])), bool(zip(n[n > 9]))), N),
]


@pytest.mark.loose("in_order-x18", "in_order-x19", "in_order-x20")
@pytest.mark.parametrize(("program", "x"), PROGRAMS)
def test_as_python(program: Callable[..., Any], x: Any) -> None:
    expected, got = program(x), jitml.jit(program)(x)
    for e, g in zip(expected, got) if isinstance(expected, (tuple, list)) else [(expected, got)]:
        assert type(e) is type(g)
        np.testing.assert_array_equal(e, g)
        assert str(e) == str(g) or not isinstance(e, float)  # which of two zeros


def test_sums_of_a_python_that_compensates(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (jitml.numpy.python.builtins, jitml.trace.rewrite.comprehensions):
        monkeypatch.setattr(module, "COMPENSATES", True)

    def fresh(x: Any) -> Any:
        floats = x.tolist()
        return sum(floats), sum([float(v) for v in x]), sum(float(v) for v in x), sum((float(v) for v in x), 1), sum(v for v in x)

    assert jitml.jit(fresh)(np.array([1e16, 1.0, 1.0, -1e16])) == (2.0, 2.0, 2.0, 2.0, 0.0)


@pytest.mark.parametrize("x", [np.inf, np.nan, 1e300])
def test_int_of_what_is_no_integer(x: float) -> None:
    step = jitml.jit(lambda x: int(x[0]))
    assert step(np.array([2.5])) == 2
    if x == 1e300:
        assert step(np.array([x])) == int(x)
    else:
        with pytest.raises((OverflowError, ValueError), match="cannot convert float"):
            step(np.array([x]))


def test_a_scalar_that_may_be_of_either_type_is_decided() -> None:
    def greater(n: Any, x: Any) -> Any:
        return max(n[0], x[0])

    for x in (X, X + 100, X - 100):
        expected = greater(N, x)
        found = jitml.jit(greater)(N, x)
        assert (found, type(found)) == (expected, type(expected))


def test_numpy_takes_no_modulus() -> None:
    with pytest.raises(TypeError):
        jitml.jit(lambda n: pow(n, 2, 5))(N)
