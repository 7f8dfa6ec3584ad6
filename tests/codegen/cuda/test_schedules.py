"""Schedules for a GPU: the same answers, by the interpreter; neighbouring threads touch neighbours; nothing is read twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import jitml
from codegen.cuda.access_patterns import steps_between_threads, times_touched, widest
from jitml.codegen.cuda.schedule import SCHEDULER, columns, rows, spread, statements
from jitml.codegen.cuda.target import THREADS, cuda_target
from jitml.codegen.interpreted import Interpreter
from jitml.codegen.interpreter import run
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.text.parser import parse
from jitml.ir.types import DTYPES, Aval
from jitml.kernels.ir import Apply, Cell, Expr, Kernel, Loop, Stmt, Update, affine, children, sub, walk
from jitml.kernels.program import KernelProgram
from jitml.kernels.verify.program import verify_program
from jitml.kernels.verify.target import verify_for
from jitml.memory.plan import plan
from programs.comparing import difference, within
from programs.corpus import load
from support.cuda_emulation import has_compiler
from support.effort import by_samples
from support.emitted_cuda import emulated
from support.fused import draw, fuse
from support.op_cases import CASES, results

Array = np.ndarray[Any, Any]
_DTYPES = [DTYPES[name] for name in ("bool", "i64", "f32", "c128")]
_RTOL = {2: 2e-2, 4: 1e-4, 8: 1e-9, 16: 1e-9}


class _Loops(Interpreter):
    """The CUDA back end's loops, run by the interpreter."""

    name = "cuda loops"
    target = cuda_target()
    scheduler = SCHEDULER


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs take the paths of large ones."""
    for module in (spread, rows, columns, statements):
        monkeypatch.setattr(module, "THREADS", 4)
    tiny = {
        spread: {"FULL": 8, "RESIDENT": 4},
        rows: {"TOGETHER": 2, "JAMMED_BYTES": 200, "RESIDENT": 4, "PROCESSORS": 2, "STRAIGHT": 2, "LEAST_CHUNK": 4, "WIDE": 3},
        columns: {"ROWS": 2, "MOST_ROWS": 8, "BUSY": 16, "PROCESSORS": 2, "WARP": 2, "SHORT_ROW": 2, "FEW_COLUMNS": 2},
        statements: {"TILE": 8, "FEW": 2, "MANY": 16},
    }
    for module, values in tiny.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


def fused(graph: Graph) -> KernelProgram:
    return verify_for(verify_program(fuse(graph, target=cuda_target(), scheduler=SCHEDULER)), cuda_target())


def check(graph: Graph, args: list[Array]) -> KernelProgram:
    """The program, after its answer was compared with the graph's."""
    program = fused(graph)
    with np.errstate(all="ignore"):
        expected = interpret(graph, args)
        got = run(plan(program), [x.copy() for x in args])
    for g, e in zip(got, expected, strict=True):
        assert (g.dtype, g.shape) == (e.dtype, e.shape)
        if e.dtype.kind not in "fc":
            np.testing.assert_array_equal(g, e)
        else:
            finite = np.abs(e[np.isfinite(e)])
            rtol = _RTOL[e.dtype.itemsize]
            np.testing.assert_allclose(g, e, rtol=rtol, atol=rtol * float(np.max(finite, initial=1.0)))
    return program


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("name", CASES)
def test_every_op(name: str) -> None:
    """All samples of an op's row, as one graph for each dtype."""
    case, b = CASES[name], GraphBuilder()
    args: list[Array] = []
    outputs: list[Any] = []
    for sample, dtypes in by_samples(case.samples, [*filter(_DTYPES.__contains__, case.dtypes)]):
        for dtype in dtypes:
            own = [np.asarray(x) for x in case.inputs(sample, dtype)]
            values = [b.add_input(Aval(x.shape, x.dtype)) for x in own]
            with recording(b):
                outputs += results(case, *values, **sample.params)
            args += own
    check(b.build(outputs), args)


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("name", ["attention", "jacobi_2d", "k_means", "lstm", "mandelbrot_shrinking", "viterbi"])
def test_programs(name: str, tiny: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if tiny:
        request.getfixturevalue("everything_is_large")
    monkeypatch.setattr("jitml.pipeline.chosen_backend", _Loops)
    program = load(name)
    mine, eager = program.arguments("small", 0), program.arguments("small", 0)
    got = jitml.jit(program.function, host_calls="error")(*mine)
    assert difference(got, program.function(*eager), within(1e-9)) is None
    assert difference(mine, eager, within(1e-9), "arguments") is None


# ---------------------------------------------------------------------------------------------- properties of the loops


def pointwise(dtype: str, shape: str) -> str:
    return f"graph(x: {dtype}[{shape}], y: {dtype}[{shape}]) {{ t: {dtype}[{shape}] = add x y; return t }}"


def reduced(dtype: str, shape: str, axes: str, left: str, op: str = "reduce_sum") -> str:
    return f"graph(x: {dtype}[{shape}]) {{ t: {dtype}[{left}] = {op} x {{axes={axes}}}; return t }}"


def softmax(dtype: str, n: int, k: int) -> str:
    whole, row = f"{dtype}[{n},{k}]", f"{dtype}[{n}]"
    wide = f"{{shape=({n}, {k}), axes=(0,)}}"
    return f"""graph(x: {whole}) {{ m: {row} = reduce_max x {{axes=(1,)}}; a: {whole} = broadcast m {wide}
      d: {whole} = sub x a; e: {whole} = exp d; s: {row} = reduce_sum e {{axes=(1,)}}
      b: {whole} = broadcast s {wide}; y: {whole} = div e b; return y }}"""


def layer_norm(dtype: str, n: int, k: int) -> str:
    whole, row = f"{dtype}[{n},{k}]", f"{dtype}[{n}]"
    wide = f"{{shape=({n}, {k}), axes=(0,)}}"
    return f"""graph(x: {whole}, w: {dtype}[{k}]) {{ m: {row} = reduce_sum x {{axes=(1,)}}; a: {whole} = broadcast m {wide}
      d: {whole} = sub x a; q: {whole} = mul d d; s: {row} = reduce_sum q {{axes=(1,)}}; r: {row} = sqrt s
      b: {whole} = broadcast r {wide}; y: {whole} = div d b; g: {whole} = broadcast w {{shape=({n}, {k}), axes=(1,)}}
      z: {whole} = mul y g; return z }}"""


WIDE = {  # name -> graph, elements of 16 bytes
    "points": (pointwise("f32", "5000"), 4),
    "points of 8 bytes": (pointwise("f64", "5000"), 2),
    "points of 2 bytes": (pointwise("f16", "5000"), 8),
    "points beside a row": (
        "graph(x: f32[40,60], y: f32[60]) { b: f32[40,60] = broadcast y {shape=(40, 60), axes=(1,)};"
        " t: f32[40,60] = add x b; return t }",
        4,
    ),
    "rows": (reduced("f32", "20,512", "(1,)", "20"), 4),
    "short rows": (reduced("f32", "300,8", "(1,)", "300"), 4),
    "short softmax": (softmax("f32", 300, 16), 4),
    "bytes": (pointwise("bool", "5000").replace("add", "bit_xor"), 16),
    "planes": (reduced("f32", "3,10,512", "(0, 2)", "10"), 4),
    "all": (reduced("f64", "20000", "(0,)", ""), 2),
    "softmax": (softmax("f32", 10, 256), 4),
    "layer norm": (layer_norm("f32", 10, 256), 4),
}
NARROW = {
    "a transpose": "graph(x: f32[64,300]) { t: f32[300,64] = transpose x {perm=(1, 0)}; return t }",
    "a transpose of planes": "graph(x: f64[5,6,40]) { t: f64[40,5,6] = transpose x {perm=(2, 0, 1)}; return t }",
    "columns": reduced("f32", "300,64", "(0,)", "64"),
    "short columns": reduced("f32", "20,300", "(0,)", "300"),
    "columns, in order": reduced("f32", "20,300", "(0,)", "300", "reduce_prod"),
    "odd rows": reduced("f32", "20,511", "(1,)", "20"),
    "softmax of odd rows": softmax("f32", 10, 255),
}


@cache
def first(text: str) -> tuple[Graph, Kernel]:
    graph = parse(text)
    (kernel,) = [step for step in fused(graph).steps if isinstance(step, Kernel)]
    return graph, kernel


@pytest.mark.parametrize("name", WIDE)
def test_threads_take_16_bytes_each_of_neighbouring_places(name: str) -> None:
    text, width = WIDE[name]
    _, kernel = first(text)
    (loads,) = {kernel.params[0].name}
    assert widest(kernel, loads) == width
    steps = steps_between_threads(kernel, loads)
    if name.startswith("short"):  # a thread takes a row
        return
    assert steps[width] > 0.9 * steps.total(), steps  # where a row ends, the next one may lie elsewhere


@pytest.mark.parametrize("name", NARROW)
def test_threads_take_neighbouring_elements(name: str) -> None:
    _, kernel = first(NARROW[name])
    steps = steps_between_threads(kernel, kernel.params[0].name)
    assert steps[1] > 0.9 * steps.total(), steps


@pytest.mark.parametrize("text", [text for text, _ in WIDE.values()] + [*NARROW.values()], ids=[*WIDE, *NARROW])
def test_every_element_is_read_once_and_written_once(text: str) -> None:
    graph, kernel = first(text)
    times = 3 if text == WIDE["short softmax"][0] else 1  # by one thread, which keeps a short row in registers
    assert times_touched(kernel, kernel.params[0].name) == {times: graph.in_avals[0].size}
    out = next(b for b in kernel.params if b.name in kernel.writes and not b.name.startswith("p"))
    assert times_touched(kernel, out.name) == {1: out.size}


def most_in_a_row(body: Sequence[Stmt], trips: Mapping[str, float]) -> Iterator[float]:
    """For each sum, how many numbers a thread adds up one by one."""
    for stmt in body:
        match stmt:
            case Loop(kind=kind):
                each = length(stmt.start, stmt.stop) / stmt.step / (THREADS if kind == "thread" else 1)
                yield from most_in_a_row(stmt.body, {cell: n * max(1.0, each) for cell, n in trips.items()})
            case Cell(name):
                trips = {**trips, name: 1.0}
            case Update(cell) if cell in trips:
                yield trips[cell]
            case _:
                yield from most_in_a_row(children(stmt), trips)


def length(start: Expr, stop: Expr) -> float:
    """The most steps of 1 from start to stop, which may be the end of a piece or that of all: `minimum(a + 32, n)`."""
    if isinstance(stop, Apply) and stop.fn == "minimum":
        return min(length(start, side) for side in stop.args)
    span = affine(sub(stop, start))
    return float(span[""]) if span is not None and span.keys() == {""} else float("inf")


@pytest.mark.parametrize("n", [255, 4096, 20000, 1 << 20, 1 << 26])
@pytest.mark.parametrize("shape", ["{n}", "2,{n}", "1000,{n}", "{n},3", "{n},512", "4,{n},5,6"])
def test_no_thread_adds_up_many_numbers_one_by_one(shape: str, n: int) -> None:
    axis = shape.split(",").index("{n}")
    left = ",".join(k for k in shape.split(",") if k != "{n}")
    _, kernel = first(reduced("f32", shape.format(n=n), f"({axis},)", left))
    assert max(most_in_a_row(kernel.body, {})) <= 256


def test_what_holds_no_loop_is_left_to_one_thread() -> None:
    _, kernel = first("graph(x: f32[]) { t: f32[] = exp x; return t }")
    assert not any(isinstance(stmt, Loop) for stmt in walk(kernel.body))


@pytest.mark.parametrize(
    ("n", "k", "kernels"), [(1000, 16384, 1), (1000, 32768, 1), (1000, 65536, 3), (2, 4096, 1), (2, 65536, 3)]
)
def test_rows_that_are_too_much_for_a_block_are_no_reason_to_fuse(n: int, k: int, kernels: int) -> None:
    assert sum(isinstance(step, Kernel) for step in fused(parse(softmax("f32", n, k))).steps) == kernels


RAGGED = {  # whose last blocks, chunks and vectors are cut short
    "rows side by side": reduced("f32", "17000,20", "(1,)", "17000"),
    "softmax of rows side by side": softmax("f32", 17000, 20),
    "softmax of long rows": softmax("f32", 3, 3001),
    "a few long rows": reduced("f64", "3,40001", "(1,)", "3"),
    "a few long columns": reduced("f32", "9001,5", "(0,)", "5"),
    "a middle axis": reduced("i32", "40,300,31", "(1,)", "40,31", "reduce_max"),
    "pieces of short rows": "graph(x: f32[1603,20]) { y: f32[1603,20] = neg x; t: f32[1603,40] = concat x y {axis=1}; return t }",
    "pieces of planes": "graph(x: f32[3,1100,20]) { y: f32[3,1100,20] = neg x;"
    " t: f32[3,1100,40] = concat x y {axis=2}; u: f32[3,2200,40] = concat t t {axis=1}; return u }",
    "an odd transpose": "graph(x: f32[61,303]) { t: f32[303,61] = transpose x {perm=(1, 0)}; return t }",
}


@pytest.mark.skipif(not has_compiler(), reason="no C++ compiler")
def test_emulated_kernels_give_the_answers() -> None:
    texts = [*(text for text, _ in WIDE.values()), *NARROW.values(), *RAGGED.values()]
    graphs = [parse(text) for text in texts]
    programs = [plan(fused(graph)) for graph in graphs]
    for graph, program, kernels in zip(graphs, programs, emulated(programs, interprets=False), strict=True):
        args = draw(graph)
        for found, expected in zip(run(program, args, kernels), interpret(graph, args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * float(np.abs(expected).max()))


def _changed_and_summed(x: Array) -> Any:
    x *= 2
    return x.sum(), x


OPENED = {
    "points": lambda x: x + 1,
    "turned": lambda x: x.T.copy(),
    "rows": lambda x: x / x.sum(1, keepdims=True),
    "columns": lambda x: x.sum(0),
    "three axes": lambda x: x.reshape(x.shape[0], -1, 2).sum(1) if x.shape[1] % 2 == 0 else x,
    "an update": _changed_and_summed,
    "the inside": lambda x: x[1:-1, 1:-1] * 2,
}


@pytest.mark.parametrize("program", OPENED.values(), ids=OPENED)
def test_blocks_share_what_has_any_size(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.pipeline.chosen_backend", _Loops)
    jitted = jitml.jit(program, dynamic=True, verify="never")
    for shape in ((6, 8), (3, 40), (1, 2), (40, 4)):
        x = np.random.default_rng(1).normal(size=shape)
        assert difference(jitted(x.copy()), program(x.copy()), within(1e-9)) is None
    kernels = [step for v in jitted.variants for step in v.executable.program.kernels.steps if isinstance(step, Kernel)]
    looping = [s for kernel in kernels for s in kernel.body if isinstance(s, Loop) and s.kind != "thread"]
    assert looping and all(s.kind == "block" for s in looping)
