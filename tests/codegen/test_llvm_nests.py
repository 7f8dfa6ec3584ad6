"""Loop nests compiled for this machine against the kernel interpreter: lengths, strides, masks, branches, reductions."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.errors import LoweringError
from jitml.ir.types import DTYPES
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Const, Var
from jitml.kernels.text.parser import parse
from support.kernel_texts import KERNELS
from support.llvm_kernels import Arrays, copies, memory_for, program_of, run_kernel, run_program
from support.nest_texts import NESTS


def check(text: str, arrays: Arrays | None = None, *, ulps: int = 0, **options: Any) -> None:
    """The compiled kernel must leave the same bits in memory as the interpreter (or within `ulps`)."""
    kernel = parse(text)
    arrays = memory_for(kernel) if arrays is None else arrays
    expected, actual = copies(arrays), copies(arrays)
    interpret(kernel, expected)
    assert run_program(program_of([kernel]), actual, **options)[0] == 0
    for name, want in expected.items():
        if ulps:
            np.testing.assert_array_max_ulp(actual[name], want, ulps)
        else:
            np.testing.assert_array_equal(actual[name], want, err_msg=name)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("gather", "histogram", "softmax")])
def test_shared_kernels(name: str) -> None:
    check(KERNELS[name])


def test_softmax() -> None:
    check(KERNELS["softmax"], ulps=4)


def test_histogram_and_gather() -> None:
    rng = np.random.default_rng(1)
    check(KERNELS["histogram"], {"x": rng.random(20), "h": np.zeros(4, np.int64)})
    check(KERNELS["gather"], {"x": rng.random(6), "k": np.array([0, -1, 5, -6]), "y": np.zeros(4)})


@pytest.mark.parametrize("dtype", ["f64", "f32", "i16", "u8", "bool"])
@pytest.mark.parametrize("stride", [2, 3, 4])
def test_elements_between_which_others_lie(dtype: str, stride: int) -> None:
    for phases in (range(stride), [stride - 1]):
        stores = "; ".join(f"y[{phase}, i] = x[i, {phase}]" for phase in phases)
        loops = f"for i in 0:101 vector {{ {stores} }}"
        kernel = f"kernel k(x: {dtype}[101, {stride}], y: {dtype}[{stride}, 101]) {{ {loops} }}"
        x = np.random.default_rng(stride).integers(0, 2 if dtype == "bool" else 99, (101, stride)).astype(DTYPES[dtype])
        check(kernel, {"x": x, "y": np.zeros((stride, 101), DTYPES[dtype])})


@pytest.mark.parametrize("kind", ["block", "thread"])
def test_loops_of_other_processors_are_refused(kind: str) -> None:
    with pytest.raises(LoweringError, match=f"the loop over i is for {kind}s"):
        check(f"kernel k(x: f64[8], y: f64[8]) {{ for i in 0:8 {kind} {{ y[i] = x[i] }} }}")


@pytest.mark.parametrize("n", [0, 1])
def test_one_element_for_all_iterations_is_no_vector(n: int) -> None:
    """A name in the body that is the same for all lanes was taken for one that moves: whole vectors were stored behind it."""
    text = """kernel k(x: f64[8], y: f64[4, 5], n: i64[]) {
      let m: i64 = n[]; for i in 0:m vector { let t: i64 = remainder(m + 2, 4); y[t, 2] = x[i] * 0.5 } }"""
    check(text, {"x": np.arange(8.0), "y": np.ones((4, 5)), "n": np.array(n)})


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70])
def test_every_length_has_its_tail(n: int) -> None:
    check(f"kernel k(x: f64[{n}], y: f64[{n}]) {{ for i in 0:{n} vector {{ y[i] = x[i] * 2.0 + 1.0 }} }}")
    check(f"kernel k(x: f32[{n}], s: f32[]) {{ cell a: f32 = 0.0_f32; for i in 0:{n} vector {{ a add= x[i] }}; s[] = a }}")


@pytest.mark.parametrize("dtype", [name for name, dtype in DTYPES.items() if dtype.kind != "c"])  # those are two buffers
def test_every_dtype_is_loaded_and_stored(dtype: str) -> None:
    check(f"kernel k(x: {dtype}[45], y: {dtype}[45]) {{ for i in 0:45 vector {{ y[i] = x[i] + x[44 - i] }} }}")
    check(f"kernel k(x: {dtype}[45], y: f64[45]) {{ for i in 0:45 vector {{ y[i] = f64(x[i]) }} }}")


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "or", "and"])
@pytest.mark.parametrize("dtype", ["i32", "u8", "f64", "bool"])
def test_reductions(combine: str, dtype: str) -> None:
    if combine in ("or", "and") and dtype == "f64":
        return
    start = {"i32": "3_i32", "u8": "3_u8", "f64": "3.0", "bool": "true"}[dtype]
    check(
        f"kernel k(x: {dtype}[77], s: {dtype}[]) {{"
        f" cell a: {dtype} = {start}; for i in 0:77 vector {{ a {combine}= x[i] }}; s[] = a }}"
    )


@pytest.mark.parametrize("title", NESTS)
def test_nest(title: str) -> None:
    check(NESTS[title])


def test_a_short_loop_of_polynomials_stays_a_loop_inside_vectors() -> None:
    """Ten exponentials of four vectors each, written out, ran at half the speed of the loop."""

    def text(trips: int) -> str:
        kernel = f"kernel k(x: f64[70, {trips}], y: f64[70]) {{ for i in 0:70 vector {{ cell s: f64 = 0.0;"
        kernel += f" for j in 0:{trips} {{ s add= exp(x[i, j]) }}; y[i] = s }} }}"
        check(kernel, ulps=4)
        return emit_program(program_of([parse(kernel)]), cpu=host_cpu()).text

    short, long, longer = map(len, map(text, (3, 10, 20)))
    assert long < short
    assert long == pytest.approx(longer, rel=0.01)


def test_storage_shared_by_two_names() -> None:
    """x is read, y written, both at the same bytes: a load of x after the store must see it."""
    kernel = parse("kernel k(x: f64[70], y: f64[70]) { for i in 0:70 vector { y[i] = x[i] + 1.0; y[i] = x[i] * 2.0 } }")
    data = np.arange(70.0)
    assert run_program(program_of([kernel], {"y": "x"}), {"x": data})[0] == 0
    np.testing.assert_array_equal(data, (np.arange(70.0) + 1) * 2)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name[0] in "iu"])
@pytest.mark.parametrize("fn", ["floor_divide", "remainder", "fmod"])
def test_integer_division_never_traps(fn: str, dtype: str) -> None:
    bits = DTYPES[dtype]
    low, high = np.iinfo(str(bits)).min, np.iinfo(str(bits)).max
    xs, ys = np.array([low, low + 1, 7, 0, 1, high], bits), np.array([0, low, 2, 5, high - 1, high], bits)
    x, y = (v.ravel() for v in np.meshgrid(xs, ys))
    if bits.kind == "i":
        y = np.where(y == high - 1, bits.type(-1), y)
    arrays = {"x": x, "y": y, "z": np.zeros_like(x)}
    check(
        f"kernel k(x: {dtype}[36], y: {dtype}[36], z: {dtype}[36]) {{ for i in 0:36 vector {{ z[i] = {fn}(x[i], y[i]) }} }}",
        arrays,
    )
    check(f"kernel k(x: {dtype}[36], y: {dtype}[36], z: {dtype}[36]) {{ for i in 0:36 {{ z[i] = {fn}(x[i], y[i]) }} }}", arrays)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_extremes_hand_nan_on(dtype: str) -> None:
    for place in (None, 0, 20, 44):
        x = np.arange(45).astype(dtype.replace("f", "float"))
        if place is not None:
            x[place] = np.nan
        check(
            f"kernel k(x: {dtype}[45], y: {dtype}[2]) {{ cell a: {dtype} = -inf_{dtype}; cell b: {dtype} = inf_{dtype}"
            " ; for i in 0:45 vector { a max= x[i]; b min= x[i] }; y[0] = a; y[1] = b }".replace("_f64", ""),
            {"x": x, "y": np.zeros(2, x.dtype)},
        )


def test_zero_keeps_its_sign_in_sums() -> None:
    for start in (0.0, -0.0):
        arrays = {"x": np.full(45, -0.0), "s": np.zeros(1)}
        run_kernel(
            f"kernel k(x: f64[45], s: f64[]) {{ cell a: f64 = {start}; for i in 0:45 vector {{ a add= x[i] }}; s[] = a }}", arrays
        )
        assert np.signbit(arrays["s"][0]) == np.signbit(start)


@pytest.mark.parametrize("offset", [0, 16, 40])
def test_a_large_output_is_stored_past_the_caches_wherever_it_begins(offset: int) -> None:
    n = 2_100_003
    text = f"""kernel k(x: f64[{n}], y: f64[{n}]) {{
      for c in 0:{n}:700001 parallel {{ for i in c:c + 700001 vector {{ y[i] = x[i] + 1.0 }} }} }}"""
    program = program_of([parse(text)], outputs=["y"])
    assert ("!nontemporal" in emit_program(program, cpu=host_cpu()).text) == host_cpu().is_x86
    x, memory = np.arange(float(n)), np.zeros(n + 16)
    start = (-memory.ctypes.data % 64 + offset) // 8
    assert run_program(program, {"x": x, "y": memory[start : start + n]})[0] == 0
    np.testing.assert_array_equal(memory[start : start + n], x + 1)
    assert not memory[:start].any() and not memory[start + n :].any()


@pytest.mark.parametrize("rows", [1, 3])
def test_an_output_that_may_be_small_is_stored_past_the_caches_where_it_is_large(rows: int) -> None:
    """Its memory has room for the largest, but how much of it is used only the run tells."""
    n = 2_100_003
    text = f"""kernel k(m: i64[], x: f64[{n}], y: f64[{n}]) {{ let n: i64 = m[]
      for c in 0:n * {rows}:700001 parallel {{ for i in c:minimum(c + 700001, n * {rows}) vector {{ y[i] = x[i] + 1.0 }} }} }}"""
    program = program_of([parse(text)], outputs=["y"])
    program = replace(program, kernels=replace(program.kernels, extents={"y": (Var("n"), Const(rows))}))
    stores = [line for line in emit_program(program, cpu=host_cpu()).text.splitlines() if "store <" in line]
    assert any("!nontemporal" in line for line in stores) == host_cpu().is_x86
    assert any("!nontemporal" not in line and "masked" not in line for line in stores)
    for used in (0, 1, 13, 1000, 699_999, 700_001):
        for start in (0, 3):
            x, y = np.arange(float(n)), np.zeros(n + 3)
            assert run_program(program, {"m": np.array(used), "x": x, "y": y[start:]})[0] == 0
            np.testing.assert_array_equal(y[start : start + used * rows], x[: used * rows] + 1)
            assert not y[:start].any() and not y[start + used * rows :].any()


def test_an_output_of_unknown_length_is_stored_as_usual() -> None:
    """A loop to a limit of its own says nothing of the size."""
    n = 2_100_003
    text = f"kernel k(x: f64[{n}], y: f64[{n}]) {{ for i in 0:{n} vector {{ y[i] = x[i] + 1.0 }} }}"
    program = program_of([parse(text)], outputs=["y"])
    open_ended = replace(program, kernels=replace(program.kernels, extents={"y": (Var("n"),)}))
    assert ("!nontemporal" in emit_program(program, cpu=host_cpu()).text) == host_cpu().is_x86
    assert "!nontemporal" not in emit_program(open_ended, cpu=host_cpu()).text


def test_the_number_of_threads_changes_no_bit() -> None:
    text = """kernel k(x: f64[40, 1003], s: f64[40]) { for r in 0:40 parallel {
      cell a: f64 = 0.0; for i in 0:1003 vector { a add= exp(x[r, i]) }; s[r] = a } }"""
    x = np.random.default_rng(0).standard_normal((40, 1003))
    results = []
    for threads in (1, 2, 7):
        arrays = {"x": x, "s": np.zeros(40)}
        run_kernel(text, arrays, threads=threads)
        results.append(arrays["s"])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_allclose(results[0], np.exp(x).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "u8", "f32"])
@pytest.mark.parametrize("n", [1, 2, 9, 17, 33, 34, 65, 97, 129, 193])
def test_nothing_is_stored_beyond_the_last_element(n: int, dtype: str) -> None:
    """Where one lane is left over, LLVM 20 stores it as wide as it was before it was narrowed."""
    wide = "f64" if dtype == "f32" else "i64"
    square = f"{dtype}({wide}(x[i]) * {wide}(x[i]))"
    text = f"kernel k(x: {dtype}[{n}], y: {dtype}[{n}]) {{ for i in 0:{n} vector {{ y[i] = {square} }} }}"
    x, memory = np.arange(n).astype(DTYPES[dtype]) % 7, np.full(n + 16, 99, DTYPES[dtype])
    run_kernel(text, {"x": x, "y": memory[:n]})
    np.testing.assert_array_equal(memory, [*(x * x), *[99] * 16])


@pytest.mark.parametrize("dtype", ["i8", "bool", "u16", "i64", "f16", "f32", "f64"])
@pytest.mark.parametrize("n", [3, 5, 13])
def test_short_rows_of_far_memory(n: int, dtype: str) -> None:
    kind = DTYPES[dtype]
    rows = (2 << 20) // (n * kind.itemsize)
    x = np.random.default_rng(n).integers(0, 2, (rows, n)).astype(kind)
    y = np.zeros((rows, n), kind)
    loops = f"for i in 0:{rows} {{ for j in 0:{n} vector {{ y[i, j] = maximum(x[i, j], x[i, {n} - 1 - j]) }} }}"
    run_kernel(f"kernel k(x: {dtype}[{rows}, {n}], y: {dtype}[{rows}, {n}]) {{ {loops} }}", {"x": x, "y": y})
    np.testing.assert_array_equal(y, np.maximum(x, x[:, ::-1]))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_is_kept_aside_is_read_before_it_is_cleared(count: int) -> None:
    """LLVM 22's optimiser read it again behind the store."""
    check(NESTS["what is kept aside and cleared"], {"count": np.array(count), "x": np.arange(8.0), "y": np.arange(8.0) + 1})


def of_many_gathers(count: int) -> str:
    """A sum of bytes, each at a place whose rows are as long as only the run knows."""
    names = ", ".join(f"n{k}: i64[]" for k in range(count))
    rows = " ".join(f"let m{k}: i64 = n{k}[]" for k in range(count))
    total = " + ".join(f"x[(i + {k}) // m{k}, (i + {k}) % m{k}]" for k in range(count))
    return f"""kernel k(x: i8[64, 64], {names}, y: i8[]) {{ {rows}
      cell s: i8 = -128_i8; for i in 0:1024 vector {{ s max= {total} }}; y[] = s }}"""


def test_a_long_body_has_as_many_lanes_as_can_be_compiled() -> None:
    """In a process of its own: with 512 lanes of eight bytes for each index, LLVM worked for a minute, or for many."""
    text = of_many_gathers(80)
    source = f"""
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import generate, prepare
from support.llvm_kernels import emit_kernel_text
for part in emit_kernel_text({text!r}, host_cpu()).parts:
    module, level = prepare(part, host_cpu())
    assert generate(module, host_cpu(), level=level)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", source], check=True, timeout=30, env=environment)


def test_lanes_of_a_long_body_give_what_each_gives() -> None:
    rng, count = np.random.default_rng(3), 40
    sizes = {f"n{k}": np.array(40 + k % 20) for k in range(count)}
    check(of_many_gathers(count), {"x": rng.integers(-9, 9, (64, 64), np.int8), "y": np.zeros((), np.int8), **sizes})
