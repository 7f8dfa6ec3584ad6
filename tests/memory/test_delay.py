"""Updates in place that read their neighbours: right for any offsets and any order of chunks, and hardly anything goes apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import F64, Aval
from jitml.kernels.ir import Alloc, Const, Expr, Kernel, Let, Loop, Stmt, Var, floor_divide, walk
from jitml.kernels.text.program_parser import parse_program
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from jitml.memory.program import Program
from support.fused import fuse


def update(shape: tuple[int, ...], part: tuple[int, ...], starts: list[tuple[int, ...]], steps: tuple[int, ...]) -> Graph:
    """`x[w] = x[r0] + 2 * x[r1] + ...`: windows of one shape at some places, the written one first."""
    b = GraphBuilder()
    x = b.add_input(Aval(shape, F64))
    with recording(b):
        total: Any = None
        for k, start in enumerate(starts[1:]):
            stop = tuple(a + (n - 1) * s + 1 for a, n, s in zip(start, part, steps))
            term = ops.slice(x, start=start, stop=stop, step=steps)
            factor = ops.broadcast(ops.full(value=float(k + 1), shape=(), dtype=F64), shape=part, axes=())
            term = ops.mul(term, factor)
            total = term if total is None else ops.add(total, term)
        return b.build((ops.update_slice(x, total, start=starts[0], step=steps),))


def backwards(kernel: Kernel) -> Kernel:
    """The chunks of threads in the opposite order."""

    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Loop) or stmt.kind != "parallel":
            return stmt
        count: Expr = floor_divide(stmt.stop - stmt.start + (stmt.step - 1), stmt.step)
        at = stmt.start + (count - 1 - Var("turn")) * stmt.step
        return Loop("turn", Const(0), count, 1, "serial", (Let(stmt.index, at), *stmt.body))

    return replace(kernel, body=tuple(map(change, kernel.body)))


def delayed(program: Program) -> bool:
    statements = (s for step in program.kernels.steps if isinstance(step, Kernel) for s in walk(step.body))
    return any(isinstance(s, Alloc) and s.buffer.name == "rows" for s in statements)


def check(graph: Graph) -> Program:
    program = plan(fuse(graph, aliases={0: 0}))
    x = np.random.default_rng(0).normal(size=graph.inputs[0].shape)
    (expected,) = interpret(graph, [x])
    for steps in (program.kernels.steps, tuple(backwards(s) if isinstance(s, Kernel) else s for s in program.kernels.steps)):
        (result,) = run(replace(program, kernels=replace(program.kernels, steps=steps)), [x.copy()])
        np.testing.assert_allclose(result, expected)
    return program


@pytest.mark.parametrize("seed", range(60))
def test_drawn_updates_are_right_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(*[(1500, 9000), (20, 120), (9, 30)][ndim - 1], ndim))
    steps = tuple(int(s) for s in rng.choice([1, 1, 1, 2], ndim))
    far = 4 if ndim > 1 else int(rng.choice([4, 700]))
    slack = [int(rng.integers(0, far + 1)) for _ in range(ndim)]
    part = tuple((n - s) // k for n, s, k in zip(shape, slack, steps))
    starts = [tuple(int(rng.integers(0, s + 1)) for s in slack) for _ in range(int(rng.integers(2, 5)))]
    check(update(shape, part, starts, steps))


@pytest.mark.parametrize("shape", [(6000,), (2000, 40), (300, 300), (40, 40, 40)])
def test_neighbours_need_a_few_rows_only(shape: tuple[int, ...]) -> None:
    part = tuple(n - 2 for n in shape)
    ones = (1,) * len(shape)
    program = check(update(shape, part, [ones, (0,) * len(shape), tuple(2 * one for one in ones)], ones))
    assert delayed(program)


def test_far_rows_are_all_stored_apart() -> None:
    program = check(update((100, 8), (50, 8), [(50, 0), (0, 0)], (1, 1)))
    assert not delayed(program)


TWO_ROWS = """program(u) -> (v) {
  buffer u: f64[33]
  buffer v: f64[33]
  alias v = u
  kernel k(u: f64[33], v: f64[33]) updates(v=u) {
    for i in 0:16 { v[i * 2 + 1] = u[i * 2]; v[i * 2 + 2] = u[i * 2 + 1] }
  }
}"""
# `p` dies in k, and the memory of a number is what `q` could take: but rows that are stored later need `p` again.
PLACE = """program(u, n) -> (v, w) {
  buffer u: f64[33]
  buffer n: i64[]
  buffer p: i64[]
  buffer q: i64[]
  buffer v: f64[33]
  buffer w: i64[]
  alias v = u
  kernel a(n: i64[], p: i64[]) { p[] = n[] }
  kernel k(u: f64[33], v: f64[33], p: i64[], q: i64[]) updates(v=u) {
    let s: i64 = minimum(maximum(p[], 0), 5)
    for i in 0:4 parallel { for j in 0:4 vector { v[i * 4 + j + s] = u[19 - i * 4 - j + s] } }
    q[] = 0
  }
  kernel b(q: i64[], w: i64[]) { w[] = q[] }
}"""


@pytest.mark.parametrize(
    "text, numbers, expected",
    [
        (TWO_ROWS, (), lambda u: np.concatenate([u[:1], u[:-1]])),
        (PLACE, (np.array(3),), lambda u: np.concatenate([u[:3], u[22:6:-1], u[19:]])),
    ],
    ids=["two rows in each iteration", "the place of a window"],
)
def test_what_is_stored_later_is_where_it_was(text: str, numbers: tuple[Any, ...], expected: Any) -> None:
    program = plan(verify_program(parse_program(text)))
    x = np.arange(33.0)
    for execute in (lambda *arrays: run(program, arrays), compile_program(program)):
        np.testing.assert_array_equal(execute(x.copy(), *numbers)[0], expected(x))
