"""Which ops are other ops in disguise?  Rewritten before grouping, so that they fuse like what they are.

The first position of an extreme is a minimum over positions; a contraction that no BLAS routine serves is a product
and a sum.
"""

from __future__ import annotations

from collections.abc import Callable

from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import RuleTable, recording
from jitml.ir.ops.contraction import free_axes
from jitml.ir.types import BOOL, F32, F64, I64

SMALL = 8  # extents up to which loops beat a library call

expansion: RuleTable[Callable[..., Value | None]] = RuleTable("expansion", "fusion/lower")


def expand(graph: Graph) -> Graph:
    """The same graph with each op that has an expansion replaced by it."""
    if not any(node.op in expansion for node in graph.nodes):
        return graph
    b = GraphBuilder()
    env: dict[Value, Value] = {v: b.add_input(v.aval) for v in graph.inputs}
    with recording(b):
        for node in graph.nodes:
            inputs = tuple(env[v] for v in node.inputs)
            with b.at(node.source):
                rule = expansion.get(node.op)
                result = rule(node, *inputs) if rule is not None else None
                if result is not None:
                    env[node.output] = result
                    continue
            outputs = tuple(Value(v.aval) for v in node.outputs)
            b.append(Node(node.op, inputs, node.params, outputs, node.source))
            env.update(zip(node.outputs, outputs, strict=True))
    return b.build([env[v] for v in graph.outputs])


@expansion.rule(ops.argmax, ops.argmin)
def expand_argreduce(node: Node, x: Value) -> Value | None:
    axis, n = node.params["axis"], x.shape[node.params["axis"]]
    reduce = ops.reduce_max if node.op is ops.argmax else ops.reduce_min
    extreme = reduce(x, axes=(axis,))
    kept = tuple(a for a in range(x.ndim) if a != axis)
    found = ops.eq(x, ops.broadcast(extreme, shape=x.shape, axes=kept))
    if x.dtype.kind == "f":
        found = ops.bit_or(found, ops.isnan(x))
    positions = ops.iota(shape=x.shape, axis=axis, dtype=I64)
    last = ops.full(value=n - 1, shape=x.shape, dtype=I64)
    result: Value = ops.reduce_min(ops.select(found, positions, last), axes=(axis,))
    return result


@expansion.rule(ops.dot_general)
def expand_contraction(node: Node, x: Value, y: Value) -> Value | None:
    """A product and a sum, unless BLAS does better: integers, halves, outer products, small and tall matrices."""
    (xb, yb), (xc, yc) = node.params["batch"], node.params["contract"]
    xf, yf = free_axes(x.ndim, xb, xc), free_axes(y.ndim, yb, yc)
    batch, m, n, k = (_extent(v, axes) for v, axes in ((x, xb), (x, xf), (y, yf), (x, xc)))
    if x.dtype in (F32, F64) and k > 1 and node.output.size and not _loops_win(batch, m, n, k):
        return None
    shape = (*node.output.shape, *(x.shape[a] for a in xc))
    nb, nf, ng = len(xb), len(xf), len(yf)
    depth = range(nb + nf + ng, len(shape))
    place_x = {**dict(zip(xb, range(nb))), **dict(zip(xf, range(nb, nb + nf))), **dict(zip(xc, depth))}
    place_y = {**dict(zip(yb, range(nb))), **dict(zip(yf, range(nb + nf, nb + nf + ng))), **dict(zip(yc, depth))}
    left, right = (_spread(v, place, shape) for v, place in ((x, place_x), (y, place_y)))
    if x.dtype == BOOL:
        both = ops.bit_and(left, right)
        result: Value = ops.reduce_any(both, axes=tuple(depth)) if len(depth) else both
        return result
    half = x.dtype.kind == "f" and x.dtype.itemsize == 2
    if half:  # NumPy contracts half precision in single
        left, right = ops.convert(left, dtype=F32), ops.convert(right, dtype=F32)
    result = ops.mul(left, right)
    if len(depth):
        result = ops.reduce_sum(result, axes=tuple(depth))
    return ops.convert(result, dtype=x.dtype) if half else result


def _loops_win(batch: int, m: int, n: int, k: int) -> bool:
    if max(m, n) <= SMALL and k <= SMALL:
        return True
    return m == 1 or n == 1  # bound by memory: worth fusing with what comes before and after


def _extent(v: Value, axes: tuple[int, ...]) -> int:
    size = 1
    for a in axes:
        size *= v.shape[a]
    return size


def _spread(v: Value, place: dict[int, int], shape: tuple[int, ...]) -> Value:
    """Operand axes moved to their places among all axes of a contraction."""
    perm = tuple(sorted(range(v.ndim), key=place.__getitem__))
    if perm != tuple(range(v.ndim)):
        v = ops.transpose(v, perm=perm)
    result: Value = ops.broadcast(v, shape=shape, axes=tuple(place[a] for a in perm))
    return result
