"""Expansion of composed ops: which ops are other ops in disguise?

Rewritten before grouping, so that they fuse like what they are.

The first position of an extreme is a minimum over positions; a contraction that no BLAS routine serves is a product
and a sum; one element of each row, taken or put where labels say, is a comparison of the labels with positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from jitml.fusion.lower.argreduce import LONG
from jitml.fusion.lower.reductions import Reduction
from jitml.ir import ops
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import RuleTable, recording
from jitml.ir.ops.contraction import free_axes
from jitml.ir.passes.unroll import is_short_product
from jitml.ir.types import BOOL, F32, I64
from jitml.kernels.target import GEMM, Accepts
from jitml.records import dataclass

MOST_LABELS = 256  # up to which a row is searched for the label's element rather than stored and indexed


@dataclass(frozen=True)
class Surroundings:
    """What a rule may ask about the graph: who makes a value, how many nodes use it; and what the library multiplies."""

    makers: Mapping[Value, Node]
    uses: Mapping[Value, int]
    gemm: Accepts | None = None


expansion: RuleTable[Callable[..., Value | None]] = RuleTable("expansion", "fusion/lower")


def expand(graph: Graph, gemm: Accepts | None = GEMM) -> Graph:
    """The same graph with each op that has an expansion replaced by it.

    Args:
        gemm: what matrix products the target's library takes, if it has any.
    """
    if not any(node.op in expansion for node in graph.nodes):
        return graph
    uses = Counter(v for node in graph.nodes if node.op is not ops.observe for v in node.inputs)
    around = Surroundings(graph.producers(), uses, gemm)
    b = GraphBuilder()
    env: dict[Value, Value] = {v: b.add_input(v.aval) for v in graph.inputs}
    with recording(b):
        for node in graph.nodes:
            inputs = tuple(env[v] for v in node.inputs)
            with b.at(node.source):
                rule = expansion.get(node.op)
                result = rule(around, node, *inputs) if rule is not None else None
                if result is not None:
                    env[node.output] = result
                    if node.op in (ops.gather, ops.scatter):  # stays, unused, so that its indices are checked
                        b.append(Node(node.op, inputs, node.params, (Value(node.output.aval),), node.source))
                    continue
            outputs = tuple(Value(v.aval) for v in node.outputs)
            b.append(Node(node.op, inputs, node.params, outputs, node.source))
            env.update(zip(node.outputs, outputs, strict=True))
    return b.build([env[v] for v in graph.outputs])


@expansion.rule(ops.argmax, ops.argmin)
def expand_argreduce(around: Surroundings, node: Node, x: Value) -> Value | None:
    """The least position of the extreme. Long rows that lie in memory are not worth reading twice (`argreduce.py`)."""
    axis, n = node.params["axis"], bound(x.shape[node.params["axis"]])
    if axis == x.ndim - 1 and n > LONG and x.dtype != BOOL and _is_given(around, node.inputs[0]):
        return None
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


def _is_given(around: Surroundings, value: Value) -> bool:
    """Whether a value is an input, perhaps reshaped."""
    node = around.makers.get(value)
    return node is None or (node.op is ops.reshape and _is_given(around, node.inputs[0]))


@expansion.rule(ops.dot_general)
def expand_contraction(around: Surroundings, node: Node, x: Value, y: Value) -> Value | None:
    """A product and a sum, unless BLAS does better: integers, halves, outer products, small and tall matrices."""
    (xb, yb), (xc, yc) = node.params["batch"], node.params["contract"]
    xf, yf = free_axes(x.ndim, xb, xc), free_axes(y.ndim, yb, yc)
    batch, m, n, k = (_extent(v, axes) for v, axes in ((x, xb), (x, xf), (y, yf), (x, xc)))
    gemm = around.gemm
    in_loops = _loops_win(bound(m), bound(n), bound(k), GEMM.small if gemm is None else gemm.small)
    in_loops = in_loops or (gemm is not None and gemm.is_dense and _is_of_a_window(around, node, xf))
    if gemm is not None and gemm.takes(x.dtype) and not in_loops:
        if x.aval.is_static and y.aval.is_static:
            if k > 1 and node.output.size:
                return None
        elif gemm.sized and isinstance(batch, int):
            if all(_is_long(v, axes, gemm.small) for v, axes in ((x, xf), (y, yf), (x, xc))):
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


def _loops_win(m: int, n: int, k: int, small: int) -> bool:
    if max(m, n, k) <= small:
        return True
    return m == 1 or n == 1  # bound by memory: worth fusing with what comes before and after


def _is_of_a_window(around: Surroundings, node: Node, free: tuple[int, ...]) -> bool:
    """Whether a short product is of a window, of which the library would need a copy: the layer of a convolution."""
    window = around.makers.get(node.inputs[0])
    if window is None or window.op is not ops.slice or not is_short_product(node):
        return False
    return any(window.output.shape[a] != window.inputs[0].shape[a] for a in free[1:])


def _is_long(v: Value, axes: tuple[int, ...], small: int) -> bool:
    """Whether axes are one to BLAS though the first may be known only at run time, and can be so long that windows are worth
    copying for it."""
    return all(isinstance(v.shape[a], int) for a in axes[1:]) and bound(_extent(v, axes)) > small


def _extent(v: Value, axes: tuple[int, ...]) -> Size:
    size: Size = 1
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


@expansion.rule(ops.gather)
def expand_gather(around: Surroundings, node: Node, x: Value, *indices: Value) -> Value | None:
    """One element of each row of a value that nothing else needs: found by its label on the pass that computes it."""
    maker = around.makers.get(node.inputs[0])
    if maker is None or not maker.op.is_pointwise or around.uses[node.inputs[0]] > 1:
        return None
    found = _labelled(around, node, 1, x, indices)
    if found is None:
        return None
    condition, axes = found
    if _extent(x, axes) > MOST_LABELS:
        return None
    if x.dtype == BOOL:
        result: Value = ops.reduce_any(ops.bit_and(condition, x), axes=axes)
        return result
    # The greatest of one element and the least there is: exact, for nan and -0.0 too.
    least = Reduction("max").identity(x.dtype)
    result = ops.reduce_max(ops.select(condition, x, ops.full(value=least, shape=x.shape, dtype=x.dtype)), axes=axes)
    return result


@expansion.rule(ops.scatter)
def expand_scatter(around: Surroundings, node: Node, x: Value, v: Value, *indices: Value) -> Value | None:
    """One element of each row of a constant changed: all of it is written anyway."""
    maker = around.makers.get(node.inputs[0])
    found = _labelled(around, node, 2, x, indices) if maker is not None and maker.op is ops.full else None
    if found is None:
        return None
    condition, axes = found
    spread = ops.broadcast(v, shape=x.shape, axes=tuple(a for a in range(x.ndim) if a not in axes))
    combine = {"add": ops.add, "mul": ops.mul, "min": ops.minimum, "max": ops.maximum}.get(node.params["combine"])
    result: Value = ops.select(condition, spread if combine is None else combine(x, spread), x)
    return result


def _labelled(
    around: Surroundings, node: Node, first: int, x: Value, indices: tuple[Value, ...]
) -> tuple[Value, tuple[int, ...]] | None:
    """If each row is indexed once: where labels meet positions, as a mask over x, and the axes that labels index.

    Some index arrays must count the rows themselves (`np.arange(n)`), so that no two entries meet.
    """
    if not x.aval.is_static:
        return None
    start, depth = node.params["axis"], indices[0].ndim
    rows: dict[int, int] = {}  # dimension of the index arrays -> axis of x that it counts
    labels: dict[int, Value] = {}
    for k, index in enumerate(indices):
        d = _counts(around, node.inputs[first + k])
        if d is not None and d not in rows and x.shape[start + k] == index.shape[d]:
            rows[d] = start + k
        else:
            labels[start + k] = index
    if not labels or sorted(rows) != list(range(depth)) or [rows[d] for d in range(depth)] != sorted(rows.values()):
        return None
    condition: Value | None = None
    for axis, label in labels.items():
        wide = label if label.dtype == I64 else ops.convert(label, dtype=I64)
        wrapped = ops.select(ops.lt(wide, 0), ops.add(wide, x.shape[axis]), wide)
        spread = ops.broadcast(wrapped, shape=x.shape, axes=tuple(rows[d] for d in range(depth)))
        hit = ops.eq(spread, ops.iota(shape=x.shape, axis=axis, dtype=I64))
        condition = hit if condition is None else ops.bit_and(condition, hit)
    assert condition is not None
    return condition, tuple(labels)


def _counts(around: Surroundings, index: Value) -> int | None:
    """The dimension along which an index array counts 0, 1, 2, ... and is constant otherwise."""
    node = around.makers.get(index)
    if node is None:
        return None
    if node.op is ops.iota:
        axis: int = node.params["axis"]
        return axis
    if node.op is ops.broadcast and node.inputs[0].ndim:
        inner = _counts(around, node.inputs[0])
        if inner is not None and node.inputs[0].shape[inner] == index.shape[node.params["axes"][inner]]:
            place: int = node.params["axes"][inner]
            return place
    return None
