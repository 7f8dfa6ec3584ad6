"""Derivatives all the way down: compiled, they are what the graph's interpreter says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from jitml.autograd.reverse.linearize import vjp_graph
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import F64, aval_of
from jitml.pipeline import compile_graph
from support.op_cases import CASES, OpCase
from support.strategies import graphs, ordinary_inputs

SMOOTH = [case for case in CASES.values() if case.smooth is not None]


@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.op.name)
def test_pullback_of_each_op(case: OpCase) -> None:
    sample = case.samples[0]
    x = list(case.inputs(sample, F64, smooth=True))
    b = GraphBuilder()
    values = [b.add_input(aval_of(v)) for v in x]
    with recording(b):
        graph = b.build([case.op(*values, **sample.params)])
    backward = vjp_graph(graph, [i for i, v in enumerate(x) if v.dtype == F64])
    rng = np.random.default_rng(0)
    args = x + [rng.normal(size=v.shape) for v in backward.inputs[len(x) :]]
    for got, expected in zip(compile_graph(backward)(*args), interpret(backward, args)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None, phases=[Phase.generate, Phase.explicit], suppress_health_check=list(HealthCheck))
@given(graphs(), st.booleans(), st.integers(0, 9))
def test_drawn_graphs(graph: Graph, differentiate: bool, seed: int) -> None:
    """Not shrunk, since each step compiles: run `compile_graph` on the printed graph by hand."""
    if differentiate:
        graph = vjp_graph(graph, range(len(graph.inputs)))
    args = ordinary_inputs(graph, seed)
    wanted = interpret(graph, args)
    assume(all(np.all(np.abs(w) < 1e6) for w in wanted))
    for got, expected in zip(compile_graph(graph)(*args), wanted):
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8, err_msg=str(graph))
