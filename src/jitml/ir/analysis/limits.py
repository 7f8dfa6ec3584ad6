"""Integer range analysis: between which numbers does an integer lie that only the running program knows?

A rule for each op that says.

Limits bound the memory for arrays whose size is data (`np.zeros(mask.sum())`) and show which indices need no check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import bound
from jitml.ir.dims import limits as size_limits
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import Op
from jitml.ir.types import is_integer

Limits = tuple[int, int]
_DEEPEST = 12  # nodes in a row that are looked at


def limits_of(
    value: Value, producer: Callable[[Value], Node | None], known: Callable[[Value], Limits | None], depth: int = _DEEPEST
) -> Limits:
    """The least and the greatest element of an integer or bool value; of its dtype, where no more is known.

    Args:
        producer: gives the node that makes a value.
        known: gives the limits of some values.
    """
    named = known(value)
    if named is not None:
        return named
    node = producer(value)
    if node is None or not depth or value.dtype.kind not in "biu":
        return dtype_limits(value.dtype)
    return _from_operands(node, value, lambda v: limits_of(v, producer, known, depth - 1))


def intervals(graph: Graph) -> Mapping[Value, Limits]:
    """Limits of the integer values of which more is known than their dtype."""
    known: dict[Value, Limits] = {}
    for node in graph.nodes:
        if len(node.outputs) == 1 and is_integer(node.output.dtype):
            found = _from_operands(node, node.output, lambda v: known.get(v) or dtype_limits(v.dtype))
            if found != dtype_limits(node.output.dtype):
                known[node.output] = found
    return known


def indices_outside(node: Node, known: Mapping[Value, Limits]) -> Iterator[tuple[int, Value, bool, bool]]:
    """The indices of a gather or scatter that may be out of bounds: axis, index, whether below it, and whether beyond it.

    Args:
        known: as `intervals` gives them.
    """
    first = 1 if node.op is ops.gather else 2
    for axis, index in enumerate(node.inputs[first:], node.params["axis"]):
        n, _ = size_limits(node.inputs[0].shape[axis])
        low, high = known.get(index) or dtype_limits(index.dtype)
        if low < -n or high >= n:
            yield axis, index, low < -n, high >= n


def _from_operands(node: Node, result: Value, limits: Callable[[Value], Limits]) -> Limits:
    operands = [limits(v) for v in node.inputs if v.dtype.kind in "biu"]
    if node.op.name in _OF_NUMBERS:
        return limits_of_numbers(node.op.name, result.dtype, operands)
    rule = _RULES.get(node.op)
    return _or_widest(None if rule is None else rule(node, operands), result.dtype)


def limits_of_numbers(op: str, dtype: np.dtype[Any], operands: list[Limits]) -> Limits:
    """Between which numbers an op's result lies, if only its operands' limits say so; the op by its name."""
    rule = _OF_NUMBERS.get(op)
    return _or_widest(None if rule is None else rule(operands), dtype)


def _or_widest(found: Limits | None, dtype: np.dtype[Any]) -> Limits:
    """What leaves the dtype wraps around, and then can be anything."""
    widest = dtype_limits(dtype)
    return found if found is not None and widest[0] <= found[0] and found[1] <= widest[1] else widest


@cache
def dtype_limits(dtype: np.dtype[Any]) -> Limits:
    """Of an integer dtype; 0 and 1 of bool."""
    if dtype.kind not in "iu":
        return 0, 1
    ends = np.iinfo(dtype)
    return int(ends.min), int(ends.max)


Rule = Callable[[Node, list[Limits]], Limits | None]


def _of_operand(node: Node, limits: list[Limits]) -> Limits | None:
    return limits[0] if limits else None


def _of_all(node: Node, limits: list[Limits]) -> Limits | None:
    return (min(low for low, _ in limits), max(high for _, high in limits)) if limits else None


def _of_both(node: Node, limits: list[Limits]) -> Limits | None:
    """An array and what goes into it; places may follow."""
    return _of_all(node, limits[:2])


def _of_branches(node: Node, limits: list[Limits]) -> Limits | None:
    return _of_all(node, limits[1:])


def _of_ends(function: Callable[[int, int], int]) -> Callable[[list[Limits]], Limits | None]:
    """A function of two numbers that is monotone in each."""

    def rule(limits: list[Limits]) -> Limits | None:
        values = [function(a, b) for a, b in product(*limits)]
        return min(values), max(values)

    return rule


def _of_sum(node: Node, limits: list[Limits]) -> Limits | None:
    """Of a sum over some axes, or a running one: at most as many terms as those have elements."""
    if not limits:
        return None
    axes = node.params["axes"] if "axes" in node.params else (node.params["axis"],)
    (low, high), count = limits[0], prod(bound(node.inputs[0].shape[axis]) for axis in axes)
    return min(0, count * low), max(0, count * high)


def _of_position(node: Node, limits: list[Limits]) -> Limits | None:
    return 0, max(0, bound(node.inputs[0].shape[node.params["axis"]]) - 1)


def _of_remainder(limits: list[Limits]) -> Limits | None:
    low, high = limits[1]
    return (0, high - 1) if low > 0 else None


def _of_quotient(limits: list[Limits]) -> Limits | None:
    (a, b), (low, high) = limits
    values = [n // d for n in (a, b) for d in (low, high)] if low > 0 else []
    return (min(values), max(values)) if values else None


def _of_masked(limits: list[Limits]) -> Limits | None:
    """Of `x & y`: a number without a sign bit bounds it."""
    highs = [high for low, high in limits if low >= 0]
    return (0, min(highs)) if highs else None


def _of_bits(node: Node, limits: list[Limits]) -> Limits | None:
    """Of `x | y` and `x ^ y`: without sign bits, no bit is above the highest of both."""
    (a, high), (b, other) = limits
    return (0, (1 << max(high, other).bit_length()) - 1) if min(a, b) >= 0 else None


def _of_shift(direction: int) -> Rule:
    def rule(node: Node, limits: list[Limits]) -> Limits | None:
        (a, b), (least, most) = limits
        if not 0 <= least <= most < 8 * node.output.dtype.itemsize:
            return None
        values = [n << s if direction > 0 else n >> s for n in (a, b) for s in (least, most)]
        return min(values), max(values)

    return rule


def _of_full(node: Node, limits: list[Limits]) -> Limits | None:
    return int(node.params["value"]), int(node.params["value"])


def _of_array(node: Node, limits: list[Limits]) -> Limits | None:
    values = node.params["value"]
    return (int(values.min()), int(values.max())) if values.size else None


def _of_abs(node: Node, limits: list[Limits]) -> Limits | None:
    low, high = limits[0]
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


_OF_NUMBERS: dict[str, Callable[[list[Limits]], Limits | None]] = {
    "convert": lambda limits: limits[0] if limits else None,  # of bools and integers; a float has no limits here
    "add": _of_ends(lambda a, b: a + b),
    "sub": _of_ends(lambda a, b: a - b),
    "mul": _of_ends(lambda a, b: a * b),
    "minimum": _of_ends(min),
    "maximum": _of_ends(max),
    "floor_divide": _of_quotient,
    "remainder": _of_remainder,
    "bit_and": _of_masked,
}

_RULES: dict[Op, Rule] = {
    ops.full: _of_full,
    ops.array: _of_array,
    ops.iota: lambda node, _: (0, max(0, bound(node.params["shape"][node.params["axis"]]) - 1)),
    **dict.fromkeys(
        (
            ops.broadcast, ops.transpose, ops.reshape, ops.slice, ops.flip, ops.gather, ops.dynamic_slice, ops.compress,
            ops.resize, ops.sort, ops.reduce_max, ops.reduce_min, ops.cummax, ops.cummin,
        ),
        _of_operand,
    ),
    ops.check: _of_operand,
    ops.raise_overflow: _of_operand,
    ops.concat: _of_all,
    ops.pad: _of_both,
    ops.update_slice: _of_both,
    ops.dynamic_update_slice: _of_both,
    ops.select: _of_branches,
    ops.neg: lambda node, limits: (-limits[0][1], -limits[0][0]),
    ops.abs: _of_abs,
    ops.bit_or: _of_bits,
    ops.bit_xor: _of_bits,
    ops.shift_left: _of_shift(1),
    ops.shift_right: _of_shift(-1),
    ops.reduce_sum: _of_sum,
    ops.cumsum: _of_sum,
    ops.argmax: _of_position,
    ops.argmin: _of_position,
    ops.argsort: _of_position,
}  # fmt: skip
