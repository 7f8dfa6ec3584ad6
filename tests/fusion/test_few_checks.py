"""Loops over single elements look for no overflow that cannot come up, and wrap no index that is not negative."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir.types import DTYPES
from jitml.kernels.analysis.affine_sums import constant, plus
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.ir import Apply, Const, Kernel, Loop, Var, walk, walk_expressions

I64 = DTYPES["i64"]


def ways(coins, amount):
    found = np.zeros(amount + 1, np.int64)
    found[0] = 1
    for coin in coins:
        for total in range(coin, amount + 1):
            found[total] += found[total - coin]
    return found


def differences(x, starts):
    out = np.zeros(len(starts), np.int64)
    for k in range(len(starts)):
        for i in range(starts[k], 4):
            out[k] += x[i - starts[k]] * (i - starts[k])
    return out


def wrapped(x, k):
    total = 0
    for i in range(len(x)):
        total += x[i + k]
    return total


def _inner(function: Callable[..., Any], *args: Any) -> list[str]:
    """The functions that the innermost loop of a program applies."""
    kernels = jitml.jit(function).lower(*args).program.kernels
    loops = [s for k in kernels.steps if isinstance(k, Kernel) for s in walk(k.body) if isinstance(s, Loop)]
    (loop,) = [s for s in loops if any(isinstance(e, Apply) and e.fn == "raise_overflow" for e in walk_expressions(s.body))][-1:]
    return [e.fn for e in walk_expressions(loop.body) if isinstance(e, Apply)]


def test_the_way_back_from_an_index_to_the_loop_is_seen_to_be_short() -> None:
    inner = _inner(ways, np.array([1, 2, 5]), 30)
    assert inner.count("raise_overflow") == 1  # of the sum
    assert "select" not in inner


def test_what_is_at_least_a_maximum_is_at_least_both() -> None:
    ranges = Ranges({})
    ranges.forget("n")
    n = Var("n", I64)
    longest = Apply("maximum", (Const(0), Apply("sub", (Const(9), n), I64)), I64)
    ranges.assume(Apply("ge", (n, Const(-100)), DTYPES["bool"]))
    ranges.assume(Apply("le", (longest, Const(9)), DTYPES["bool"]))
    assert ranges.bounds(n)[0] == 0
    shortest = Apply("minimum", (n, Const(50)), I64)
    ranges.assume(Apply("ge", (shortest, Const(7)), DTYPES["bool"]))
    assert ranges.bounds(n)[0] == 7
    ranges.assume(Apply("le", (shortest, Const(40)), DTYPES["bool"]))  # says nothing of n alone
    assert not ranges.fits(plus(ranges.names["n"], constant(0)), DTYPES["i8"])


def steps_to_one(n, most):
    steps = 0
    while n != 1 and steps < most:
        n = n // 2 if n % 2 == 0 else -3 * n + 7 if n > 10**18 else 3 * n + 1
        steps += 1
    return n, steps


def test_sizes_of_integers_are_compared_as_integers() -> None:
    kernels = jitml.jit(steps_to_one).lower(27, 1000).program.kernels
    exprs = [e for k in kernels.steps if isinstance(k, Kernel) for s in walk(k.body) for e in walk_expressions((s,))]
    assert exprs and not any(e.dtype.kind == "f" for e in exprs)


BIG = 2**62
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (ways, (np.array(coins, np.int64), 12))
    for coins in ([1, 2, 5], [12, 13, 40], [0, 3], [5, 0], [-1], [-3, 2], [-12], [-13], [-14], [-20], [2, -40], [], [BIG], [-BIG])
]
CASES += [
    (ways, (np.array([1, 2], dtype), 5)) for dtype in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.uint64)
]
CASES += [(ways, (np.array([2**63 - 1]), 4)), (ways, (np.array([-(2**63)]), 4)), (ways, (np.array([0] * 64), 3))]
CASES += [
    (differences, (np.arange(10), np.array(starts)))
    for starts in ([0, 1], [3, 4, 5], [-1], [-5, 0], [-6], [-7], [-BIG], [BIG], [-(2**63)], [2**63 - 1])
]
CASES += [(differences, (np.array([BIG, BIG, BIG, BIG]), np.array([0, 1])))]
CASES += [(wrapped, (np.arange(5.0), k)) for k in (0, -1, -5, -6, 1, 5, np.int64(-2), np.int64(2**63 - 1), np.int64(-(2**63)))]
CASES += [
    (steps_to_one, (sign * (size // factor) + near, 3))
    for size in (2**61, 2**62, 2**63, 2**64)
    for factor in (1, 3)
    for sign in (1, -1)
    for near in (-2, -1, 0, 1, 2)
]


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            return (type(error), str(error)), None
    return [(x.category, str(x.message)) for x in told], result


@pytest.mark.loose
@pytest.mark.parametrize("number", range(len(CASES)))
def test_answers_and_errors_are_numpys(number: int) -> None:
    function, args = CASES[number]
    wanted = _outcome(function, args)
    f = jitml.jit(function)
    for _ in range(3):
        got = _outcome(f, args)
        assert got[0] == wanted[0]
        np.testing.assert_array_equal(got[1], wanted[1])
