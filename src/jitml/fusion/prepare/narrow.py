"""Narrow integers: `((a.astype(np.int32) * 3 + b) >> 2).astype(np.uint8)` of bytes is computed in 16 bits.

Users widen small integers so that sums do not overflow, and NumPy widens some itself. A vector holds twice as many numbers of
half the width. Sums, products and logical operations have the same low bits at any width. What looks at high bits (a shift to the
right, a division, a comparison) needs operands that fit: by their limits (`ir/analysis/limits.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from jitml.ir import ops
from jitml.ir.analysis.limits import Limits, dtype_limits, intervals
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import DTYPES, I32, DType, is_integer
from jitml.records import dataclass, field

_FEW = 64  # elements that are no vectors
_MOST_NODES = 64
_COMPARISONS = frozenset((ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge))
# Low bits of the result depend on the same of the operands alone.
_MODULAR = frozenset((ops.add, ops.sub, ops.mul, ops.neg, ops.bit_and, ops.bit_or, ops.bit_xor, ops.bit_not))
_EXACT = frozenset((ops.minimum, ops.maximum, ops.abs))
_BY_POSITIVE = frozenset((ops.shift_right, ops.floor_divide, ops.remainder))
_SCANS = frozenset((ops.cumsum, ops.cummax, ops.cummin))  # sums that wrap around have the same low bits, too
_MOVES = frozenset((ops.slice, ops.flip, ops.transpose, ops.broadcast))


def narrow_integers(graph: Graph) -> Graph:
    """The same graph, where integers are computed in fewer bits if that gives the same results, and no array is wider."""
    graph = _narrow_scans(graph)
    roots = [node for node in graph.nodes if _is_root(node)]
    if not roots:
        return graph
    makers, users, limits = graph.producers(), graph.users(), intervals(graph)
    narrow: dict[Node, DType] = {}
    for root in roots:
        tree = _Tree(makers)
        dtype = tree.dtype(root, limits) if tree.grow(root) and tree.is_alone(root, users, graph.outputs) else None
        if dtype is not None:
            narrow[root] = dtype
    if not narrow:
        return graph
    b = GraphBuilder()
    for value in graph.inputs:
        b.keep_input(value)
    for node in graph.nodes:
        if node in narrow:
            with recording(b), b.at(node.source):
                made: dict[Value, Value] = {}
                inputs = tuple([_narrowed(v, narrow[node], makers, made) for v in node.inputs])
            node = Node(node.op, inputs, node.params, node.outputs, node.source)
        b.append(node)
    return replace(b.build(graph.outputs), names=graph.names)


def _narrow_scans(graph: Graph) -> Graph:
    """Running counts, sums and extremes that fit in 32 bits are kept in these: they lie in memory, whoever reads them."""
    scans = [node for node in graph.nodes if node.op in _SCANS and node.output.dtype.kind in "iu"]
    if not scans:
        return graph
    limits = intervals(graph)
    first, last = dtype_limits(I32)

    def fits(node: Node) -> bool:
        low, high = limits.get(node.output) or dtype_limits(node.output.dtype)
        return node.output.dtype.itemsize == 8 and first <= low and high <= last and node.output not in graph.outputs

    narrow = {node.output for node in scans if node.output.capacity >= _FEW and fits(node)}

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if narrow.isdisjoint(node.outputs):
            return None
        short = node.op(ops.convert(node.inputs[0], dtype=I32), **node.params)
        return (ops.convert(short, dtype=node.output.dtype),)

    return sweep(graph, visit)


def _is_root(node: Node) -> bool:
    """Whether only low bits of what a node reads are wanted, or numbers are compared."""
    if node.op is not ops.convert and node.op not in _COMPARISONS:
        return False
    (x, *_), out = node.inputs, node.output
    if not is_integer(x.dtype) or not out.aval.is_static or out.capacity < _FEW or x.dtype.itemsize == 1:
        return False
    return node.op in _COMPARISONS or (is_integer(out.dtype) and out.dtype.itemsize < x.dtype.itemsize)


@dataclass(slots=True)
class _Tree:
    """What a root is computed from.

    Args:
        inner: nodes that are computed in fewer bits.
        exact: values of which more than the low bits counts.
        bits: of the widest array that it is made of.
    """

    makers: Mapping[Value, Node]
    inner: dict[Node, None] = field(default_factory=dict)
    exact: list[Value] = field(default_factory=list)
    bits: int = 0

    def grow(self, root: Node) -> bool:
        """Look at all that belongs to it; False if that is too much, or nothing."""
        left = list(root.inputs)
        if root.op in _COMPARISONS:
            self.exact += root.inputs
        while left:
            value = left.pop()
            node = self.makers.get(value)
            if node in self.inner:
                continue
            operands = _operands(node, self.makers) if node is not None else None
            if operands is None or node is None:
                self.bits = max(self.bits, _leaf_bits(value, node))
                continue
            self.inner[node] = None
            if node.op in _EXACT or node.op in _BY_POSITIVE:
                self.exact += node.inputs
            left += operands
            if len(self.inner) > _MOST_NODES:
                return False
        return any(node.op.is_pointwise and node.op is not ops.convert for node in self.inner) or root.op in _COMPARISONS

    def is_alone(self, root: Node, users: Mapping[Value, list[Node]], outputs: Sequence[Value]) -> bool:
        """Whether nobody else wants what it computes."""
        counted = [node for node in self.inner if node.op.is_pointwise and node.op is not ops.convert]
        if any(node.output in outputs for node in counted):
            return False
        return all(user is root or user in self.inner for node in counted for user in users[node.output])

    def dtype(self, root: Node, limits: Mapping[Value, Limits]) -> DType | None:
        """The narrowest that does, if it is narrower than what is there."""
        least = root.output.dtype.itemsize * 8 if root.op is ops.convert else 8
        ends = [limits.get(v) or dtype_limits(v.dtype) for v in self.exact]
        low, high = min((a for a, _ in ends), default=0), max((b for _, b in ends), default=0)
        for bits in (8, 16, 32):
            if max(least, self.bits) <= bits < root.inputs[0].dtype.itemsize * 8:
                dtype = DTYPES[f"{'u' if low >= 0 else 'i'}{bits}"]
                first, last = dtype_limits(dtype)
                if first <= low and high <= last:
                    return dtype
        return None


def _operands(node: Node, makers: Mapping[Value, Node]) -> list[Value] | None:
    """The operands that are computed in fewer bits with a node; None if the node is not."""
    if len(node.outputs) != 1 or not is_integer(node.output.dtype):
        return None
    if node.op in _MODULAR or node.op in _EXACT or node.op in _MOVES:
        return list(node.inputs)
    if node.op is ops.select:
        return list(node.inputs[1:])
    if node.op in _BY_POSITIVE or node.op is ops.shift_left:
        by = makers.get(node.inputs[1])
        least = 0 if node.op in (ops.shift_left, ops.shift_right) else 1
        most = 63 if node.op is ops.shift_left else inf  # a larger one is another number in few bits
        return list(node.inputs) if by is not None and by.op is ops.full and least <= by.params["value"] <= most else None
    if node.op is not ops.convert or not is_integer(node.inputs[0].dtype):
        return None
    return list(node.inputs) if node.inputs[0].dtype.itemsize >= node.output.dtype.itemsize else None


def _leaf_bits(value: Value, node: Node | None) -> int:
    """Of an array that is read as it is; none of a number."""
    if value.capacity == 1 or (node is not None and node.op is ops.full):
        return 0
    source = node.inputs[0] if node is not None and node.op is ops.convert else value
    return 8 * (source if source.dtype.kind in "biu" else value).dtype.itemsize


def _narrowed(value: Value, dtype: DType, makers: Mapping[Value, Node], made: dict[Value, Value]) -> Value:
    """A value of a tree in another dtype."""
    if value in made:
        return made[value]
    node = makers.get(value)
    operands = _operands(node, makers) if node is not None else None
    result: Value
    if node is not None and operands is not None:
        parts = [_narrowed(v, dtype, makers, made) for v in operands]
        others = node.inputs[: len(node.inputs) - len(operands)]
        result = parts[0] if node.op is ops.convert else node.op(*others, *parts, **node.params)
    elif node is not None and node.op is ops.full:
        number = np.array(node.params["value"], value.dtype).astype(dtype)
        result = ops.full(value=int(number), shape=value.shape, dtype=dtype)
    else:
        source = node.inputs[0] if node is not None and node.op is ops.convert else value
        source = source if source.dtype.kind in "biu" else value
        result = source if source.dtype == dtype else ops.convert(source, dtype=dtype)
    made[value] = result
    return result


__all__ = ["narrow_integers"]
