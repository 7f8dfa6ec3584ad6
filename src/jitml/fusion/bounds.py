"""Which integers can a value hold?  Intervals, so that an index made by the program itself needs no check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from jitml.ir import ops
from jitml.ir.dims import limits
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import RuleTable
from jitml.ir.types import is_integer

Interval: TypeAlias = tuple[int, int]  # inclusive

_rules: RuleTable[Callable[..., Interval | None]] = RuleTable("interval", "fusion/bounds.py")

_NEED_NO_OPERANDS = (ops.argsort,)


def intervals(graph: Graph) -> dict[Value, Interval]:
    """Limits of the integer values of which any are known; both ends are inside."""
    known: dict[Value, Interval] = {}
    for node in graph.nodes:
        rule = _rules.get(node.op)
        if rule is None or not is_integer(node.output.dtype):
            continue
        operands = (
            node.inputs[1:] if node.op is ops.select else node.inputs[:1] if node.op in (ops.gather, ops.check) else node.inputs
        )
        given = [known[v] for v in operands if v in known]
        if len(given) == len(operands) or node.op in _NEED_NO_OPERANDS:
            found = rule(node, *given)
            if found is not None and _fits(node.output, found):
                known[node.output] = found
    return known


def _fits(value: Value, interval: Interval) -> bool:
    """Whether arithmetic stayed clear of wrapping."""
    bits = 8 * value.dtype.itemsize - (value.dtype.kind == "i")
    least = -(1 << bits) if value.dtype.kind == "i" else 0
    return least <= interval[0] and interval[1] < (1 << bits)


@_rules.rule(ops.full)
def _full(node: Node) -> Interval:
    return int(node.params["value"]), int(node.params["value"])


@_rules.rule(ops.array)
def _array(node: Node) -> Interval | None:
    value = node.params["value"]
    return (int(value.min()), int(value.max())) if value.size else None


@_rules.rule(ops.iota)
def _iota(node: Node) -> Interval:
    return 0, max(0, node.output.aval.bounds[node.params["axis"]] - 1)


@_rules.rule(ops.broadcast, ops.reshape, ops.transpose, ops.slice, ops.flip, ops.gather, ops.reduce_min, ops.reduce_max)
@_rules.rule(ops.sort, ops.cummax, ops.cummin, ops.convert, ops.check)
def _same(node: Node, x: Interval) -> Interval:
    return x


@_rules.rule(ops.argsort)
def _argsort(node: Node, *xs: Interval) -> Interval:
    return 0, max(0, node.output.aval.bounds[node.params["axis"]] - 1)


@_rules.rule(ops.remainder)
def _remainder(node: Node, x: Interval, y: Interval) -> Interval | None:
    return (0, y[1] - 1) if y[0] > 0 else None


@_rules.rule(ops.select, ops.concat, ops.pad, ops.update_slice)
def _union(node: Node, *xs: Interval) -> Interval:
    return min(x[0] for x in xs), max(x[1] for x in xs)


@_rules.rule(ops.add)
def _add(node: Node, x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


@_rules.rule(ops.sub)
def _sub(node: Node, x: Interval, y: Interval) -> Interval:
    return x[0] - y[1], x[1] - y[0]


@_rules.rule(ops.mul)
def _mul(node: Node, x: Interval, y: Interval) -> Interval:
    products = [a * b for a in x for b in y]
    return min(products), max(products)


@_rules.rule(ops.maximum)
def _maximum(node: Node, x: Interval, y: Interval) -> Interval:
    return max(x[0], y[0]), max(x[1], y[1])


@_rules.rule(ops.minimum)
def _minimum(node: Node, x: Interval, y: Interval) -> Interval:
    return min(x[0], y[0]), min(x[1], y[1])


def unchecked(node: Node, known: Mapping[Value, Interval]) -> dict[int, int]:
    """Which indices of a gather or scatter may be out of bounds, counted from either end: operand -> indexed axis."""
    first = 1 if node.op is ops.gather else 2
    axes = {}
    for operand, axis in enumerate(range(node.params["axis"], node.params["axis"] + len(node.inputs) - first), first):
        n, _ = limits(node.inputs[0].shape[axis])
        found = known.get(node.inputs[operand])
        if found is None or found[0] < -n or found[1] >= n:
            axes[operand] = axis
    return axes
