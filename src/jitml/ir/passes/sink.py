"""Sinking transposes and reshapes into contractions."""

from __future__ import annotations

from collections import Counter

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.rewrite import Producers, sweep

Ints = tuple[int, ...]


def sink_into_contractions(graph: Graph) -> Graph:
    """`dot_general(transpose x, y) -> dot_general(x, y)` with the axes renamed: BLAS reads either order for free.

    Fires for an operand whose free axes keep their order, so that the result needs no transpose in turn; and a transpose of
    a plain matrix product that nothing else reads swaps the operands instead. (Else there would be two products, of which one
    is not quite the transpose of the other.)
    """
    if ops.dot_general not in graph.ops:
        return graph
    uses = Counter(v for node in graph.nodes for v in node.inputs) + Counter(graph.outputs)
    alone = {node.output for node in graph.nodes if node.op is ops.transpose and uses[node.inputs[0]] == 1}

    def visit(node: Node, producers: Producers) -> Value | None:
        if node.op is ops.dot_general:
            return _sink_operand(node, producers)
        if node.op is ops.transpose and node.output in alone:
            return _swap_operands(node, producers)
        return None

    return sweep(graph, visit)


def _sink_operand(node: Node, producers: Producers) -> Value | None:
    operands, batch, contract = list(node.inputs), list(node.params["batch"]), list(node.params["contract"])
    fired = False
    for side in (0, 1):
        maker = producers.get(operands[side])
        while maker is not None and maker.op is ops.transpose:
            perm: Ints = maker.params["perm"]
            free = [perm[a] for a in ops.free_axes(len(perm), batch[side], contract[side])]
            if free != sorted(free):
                break
            operands[side] = maker.inputs[0]
            batch[side] = tuple(perm[a] for a in batch[side])
            contract[side] = tuple(perm[a] for a in contract[side])
            fired = True
            maker = producers.get(operands[side])
    if not fired:
        return None
    return ops.dot_general(*operands, batch=tuple(batch), contract=tuple(contract))


def _swap_operands(node: Node, producers: Producers) -> Value | None:
    """transpose(x @ y) with only free axes, x's before y's -> y @ x."""
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.dot_general or maker.params["batch"] != ((), ()):
        return None
    x, y = maker.inputs
    (cx, cy) = maker.params["contract"]
    rows = x.ndim - len(cx)
    if node.params["perm"] != (*range(rows, node.output.ndim), *range(rows)):
        return None
    return ops.dot_general(y, x, batch=((), ()), contract=(cy, cx))
