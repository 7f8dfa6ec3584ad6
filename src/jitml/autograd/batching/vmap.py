"""Batching: a graph in, recorded once for all rows of a batch.

A batched value has one more axis than its rows, anywhere; which one is noted beside it, and data moves only where an op needs
its axes in another order. What is the same for every row is computed once and never repeated. Each op has a rule that says
what it does to batched operands, filled by `rules/batching/<family>.py`; it is asked only where an operand is batched.

In branches and loops that some rows have left, the others go on: `Batch.active` says which rows still count. Such a part runs
only as long as any row is in it, so what does not depend on the row is as valid there as in a loop over the rows.

Sizes may differ from row to row, too: `ragged.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.batching.ragged import Given, Ragged, RaggedRows
from jitml.autograd.core.batch import Batch, Batched, Operand, is_bound, vmap
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import active_recorder, recording
from jitml.ir.passes.cse import share_common
from jitml.ir.types import Aval


def spread(batch: Batch, graph: Graph, args: Sequence[Operand]) -> list[Operand]:
    """Record a graph for all rows where ops are being recorded; its outputs there. What differs in size is packed."""
    rows, outputs = spread_ragged(batch, graph, args)
    return [rows.packed(x) for x in outputs]


def spread_ragged(batch: Batch, graph: Graph, args: Sequence[Operand]) -> tuple[RaggedRows, list[Given]]:
    """The same, with outputs that differ in size as they are."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    if any(node.op is ops.compress for node in graph.nodes):
        graph = share_common(graph)  # masks are told apart by their values
    env: dict[Value, Given] = {}
    rows = RaggedRows(batch, graph, env)
    for v, x in zip(graph.inputs, args, strict=True):
        env[v] = rows.named(x if isinstance(x, Batched) else b.capture(x), v.shape, True)
    for node in graph.nodes:
        with b.at(node.source):
            env.update(zip(node.outputs, _spread_node(b, rows, node, env), strict=True))
    return rows, [env[v] for v in graph.outputs]


def _spread_node(b: GraphBuilder, rows: RaggedRows, node: Node, env: dict[Value, Given]) -> tuple[Given, ...]:
    given = [env[v] for v in node.inputs]
    if rows.rooms and not rows.rooms.keys().isdisjoint(node.syms) and node.op is not ops.bind:
        return rows.record(node, given)
    operands = [x for x in given if not isinstance(x, Ragged)]
    if node.op is ops.bind:
        env[node.inputs[0]] = rows.bind(node.params["sym"], operands[0])
        if isinstance(operands[0], Batched) or is_bound(b, node.params["sym"]):
            return ()  # each row has its own number; or a size of what surrounds the graph
    if any(isinstance(x, Batched) for x in operands):
        results = vmap[node.op](rows.carrying() if node.graphs else rows.batch, *operands, **node.params)
        return results if isinstance(results, tuple) else (results,)
    values = tuple(x for x in operands if not isinstance(x, Batched))
    outputs: tuple[Value, ...] = b.emit(node.op, values, node.params, tuple(v.aval for v in node.outputs), node.source)
    return outputs


def batch_graph(batch: Batch, graph: Graph, batched: Sequence[bool]) -> tuple[Graph, tuple[bool, ...]]:
    """A graph for all rows: batched inputs and outputs have the rows along their first axis; the counts are its last inputs.

    Args:
        batched: which inputs differ from row to row.

    Returns:
        The graph, and which of its outputs differ from row to row.

    >>> from jitml.ir.text.parser import parse
    >>> print(batch_graph(Batch(8), parse("graph(a: f32[4], b: f32[4]) { c: f32[4] = mul a b; return c }"), (True, False))[0])
    graph(a: f32[8,4], b: f32[4]) {
      c: f32[8,4] = broadcast b {axes=(1,), shape=(8, 4)}
      d: f32[8,4] = mul a c
      return d
    }
    """
    b = GraphBuilder()
    args = batched_inputs(b, batch, graph.in_avals, batched)
    inner = batch.inside(b)
    with recording(b):
        results = spread(inner, graph, args)
        outputs = [inner.front(x) if isinstance(x, Batched) else x for x in results]
    return b.build(outputs), tuple(isinstance(x, Batched) for x in results)


def batched_inputs(b: GraphBuilder, batch: Batch, avals: Sequence[Aval], batched: Sequence[bool]) -> list[Operand]:
    """New inputs for rows, and for what is the same for all."""
    return [
        Batched(b.add_input(batch.of(aval)), 0) if flag else b.add_input(batch.roomy(aval))
        for aval, flag in zip(avals, batched, strict=True)
    ]
