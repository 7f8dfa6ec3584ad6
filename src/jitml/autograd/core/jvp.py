"""Forward mode: a graph in, a graph out that computes tangents beside the values.

Each nonlinear op has a rule here, filled by `rules/<family>.py`; a linear op has none and is its own: it is applied to
the tangents of its float operands, which are the ones it is linear in. A tangent that is zero by structure is `None` and
never becomes an array. Reverse mode is this transform again, transposed (`transpose.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitml.autograd.core.batch import as_value, is_empty
from jitml.autograd.core.hidden_dependences import note_hidden
from jitml.autograd.core.smooth_wholes import with_wholes
from jitml.autograd.core.transpose import transpose
from jitml.ir import ops
from jitml.ir.execute.debug_nans import derived
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import Op, RuleTable, recording
from jitml.ir.types import is_inexact

Tangent = Value | None
# (out, primals, tangents, **params) -> the result's tangent; at least one tangent is not None.
JvpRule = Callable[..., Tangent]

jvp: RuleTable[JvpRule] = RuleTable("jvp", "autograd/rules")

# Of a node with any number of results, its inputs replaced by those here, and their tangents -> (results, their tangents).
# The rule computes the results too: a region carries values and tangents together.
JvpOfMany = Callable[[Node, Sequence[Tangent]], tuple[Sequence[Value], Sequence[Tangent]]]

jvp_of_many: RuleTable[JvpOfMany] = RuleTable("jvp", "autograd/rules")


def zeros_like(x: Value) -> Value:
    """Zeros as a `full`, which fuses into whatever reads it."""
    return ops.full(value=0.0, shape=x.shape, dtype=x.dtype)


def start_like(x: Value) -> Value:
    """What a tangent starts from that is yet to be written where x is: of memory with any contents, such memory."""
    return as_value(ops.empty(shape=x.shape, dtype=x.dtype)) if is_empty(x) else zeros_like(x)


def not_differentiable(*steps: Op) -> None:
    """State that these ops hand no derivative on: steps, whose slope is zero, and results that are no floats."""

    @jvp.rule(*steps)
    def no_tangent(out: Value, primals: Sequence[Value], tangents: Sequence[Tangent], **params: Any) -> Tangent:
        return None


def jvp_graph(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of `(primals, tangents) -> (values, their tangents)`.

    Args:
        graph: what to differentiate.
        wrt: positions of the inputs that vary; float.

    Returns:
        Inputs: those of `graph`, then one tangent for each of `wrt`. Outputs: those of `graph`, then one tangent for
        each float output, zeros where it does not depend on `wrt`.

    >>> from jitml.ir.text.parser import parse
    >>> print(jvp_graph(parse("graph(a: f32[4]) { b: f32[4] = exp a; return b }"), [0]))
    graph(a: f32[4], b: f32[4]) {
      c: f32[4] = exp a
      d: f32[4] = mul b c
      return c d
    }
    """
    b = GraphBuilder()
    values, tangents = push(b, with_wholes(graph), wrt)
    with recording(b):
        dense = [t if t is not None else zeros_like(v) for v, t in zip(values, tangents) if is_inexact(v.dtype)]
    return b.build([*values, *dense])


def push(b: GraphBuilder, graph: Graph, wrt: Sequence[int]) -> tuple[list[Value], list[Tangent]]:
    """Record the values and tangents of a graph's outputs into a fresh builder, whose inputs become `jvp_graph`'s."""
    names = graph.names or ("",) * len(graph.inputs)
    primal = {v: b.add_input(v.aval, name) for v, name in zip(graph.inputs, names)}
    tangent: dict[Value, Value] = {}
    for i in wrt:
        tangent[graph.inputs[i]] = b.add_input(graph.inputs[i].aval, names[i] and f"d{names[i]}")
    return push_nodes(b, graph, primal, tangent)


def push_nodes(
    b: GraphBuilder, graph: Graph, primal: dict[Value, Value], tangent: dict[Value, Value]
) -> tuple[list[Value], list[Tangent]]:
    """Record a graph's values and tangents, given those of its inputs; returns those of its outputs."""
    hidden: set[Value] = set()
    with recording(b):
        for node in graph.nodes:
            with b.at(node.source):
                _push_node(b, node, primal, tangent)
            note_hidden(node, tangent, hidden)
    return [primal[v] for v in graph.outputs], [tangent.get(v) for v in graph.outputs]


def _push_node(b: GraphBuilder, node: Node, primal: dict[Value, Value], tangent: dict[Value, Value]) -> None:
    node_here = Node(node.op, tuple([primal[v] for v in node.inputs]), node.params, node.outputs, node.source)
    tangents = tuple([tangent.get(v) for v in node.inputs])
    if tangents.count(None) == len(tangents) or not any(is_inexact(v.dtype) for v in node.outputs):
        primal.update(zip(node.outputs, _again(b, node_here), strict=True))
        return
    if node.op in jvp_of_many:
        outs, moved = jvp_of_many[node.op](node_here, tangents)
    else:
        outs = _again(b, node_here)
        with b.at(derived(node, "slope")):
            moved = [_moved(node_here, outs, tangents)]
    primal.update(zip(node.outputs, outs, strict=True))
    tangent.update((v, t) for v, t in zip(node.outputs, moved, strict=True) if t is not None)


def _again(b: GraphBuilder, node: Node) -> tuple[Value, ...]:
    outs: tuple[Value, ...] = b.emit(node.op, node.inputs, node.params, tuple(v.aval for v in node.outputs), node.source)
    return outs


def _moved(node: Node, outs: tuple[Value, ...], tangents: tuple[Tangent, ...]) -> Tangent:
    (out,) = outs
    if node.op in jvp or node.op not in transpose:
        return jvp[node.op](out, node.inputs, tangents, **node.params)
    return _apply_linear(node, node.inputs, tangents)


def _apply_linear(node: Node, primals: tuple[Value, ...], tangents: tuple[Tangent, ...]) -> Value:
    """The op itself on the tangents; operands it is not linear in (indices, conditions) stay as they are."""
    operands = [
        x if not is_inexact(x.dtype) else dx if dx is not None else zeros_like(x) for x, dx in zip(primals, tangents, strict=True)
    ]
    return node.op(*operands, **node.params)
