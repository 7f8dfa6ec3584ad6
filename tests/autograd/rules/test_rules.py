"""Every differentiable op, by its row: jvp against differences, vjp against jvp, jvp of jvp against differences of jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from jitml.autograd.core.jvp import jvp_graph
from jitml.autograd.reverse.linearize import vjp_graph
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import F32, F64, aval_of
from support.op_cases import CASES, OpCase, Sample

Arrays = list[np.ndarray]
# A result without a float tangent has nothing to check numerically.
SMOOTH = [c for c in CASES.values() if c.smooth is not None]
MOVES = [(c, s) for c in SMOOTH for s in c.samples if c.op.name != "convert" or s.params["dtype"] == F64]
IDS = [f"{c.op}-{n}" for n, (c, _) in enumerate(MOVES)]


def graph_of(case: OpCase, sample: Sample, inputs: Sequence[np.ndarray]) -> Graph:
    b = GraphBuilder()
    values = [b.add_input(aval_of(x)) for x in inputs]
    with recording(b):
        return b.build([case.op(*values, **sample.params)])


def floats(inputs: Sequence[np.ndarray]) -> list[int]:
    return [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]


def directions(inputs: Sequence[np.ndarray], wrt: Sequence[int], seed: int = 1) -> Arrays:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=inputs[i].shape)).astype(inputs[i].dtype) for i in wrt]


def difference(f: Callable[[Sequence[np.ndarray]], np.ndarray], x: Arrays, wrt: Sequence[int], dx: Arrays) -> np.ndarray:
    """The derivative along dx by the fourth-order central difference."""
    h = 1e-3

    def at(t: float) -> np.ndarray:
        moved = list(x)
        for i, d in zip(wrt, dx):
            moved[i] = x[i] + t * h * d
        return f(moved)

    return np.asarray((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h))


@pytest.mark.parametrize(("case", "sample"), MOVES, ids=IDS)
def test_derivatives(case: OpCase, sample: Sample) -> None:
    x = list(case.inputs(sample, F64, smooth=True))
    wrt = floats(x)
    graph = graph_of(case, sample, x)
    dx = directions(x, wrt)
    forward = verify(jvp_graph(graph, wrt))
    y, dy = interpret(forward, [*x, *dx])
    expected = difference(lambda v: interpret(graph, v)[0], x, wrt, dx)
    np.testing.assert_allclose(dy, expected, rtol=1e-7, atol=1e-8)

    backward = verify(vjp_graph(graph, wrt))
    (ct,) = directions([y], [0], seed=2)
    cts = [ct] if len(backward.inputs) > len(x) else []
    _, *pulled = interpret(backward, [*x, *cts])
    lhs, rhs = np.sum(ct * dy), sum(np.sum(a * b) for a, b in zip(pulled, dx))
    np.testing.assert_allclose(lhs, rhs, rtol=1e-9, atol=1e-11)
    assert [p.shape for p in pulled] == [x[i].shape for i in wrt]

    twice = verify(jvp_graph(forward, wrt))
    ddx = directions(x, wrt, seed=3)
    second = interpret(twice, [*x, *dx, *ddx])[3]
    expected = difference(lambda v: interpret(forward, [*v, *dx])[1], x, wrt, ddx)
    np.testing.assert_allclose(second, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("case", "sample"), MOVES, ids=IDS)
def test_each_operand_alone(case: OpCase, sample: Sample) -> None:
    """A tangent for one operand is the tangent for all with zeros for the others, at every order of presence."""
    x = list(case.inputs(sample, F64, smooth=True))
    wrt = floats(x)
    graph = graph_of(case, sample, x)
    dx = directions(x, wrt)
    for k, i in enumerate(wrt):
        alone = interpret(jvp_graph(graph, [i]), [*x, dx[k]])[1]
        others = [d if j == k else np.zeros_like(d) for j, d in enumerate(dx)]
        np.testing.assert_allclose(alone, interpret(jvp_graph(graph, wrt), [*x, *others])[1], rtol=1e-12, atol=1e-12)
        backward = verify(vjp_graph(graph, [i]))
        ct = directions([alone], [0], seed=2)
        pulled = interpret(backward, [*x, *(ct if len(backward.inputs) > len(x) else [])])[1]
        np.testing.assert_allclose(np.sum(ct[0] * alone), np.sum(pulled * dx[k]), rtol=1e-9, atol=1e-11)


QUADRANTS = np.outer([0.7 + 0.4j, 0.4 + 2.2j, 2.7 + 0.3j], [1, -1]).ravel()
QUADRANTS = np.concatenate([QUADRANTS, QUADRANTS.conj()])
OF_COMPLEX = [c for c in SMOOTH if c.op.is_pointwise and "c" in c.kinds and not (c.samples[0].params or c.samples[0].draws)]


@pytest.mark.parametrize("case", OF_COMPLEX, ids=lambda c: c.op.name)
def test_complex_numbers_of_every_quadrant(case: OpCase) -> None:
    x = [QUADRANTS, np.roll(QUADRANTS, 5)][: len(case.samples[0].shapes)]
    wrt = range(len(x))
    graph = graph_of(case, case.samples[0], x)
    for turned in (1, 1j):
        dx = [np.full(v.shape, turned, complex) / (k + 1) for k, v in enumerate(x)]
        _, dy = interpret(jvp_graph(graph, wrt), [*x, *dx])
        expected = difference(lambda v: interpret(graph, v)[0], x, wrt, dx)
        np.testing.assert_allclose(dy, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", [c for c in SMOOTH if c.op.name != "convert"], ids=lambda c: c.op.name)
def test_float32_stays_float32(case: OpCase) -> None:
    x = list(case.inputs(case.samples[0], F32, smooth=True))
    wrt = floats(x)
    backward = verify(vjp_graph(graph_of(case, case.samples[0], x), wrt))
    assert {v.dtype for v in backward.outputs} == {F32}
