"""Derivatives of drawn graphs: forward and reverse agree, ⟨ct, J dx⟩ = ⟨Jᵀ ct, dx⟩, to second order."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jitml.autograd.core.jvp import jvp_graph
from jitml.autograd.reverse.linearize import linearize, vjp_graph
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from support.strategies import graphs, ordinary_inputs


def inner_products(graph: Graph, seed: int) -> tuple[float, float, float]:
    """⟨ct, J dx⟩, ⟨Jᵀ ct, dx⟩, and the magnitude of what was added up."""
    wrt = range(len(graph.inputs))
    x, dx = ordinary_inputs(graph, seed), ordinary_inputs(graph, seed + 1)
    rng = np.random.default_rng(seed + 2)
    ct = [np.asarray(rng.normal(size=aval.shape)) for aval in graph.out_avals]
    n = len(graph.outputs)
    dy = interpret(verify(jvp_graph(graph, wrt)), [*x, *dx])[n:]
    moving = linearize(graph, wrt).moving
    pulled = interpret(verify(vjp_graph(graph, wrt)), [*x, *(ct[i] for i in moving)])[n:]
    forward, backward = (float(sum(np.sum(a * b) for a, b in zip(*pair))) for pair in ((ct, dy), (pulled, dx)))
    size = sum(float(np.sum(np.abs(a * b))) for pair in ((ct, dy), (pulled, dx)) for a, b in zip(*pair))
    return forward, backward, size


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 99))
def test_reverse_is_the_transpose_of_forward(graph: Graph, seed: int) -> None:
    forward, backward, size = inner_products(graph, seed)
    assume(np.isfinite(size) and size < 1e6)
    assert abs(forward - backward) <= 1e-9 * (1 + size)


@settings(max_examples=25, deadline=None)
@given(graphs(max_nodes=5), st.integers(0, 99))
def test_second_order(graph: Graph, seed: int) -> None:
    forward, backward, size = inner_products(vjp_graph(graph, range(len(graph.inputs))), seed)
    assume(np.isfinite(size) and size < 1e6)
    assert abs(forward - backward) <= 1e-9 * (1 + size)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 99))
def test_passes_keep_gradients(graph: Graph, seed: int) -> None:
    derivative = vjp_graph(graph, range(len(graph.inputs)))
    x = ordinary_inputs(derivative, seed)
    for plain, passed in zip(interpret(derivative, x), interpret(run_passes(derivative, check=True), x)):
        np.testing.assert_allclose(passed, plain, rtol=1e-9, atol=1e-9)
