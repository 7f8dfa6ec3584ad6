"""Conditional expressions: how do `x if test else y`, `and`, `or`, `not`, `assert` on traced conditions become regions?

As branches of one value.
"""

from __future__ import annotations

from typing import Any

from jitml.ir import ops
from jitml.trace.record.recording import active_trace
from jitml.trace.regions.branch import Fork, facts_of
from jitml.trace.values.kinds import truth
from jitml.trace.values.numbers import TracedNumber


class Ternary(Fork):
    """The driver of `x if test else y`."""

    def then(self) -> bool:
        if True in self.raising:
            return False
        self.enter_side(True)
        return True

    def orelse(self) -> bool:
        self.leave_side()
        if False in self.raising:
            return False
        self.enter_side(False)
        return True

    def end(self, x: Any, y: Any) -> Any:
        self.leave_side()
        if self.raising:
            return y if True in self.raising else x
        self.sides[True].ends["__jm_choice"] = x
        self.sides[False].ends["__jm_choice"] = y
        return self.merge(["__jm_choice"])["__jm_choice"]


class Both(Ternary):
    """The driver of `left and right` (a False stops) and `left or right` (a True stops)."""

    def __init__(self, left: Any, stops_if: bool) -> None:
        super().__init__(left)
        self.left = left
        self.stops_if = stops_if
        self.enter_side(stops_if)
        self.leave_side()
        self.right = (not stops_if) not in self.raising
        if self.right:
            self.enter_side(not stops_if)

    def end(self, right: Any, _: Any = None) -> Any:
        result = super().end(*((self.left, right) if self.stops_if else (right, self.left)))
        if type(result) is TracedNumber and not self.raising:
            known = facts_of(self.left), facts_of(right)
            holds, fails = (tuple(fact for facts in known for fact in facts[side]) for side in (0, 1))
            result.facts = ((), fails) if self.stops_if else (holds, ())
        return result


def negation(x: Any) -> TracedNumber:
    """`not x`"""
    result = TracedNumber.of_value(active_trace(), ops.bit_not(truth(x)))
    result.facts = facts_of(x)[::-1]
    return result


def require(ok: Any) -> bool:
    """`assert ok`: where it does not hold, NumPy answers the call, with the message."""
    test = truth(ok)
    ops.check(test, test, error="AssertionError", message="")
    return True


__all__ = ["Both", "Ternary", "negation", "require"]
