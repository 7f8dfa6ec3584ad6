"""Mixed radix: when does a sum of digits vanish whose weights are products of sizes?

In `i * n + j` with j in 0:n, the digits i and j have the weights n and 1. If the weight of each digit exceeds all that those of
smaller weight can add up to, a sum of zero means that each of them is zero. Sizes are no numbers here: what exceeds what is asked
of polynomials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jitml.kernels.analysis.polynomials import Poly, constant, never_negative, plus, times
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class SizedDigit:
    """One of several things that are added up.

    Args:
        unit: the least that it adds, or takes away, unless it is zero.
        low, high: the limits of what it adds.
        says: what is zero where it is: a sum of the variables' changes.
    """

    unit: Poly
    low: Poly
    high: Poly
    says: Mapping[Any, int]


def certainly_zero(digits: Iterable[SizedDigit], offset: Poly, least: Mapping[Any, int]) -> Sequence[SizedDigit] | None:
    """The digits that are zero if offset + sum of digits is; None if that cannot be.

    Args:
        least: the variables' least values.
    """
    order = sorted(digits, key=_weight)
    low, high = offset, offset
    zero: list[SizedDigit] = []
    for digit in order:
        exceeds = all(never_negative(plus(plus(digit.unit, most, -1), constant(-1)), least) for most in (high, _negative(low)))
        zero = [*zero, digit] if exceeds else []
        low, high = plus(low, digit.low), plus(high, digit.high)
    if any(never_negative(plus(side, constant(-1)), least) for side in (low, _negative(high))):
        return None
    return zero


def _weight(digit: SizedDigit) -> tuple[int, int]:
    return max(map(len, digit.unit), default=0), sum(digit.unit.values())


def _negative(a: Poly) -> Poly:
    return times(a, constant(-1))


def solved(equations: Iterable[Mapping[Any, int]], last: Mapping[Any, int]) -> set[Any]:
    """The variables that are zero, given sums of them that are.

    Args:
        last: the greatest absolute values of variables.
    """
    zero: set[Any] = set()
    open_, left = list(equations), -1
    while len(open_) != left:
        left, still = len(open_), list[Mapping[Any, int]]()
        for equation in open_:
            unknown = {name: abs(c) for name, c in equation.items() if c and name not in zero}
            if _are_separate(unknown, last):
                zero |= unknown.keys()
            else:
                still.append(equation)
        open_ = still
    return zero


def _are_separate(steps: Mapping[Any, int], last: Mapping[Any, int]) -> bool:
    """Whether a sum of these multiples is zero only if each of them is."""
    reach = 0
    for name, step in sorted(steps.items(), key=lambda item: item[1]):
        if step <= reach:
            return False
        reach += step * last.get(name, 1 << 64)
    return True
