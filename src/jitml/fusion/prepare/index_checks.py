"""Index checks: which indices may be out of bounds, where a look at them is cheapest, and their extremes as reductions.

Of `t[i[:, None] + zeros]` the elements of `i` are looked at, once for all gathers and scatters that use them on an axis of that
size. The least and the greatest element are reductions like any others: they join the loops that make the indices, and threads
share them. The indices need not lie in memory for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jitml.fusion.lower.indexed import IndexCheck
from jitml.ir import ops
from jitml.ir.analysis.limits import indices_outside, intervals
from jitml.ir.dims import Size
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import Op
from jitml.ir.types import I64, Aval, is_integer
from jitml.kernels.target import Target

FEW = 32  # indices that are looked at one by one: that is over before a kernel for their extremes has begun


Checks = Mapping[Node, tuple[IndexCheck, ...]]


def with_index_checks(graph: Graph, target: Target) -> tuple[Graph, Checks]:
    """The graph with the extremes of indices that may be out of bounds; and the checks, by the nodes that rely on them."""
    if not any(node.op in (ops.gather, ops.scatter) for node in graph.nodes):
        return graph, {}
    finder = _Finder(graph, target)
    for node in graph.nodes:
        if node.op in (ops.gather, ops.scatter):
            finder.look_at(node)
        finder.nodes.append(node)
        finder.note(node)
    return replace(graph, nodes=tuple(finder.nodes)), finder.checks


class _Finder:
    def __init__(self, graph: Graph, target: Target) -> None:
        self.makers, self.known = graph.producers(), intervals(graph)
        self.may_reduce = "block" not in target.kinds  # threads of blocks look at each index by itself
        self.nodes: list[Node] = []
        self.checks: dict[Node, tuple[IndexCheck, ...]] = {}
        self._made: dict[tuple[Value, int, Size], IndexCheck] = {}
        self._extremes: dict[tuple[object, Value], Value] = {}

    def look_at(self, node: Node) -> None:
        found = [
            self.check(self.source(index), axis, node.inputs[0].shape[axis], node, below, beyond)
            for axis, index, below, beyond in indices_outside(node, self.known)
            if 0 not in index.shape
        ]
        if found:
            self.checks[node] = tuple(found)

    def source(self, index: Value) -> Value:
        """What has the same elements, in the same order but for repetitions."""
        while (maker := self.makers.get(index)) is not None:
            operand = maker.inputs[0] if maker.inputs else index
            if maker.op is ops.convert:
                # The message shows a number of 64 bits, which those of more are not.
                is_same = is_integer(operand.dtype) and np.can_cast(operand.dtype, I64)
                is_same = is_same and np.can_cast(operand.dtype, index.dtype)
            elif maker.op is ops.broadcast:
                is_same = all(isinstance(n, int) for n in index.shape)
            else:
                is_same = maker.op is ops.reshape and operand.aval.is_static and index.aval.is_static
            if not is_same:
                break
            index = operand
        return index

    def check(self, index: Value, axis: int, size: Size, node: Node, low: bool, high: bool) -> IndexCheck:
        if (known := self._made.get((index, axis, size))) is not None:
            return known
        source = index
        check = IndexCheck(index, axis, size, node)
        if self.may_reduce and index.capacity > FEW:
            if not np.can_cast(index.dtype, I64):
                source = self._add(ops.convert, index, index.aval.with_dtype(I64), {"dtype": I64}, node)
            least = self.extreme(ops.reduce_min, source, node) if low else None
            check = replace(check, low=least, high=self.extreme(ops.reduce_max, source, node) if high else None)
        self._made[index, axis, size] = check
        return check

    def extreme(self, op: Op, index: Value, node: Node) -> Value:
        """The least or the greatest index: one that the graph has anyway, as `bincount` does, or a new one."""
        known = self._extremes.get((op, index))
        if known is None:
            axes = tuple(range(index.ndim))
            known = self._extremes[op, index] = self._add(op, index, index.aval.with_shape(()), {"axes": axes}, node)
        return known

    def note(self, node: Node) -> None:
        """Remember an extreme that the graph has."""
        if node.op in (ops.reduce_min, ops.reduce_max) and node.output.ndim == 0:
            self._extremes.setdefault((node.op, self.source(node.inputs[0])), node.output)

    def _add(self, op: Op, operand: Value, aval: Aval, params: dict[str, Any], node: Node) -> Value:
        out = Value(aval)
        self.nodes.append(Node(op, (operand,), params, (out,), node.source))
        return out
