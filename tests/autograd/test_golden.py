"""What gradients look like, as text that reads like a derivation by hand."""

from __future__ import annotations

from jitml.autograd.core.jvp import jvp_graph
from jitml.autograd.reverse.linearize import vjp_graph
from jitml.errors import Source
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph, Node
from jitml.ir.passes import run_passes
from jitml.ir.printer import show
from jitml.ir.text.parser import parse
from support import golden_files


def float_inputs(graph: Graph) -> list[int]:
    return [i for i, aval in enumerate(graph.in_avals) if aval.dtype.kind == "f"]


def test_reverse_mode() -> None:
    def transform(title: str, before: str) -> str:
        graph = parse(before)
        return show(verify(vjp_graph(graph, float_inputs(graph))))

    golden_files.check("autograd/vjp.txt", transform)


def test_forward_mode() -> None:
    def transform(title: str, before: str) -> str:
        graph = parse(before)
        return show(verify(jvp_graph(graph, [0])))

    golden_files.check("autograd/jvp.txt", transform)


def test_simplified_gradients() -> None:
    def transform(title: str, before: str) -> str:
        graph = parse(before)
        return show(verify(run_passes(vjp_graph(graph, float_inputs(graph)))))

    golden_files.check("autograd/simplified.txt", transform)


def test_nodes_of_a_derivative_keep_the_users_line() -> None:
    graph = parse("graph(a: f64[4]) { b: f64[4] = tanh a; c: f64[] = reduce_sum b {axes=(0,)}; return c }")
    here = [Source("model.py", 10 + n, "loss") for n in range(2)]
    nodes = tuple(Node(n.op, n.inputs, n.params, n.outputs, s) for n, s in zip(graph.nodes, here))
    derivative = vjp_graph(Graph(graph.inputs, nodes, graph.outputs), [0])
    assert {n.source for n in derivative.nodes} == set(here)
