"""What derivatives of loops cost: nodes, bytes and copies that do not depend on what they should not depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.autograd.reverse.loops import Array, settled

import jitml
from jitml.autograd.reverse.linearize import linearize
from jitml.autograd.reverse.segments import best_length, segment_loops
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.kernels.ir import Const, Kernel, Loop, walk
from jitml.kernels.program import Region


def leapfrog(steps: int) -> Callable[[Array, Array], Any]:
    def run(x: Array, v: Array) -> Any:
        for _ in range(steps):
            v = v - 0.01 * np.sin(x)
            x = x + 0.01 * v
        return (x * x).sum()

    return run


def nodes_of(graph: Graph) -> int:
    return len(graph.nodes) + sum(nodes_of(body) for node in graph.nodes for body in node.bodies.values())


def gradient(f: Callable[..., Any], *args: Array) -> Any:
    return jitml.jit(jitml.grad(f)).lower(*args)


def test_a_gradient_has_as_many_nodes_for_any_number_of_iterations() -> None:
    x = np.ones(3)
    few, many = (gradient(leapfrog(n), x, x) for n in (100, 10_000))
    assert nodes_of(few.graph) == nodes_of(many.graph) < 60


def test_memory_grows_with_the_root_of_the_iterations_where_it_is_short(saved_bytes: Any) -> None:
    x = np.ones(100)
    arena = {}
    for steps in (100, 400, 1600, 6400):
        saved_bytes(steps * 800 - 1)  # just too little
        arena[steps] = gradient(leapfrog(steps), x, x).program.report.arena
    for steps, size in arena.items():
        assert size <= 2 * arena[100] * (steps / 100) ** 0.5


def test_segments_give_the_same_gradient(saved_bytes: Any) -> None:
    x, v = np.linspace(0, 1, 5), np.linspace(1, 2, 5)
    for steps in (100, 97, 7):
        whole = jitml.grad(leapfrog(steps), (0, 1))(x, v)
        saved_bytes(100)
        for finish in (lambda f: f, jitml.jit):
            for got, wanted in zip(finish(jitml.grad(leapfrog(steps), (0, 1)))(x, v), whole):
                np.testing.assert_allclose(got, wanted, rtol=1e-12)
        saved_bytes(800_000)


def largest(graph: Graph) -> int:
    """Bytes of the largest value that is given contents at once."""
    bodies = [largest(body) for node in graph.nodes for body in node.bodies.values()]
    written = [v.aval.nbytes for node in graph.nodes if node.op is ops.full for v in node.outputs]
    return max([0, *bodies, *written])


@pytest.mark.parametrize("second", [jitml.hessian, lambda f: jitml.jacobian(jitml.grad(f))], ids=["hessian", "jacobian"])
def test_all_directions_of_a_second_derivative_share_what_a_loop_may_save(saved_bytes: Any, second: Any) -> None:
    x, budget = np.linspace(1, 2, 20), 1 << 24
    saved_bytes(budget)
    lowered = jitml.jit(second(settled)).lower(x)
    assert lowered.program.report.arena <= 1.5 * budget and largest(lowered.graph) < budget // 100
    got = jitml.jit(second(settled))(x)
    step = 1e-5 * np.eye(len(x))
    wanted = [(jitml.grad(settled)(x + d) - jitml.grad(settled)(x - d)) / 2e-5 for d in step]
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(second(settled)(x), got, rtol=1e-12)


LOOP = """
graph(a: f64[3]) {
  b: i64[] = full {dtype=i64, shape=(), value=10}
  c: f64[3] = loop b a {carried=1} body(a: i64[], b: f64[3]) {
    c: f64[3] = sin b
    return c
  }
  return c
}
"""


def test_loops_can_be_asked_to_keep_segments() -> None:
    graph = parse(LOOP)
    asked = verify(segment_loops(graph))
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(interpret(asked, [x])[0], interpret(graph, [x])[0])
    cut, whole = (linearize(g, [0]) for g in (asked, graph))
    saved = [sum(v.aval.nbytes for v in d.forward.outputs[1:]) for d in (cut, whole)]
    assert saved == [24 * 6, 24 * 10]  # one state, and what the last five iterations save
    _, outer = [node for node in cut.pull.nodes if node.bodies]
    repeated, backwards = [node for node in outer.params["body"].nodes if node.bodies]
    assert repeated.params["repeat"] and not backwards.params.get("repeat")


def test_checkpoint_keeps_the_root_of_the_iterations() -> None:
    x, v = np.ones(100), np.zeros(100)
    arena = {}
    for steps in (100, 1600, 10_000):
        run = leapfrog(steps)
        f = jitml.checkpoint(run, policy="sqrt")
        arena[steps] = gradient(f, x, v).program.report.arena
        np.testing.assert_allclose(jitml.jit(jitml.grad(f))(x, v), jitml.jit(jitml.grad(run))(x, v), rtol=1e-12)
    for steps, size in arena.items():
        assert size <= 2 * arena[100] * (steps / 100) ** 0.5


def relaxed(x: Array, a: Array) -> Any:
    while np.abs(x * x - a).max() > 1e-10:
        x = x - 0.05 * (x * x - a) / x * np.cos(0.1 * x)
    return (x * np.arange(1.0, 4.0)).sum()


def growing(x: Array, a: Array) -> Any:
    s = np.zeros(3)
    for i in range(500):
        x = x + 0.01 * np.sin(x * a) + 1e-6 * i
        s = s * 0.9 + x
        if x.max() > 4.0:
            break
    return s.sum()


@pytest.mark.parametrize("f", [relaxed, growing], ids=lambda f: f.__name__)
def test_a_while_in_segments(f: Callable[..., Any], saved_bytes: Any) -> None:
    x, a = np.array([1.0, 1.2, 1.4]), np.array([2.0, 1.9, 1.8])
    whole = jitml.grad(f, (0, 1))(x, a)
    asked = jitml.checkpoint(f, policy="sqrt")
    saved_bytes(100_000)
    for finish in (lambda g: g, jitml.jit):
        for got, wanted in zip(finish(jitml.grad(asked, (0, 1)))(x, a), whole):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
    if f is growing:
        arenas = [gradient(g, x, a).program.report.arena for g in (f, asked)]
        assert arenas[1] < arenas[0] / 4


def of_pairs(x: Array, a: Array) -> Any:
    s = 0.0
    for u, v in zip(x[x > 1], x[x < 1]):
        s += u / v
    return s * a.sum()


def of_chosen(x: Array, a: Array) -> Any:
    above, below, i = x[x > 1], x[x < 1], 0
    while i < len(above) and i < len(below) and a[i % 3] > 0:
        above = above * np.cos(below[i] * above[i])
        i += 1
    return above.sum() * a.sum()


@pytest.mark.parametrize("f", [of_pairs, of_chosen], ids=lambda f: f.__name__)
def test_segments_over_arrays_of_sizes_from_data(f: Callable[..., Any]) -> None:
    x, a = np.array([1.5, 0.2, 0.6, 1.2, 2.0, 0.3]), np.ones(3)
    asked = jitml.checkpoint(f, policy="sqrt")
    for finish in (lambda g: g, jitml.jit):
        np.testing.assert_allclose(finish(jitml.grad(asked))(x, a), jitml.grad(f)(x, a), rtol=1e-12)


@pytest.mark.parametrize("f", [relaxed, growing], ids=lambda f: f.__name__)
def test_rows_of_loops_in_segments(f: Callable[..., Any]) -> None:
    x, a = np.array([[1.0, 1.2, 1.4], [1.1, 0.9, 1.3]]), np.array([2.0, 1.9, 1.8])
    asked = jitml.checkpoint(f, policy="sqrt")
    wanted = [jitml.grad(f)(row, a) for row in x]
    np.testing.assert_allclose(jitml.vmap(jitml.grad(asked), (0, None))(x, a), wanted, rtol=1e-12)
    np.testing.assert_allclose(jitml.jit(jitml.grad(lambda x: jitml.vmap(asked, (0, None))(x, a).sum()))(x), wanted, rtol=1e-12)


def decided_by_the_run(x: Array, n: Array) -> Any:
    for i in range(int(n.sum())):
        x = np.sin(x) * 0.9 + 0.1 * x[::-1] + 1 / (i + 1)
    return x.sum()


def test_a_loop_whose_length_the_run_tells_in_segments(saved_bytes: Any) -> None:
    x = np.linspace(0, 1, 100)
    saved_bytes(10_000_000)
    asked = jitml.checkpoint(decided_by_the_run, policy="sqrt")
    forms = [jitml.jit(jitml.grad(asked)), jitml.grad(asked)]
    whole = jitml.jit(jitml.grad(decided_by_the_run))
    for steps in (-1.0, 0.0, 1.0, 2.0, 110.0, 111.0, 112.0, 223.0, 2000.0):
        n = np.array([steps])
        for f in forms:
            np.testing.assert_allclose(f(x, n), whole(x, n), rtol=1e-12)
    assert gradient(asked, x, np.ones(1)).program.report.arena < 11_000_000
    assert np.isfinite(forms[0](x, np.array([20_000.0]))).all()
    for f, much in ((forms[0], 1e8), (forms[1], 1e8), (whole, 20_000.0)):
        with pytest.raises(MemoryError, match=r"JITML_SAVED_BYTES\); checkpoint\(policy=\"sqrt\"\)"):
            f(x, np.array([much]))


def test_an_open_loop_that_may_save_too_much_has_segments(saved_bytes: Any) -> None:
    """A number of iterations that changes from call to call, of a limit that is too much to save."""
    saved_bytes(20_000_000)

    def chain(x: Array, n: int) -> Any:
        for _ in range(n):
            x = np.sin(x) * 0.9 + 0.1 * x[::-1]
        return x.sum()

    slope, plain = jitml.jit(jitml.grad(chain)), jitml.grad(chain)
    x = np.linspace(0, 1, 100)
    for n in (3, 5, 0, 2000, 255, 256, 257):
        np.testing.assert_allclose(slope(x, n), plain(x, n), rtol=1e-12)
    assert len(slope.variants) == 2
    assert max(variant.executable.program.report.arena for variant in slope.variants) < 20_000_000


def test_the_length_of_segments() -> None:
    large = 1 << 20
    assert best_length(10_000, large, large) == 100
    assert best_length(10_007, large, large) == 100  # a prime: the last segment has 7
    assert best_length(10_000, 1 << 10, 1 << 10) == 834  # in the cache
    assert best_length(10_000, 1 << 13, 1 << 13) == 127  # still, just
    assert best_length(7, 8, 8) == 4


def updating_rows(x: Array) -> Any:
    for i in range(1, 1000):
        x[i] = x[i] * np.sin(x[i - 1])
    return x.sum()


def updating_in_a_branch(x: Array) -> Any:
    for i in range(1, 1000):
        if x[i, 0] > 0:
            x[i] = x[i] * x[i - 1]
    return x.sum()


def reading_what_stays(x: Array) -> Any:
    s = np.zeros(8)
    for i in range(1, 1000):
        s = s * x[i] + x[i - 1]
    return s.sum()


@pytest.mark.parametrize("f", [updating_rows, updating_in_a_branch, reading_what_stays], ids=lambda f: f.__name__)
def test_an_iteration_costs_what_it_touches(f: Callable[..., Any]) -> None:
    """No array of all rows is made, cleared, added or copied in an iteration, forwards or backwards."""
    program = gradient(f, np.ones((1000, 8))).program
    assert not [name for name in program.report.copies if "." in name]
    bodies = [body for step in program.kernels.steps if isinstance(step, Region) for body in step.bodies]
    inside = [step.body for body in bodies for step in body.steps if isinstance(step, Kernel)]
    rolled = [step.body for step in program.kernels.steps if isinstance(step, Kernel) and "loop" in step.name]
    inside += [outer.body for body in rolled for outer in body if isinstance(outer, Loop)]
    assert inside
    for body in inside:
        assert all(isinstance(s.stop, Const) and s.stop.value <= 8 for s in walk(body) if isinstance(s, Loop))


def layers(w: Array, b: Array, x: Array) -> Any:
    for i in range(len(w)):
        x = np.tanh(x @ w[i] + b[i])
    return (x * x).sum()


def test_weights_of_all_layers_have_one_cotangent() -> None:
    """It is the result itself, to which each layer adds its part: the arena holds what is saved and a layer's weights."""
    count, rows, size = 40, 4, 64
    w, b, x = np.ones((count, size, size)), np.ones((count, size)), np.ones((rows, size))
    derivative = gradient(layers, w, b, x)
    saved, layer = count * x.nbytes, w[0].nbytes
    assert derivative.program.arena_size < saved + 5 * layer < w.nbytes / 4
    both = jitml.jit(jitml.grad(layers, (0, 1))).lower(w, b, x)
    assert both.program.arena_size < saved + 5 * layer


def test_what_is_saved_is_what_is_read() -> None:
    """Elements and places that are there anyway are read again; of `exp` its result, not its operand as well."""

    def saved(text: str) -> list[str]:
        derivative = linearize(run_passes(parse(text)), [0])
        loop = next(node for node in derivative.forward.nodes if node.bodies)
        return [str(v.aval) for v in loop.outputs[1:]]

    body = "loop b c a {carried=1} body(a: i64[], b: f64[], c: f64[9]) { d: f64[1] = dynamic_slice c a {sizes=(1,), step=(1,)};"
    head = "graph(a: f64[9]) { b: i64[] = full {dtype=i64, shape=(), value=9}; c: f64[] = full {dtype=f64, shape=(), value=1.0};"
    element = f"{head} d: f64[] = {body} e: f64[] = reshape d {{shape=()}};"
    reading = f"{element} f: f64[] = mul e e; g: f64[] = add f b; return g }}; return d }}"
    growing = f"{element} f: f64[] = add b e; g: f64[] = exp f; return g }}; return d }}"
    assert saved(reading) == [] and saved(growing) == ["f64[9]"]
