"""Facts about schedules: how many kernels, which loops, and how many bytes they move. See tests/golden for their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder
from jitml.ir.op import recording
from jitml.ir.text.parser import parse
from jitml.ir.types import F64, Aval
from jitml.kernels.ir import Alloc, Const, Expr, Kernel, Loop, Stmt, Update, expressions, walk, walk_expression
from jitml.kernels.metrics import bytes_moved, flops
from jitml.kernels.program import KernelProgram
from support.fused import TINY, fuse, fuse_and_check, text


def fused(source: str) -> KernelProgram:
    return fuse(parse(source))


def test_bytes_of_a_chain_are_those_of_its_ends() -> None:
    program = fused(
        "graph(x: f64[1000], y: f64[1000]) { a: f64[1000] = mul x y; b: f64[1000] = exp a; c: f64[1000] = add b x; return c }"
    )
    assert len(program.steps) == 1
    assert bytes_moved(program) == 3 * 8000
    assert flops(program) == 3000


def test_flops_of_a_product() -> None:
    program = fused(
        "graph(x: f64[64,32], w: f64[32,48]) {p: f64[64,48] = dot_general x w {batch=((), ()), contract=((1,), (0,))}; return p}"
    )
    assert flops(program) == 2 * 64 * 32 * 48


def test_a_shared_producer_of_transcendental_work_is_stored_not_repeated() -> None:
    program = fused(
        """graph(x: f64[9000]) {
          e: f64[9000] = exp x
          l: f64[8999] = slice e {start=(0,), step=(1,), stop=(8999,)}
          r: f64[8999] = slice e {start=(1,), step=(1,), stop=(9000,)}
          d: f64[8999] = sub r l
          return d
        }"""
    )
    assert len(program.steps) == 2


def test_a_cheap_producer_is_repeated() -> None:
    program = fused(
        """graph(x: f64[9000]) {
          e: f64[9000] = neg x
          l: f64[8999] = slice e {start=(0,), step=(1,), stop=(8999,)}
          r: f64[8999] = slice e {start=(1,), step=(1,), stop=(9000,)}
          d: f64[8999] = sub r l
          return d
        }"""
    )
    assert len(program.steps) == 1


def test_the_mean_of_a_long_array_is_a_kernel_of_its_own() -> None:
    program = fused(
        """graph(x: f64[1000000]) {
          s: f64[] = reduce_sum x {axes=(0,)}
          b: f64[1000000] = broadcast s {axes=(), shape=(1000000,)}
          d: f64[1000000] = sub x b
          return d
        }"""
    )
    assert len(program.steps) == 2
    assert any("cache" in d.why for d in program.decisions)


@pytest.mark.parametrize("n", [1000])
def test_a_long_chain_is_one_kernel(n: int) -> None:
    b = GraphBuilder()
    x, y = b.add_input(Aval((100,), F64)), b.add_input(Aval((100,), F64))
    with recording(b):
        value = x
        for k in range(n):
            value = ops.add(value, y) if k % 2 else ops.sin(value)
        graph = b.build([value])
    program = fuse(graph)
    assert len(program.steps) == 1
    assert text(program) == text(fuse(graph))


MATRIX_VECTOR = "p: f64[{m}] = dot_general x w {{batch=((), ()), contract=((1,), (0,))}}"


def exprs_of(stmt: Stmt) -> Iterator[Expr]:
    return (part for e in expressions(stmt) for part in walk_expression(e))


def loops(program: KernelProgram) -> list[Loop]:
    return [stmt for step in program.steps if isinstance(step, Kernel) for stmt in walk(step.body) if isinstance(stmt, Loop)]


def test_what_is_costly_is_done_in_vectors_once_the_rows_are_summed() -> None:
    product = MATRIX_VECTOR.format(m=100)
    program = fused(f"graph(x: f64[100,20], w: f64[20]) {{ {product}; e: f64[100] = exp p; return e }}")
    (k,) = program.steps
    assert isinstance(k, Kernel)
    exps = [s for s in walk(k.body) if any(getattr(e, "fn", "") == "exp" for e in exprs_of(s))]
    around = [loop.kind for loop in loops(program) if any(stmt in loop.body for stmt in exps)]
    assert exps and around == ["vector"]
    cheap = fused(f"graph(x: f64[100,20], w: f64[20]) {{ {product}; e: f64[100] = neg p; return e }}")
    assert not any(isinstance(stmt, Alloc) for step in cheap.steps if isinstance(step, Kernel) for stmt in walk(step.body))


def test_eight_rows_of_a_matrix_share_the_loads_of_the_vector() -> None:
    program = fused(f"graph(x: f64[67,500], w: f64[500]) {{ {MATRIX_VECTOR.format(m=67)}; return p }}")
    sums = [sum(isinstance(stmt, Update) for stmt in loop.body) for loop in loops(program) if loop.kind == "vector"]
    assert sums == [8, 1]  # and the last three rows


FORCE = """graph(gap: f64[{k},100,500], near: f64[100,500], x: f64[500]) {{
  r: f64[100,500] = {work}
  w: f64[100,500] = div near r
  v: f64[{k},100,500] = broadcast w {{axes=(1, 2), shape=({k}, 100, 500)}}
  p: f64[{k},100,500] = mul gap v
  q: f64[100,{k},500] = transpose p {{perm=(1, 0, 2)}}
  s: f64[100,{k}] = reduce_sum q {{axes=(2,)}}
  return s
}}"""


@pytest.mark.parametrize(("k", "work", "sums"), [(3, "sqrt near", [3]), (11, "sqrt near", [8, 1]), (3, "neg near", [1])])
def test_rows_share_what_is_costly_and_the_same_in_each(k: int, work: str, sums: list[int]) -> None:
    """The weights of a force were made for each coordinate of it: three quotients and three roots in place of one."""
    near = np.random.default_rng(0).uniform(1, 2, (100, 500))
    program = fuse_and_check(FORCE.format(k=k, work=work), [near[:k, None] * near, near, near[0]], target=TINY)
    assert len(program.steps) == 1
    assert [sum(isinstance(stmt, Update) for stmt in loop.body) for loop in loops(program) if loop.kind == "vector"] == sums


def test_what_lies_in_cache_is_not_shared_among_threads() -> None:
    source = "graph(x: f64[{n}], y: f64[{n}]) {{ s: f64[{n}] = add x y; return s }}"
    assert not any(loop.kind == "parallel" for loop in loops(fused(source.format(n=40_000))))
    assert any(loop.kind == "parallel" for loop in loops(fused(source.format(n=400_000))))


def test_positions_that_a_mask_keeps_take_no_memory_before() -> None:
    program = fused(
        """graph(m: bool[5000]) {
          j: i64[5000] = convert m {dtype=i64}
          s: i64[] = reduce_sum j {axes=(0,)}
          bind s {sym=n[0:5000]}
          i: i64[5000] = iota {axis=0, dtype=i64, shape=(5000,)}
          k: i64[n] = compress i m {axis=0, size=n}
          return k
        }"""
    )
    assert sum(buffer.nbytes for buffer in program.buffers.values()) < 2 * 8 * 5000


def test_a_sum_of_everything_runs_as_memory_lies() -> None:
    graph = parse("graph(x: f64[300,200]) { y: f64[300,200] = mul x x; s: f64[] = reduce_sum y {axes=(0, 1)}; return s }")
    assert "for i1 in 0:300 vector" in text(fuse(graph, strides={0: (1, 300)}))  # down the columns
    assert "in 0:200 vector" in text(fuse(graph, strides={0: (400, 1)}))
    windows = """graph(x: f64[300,200], y: f64[300,200], z: f64[300,200]) {
      a: f64[300,200] = mul x y; b: f64[300,200] = mul a z; s: f64[] = reduce_sum b {axes=(0, 1)}; return s }"""
    # Windows that slide by one element are alike along both axes: the third array decides.
    assert "for i1 in 0:200 vector" in text(fuse(parse(windows), strides={0: (1, 1), 1: (1, 1), 2: (200, 1)}))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_broadcast_does_not_say_how_memory_lies(axis: int) -> None:
    """A bias moves along one axis alone: whether that had better run inside, the array says that has both."""
    source = f"""graph(x: f64[300,200], w: f64[{(300, 200)[axis]}]) {{
      v: f64[300,200] = broadcast w {{axes=({axis},), shape=(300, 200)}}
      y: f64[300,200] = mul x v
      s: f64[] = reduce_sum y {{axes=(0, 1)}}
      return s
    }}"""
    assert "in 0:200 vector" in text(fuse(parse(source)))
    assert "in 0:300 vector" in text(fuse(parse(source), strides={0: (1, 300)}))


def test_rows_are_lanes_where_that_is_worth_their_stores() -> None:
    def is_across(n: int, reduce: str) -> bool:
        program = fused(
            f"""graph(x: f64[1000,{n}]) {{
              m: f64[1000] = {reduce} x {{axes=(1,)}}
              b: f64[1000,{n}] = broadcast m {{axes=(0,), shape=(1000, {n})}}
              d: f64[1000,{n}] = sub x b
              return d
            }}"""
        )
        return any(loop.kind == "vector" and loop.stop == Const(1000) for loop in loops(program))

    assert [n for n in range(2, 12) if is_across(n, "reduce_sum")] == [2, 3, 4]
    assert [n for n in range(2, 12) if is_across(n, "reduce_max")] == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("tail", ["", "observe k;"])
def test_labels_find_their_elements_on_the_pass_that_computes_them(tail: str) -> None:
    """Whether errors of the other elements are heard, too, is no reason to store them all."""
    program = fused(
        f"""graph(x: f64[1000,10], labels: i64[1000]) {{
          k: f64[1000,10] = div x x; {tail}
          rows: i64[1000] = iota {{axis=0, dtype=i64, shape=(1000,)}}
          y: f64[1000] = gather k rows labels {{axis=0}}
          return y
        }}"""
    )
    assert (1000, 10) not in [buffer.shape for buffer in program.buffers.values() if buffer.name not in program.inputs]


def test_rows_of_several_passes_are_lanes_up_to_middling_lengths() -> None:
    """An exponential in each, or an extreme, along rows of ten took twice as long. A plain sum is as fast there."""

    def is_across(n: int, steps: str) -> bool:
        program = fused(f"graph(x: f64[1000,{n}]) {{ {steps} return s }}")
        return any(loop.kind == "vector" and loop.stop == Const(1000) for loop in loops(program))

    total = "s: f64[1000] = reduce_sum {} {{axes=(1,)}};"
    exponentials = "e: f64[1000,{n}] = exp x; " + total.format("e")
    for n, plain, costly in ((8, True, True), (9, False, True), (24, False, True), (25, False, False)):
        assert is_across(n, total.format("x")) == plain
        assert is_across(n, exponentials.replace("{n}", str(n))) == costly
        assert is_across(n, "s: f64[1000] = reduce_max x {axes=(1,)};") == costly


@pytest.mark.parametrize(
    ("op", "dtype", "is_blocked"),
    [("reduce_sum", "f64", True), ("reduce_max", "f64", False), ("reduce_min", "f32", False), ("reduce_sum", "i64", False)],
)
def test_only_sums_that_round_are_made_block_by_block(op: str, dtype: str, is_blocked: bool) -> None:
    """To put the lanes of a block together took a fifth of the time."""
    program = fused(f"graph(x: {dtype}[200000]) {{ s: {dtype}[] = {op} x {{axes=(0,)}}; return s }}")
    assert any(loop.step == 1024 for loop in loops(program)) == is_blocked


def test_few_long_rows_are_added_up_some_at_a_time() -> None:
    """Sixty-four rows at once, 4096 elements apart, took each other's place in the cache."""
    source = "graph(x: f64[{n},{m}]) {{ s: f64[{m}] = reduce_sum x {{axes=(0,)}}; return s }}"
    assert [loop.step for loop in loops(fused(source.format(n=32, m=4096))) if loop.index == "i1b"] == [16]
    assert not any(loop.index == "i1b" for loop in loops(fused(source.format(n=32, m=4000))))
    assert any(loop.index == "i1b" for loop in loops(fused(source.format(n=64, m=4000))))


@pytest.mark.parametrize("rows, partial", [(100, 7), (2000, 16), (5000, 16)])
def test_sums_down_long_columns_have_few_partial_sums(rows: int, partial: int) -> None:
    program = fused(f"graph(x: f64[{rows},3000]) {{ s: f64[3000] = reduce_sum x {{axes=(0,)}}; return s }}")
    assert [b.shape for name, b in program.buffers.items() if name.startswith("p")] == [(partial, 3000)]


def test_rows_of_a_few_elements_are_written_as_whole_vectors() -> None:
    def is_across(n: int) -> bool:
        program = fused(f"graph(x: f64[1000]) {{ r: f64[1000,{n}] = broadcast x {{axes=(0,), shape=(1000, {n})}}; return r }}")
        return any(loop.kind == "vector" and loop.stop == Const(1000) for loop in loops(program))

    assert [n for n in range(2, 12) if is_across(n)] == [2, 3, 4]


@pytest.mark.parametrize(
    "function",
    [lambda x, y: x + y, lambda x, y: x - 2.0 * y.conj(), lambda x, y: x + y.reshape(30, 20).T, lambda x, y: x[::2] - y[1::2]],
)
def test_both_halves_of_complex_numbers_are_read_in_one_loop(function: Callable[..., Any]) -> None:
    x = np.arange(600.0).reshape(20, 30) * (1 - 2j)
    y = np.exp(x / 600)
    lowered = jitml.jit(function).lower(x, y)
    assert lowered.kernels.count("  kernel k") == 1
    (result,) = lowered.compile()(x, y)
    np.testing.assert_array_equal(result, function(x, y))


def test_a_stencil_that_fits_in_cache_is_not_worth_a_second_thread() -> None:
    """Its windows are one memory: five of them were taken for five arrays, and a loop of six microseconds was shared."""
    source = """graph(x: f64[{n},{n}], s: f64[{m},{m}]) {{
        a: f64[{m},{m}] = slice x {{start=(2, 1), stop=({n}, {l}), step=(1, 1)}};
        b: f64[{m},{m}] = slice x {{start=(0, 1), stop=({m}, {l}), step=(1, 1)}};
        c: f64[{m},{m}] = slice x {{start=(1, 2), stop=({l}, {n}), step=(1, 1)}};
        d: f64[{m},{m}] = slice x {{start=(1, 0), stop=({l}, {m}), step=(1, 1)}};
        e: f64[{m},{m}] = add a b; f: f64[{m},{m}] = add c d; g: f64[{m},{m}] = add e f; h: f64[{m},{m}] = add g s;
        return h }}"""
    for n, is_shared in ((152, False), (302, True)):
        program = fused(source.format(n=n, m=n - 2, l=n - 1))
        assert any(loop.kind == "parallel" for loop in loops(program)) == is_shared
