"""Shift invariance: which extremes does a function subtract in vain?

A softmax is the same whatever its row is shifted by: the maximum only keeps
exp from overflowing, so that its slope, a comparison of each element with it, need not be taken.

Values are followed that a shift is added to, or whose exponential is a factor of them. Where no result of a graph is one of
those, and nothing else is made of the shift, no result depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from math import prod
from typing import Any, Literal

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import RuleTable
from jitml.ir.ops.contraction import free_axes
from jitml.ir.passes.bodies import everywhere
from jitml.ir.rewrite import Producers, sweep
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Shifted:
    """What a value becomes with a shift: value + factor * shift (a term), or value * exp(factor * shift).

    factor: not 0.
    axes: for each axis of the shift that is longer than 1, the axis of the value along which it lies.
    """

    shift: Literal["term", "factor"]
    factor: float
    axes: tuple[int, ...]


Operands = Sequence[Shifted | None]  # None: stays as it is
# (node, what its operands become, of which one does not stay as it is, the makers of values) -> what its result becomes.
ShiftRule = Callable[[Node, Operands, Producers], Shifted | None]

shifting: RuleTable[ShiftRule] = RuleTable("shift", "autograd")


class _Lost(Exception):
    """A value depends on a shift in a way that is not followed."""


def without_vain_shifts(graph: Graph) -> Graph:
    """With the extremes that no result depends on as constants."""
    return everywhere(_without_vain_shifts)(graph)


def _without_vain_shifts(graph: Graph) -> Graph:
    extremes: dict[tuple[Any, ...], list[Value]] = {}  # those of the same elements are one shift
    for node in graph.nodes:
        if node.op in (ops.reduce_max, ops.reduce_min) and node.output.dtype.kind == "f":
            extremes.setdefault((node.op, *node.inputs, node.params["axes"]), []).append(node.output)
    if not extremes:
        return graph
    course = _ShiftPath(graph)
    vain = {v for values in extremes.values() if course.is_vain(values) for v in values}

    def visit(node: Node, producers: Producers) -> Value | None:
        if vain.isdisjoint(node.outputs):
            return None
        constant = ops.stop_gradient(node.op(*node.inputs, **node.params))
        assert isinstance(constant, Value)
        return constant

    return sweep(graph, visit) if vain else graph


class _ShiftPath:
    """Where shifts go in a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.makers, self.users = graph, graph.producers(), graph.users()
        self.positions = {node: k for k, node in enumerate(graph.nodes)}

    def is_vain(self, shifts: Sequence[Value]) -> bool:
        """Whether equal values make no difference to any result. Visits no more than what depends on them, in order."""
        found = {v: Shifted("term", 1.0, tuple(axis for axis, n in enumerate(v.shape) if n != 1)) for v in shifts}
        seen = {self.positions[user] for v in shifts for user in self.users[v]}
        waiting = sorted(seen)
        while waiting:
            node = self.graph.nodes[heappop(waiting)]
            if node.op not in shifting:
                return False
            try:
                result = shifting[node.op](node, [found.get(v) for v in node.inputs], self.makers)
            except _Lost:
                return False
            if result is not None:
                found[node.output] = result
                for k in {self.positions[user] for user in self.users[node.output]} - seen:
                    seen.add(k)
                    heappush(waiting, k)
        return found.keys().isdisjoint(self.graph.outputs)


def _times(x: Shifted, number: float) -> Shifted | None:
    """With that many times the shift; None if nothing is left of it."""
    return replace(x, factor=x.factor * number) if number else None


def _only(operands: Operands, shift: str) -> Shifted:
    """The one operand that is shifted, if it is so in this way."""
    found = [x for x in operands if x is not None]
    if len(found) != 1 or found[0].shift != shift:
        raise _Lost
    return found[0]


def _both(x: Shifted, y: Shifted, shift: str, sign: int) -> Shifted | None:
    """The shifts of two operands, added up."""
    if x.shift != shift or (x.shift, x.axes) != (y.shift, y.axes):
        raise _Lost
    total = x.factor + sign * y.factor
    return replace(x, factor=total) if total else None


@shifting.rule(ops.neg)
def _negated(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    x = _any(operands)
    return _times(x, -1) if x.shift == "term" else x


@shifting.rule(ops.add, ops.sub)
def _sum(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    x, y = operands
    sign = 1 if node.op is ops.add else -1
    if x is not None and y is not None:
        return x if x == y and x.shift == "factor" else _both(x, y, "term", sign)
    return _times(_only(operands, "term"), 1 if y is None else sign)


@shifting.rule(ops.mul, ops.div)
def _product(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    x, y = operands
    sign = 1 if node.op is ops.mul else -1
    if x is not None and y is not None:
        return _both(x, y, "factor", sign)
    if x is not None and x.shift == "term":
        return _times(x, _number(node.inputs[1], makers) ** sign)
    if y is not None and y.shift == "term" and node.op is ops.mul:
        return _times(y, _number(node.inputs[0], makers))
    return _times(_only(operands, "factor"), 1 if y is None else sign)


def _number(v: Value, makers: Producers) -> float:
    """What every element of a value is, other than 0."""
    maker = makers.get(v)
    while maker is not None and maker.op in (ops.broadcast, ops.reshape):
        maker = makers.get(maker.inputs[0])
    if maker is None or maker.op is not ops.full or not maker.params["value"]:
        raise _Lost
    return float(maker.params["value"])


@shifting.rule(ops.exp)
def _exponential(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    return replace(_only(operands, "term"), shift="factor")


@shifting.rule(ops.log)
def _logarithm(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    return replace(_only(operands, "factor"), shift="term")


@shifting.rule(ops.sqrt)
def _root(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    return _times(_only(operands, "factor"), 0.5)


@shifting.rule(ops.reduce_sum, ops.reduce_max, ops.reduce_min)
def _reduced(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    x, axes = _any(operands), node.params["axes"]
    if not set(axes).isdisjoint(x.axes):
        raise _Lost
    kept = [axis for axis in range(node.inputs[0].ndim) if axis not in axes]
    x = replace(x, axes=tuple(kept.index(axis) for axis in x.axes))
    if node.op is not ops.reduce_sum or x.shift == "factor":
        return x
    count = prod(node.inputs[0].shape[axis] for axis in axes)
    if type(count) is not int:
        raise _Lost
    return _times(x, count)


@shifting.rule(ops.dot_general)
def _contracted(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    x = _only(operands, "factor")
    side = operands.index(x)
    batch, contract = node.params["batch"], node.params["contract"]
    free = [free_axes(v.ndim, b, c) for v, b, c in zip(node.inputs, batch, contract)]
    places = {axis: k for k, axis in enumerate(batch[side])}
    places |= {axis: len(batch[0]) + side * len(free[0]) + k for k, axis in enumerate(free[side])}
    return _moved(x, places)


@shifting.rule(ops.broadcast)
def _broadcast(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    return _moved(_any(operands), dict(enumerate(node.params["axes"])))


@shifting.rule(ops.transpose)
def _transposed(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    return _moved(_any(operands), {axis: k for k, axis in enumerate(node.params["perm"])})


@shifting.rule(ops.reshape)
def _reshaped(node: Node, operands: Operands, makers: Producers) -> Shifted | None:
    """Where only axes of length 1 come and go."""
    before, after = ([axis for axis, n in enumerate(v.shape) if n != 1] for v in (node.inputs[0], node.output))
    if [node.inputs[0].shape[axis] for axis in before] != [node.output.shape[axis] for axis in after]:
        raise _Lost
    return _moved(_any(operands), dict(zip(before, after)))


def _any(operands: Operands) -> Shifted:
    (x,) = operands
    assert x is not None
    return x


def _moved(x: Shifted, places: Mapping[int, int]) -> Shifted:
    """With its axes elsewhere."""
    if not places.keys() >= set(x.axes):
        raise _Lost
    return replace(x, axes=tuple(places[axis] for axis in x.axes))
