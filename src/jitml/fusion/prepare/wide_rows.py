"""Wide rows: what rows of halves come to is computed in float32, where it is a softmax or a reduction.

A pass over tiles (`chains.py`) adds up tile by tile: in halves, each tile would round what it adds to. So reductions, the
exponentials of a softmax and its quotients are float32, and rounded to the halves that the graph says. All else stays as it is.
"""

from __future__ import annotations

from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.prepare.chains import spread_of, unrounded
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import F16, F32


def with_wide_rows(graph: Graph) -> Graph:
    """The graph with such rows, if they are of the shape of products of halves; the same one if there are none."""
    halves = {node.output for node in graph.nodes if node.op is ops.convert and node.inputs[0].dtype == F16}
    products = [node for node in graph.nodes if node.op is ops.dot_general and halves.issuperset(node.inputs)]
    shapes = {node.output.shape for node in products}
    if not shapes:
        return graph

    def visit(node: Node, producers: Producers) -> Value | None:
        if len(node.outputs) != 1 or not node.inputs or node.inputs[0].dtype != F16 or node.inputs[0].shape not in shapes:
            return None
        wide = _wide(node, producers)
        return None if wide is None else ops.convert(wide, dtype=F16)

    return sweep(graph, visit)


def _wide(node: Node, producers: Producers) -> Value | None:
    """What a node computes, in float32."""
    if node.op in REDUCTIONS:
        found: Value = node.op(ops.convert(node.inputs[0], dtype=F32), **node.params)
        return found
    if node.op is ops.exp:
        difference = producers.get(node.inputs[0])
        if difference is None or difference.op is not ops.sub:
            return None
        scores, spread = difference.inputs
        top = spread_of(spread, producers, is_rounded=True)
        if top is None or top.op is not ops.reduce_max:
            return None
        wide = producers.get(top.inputs[0])
        if wide is None or wide.op is not ops.convert or wide.inputs != (scores,):
            return None
        return ops.exp(ops.sub(top.inputs[0], _before_rounding(spread, producers)))
    if node.op is ops.div:
        weights, spread = node.inputs
        total, narrow = spread_of(spread, producers, is_rounded=True), producers.get(weights)
        if total is None or total.op is not ops.reduce_sum or narrow is None or narrow.op is not ops.convert:
            return None
        if unrounded(total.inputs[0], producers) is narrow.inputs[0]:
            return ops.div(narrow.inputs[0], _before_rounding(spread, producers))
    return None


def _before_rounding(value: Value, producers: Producers) -> Value:
    """The float32 that a half, or a view of halves, has been rounded from."""
    maker = producers[value]
    if maker.op is ops.convert:
        return maker.inputs[0]
    wide: Value = maker.op(_before_rounding(maker.inputs[0], producers), **maker.params)
    return wide
