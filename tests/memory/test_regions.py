"""What loops and branches cost in memory: bytes of arenas, and bytes that are copied in each iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from jitml.codegen.interpreter import run
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.kernels.interpret import interpret as run_kernel
from jitml.kernels.ir import Kernel
from jitml.kernels.metrics import bytes_moved
from jitml.kernels.program import Call, KernelProgram, Region
from jitml.memory.plan import plan
from jitml.memory.program import Program
from jitml.memory.report import describe, show
from support.fused import fuse

ROWS, COLUMNS = 32, 16
WHOLE = ROWS * COLUMNS * 8


def planned(text: str, aliases: Mapping[int, int], numbers: Sequence[int] = (9,)) -> Program:
    """The plan of a graph as regions of kernels; its answer is compared with the graph's, for some values of integers."""
    graph = parse(text)
    rng = np.random.default_rng(0)
    program = plan(fuse(run_passes(graph, check=True), aliases=aliases, rolls=False))
    for n in numbers:
        args = [np.asarray(rng.normal(size=v.shape) if v.dtype.kind == "f" else n).astype(v.dtype) for v in graph.inputs]
        for got, expected in zip(run(program, [a.copy() for a in args]), interpret(graph, args), strict=True):
            np.testing.assert_allclose(got, expected)
    return program


def body_of(program: Program) -> KernelProgram:
    (region,) = (step for step in program.kernels.steps if isinstance(step, Region))
    return region.bodies[-1]


def bytes_copied(program: KernelProgram) -> int:
    """Bytes that copies and write-backs store in one run."""
    total = 0
    for step in program.steps:
        if isinstance(step, Call) and step.name == "copy":
            total += program.buffers[step.writes[0]].nbytes
        elif isinstance(step, Kernel) and step.name.endswith("_back"):
            total += bytes_stored(step)
    return total


def bytes_stored(kernel: Kernel) -> int:
    arrays = {b.name: np.zeros(b.shape, b.dtype) for b in kernel.params}
    filled = {name: np.ones_like(a) for name, a in arrays.items()}
    (target,) = kernel.writes
    filled[target] = np.zeros_like(filled[target])
    run_kernel(kernel, filled)
    return int(np.count_nonzero(filled[target])) * filled[target].itemsize


ROW_FROM_THE_ROW_BEFORE = f"""graph(a: i64[], b: f64[{ROWS},{COLUMNS}]) {{
  c: f64[{ROWS},{COLUMNS}] = loop a b {{carried=1}} body(a: i64[], b: f64[{ROWS},{COLUMNS}]) {{
    c: i64[] = full {{dtype=i64, shape=(), value=0}}
    d: i64[] = full {{dtype=i64, shape=(), value=1}}
    e: f64[1,{COLUMNS}] = dynamic_slice b a c {{sizes=(1, {COLUMNS}), step=(1, 1)}}
    f: f64[1,{COLUMNS}] = sin e
    g: i64[] = add a d
    h: f64[{ROWS},{COLUMNS}] = dynamic_update_slice b f g c {{step=(1, 1)}}
    return h
  }}
  return c
}}"""


def test_a_row_made_from_the_row_before_copies_nothing() -> None:
    program = planned(ROW_FROM_THE_ROW_BEFORE, {0: 1})
    assert bytes_copied(program.kernels) + bytes_copied(body_of(program)) == 0
    assert program.report.copies == ()
    assert program.arena_size == 64  # the index


def test_an_argument_that_must_not_change_is_copied_once() -> None:
    program = planned(ROW_FROM_THE_ROW_BEFORE, {})
    assert bytes_copied(program.kernels) == WHOLE
    assert bytes_copied(body_of(program)) == 0


def stencil(source: str, target: str, first: str) -> list[str]:
    """Statements `target[1:-1, 1:-1] = sin(source[1:-1, :-2] + source[1:-1, 2:])`; the last name is the result."""
    a, b, c, d, e = (f"{first}{k}" for k in range(5))
    part = f"f64[{ROWS - 2},{COLUMNS - 2}]"
    return [
        f"{a}: {part} = slice {source} {{start=(1, 0), step=(1, 1), stop=({ROWS - 1}, {COLUMNS - 2})}}",
        f"{b}: {part} = slice {source} {{start=(1, 2), step=(1, 1), stop=({ROWS - 1}, {COLUMNS})}}",
        f"{c}: {part} = add {a} {b}",
        f"{d}: {part} = sin {c}",
        f"{e}: f64[{ROWS},{COLUMNS}] = update_slice {target} {d} {{start=(1, 1), step=(1, 1)}}",
    ]


def test_two_arrays_made_from_each_other_change_in_place() -> None:
    """B[1:-1] = f(A), A[1:-1] = f(B): no element is copied, and none is computed twice."""
    array = f"f64[{ROWS},{COLUMNS}]"
    body = "; ".join([*stencil("x", "y", "s"), *stencil("s4", "x", "t"), "return t4 s4"])
    program = planned(
        f"graph(n: i64[], a: {array}, b: {array}) {{"
        f" c: {array}, d: {array} = loop n a b {{carried=2}} body(i: i64[], x: {array}, y: {array}) {{ {body} }}; return c d }}",
        {0: 1, 1: 2},
    )
    assert bytes_copied(body_of(program)) == 0
    assert len(body_of(program).steps) == 2
    assert bytes_moved(body_of(program)) <= 4 * WHOLE
    assert program.arena_size == 64


def test_a_stencil_in_place_keeps_a_few_rows() -> None:
    array = f"f64[{ROWS},{COLUMNS}]"
    body = "; ".join([*stencil("x", "x", "s"), "return s4"])
    program = planned(
        f"graph(n: i64[], a: {array}) {{"
        f" b: {array} = loop n a {{carried=1}} body(i: i64[], x: {array}) {{ {body} }}; return b }}",
        {0: 1},
    )
    assert bytes_copied(body_of(program)) == 0
    assert program.arena_size == 64  # the index


def leapfrog(new: str) -> str:
    """`before, now = now, 2 * now - before + neighbours(now)`, where `new` says into which array."""
    part, array = f"f64[{ROWS},{COLUMNS - 2}]", f"f64[{ROWS},{COLUMNS}]"
    return f"""
        l: {part} = slice now {{start=(0, 0), step=(1, 1), stop=({ROWS}, {COLUMNS - 2})}}
        m: {part} = slice now {{start=(0, 1), step=(1, 1), stop=({ROWS}, {COLUMNS - 1})}}
        r: {part} = slice now {{start=(0, 2), step=(1, 1), stop=({ROWS}, {COLUMNS})}}
        b: {part} = slice before {{start=(0, 1), step=(1, 1), stop=({ROWS}, {COLUMNS - 1})}}
        s: {part} = add l r
        t: {part} = sub m b
        v: {part} = add s t
        {new}
        after: {array} = update_slice {"zero" if new else "before"} v {{start=(0, 1), step=(1, 1)}}"""


def test_arrays_that_change_names_are_not_copied() -> None:
    """However often they change, they end up where they belong. What is made of one at its own places is made in it."""
    array, zero = f"f64[{ROWS},{COLUMNS}]", "z: f64[] = full {dtype=f64, shape=(), value=0.0}; zero: "
    zero += f"{array} = broadcast z {{axes=(), shape=({ROWS}, {COLUMNS})}}"
    for new in ("", zero):
        text = f"""graph(n: i64[], a: {array}, b: {array}) {{
          c: {array}, d: {array} = loop n a b {{carried=2}} body(i: i64[], before: {array}, now: {array}) {{
            {leapfrog(new)}
            return now after
          }}
          return c d }}"""
        program = planned(text, {0: 1, 1: 2}, range(5))
        assert bytes_copied(body_of(program)) == 0
        assert program.arena_size == (64 + WHOLE if new else 64)


def test_three_arrays_change_places_in_turn() -> None:
    text = """graph(n: i64[], a: f64[64], b: f64[64], c: f64[64]) {
      d: f64[64], e: f64[64], f: f64[64] = loop n a b c {carried=3} body(i: i64[], x: f64[64], y: f64[64], z: f64[64]) {
        w: f64[64] = sin x
        return y z w
      }
      return d e f }"""
    program = planned(text, {0: 1, 1: 2, 2: 3}, range(8))
    assert bytes_copied(body_of(program)) == 0
    assert program.arena_size == 64


@pytest.mark.parametrize("kind", ["loop", "while"])
def test_what_is_made_anew_changes_places_with_what_it_was(kind: str) -> None:
    """`x = A @ x`: two vectors, and no copy from one to the other."""
    body = """v: f64[64,1] = reshape x {shape=(64, 1)}
      w: f64[64,1] = dot_general m v {batch=((), ()), contract=((1,), (0,))}
      z: f64[64] = reshape w {shape=(64,)}"""
    arguments = "i: i64[], x: f64[64], n: i64[], m: f64[64,64]"
    loops = {
        "loop": f"y: f64[64] = loop n x n m {{carried=1}} body({arguments}) {{ {body}; return z }}",
        "while": f"""k: i64[], y: f64[64] = while_ zero x n m {{carried=2}} test({arguments}) {{
            b: bool[] = lt i n
            return b
          }} body({arguments}) {{
            one: i64[] = full {{dtype=i64, shape=(), value=1}}
            j: i64[] = add i one
            {body}
            return j z }}""",
    }
    text = f"""graph(x: f64[64], m: f64[64,64], n: i64[]) {{
      zero: i64[] = full {{dtype=i64, shape=(), value=0}}
      {loops[kind]}
      return y }}"""
    program = planned(text, {0: 0}, range(4))
    copied = [step for step in body_of(program).steps if isinstance(step, Call) and step.name == "copy"]
    assert all(body_of(program).buffers[step.writes[0]].size == 1 for step in copied)


def test_what_is_read_before_an_update_runs_before_it() -> None:
    """The sum of the array as it was needs no copy of the array."""
    program = planned(
        """graph(n: i64[], a: f64[16], s: f64[]) {
          b: f64[16], t: f64[] = loop n a s {carried=2} body(i: i64[], x: f64[16], s: f64[]) {
            y: f64[16] = sin x
            t: f64[] = reduce_max x {axes=(0,)}
            u: f64[] = add t s
            return y u }
          return b t }""",
        {0: 1, 1: 2},
    )
    assert program.report.copies == ()


BRANCH = """graph(which: bool[], a: f64[16], s: f64[]) {
  b: f64[16] = cond which a s then(x: f64[16], s: f64[]) {
    v: f64[3] = broadcast s {axes=(), shape=(3,)}
    y: f64[16] = update_slice x v {start=(4,), step=(1,)}
    return y
  } orelse(x: f64[16], s: f64[]) { return x }
  return b
}"""


def test_a_branch_updates_its_operand_in_place() -> None:
    program = planned(BRANCH, {0: 1})
    assert program.arena_size == 0
    assert program.report.copies == ()


def test_a_check_in_a_body_keeps_the_callers_array_as_it_was() -> None:
    text = """graph(n: i64[], a: f64[16]) {
      b: f64[16] = loop n a {carried=1} body(i: i64[], x: f64[16]) {
        five: i64[] = full {dtype=i64, shape=(), value=5}
        ok: bool[] = lt i five
        j: i64[] = check i ok i {error='IndexError', message='index {}'}
        v: f64[1] = full {dtype=f64, shape=(1,), value=7.0}
        y: f64[16] = dynamic_update_slice x v j {step=(1,)}
        return y }
      return b }"""
    program = plan(fuse(parse(text), aliases={0: 1}, rolls=False))
    x = np.zeros(16)
    with pytest.raises(IndexError, match="index 5"):
        run(program, [np.asarray(9), x])
    assert not x.any()
    run(program, [np.asarray(3), x])
    assert x.tolist() == [7.0] * 3 + [0.0] * 13


def test_the_arena_of_a_body_is_counted_once() -> None:
    """A body needs two arrays besides what it carries, however often it runs."""
    program = planned(
        """graph(n: i64[], a: f64[64]) {
          b: f64[64] = loop n a {carried=1} body(i: i64[], x: f64[64]) {
            y: f64[64] = cumsum x {axis=0, reverse=False}
            z: f64[64] = flip y {axes=(0,)}
            w: f64[64] = cumsum z {axis=0, reverse=False}
            s: f64[64] = sin w
            return s }
          return b }""",
        {0: 1},
    )
    assert program.report.lower_bound <= program.arena_size <= 3 * 512 + 64
    assert "k0_loop" in describe(program)
    assert "scratch k0_loop_scratch" in show(program)
