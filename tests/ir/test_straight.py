"""A graph as one Python function gives what the interpreter gives: every op, drawn graphs, regions."""

from __future__ import annotations

import dis

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitml.autograd.reverse.linearize import vjp_graph
from jitml.ir import ops
from jitml.ir.execute.to_python import straight
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.text.parser import parse
from jitml.ir.types import F64, I64, Aval, aval_of
from support import regions, strategies
from support.op_cases import CASES, OpCase, results


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


def calls(graph: Graph) -> int:
    return sum(step.opname == "CALL" for step in dis.get_instructions(straight(graph)))  # type: ignore[arg-type]  # a plain function


COUNTED = {
    # What is known of places and shapes is not asked for again.
    "a window": (
        "graph(a: f64[8,4], i: i64[]) { z: i64[] = full {dtype=i64, shape=(), value=0};"
        " b: f64[2,4] = dynamic_slice a i z {sizes=(2, 4), step=(1, 1)}; c: f64[2,4] = exp b; return c }",
        2,
    ),
    "a product of rows": (
        "graph(a: f64[2,3,4], b: f64[4,5]) { c: f64[2,3,5] = dot_general a b {batch=((), ()), contract=((2,), (0,))}; return c }",
        3,
    ),
    "a batch of products": (
        "graph(a: f64[2,3,4], b: f64[2,4,5]) {"
        " c: f64[2,3,5] = dot_general a b {batch=((0,), (0,)), contract=((2,), (1,))}; return c }",
        1,
    ),
    # One ufunc adds to a window, in place.
    "an addition": (
        "graph(a: f64[8], b: f64[2], i: i64[]) { x: f64[8] = exp a; c: f64[2] = dynamic_slice x i {sizes=(2,), step=(1,)};"
        " d: f64[2] = add b c; e: f64[8] = dynamic_update_slice x d i {step=(1,)}; return e }",
        2,
    ),
    "an addition at a known place": (
        "graph(a: f64[8], b: f64[2]) { x: f64[8] = exp a; c: f64[2] = slice x {start=(3,), step=(2,), stop=(6,)};"
        " d: f64[2] = add c b; e: f64[8] = update_slice x d {start=(3,), step=(2,)}; return e }",
        2,
    ),
    # What was there before is read once more, so it is kept.
    "an addition to what is needed": (
        "graph(a: f64[8], b: f64[2]) { x: f64[8] = exp a; c: f64[2] = slice x {start=(3,), step=(1,), stop=(5,)};"
        " d: f64[2] = add c b; e: f64[8] = update_slice x d {start=(3,), step=(1,)}; f: f64[8] = sin x; return e f }",
        4,
    ),
    # A sum is not put off until after a write to what it is of.
    "an addition before a write": (
        "graph(a: f64[8], b: f64[8]) { x: f64[8] = exp a; y: f64[8] = exp b;"
        " n: f64[2] = slice y {start=(0,), step=(1,), stop=(2,)};"
        " c: f64[2] = slice x {start=(3,), step=(1,), stop=(5,)}; d: f64[2] = add c n;"
        " h: f64[2] = slice a {start=(0,), step=(1,), stop=(2,)}; z: f64[8] = update_slice y h {start=(0,), step=(1,)};"
        " e: f64[8] = update_slice x d {start=(3,), step=(1,)}; return e z }",
        3,
    ),
    # As in compiled code: `np.power` takes a hundred times as long.
    "a cube": ("graph(a: f64[8]) { n: f64[8] = full {dtype=f64, shape=(8,), value=3.0}; b: f64[8] = pow a n; return b }", 2),
    "constants": (
        "graph(a: i64[8]) { n: i64[8] = iota {axis=0, dtype=i64, shape=(8,)}; b: i64[8] = mul a n; return b n }",
        1,
    ),
    "what is there for its errors": ("graph(a: f64[8]) { b: f64[8] = exp a; observe b; c: f64[8] = sin a; return c }", 2),
}


@pytest.mark.parametrize("text, count", COUNTED.values(), ids=COUNTED)
def test_calls_of_numpy(text: str, count: int) -> None:
    graph = parse(text.replace("{ ", "{\n", 1).replace("; ", "\n"))
    rng = np.random.default_rng(0)
    args = [np.asarray(3) if not v.shape else (3 * rng.standard_normal(v.shape)).astype(v.dtype) for v in graph.inputs]
    agree(graph, args)
    assert calls(graph) == count
