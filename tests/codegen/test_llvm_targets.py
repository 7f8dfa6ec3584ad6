"""Other processors: every kernel of the tests is valid IR for them, and LLVM makes code of it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.ir.cpu import AARCH64, X86_64, X86_64_V3, X86_64_V4, Cpu
from jitml.codegen.llvm.ir.translation_unit import LONG_BLOCK
from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime.c_api import completed
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import addressed_in_full, assembly, generate, prepare
from jitml.codegen.llvm.runtime.jit import parse as parse_ir
from jitml.kernels.text.parser import parse
from support.kernel_texts import KERNELS
from support.llvm_kernels import emit_kernel_text, memory_for, program_of, run_program, texts_of
from support.nest_texts import NESTS

TARGETS = {"x86-64": X86_64, "x86-64-v3": X86_64_V3, "x86-64-v4": X86_64_V4, "aarch64": AARCH64}
TEXTS = KERNELS | NESTS


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_compiles(target: str) -> None:
    for text in TEXTS.values():
        objects = []
        for module, _ in (prepare(part, TARGETS[target]) for part in emit_kernel_text(text, TARGETS[target]).parts):
            module.verify()
            objects.append(generate(module, TARGETS[target], level=0))
        assert any(b"jitml_run" in code for code in objects)


@pytest.mark.parametrize(
    ("target", "register"), [("x86-64", "xmm"), ("x86-64-v3", "ymm"), ("x86-64-v4", "zmm"), ("aarch64", ".2d")]
)
def test_vectors_have_the_target_s_width(target: str, register: str) -> None:
    text = "kernel k(x: f64[999], y: f64[999]) { for i in 0:999 vector { y[i] = x[i] * x[i] + 1.0 } }"
    code = assembly(
        parse_ir(texts_of(emit_kernel_text(text, TARGETS[target]))["usual"]),
        TARGETS[target],
        level=1,
    )
    assert register in code
    assert "fmadd" not in code and "fmla" not in code, "contraction would change the last bit"


def test_what_lies_outside_may_lie_anywhere() -> None:
    """Code for AArch64 reaches 4 GiB by `adrp`, and so do tables of addresses: LLVM's loader ends the process beyond."""
    text, _ = completed("define ptr @jitml_f(i1 %is) { %x = select i1 %is, ptr @PyArray_Type, ptr @PyList_New ret ptr %x }")
    text += "\ndefine ptr @jitml_g() { ret ptr @jitml_f }"
    assert "adrp" in assembly(parse_ir(text), AARCH64, level=1)
    code = assembly(parse_ir(addressed_in_full(text)), AARCH64, level=1)
    assert code.count("abs_g3") == 3 and "adrp" not in code, code


@pytest.mark.skipif(not host_cpu().has_avx2, reason="needs a processor with AVX2")
@pytest.mark.parametrize("target", [X86_64, X86_64_V3], ids=["x86-64", "x86-64-v3"])
def test_narrower_vectors_give_the_same_answers(target: Cpu) -> None:
    for text in NESTS.values():
        kernel = parse(text)
        wide, narrow = memory_for(kernel), memory_for(kernel)
        run_program(program_of([kernel]), wide)
        run_program(program_of([kernel]), narrow, target=target)
        assert all((wide[name] == narrow[name]).all() for name in wide), text


def test_fast_math_is_only_what_was_asked_for() -> None:
    text = "kernel k(x: f64[64], y: f64[64]) { for i in 0:64 vector { y[i] = x[i] * x[i] + exp(x[i]) } }"
    assert "contract" not in emit_kernel_text(text, X86_64_V3).text
    assert "fmul contract <" in emit_kernel_text(text, X86_64_V3, frozenset({"contract"})).text
    with pytest.raises(ValueError, match="fastmath: quick is not one of"):
        emit_kernel_text(text, X86_64_V3, frozenset({"quick"}))


@pytest.mark.parametrize("text", ["y[3 * i] = x[i]", "y[3 * i] = x[5 * i] * x[i]"])
def test_what_is_written_lane_by_lane_is_written_for_one_vector(text: str) -> None:
    """Of several the code would be as many times as long, and no faster."""
    module = emit_kernel_text(f"kernel k(x: f64[20000], y: f64[12000]) {{ for i in 0:4000 vector {{ {text} }} }}", X86_64_V4)
    assert module.text.count("extractelement") == 8


def test_neighbours_are_written_as_whole_vectors() -> None:
    points = "for i in 0:4000 vector { for j in 0:3 unroll { y[3 * i + j] = x[i] * 2.0 } }"
    text = emit_kernel_text(f"kernel k(x: f64[20000], y: f64[12000]) {{ {points} }}", X86_64_V4).text
    assert "extractelement" not in text
    assert text.count("store <8 x double>") == 3
    part = points.replace("0:3", "0:2")  # what lies between stays as it was
    assert emit_kernel_text(f"kernel k(x: f64[20000], y: f64[12000]) {{ {part} }}", X86_64_V4).text.count("extractelement") == 16


def test_neighbours_that_are_read_and_written_in_place_wait_as_others_do() -> None:
    """Those that are still to come lie in memory as they were."""
    kernel = parse("""kernel k(x: f64[4000, 3], y: f64[4000, 3], z: f64[4000]) { for c in 0:4000:2000 parallel {
      for i in c:c + 2000 vector { for j in 0:3 unroll { y[i, j] = x[i, j] * z[i] } } } }""")
    text = emit_program(program_of([kernel], {"y": "x"}), cpu=X86_64_V4).text
    assert "extractelement" not in text
    assert text.count("store <8 x double>") == 3


def test_short_rows_of_far_memory_begin_with_their_first_element() -> None:
    """Masked loads alone do not tell a processor that memory is read in order; in near memory one more load would cost time."""
    rows = "for i in 0:{0} {{ for j in 0:3 vector {{ y[i, j] = {1} * x[i, j] }} }}"
    module = f"kernel k(x: f64[{{0}}, 3], y: f64[{{0}}, 3]) {{{{ {rows} }}}}"
    near, far = (emit_kernel_text(module.format(n, "2.0"), X86_64_V4).text for n in (1000, 100000))
    assert "load double" not in near and far.count("load double") == 1
    known = emit_kernel_text(module.format(100000, "x[i, 0]"), X86_64_V4).text
    assert known.count("load double") == 1
    long = emit_kernel_text(module.replace("3", "667").format(1000, "2.0"), X86_64_V4).text  # the rest of a row follows the row
    assert "llvm.masked.load" in long and "load double" not in long


def test_fourth_elements_share_their_shuffles() -> None:
    """Every other element of either half, of which every other one: 8 shuffles of four vectors for all, 3 for one of four."""
    for terms, count in (("x[i, 0] + x[i, 1] + x[i, 2] + x[i, 3]", 8), ("x[i, 2] + 1.0", 3), ("x[i, 1] + x[i, 3]", 4)):
        loops = f"for i in 0:100 vector {{ y[i] = {terms} }}"  # vector by vector, and the last ones under a mask
        text = emit_kernel_text(f"kernel k(x: f64[100, 4], y: f64[100]) {{ {loops} }}", X86_64_V4).text
        assert len(re.findall(r"shufflevector .*<i32 [01], i32 [23], i32 [45], ", text)) == count


def test_long_strided_loops_have_no_copy_for_single_vectors() -> None:
    """A main loop, and the rest under a mask: what is left over counts for nothing."""
    loops = "for i in 0:{0} vector {{ y[i] = sqrt(x[i, 0]) * sqrt(x[i, 1]) - sqrt(x[i, 0] + x[i, 1]) }}"
    module = f"kernel k(x: f64[{{0}}, 2], y: f64[{{0}}]) {{{{ {loops} }}}}"
    short, long = (emit_kernel_text(module.format(n), X86_64_V4).text for n in (500, 50000))
    single = "= call <8 x double> @llvm.experimental.constrained.sqrt.v8f64"
    assert short.count(single) - long.count(single) == 3


@pytest.mark.parametrize("length", [8, 20, 64])
def test_the_first_step_of_a_reduction_is_not_added_to_nothing(length: int) -> None:
    """LLVM drops no operation that may raise."""
    body = f"cell a: f64 = 0.0; for i in 0:{length} vector {{ a add= x[i] * x[i] }}; s[] = a"
    module = emit_kernel_text(f"kernel k(x: f64[{length}], s: f64[]) {{ {body} }}", TARGETS["x86-64-v4"]).text
    assert not re.search(r"constrained.fadd.*splat \(double 0x8000000000000000\)", module)


LONG = "; ".join(f"let t{n + 1}: f64 = t{n} * x[i]" for n in range(LONG_BLOCK))


@pytest.mark.parametrize(
    ("text", "efforts"),
    [
        ("{ y[0] = x[0] * 2.0 }", {"least"}),
        ("{ for i in 0:6400 vector { y[i] = x[i] * 2.0 } }", {"usual"}),
        ("{ for r in 0:6400:1600 parallel { for i in r:r + 1600 vector { y[i] = x[i] * 2.0 } } }", {"usual"}),
        (f"{{ for i in 0:6400 vector {{ let t0: f64 = x[i]; {LONG}; y[i] = t{LONG_BLOCK} }} }}", {"least"}),
        ("optimize { for i in 1:6400 { y[i] = y[i - 1] * x[i] } }", {"least", "optimizer"}),
    ],
)
def test_what_runs_once_and_long_blocks_are_worth_no_effort(text: str, efforts: set[str]) -> None:
    """The entry and the functions that hand a loop to the threads run once, too. Short ones stand with the loops."""
    module = emit_kernel_text(f"kernel k(x: f64[6400], y: f64[6400]) {text}", X86_64_V4)
    texts = texts_of(module)
    assert texts.keys() == efforts
    assert "define hidden i64 @jitml_run" in texts["least" if "least" in efforts else "usual"]


def test_a_long_entry_is_worth_no_effort() -> None:
    names = [f"x{n}" for n in range(40)]
    kernels = [parse(TWIN.format(a, b, float(n))) for n, (a, b) in enumerate(pairwise(names))]
    texts = texts_of(emit_program(program_of(kernels, {}), cpu=X86_64_V4))
    assert "define hidden i64 @jitml_run" in texts["least"] and "define hidden i64 @k." in texts["usual"]


def test_what_runs_in_each_iteration_is_worth_the_usual_effort() -> None:
    def steps(x: Any, y: Any) -> Any:
        for _ in range(9):
            x = np.sort(x)  # a call between the kernels keeps the loop in the entry
            y[0] = x[0] + y[1]
            x = x[::-1] * 0.5
        return x

    texts = texts_of(jitml.jit(steps).lower(np.arange(99.0), np.arange(3.0)).module)
    assert "_update_slice" in texts["usual"]


TWIN = "kernel k({0}: f64[6400], {1}: f64[6400]) {{ for i in 0:6400 vector {{ {1}[i] = {0}[i] + {2} }} }}"
CHECKED = "kernel k({0}: f64[6400], {1}: f64[6400]) {{ check {0}[0] < 9.0, IndexError, 'far'; {1}[0] = {0}[0] + {2} }}"


@pytest.mark.parametrize(
    ("form", "numbers", "shared", "functions"),
    [
        (TWIN, (1.0, 1.0), {}, 1),
        (TWIN, (0.0, -0.0), {}, 2),
        (TWIN, (1.0, 1.0), {"z": "y"}, 2),
        (CHECKED, (1.0, 1.0), {}, 2),
    ],
    ids=["twins", "another constant", "in place", "checks stand where they stand"],
)
def test_kernels_that_differ_in_names_alone_share_a_function(
    form: str, numbers: tuple[float, float], shared: dict[str, str], functions: int
) -> None:
    kernels = [parse(form.format(*names, number)) for names, number in zip(("xy", "yz"), numbers)]
    program = program_of(kernels, shared)
    assert emit_program(program, cpu=host_cpu()).text.count("define hidden i64 @k.") == functions
    arrays = {name: np.full(6400, -0.0) for name in "xyz" if name not in shared}
    assert run_program(program, arrays)[0] == 0
    expected = np.float64(-0.0) + numbers[0] + numbers[1]
    last = arrays[shared.get("z", "z")][0]
    assert last == expected and np.signbit(last) == np.signbit(expected)


def test_counters_are_seen_by_the_optimizer_only() -> None:
    """Code generation would replace them by a pointer for each array."""
    text = "kernel k(x: f64[640], y: f64[640]){} {{ for i in 0:640 {{ y[i] = x[i] + 1.0 }} }}"
    usual, optimized = (texts_of(emit_kernel_text(text.format(mark), X86_64_V4)) for mark in ("", " optimize"))
    assert 'asm ""' in usual["usual"] and 'asm ""' not in optimized["optimizer"]
    code = assembly(parse_ir(usual["usual"]), X86_64_V4, level=1)
    assert len(re.findall(r"\((%\w+),(%\w+),8\)", code)) == 2, "both arrays are addressed by the counter"
