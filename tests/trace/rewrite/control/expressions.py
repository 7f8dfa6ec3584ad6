"""Conditions: and, or, comparisons, ternaries, named expressions."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from tests.trace.rewrite.control.rows import Xs, program


@program
def ands_and_ors(xs: Xs, n: int) -> Any:
    return n and xs, n or xs, (n and xs and n - 2) or "x", (n > 1 and n < 4) or not xs, not n, not (n and xs)


@program
def short_circuit(xs: Xs, n: int) -> Any:
    return n < len(xs) and xs[n] > 1, n >= len(xs) or xs[n]


@program
def chains(xs: Xs, n: int) -> Any:
    return 0 < n < 3, 0 < n < xs[0] < 100, n == n != 2, -1 <= n <= n + 1 > 3


@program
def chain_evaluates_once(xs: Xs, n: int) -> Any:
    calls = [0]

    def middle() -> int:
        calls[0] += 1
        return n

    return 0 < middle() < 4, calls[0]


@program
def chain_stops_early(xs: Xs, n: int) -> Any:
    return 3 < n < xs[n]


@program
def ternaries(xs: Xs, n: int) -> Any:
    y = xs[0] if xs else None
    return (n if n > 3 else -n) if n > 1 else y, [x if x > n else 0 for x in xs]


@program
def ternary_takes_one(xs: Xs, n: int) -> Any:
    return xs[n] if n < len(xs) else n


@program
def walrus_in_operand(xs: Xs, n: int) -> Any:
    if n > 1 and (y := n * 2) > 4:
        return y
    return (z := n) or z, (a := n) < (b := a + 1) < 4


@program
def if_walrus(xs: Xs, n: int) -> Any:
    if (half := n // 2) > 1:
        return half
    return -half
