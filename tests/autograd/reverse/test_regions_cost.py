"""What derivatives of loops cost: nodes, bytes and copies that do not depend on what they should not depend on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.autograd.reverse.budget import FIRST_BYTES
from jitml.autograd.reverse.linearize import linearize
from jitml.autograd.reverse.segments import best_length, segment_loops
from jitml.config import CONFIG
from jitml.errors import MoreIterations
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.capacity import learn
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.kernels.ir import Const, Kernel, Loop, walk
from jitml.kernels.program import Region

Array = np.ndarray[Any, Any]


@pytest.fixture
def saved_bytes() -> Iterator[Callable[[int], None]]:
    """Sets JITML_SAVED_BYTES, as far as derivatives taken in the test see it."""
    before = CONFIG.saved_bytes

    def use(n: int) -> None:
        object.__setattr__(CONFIG, "saved_bytes", n)

    yield use
    use(before)


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


def settled(x: Array) -> Any:
    while np.abs(x).sum() > 0.5:
        x = 0.9 * x + 0.001 * np.sin(x)
    return (x * x).sum()


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


def test_a_while_says_when_there_is_no_room(saved_bytes: Any) -> None:
    saved_bytes(80)

    def slowly(x: Any) -> Any:
        while x < 100:
            x = x * 1.01 + np.sin(x)
        return x

    with pytest.raises(MemoryError, match=r"(?s)10 times.*JITML_SAVED_BYTES.*test_regions_cost\.py:\d+ in "):
        jitml.grad(slowly)(1.0)
    with pytest.raises(MemoryError, match=r"10 times.*JITML_SAVED_BYTES"):
        jitml.jit(jitml.grad(slowly))(1.0)


def test_room_that_a_while_does_not_need_costs_nothing(saved_bytes: Any) -> None:
    resource = pytest.importorskip("resource")
    saved_bytes(2 << 30)

    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    slope = jitml.jit(jitml.grad(root))
    assert slope.lower(2.0).program.report.arena > 1 << 30  # whoever runs this cannot ask for more
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert abs(slope(2.0) - 0.5 / np.sqrt(2.0)) < 1e-12
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # KiB
    assert slope.lower(2.0).program.report.arena <= FIRST_BYTES + 4096


def converging(a: Array) -> Any:
    x = a
    while True:
        y = 0.5 * (x + a / x)
        if np.abs(y - x).max() < 1e-12:
            break
        x = y
    return x.sum()


def shrinking(x: Array) -> Any:
    while x.sum() > 1e-2:
        x = 0.99 * x + 1e-6 * np.sin(x)
    return x.sum()


def counting(x: Array) -> Any:
    n = np.ceil(x.sum() * 100)
    for i in range(int(n)):
        x = x * (1 + np.sin(x) / (i + 1000))
    return x.sum()


def nested(x: Array) -> Any:
    total, i = 0.0, 0
    while True:
        j = 0
        while True:
            k = 0
            while True:
                total = total + np.sin(x).sum() * x[0] + np.tanh(total)
                k += 1
                if k >= 5 + (x[0] > 100):
                    break
            j += 1
            if j >= 4 + (x[1] > 100):
                break
        i += 1
        if i >= 3 + (x[2] > 100):
            break
    return total


@pytest.fixture
def little_at_first(monkeypatch: pytest.MonkeyPatch, saved_bytes: Any) -> list[str]:
    """Rooms are small; the messages of those that were too small."""
    seen: list[str] = []

    def learned(failure: MoreIterations) -> None:
        seen.append(failure.message)
        learn(failure)

    monkeypatch.setattr("jitml.autograd.reverse.budget.FIRST_BYTES", 500)
    monkeypatch.setattr("jitml.ir.capacity._learned", {})
    for module in ("jitml.dispatch.variants", "jitml.trace.trace"):
        monkeypatch.setattr(f"{module}.learn", learned)
    saved_bytes(100_000_000)
    return seen


@pytest.mark.parametrize("finish", [lambda f: f, jitml.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", [converging, shrinking, counting, nested], ids=lambda f: f.__name__)
def test_room_grows_with_the_iterations(f: Any, finish: Any, little_at_first: list[str]) -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    for transform in (jitml.grad, jitml.hessian, lambda f: lambda x: jitml.vmap(jitml.grad(f))(np.stack([x, x + 1]))):
        got = finish(transform(f))(x)
        object.__setattr__(CONFIG, "saved_bytes", 10_000_000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jitml.autograd.reverse.budget.FIRST_BYTES", 10_000_000)
            np.testing.assert_allclose(got, transform(f)(x), rtol=1e-10)
    assert little_at_first and len(little_at_first) < 20
    before = len(little_at_first)
    finish(jitml.grad(f))(x)
    assert len(little_at_first) == before  # it is known of the line


def rising(x: Array) -> Any:
    slope = jitml.grad(shrinking)(x)
    way = "up" if slope.sum() > 0 else "down"
    return {"up": 1.0}[way] * (x * slope).sum()


def test_room_runs_out_while_a_function_is_traced(little_at_first: list[str]) -> None:
    """To find the branch that a call takes, the loop before it is run."""
    x = np.array([1.0, 2.0, 3.0])
    wanted = (x * jitml.grad(shrinking)(x)).sum()
    for finish in (jitml.jit, lambda f: lambda x: jitml.value_and_grad(f)(x)[0]):
        little_at_first.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jitml.ir.capacity._learned", {})
            np.testing.assert_allclose(finish(rising)(x), wanted, rtol=1e-12)


def test_threads_learn_together(little_at_first: list[str]) -> None:
    slope, x = jitml.jit(jitml.grad(shrinking)), np.array([1.0, 2.0, 3.0])
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(slope, [x] * 12))
    np.testing.assert_allclose(found, [jitml.grad(shrinking)(x)] * 12, rtol=1e-12)
    assert len(slope.variants) == 1


def test_what_has_run_out_of_room_draws_once(little_at_first: list[str]) -> None:
    rng = np.random.default_rng()

    def drawing(x: Array) -> Any:
        while x.sum() < 20:
            x = x * (1 + rng.random() * 0.02)
        return (x * x).sum()

    found = []
    for slope in (jitml.grad(drawing), jitml.jit(jitml.grad(drawing))):
        rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
        found.append((slope(np.ones(3)), rng.random()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1] == found[1][1] and little_at_first


@pytest.mark.parametrize(
    "derivative",
    [
        jitml.grad,
        lambda f: jitml.grad(lambda x: jitml.grad(f)(x).sum()),
        lambda f: lambda x: jitml.hvp(f, (x,), (x,)),
        lambda f: lambda x: jitml.vmap(jitml.grad(f))(np.stack([x, x])),
    ],
    ids=["grad", "grad of grad", "hvp", "rows"],
)
def test_a_program_reserves_what_it_may(derivative: Any, saved_bytes: Any) -> None:
    saved_bytes(1 << 24)
    for f in (settled, nested):
        assert jitml.jit(derivative(f)).lower(np.linspace(1, 2, 20)).program.report.arena <= 1.3 * (1 << 24)


def test_nested_loops_share_fairly(saved_bytes: Any) -> None:
    """What the inner ones have room for does not leave the outer ones with a handful of iterations."""
    x = np.random.default_rng(0).normal(size=(64, 5))
    saved_bytes(100_000_000)
    wanted = [jitml.grad(nested)(row) for row in x]
    np.testing.assert_allclose(jitml.vmap(jitml.grad(nested))(x), wanted, rtol=1e-10)
    assert np.isfinite(jitml.hessian(nested)(x[0, :3])).all()


LIMITED = """
import resource
import numpy as np, jitml
def converging(a):
    x = a
    while True:
        y = 0.5 * (x + a / x)
        if np.abs(y - x).max() < 1e-12:
            break
        x = y
    return x.sum()
resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000,) * 2)
a = np.array([1.0, 2, 3, 4])
for finish in (lambda f: f, jitml.jit):
    np.testing.assert_allclose(finish(jitml.grad(converging))(a), 0.5 / np.sqrt(a))
    np.testing.assert_allclose(finish(jitml.hessian(converging))(a), np.diag(-0.25 * a**-1.5), atol=1e-9)
def large(x):
    while x.sum() > 1e-300:
        x = x * x * 0.5 + 0.25
    return x.sum()
try:
    jitml.grad(large)(np.ones(1 << 20))
except MemoryError as error:
    print(error)
"""


def test_little_address_space(tmp_path: Any) -> None:
    """A `while` of four numbers needs little; one that needs too much says so, and where."""
    pytest.importorskip("resource")
    file = tmp_path / "limited.py"
    file.write_text(LIMITED)
    environment = {**os.environ, "JITML_SAVED_BYTES": str(1 << 34), "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True, env=environment)
    first, place, line, last, code = run.stdout.splitlines()
    assert code.startswith("JM")
    assert first == "no memory for 4294967296 bytes that a loop may save for its derivative, f64[512,1048576]"
    assert place.endswith(" in large") and line.strip() == "while x.sum() > 1e-300:"
    assert "JITML_SAVED_BYTES" in last


def test_second_derivatives_outside_jit_touch_no_more_of_that_room(saved_bytes: Any) -> None:
    """Cotangents of what is saved are zeros as long; what is read of them and then cleared is no reason for a copy."""
    resource = pytest.importorskip("resource")
    saved_bytes(2 << 30)

    def shrink(x: Any) -> Any:
        total = 0.0
        while x.size > 1:
            x = x[x > x.mean()]
            total = total + (x * x * x).sum()
        return total

    curvature = jitml.grad(lambda x: jitml.grad(shrink)(x).sum())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.testing.assert_allclose(curvature(np.arange(5.0)), [0, 0, 0, 18, 48])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # KiB
