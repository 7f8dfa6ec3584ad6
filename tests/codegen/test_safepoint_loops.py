"""How often do loops look whether the program is to end?  By what is known of their iterations, and without being other loops."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.codegen.llvm.ir.cpu import X86_64_V4
from jitml.codegen.llvm.loops.safepoints import BLOCK, LONG_ITERATION, SELF_LOOKING, look_every, most_trips, within, work
from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime.jit import assembly, optimize
from jitml.codegen.llvm.runtime.jit import parse as parse_ir
from jitml.kernels.ir import Kernel, Let, Loop, Stmt
from jitml.kernels.text.parser import parse
from support.llvm_kernels import emit_kernel_text, memory_for, program_of, run_program, texts_of


def kernel(body: str, params: str = "x: f64[9]") -> Kernel:
    return parse(f"kernel k({params}) {{\n{body}\n}}")


def only(body: tuple[Stmt, ...]) -> Loop:
    (loop,) = [stmt for stmt in body if isinstance(stmt, Loop)]
    return loop


TRIANGLE = """
for i0 in 0:90 {
  let t0: i64 = 90 - i0
  let t1: i64 = t0 - 1
  let t2: i64 = maximum(minimum(n[], 40), 30)
  for i1 in 0:STOP {
    x[minimum(i1, 8)] = 1.0
  }
}
"""


@pytest.mark.parametrize(
    ("stop", "most"),
    [
        ("i0", 89),
        ("i0 * 2 + 1", 179),
        ("t1", 89),
        ("t0 + i0 - 80", 10),
        ("minimum(t0 * 100, 7)", 7),
        ("minimum(n[], i0)", 89),
        ("90 - t2", 60),
        ("(i0 + 10) // 10", 9),
        ("select(t0 < 3, t1, 7)", 89),
    ],
)
def test_loops_are_as_long_as_the_indices_around_them_let_them_be(stop: str, most: int) -> None:
    outer = only(kernel(TRIANGLE.replace("STOP", stop), "x: f64[9], n: i64[]").body)
    known = within(outer, {}) | {stmt.name: stmt.value for stmt in outer.body if isinstance(stmt, Let)}
    assert most_trips(only(outer.body), known) == most
    assert work((outer,)) <= 90 * (most * 4 + 8)


def test_a_loop_of_unknown_length_counts_as_long() -> None:
    outer = only(kernel(TRIANGLE.replace("STOP", "n[]"), "x: f64[9], n: i64[]").body)
    assert work((outer,)) > 1e9
    assert look_every(outer, {}, is_inside=False) == 1
    assert look_every(only(outer.body), within(outer, {}), is_inside=True) == 0  # the one around it looks


def test_long_loops_of_short_iterations_look_once_in_a_block_and_short_loops_never() -> None:
    def loop(n: int, value: str = "x[0] + 1.0") -> Loop:
        return only(kernel(f"for i0 in 0:{n} {{\nx[0] = {value}\n}}").body)

    assert look_every(loop(1000), {}, is_inside=False) == 0
    assert look_every(loop(10**8), {}, is_inside=True) == BLOCK // 2
    costly = "+ pow(x[0], x[1]) " * 3
    own = work(loop(1, f"x[0] {costly}").body)
    assert own > LONG_ITERATION
    assert look_every(loop(10**8, f"x[0] {costly}"), {}, is_inside=True) == BLOCK // own
    long = only(kernel("for i0 in 0:9000 {\nfor i1 in 0:90000 {\nx[0] = x[0] + 1.0\n}\n}").body)
    assert look_every(long, {}, is_inside=False) == 1


PACK = """
kernel k(x: f64[{n}], m: bool[{n}], y: f64[{n}]) {{
  cell s0: i64 = 0
  for k0 in 0:{n} {{
    y[minimum(s0, {last})] = x[k0]
    s0 add= i64(m[k0])
  }}
}}
"""
LENGTH = 3_000_003


def test_a_long_loop_that_packs_looks_between_blocks() -> None:
    text = PACK.format(n=LENGTH, last=LENGTH - 1)
    ir = texts_of(emit_kernel_text(text, X86_64_V4))["usual"]
    assert ir.count("load atomic") == 1
    assert "compress" in str(assembly(parse_ir(ir), X86_64_V4, level=1))


@pytest.mark.parametrize("body", ["y[minimum(s0, LAST)] = x[k0]\ns0 add= i64(m[k0])", "s0 add= i64(m[k0])\ny[k0] = f64(s0)"])
def test_blocks_are_the_same_iterations(body: str) -> None:
    """Whatever is carried from one to the next, the rest behind the last block too."""
    inside = body.replace("LAST", str(LENGTH - 1))
    params = f"x: f64[{LENGTH}], m: bool[{LENGTH}], y: f64[{LENGTH}]"
    loop = kernel(f"cell s0: i64 = 0\nfor k0 in 0:{LENGTH} {{\n{inside}\n}}", params)
    assert look_every(only(loop.body), {}, is_inside=False) > 1
    memory = memory_for(loop)
    memory["m"][:] = np.arange(LENGTH) % 3 == 0
    x, m, y = memory["x"], memory["m"], memory["y"]
    assert run_program(program_of([loop]), memory)[0] == 0
    if "LAST" in body:
        np.testing.assert_array_equal(y[: m.sum()], x[m])
    else:
        np.testing.assert_array_equal(y, np.cumsum(m))


@pytest.mark.parametrize("scratch", [2, 9000])
@pytest.mark.parametrize("threads", [1, 2])
def test_iterations_that_threads_share_are_the_same_in_blocks(threads: int, scratch: int) -> None:
    """Of scratch there may be so much that it is taken once for all iterations of a thread."""
    n = 3_000_001
    loop = kernel(
        f"for c0 in 0:{n} parallel grain 70000 {{\nalloc m: f64[{scratch}] {{\nm[1] = x[c0] + 1.0\ny[c0] = m[1]\n}}\n}}",
        f"x: f64[{n}], y: f64[{n}]",
    )
    memory = memory_for(loop)
    assert run_program(program_of([loop]), memory, threads=threads)[0] == 0
    np.testing.assert_array_equal(memory["y"], memory["x"] + 1)
    text = "\n".join(part.text for part in emit_program(program_of([loop]), cpu=X86_64_V4).parts)
    inside = [part for part in text.split("define ") if "store double" in part]
    assert ("@jitml_look" in inside[0]) == ("aligned_alloc" in inside[0])


@pytest.mark.parametrize("n", [SELF_LOOKING, 5 * SELF_LOOKING + 3])
def test_iterations_that_look_themselves_come_some_at_once(n: int) -> None:
    """Each has a `while`, which looks if it is long: to look before each iteration took as long as the short ones."""
    loop = kernel(
        f"for c0 in 0:{n} parallel grain 4 {{\ncell c: i64 = 0\nwhile c * c < c0 {{\nc = c + 1\n}}\ny[c0] = f64(c)\n}}",
        f"y: f64[{n}]",
    )
    memory = memory_for(loop)
    assert run_program(program_of([loop]), memory)[0] == 0
    np.testing.assert_array_equal(memory["y"], np.ceil(np.sqrt(np.arange(n))))
    text = "\n".join(part.text for part in emit_program(program_of([loop]), cpu=X86_64_V4).parts)
    assert f"%far = add i64 %from, {SELF_LOOKING}" in text
    (inside,) = [part for part in text.split("define ") if "store double" in part]
    assert "@jitml_look" in inside


def test_loops_inside_blocks_are_unrolled() -> None:
    """Of which LLVM must be able to tell how long they are."""
    text = "kernel k(x: i8[9000000], n: i64[]) optimize {\nfor i0 in 0:n[] {\nx[minimum(i0 * 7, 8999999)] = 1_i8\n}\n}"
    ir = texts_of(emit_kernel_text(text, X86_64_V4))["optimizer"]
    assert "load atomic" in ir
    assert str(assembly(optimize(parse_ir(ir), X86_64_V4, vectors=False), X86_64_V4, level=1)).count("movb\t$1, (") > 4


def test_no_iteration_of_what_may_not_end_takes_no_time() -> None:
    never = only(kernel("for i0 in 0:0 {\n  while {\n  } x[0] < 1.0 {\n    x[0] = 1.0\n  }\n}").body)
    assert work((never,)) == 0 and look_every(never, {}, is_inside=False) == 0
