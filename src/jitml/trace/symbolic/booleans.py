"""Symbolic booleans: what is a claim that only the compiled program may be able to judge?

A `Truth`: a bool where the trace knows it, else a value.

What leaves a branch or a loop may be one thing or another: a number of this type or that, an array that is another one, a name
that is bound or not. Beside the value go the truths of what it may be besides, and regions hand those on like any numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import BOOL, Aval
from jitml.trace.record.recording import active_trace

Truth = Value | bool
TRUTH = Aval((), BOOL)


def as_value(truth: Truth) -> Value:
    made: Value = ops.full(value=truth, shape=(), dtype=BOOL) if isinstance(truth, bool) else truth
    return made


def negated(truth: Truth) -> Truth:
    made: Truth = not truth if isinstance(truth, bool) else ops.bit_not(truth)
    return made


def all_of(*truths: Truth) -> Truth:
    return _joined(truths, ops.bit_and, False)


def any_of(*truths: Truth) -> Truth:
    return _joined(truths, ops.bit_or, True)


def _joined(truths: Sequence[Truth], op: Op, decisive: bool) -> Truth:
    """What an op makes of truths, of which one alone may decide."""
    if any(truth is decisive for truth in truths):
        return decisive
    values = [truth for truth in truths if not isinstance(truth, bool)]
    made: Truth = functools.reduce(op, values) if values else not decisive
    return made


def choose(test: Truth, x: Truth, y: Truth) -> Truth:
    """x where the test holds, else y."""
    if isinstance(test, bool):
        return x if test else y
    x, y = _known(x), _known(y)
    if x is y:
        return x
    if x is True:
        return any_of(test, y)
    if y is False:
        return all_of(test, x)
    if x is False and y is True:
        return negated(test)
    made: Value = ops.select(test, as_value(x), as_value(y))
    return made


def _known(truth: Truth) -> Truth:
    """A constant of the graph as the bool that it is."""
    maker = None if isinstance(truth, bool) else active_trace().builder.maker(truth)
    return bool(maker.params["value"]) if maker is not None and maker.op is ops.full else truth


__all__ = ["TRUTH", "Truth", "all_of", "any_of", "as_value", "choose", "negated"]
