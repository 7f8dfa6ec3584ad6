"""A graph as one Python function gives what the interpreter gives: every op, drawn graphs, regions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regions
import strategies
from jitml.autograd.linearize import vjp_graph
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.parser import parse
from jitml.ir.straight import straight
from jitml.ir.types import F64, I64, Aval, aval_of
from op_cases import CASES, OpCase, results


def agree(graph: Graph, args: list[np.ndarray]) -> None:
    run = straight(graph)
    with np.errstate(all="ignore"):
        results = run(*args)
    for got, expected in zip(results, interpret(graph, args), strict=True):
        got = np.asarray(got)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        # Sums and products may be taken in another order.
        digits = 1e-12 if expected.dtype.kind not in "fc" or np.finfo(expected.dtype).bits == 64 else 1e-2
        np.testing.assert_allclose(got, expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.op.name)
def test_every_op(case: OpCase) -> None:
    for sample in case.samples:
        for dtype in case.dtypes:
            args = list(case.inputs(sample, dtype))
            b = GraphBuilder()
            values = [b.add_input(aval_of(x)) for x in args]
            with recording(b):
                agree(b.build(results(case, *values, **sample.params)), args)


@settings(max_examples=100, deadline=None)
@given(strategies.graphs(), st.integers(0, 99))
def test_drawn_graphs_and_their_derivatives(graph: Graph, seed: int) -> None:
    agree(graph, strategies.ordinary_inputs(graph, seed))
    derivative = vjp_graph(graph, range(len(graph.inputs)))
    agree(derivative, strategies.ordinary_inputs(derivative, seed))


def test_regions() -> None:
    def program(x: object, n: object) -> object:
        total = regions.for_(n, [x], lambda i, y: ops.add(y, ops.broadcast(ops.convert(i, dtype=F64), shape=(3,), axes=())))
        small = regions.while_([total], lambda y: ops.gt(ops.reduce_sum(y, axes=(0,)), 1.0), lambda y: ops.mul(y, 0.5))
        which = ops.lt(ops.reduce_sum(small, axes=(0,)), 0.0)
        return regions.if_(which, lambda: ops.neg(small), lambda: total)

    graph = regions.graph_of(program, Aval((3,), F64), Aval((), I64))
    for n in (0, 5):
        for x in (np.ones(3), -np.ones(3)):
            agree(graph, [x, np.asarray(n)])


def test_sizes_that_are_values() -> None:
    graph = parse(
        "graph(a: f64[6], b: bool[6], c: i64[]) { bind c {sym=n[0:6]}; d: f64[n] = compress a b {axis=0, size=n};"
        " e: f64[n] = mul d d; f: f64[] = reduce_sum e {axes=(0,)}; return f e }".replace("; ", "\n").replace("{ bind", "{\nbind")
    )
    agree(graph, [np.arange(6.0), np.arange(6) % 2 == 0, np.asarray(3)])


def test_arrays_are_dropped_after_their_last_use() -> None:
    graph = parse("graph(a: f64[4]) { b: f64[4] = exp a; c: f64[4] = sin b; d: f64[4] = cos c; return d }")
    held = straight(graph).__code__.co_varnames  # type: ignore[attr-defined]  # a plain function
    assert [name for name in held if name.startswith("v")] == ["v1", "v2", "v3"]
