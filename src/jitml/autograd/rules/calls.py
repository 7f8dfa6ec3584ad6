"""Derivatives of calls: what the user has said, or what the call holds, computed again where it may not be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.autograd.core.jvp import Tangent, jvp_of_many, push, push_nodes, zeros_like
from jitml.autograd.core.transpose import (
    Cotangent,
    Cotangents,
    LinearPlace,
    Operand,
    is_linear,
    transpose,
    transpose_graph,
    transpose_of_many,
    zeros,
)
from jitml.autograd.reverse.checkpoint import kept_nodes
from jitml.autograd.reverse.segments import segment_loops
from jitml.autograd.reverse.split import halve
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import active_recorder
from jitml.ir.passes.bodies import inlined
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.rewrite import sweep

Moved = tuple[Sequence[Value], Sequence[Tangent]]


@jvp_of_many.rule(ops.custom_jvp)
def custom_jvp_jvp(node: Node, tangents: Sequence[Tangent]) -> Moved:
    varying, call = node.params["varying"], node.params["call"]
    _require_arguments(node, tangents, varying)
    given = [zeros_like(node.inputs[n]) if (t := tangents[n]) is None else t for n in varying]
    outs = inlined(node.params["rule"], (*node.inputs, *given))
    return _with_tangents(outs[: len(call.outputs)], outs[len(call.outputs) :])


@jvp_of_many.rule(ops.custom_vjp)
def custom_vjp_jvp(node: Node, tangents: Sequence[Tangent]) -> Moved:
    varying, call, backward = (node.params[name] for name in ("varying", "call", "backward"))
    _require_arguments(node, tangents, varying)
    outs = inlined(node.params["forward"], node.inputs)
    results, residuals = outs[: len(call.outputs)], outs[len(call.outputs) :]
    there = [(t, ct) for n, ct in zip(varying, backward.outputs) if (t := tangents[n]) is not None]
    alone = eliminate_dead(replace(backward, outputs=tuple(ct for _, ct in there)))
    moved = ops.pull_back(*residuals, *(t for t, _ in there), backward=alone, residuals=len(residuals), name=node.params["name"])
    return _with_tangents(results, moved)


def _with_tangents(results: Sequence[Value], moved: Sequence[Value]) -> Moved:
    remaining = iter(moved)
    return results, [next(remaining) if v.dtype.kind in "fc" else None for v in results]


def _require_arguments(node: Node, tangents: Sequence[Tangent], varying: Sequence[int]) -> None:
    """What a rule of the user's says nothing of has to be constant."""
    if any(t is not None for n, t in enumerate(tangents) if n not in varying):
        raise DerivativeError(
            f"{node.params['name']} uses a variable that is differentiated without being given it as an argument",
            source=node.source,
            remedy="Its rule says nothing of such a variable: pass it as an argument, or stop_gradient it.",
        )


@transpose_of_many.rule(ops.pull_back)
def pull_back_transpose(
    node: Node, operands: Sequence[Operand], cts: Sequence[Value | None], cotangents: Cotangents
) -> Sequence[Cotangent]:
    count = node.params["residuals"]
    dense = [zeros(v.aval) if ct is None else ct for v, ct in zip(node.outputs, cts, strict=True)]
    residuals = [x for x in operands[:count] if isinstance(x, Value)]
    return [*(None for _ in residuals), *inlined(node.params["backward"], (*residuals, *dense))]


@jvp_of_many.rule(ops.pull_back)
def pull_back_jvp(node: Node, tangents: Sequence[Tangent]) -> Moved:
    return _push_through(forward_of(node), node, tangents)


def expand_pulls(graph: Graph) -> Graph:
    """The same linear maps, by their transposes: for forward mode, which goes where `backward` came from.

    Raises:
        DerivativeError: a rule is not linear in its cotangent, or not seen to be.
    """
    nodes = tuple(
        replace(node, params={**node.params, **{name: expand_pulls(held) for name, held in node.graphs.items()}})
        if node.graphs and node.op is not ops.pull_back
        else node
        for node in graph.nodes
    )
    if not any(node.op is ops.pull_back for node in nodes):
        return graph if all(a is b for a, b in zip(nodes, graph.nodes)) else replace(graph, nodes=nodes)
    graph = replace(graph, nodes=nodes)
    return sweep(graph, lambda node, _: inlined(forward_of(node), node.inputs) if node.op is ops.pull_back else None)


def forward_of(node: Node) -> Graph:
    """The map of tangents whose transpose a `pull_back` holds."""
    backward, count = node.params["backward"], node.params["residuals"]
    linear = set(backward.inputs[count:])
    for inner in backward.nodes:
        reached = [v in linear for v in inner.inputs]
        if not any(reached):
            continue
        if not is_linear(inner, reached):
            raise DerivativeError(
                f"{node.params['name']} has a custom vjp, which forward mode cannot use: {inner.op} of a cotangent is not linear",
                source=node.source,
                remedy="Define it with jitml.custom_jvp, which serves both modes.",
            )
        linear.update(inner.outputs)
    return eliminate_dead(transpose_graph(backward, count))


@jvp_of_many.rule(ops.checkpoint)
def checkpoint_jvp(node: Node, tangents: Sequence[Tangent]) -> Moved:
    """Results and what is kept, computed now; tangents from a graph that computes the rest again."""
    call: Graph = node.params["call"]
    if node.params["policy"] == "sqrt":
        return _push_through(segment_loops(call), node, tangents)
    wrt = [n for n, t in enumerate(tangents) if t is not None]
    b = GraphBuilder()
    values, moved = push(b, call, wrt)
    derivative = b.build([*values, *(t for t in moved if t is not None)])
    halves = halve(derivative, derivative.inputs[len(call.inputs) :])
    known = Graph(tuple(halves.known.inputs), tuple(halves.known.nodes), ())
    results, linear_outputs = halves.outputs[: len(values)], halves.outputs[len(values) :]
    kept = kept_nodes(node.params["policy"], known.nodes, halves.read(linear_outputs))
    remade = tuple(inner for inner in known.nodes if inner not in kept)
    again = eliminate_dead(Graph((), (*remade, *halves.linear), tuple(linear_outputs)))
    read = {v for inner in again.nodes for v in inner.inputs}.union(again.outputs)
    saved = [v for inner in kept for v in inner.outputs if v in read]
    forward = eliminate_dead(replace(known, outputs=(*results, *saved)))
    outs = inlined(forward, node.inputs)
    operands = (*node.inputs, *outs[len(values) :])
    linear = replace(again, inputs=(*known.inputs, *saved, *halves.inputs[len(call.inputs) :]))
    found = iter(ops.again(*operands, *(tangents[n] for n in wrt), linear=linear, known=len(operands)))
    return outs[: len(values)], [None if t is None else next(found) for t in moved]


@transpose_of_many.rule(ops.again)
def again_transpose(
    node: Node, operands: Sequence[Operand], cts: Sequence[Value | None], cotangents: Cotangents
) -> Sequence[Cotangent]:
    linear, count = node.params["linear"], node.params["known"]
    there = [(v, ct) for v, ct in zip(linear.outputs, cts, strict=True) if ct is not None]
    wanted = eliminate_dead(replace(linear, outputs=tuple(v for v, _ in there)))
    pull = eliminate_dead(transpose_graph(wanted, count))
    known = [ops.barrier(x) for x in operands[:count] if not isinstance(x, LinearPlace)]
    found = inlined(pull, (*known, *(ct for _, ct in there)))
    return [*(None for _ in known), *(None if _is_zero(v) else v for v in found)]


def _is_zero(value: Value) -> bool:
    b = active_recorder()
    maker = b.maker(value) if isinstance(b, GraphBuilder) else None
    return maker is not None and maker.op is ops.full and maker.params["value"] == 0


@jvp_of_many.rule(ops.again)
def again_jvp(node: Node, tangents: Sequence[Tangent]) -> Moved:
    return _push_through(node.params["linear"], node, tangents)


def _push_through(graph: Graph, node: Node, tangents: Sequence[Tangent]) -> Moved:
    """A call's derivative as that of the nodes it holds."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    there = {v: t for v, t in zip(graph.inputs, tangents, strict=True) if t is not None}
    return push_nodes(b, graph, dict(zip(graph.inputs, node.inputs, strict=True)), there)


@transpose.rule(ops.keep)
def keep_transpose(ct: Value, x: Operand, *, name: str) -> tuple[Cotangent, ...]:
    return (ct,)


@transpose.rule(ops.barrier)
def barrier_transpose(ct: Value, x: Operand) -> tuple[Cotangent, ...]:
    return (ct,)
