"""Where the nodes of a derivative are in the user's text."""

from __future__ import annotations

from jitml.autograd.reverse.linearize import vjp_graph
from jitml.errors import Source
from jitml.ir.graph import Graph, Node
from jitml.ir.text.parser import parse


def test_nodes_of_a_derivative_keep_the_users_line() -> None:
    graph = parse("graph(a: f64[4]) { b: f64[4] = tanh a; c: f64[] = reduce_sum b {axes=(0,)}; return c }")
    here = [Source("model.py", 10 + n, "loss") for n in range(2)]
    nodes = tuple(Node(n.op, n.inputs, n.params, n.outputs, s) for n, s in zip(graph.nodes, here))
    derivative = vjp_graph(Graph(graph.inputs, nodes, graph.outputs), [0])
    assert {n.source for n in derivative.nodes} == set(here)
