"""Other processors: every kernel of the tests is valid IR for them, and LLVM makes code of it."""

from __future__ import annotations

import re

import pytest

from jitml.codegen.target import AARCH64, X86_64, X86_64_V3, X86_64_V4, Target
from jitml.fusion.parser import parse
from jitml.runtime.jit import assembly, generate
from jitml.runtime.jit import parse as parse_ir
from jitml.runtime.target import host_target
from kernel_texts import KERNELS
from llvm_kernels import emit_kernel_text, memory_for, program_of, run_program
from nest_texts import NESTS

TARGETS = {"x86-64": X86_64, "x86-64-v3": X86_64_V3, "x86-64-v4": X86_64_V4, "aarch64": AARCH64}
TEXTS = KERNELS | NESTS


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_compiles(target: str) -> None:
    for text in TEXTS.values():
        module = parse_ir(emit_kernel_text(text, TARGETS[target]).text)
        module.verify()
        assert b"jitml_run" in generate(module, TARGETS[target], level=0)


@pytest.mark.parametrize(
    ("target", "register"), [("x86-64", "xmm"), ("x86-64-v3", "ymm"), ("x86-64-v4", "zmm"), ("aarch64", ".2d")]
)
def test_vectors_have_the_target_s_width(target: str, register: str) -> None:
    text = "kernel k(x: f64[999], y: f64[999]) { for i in 0:999 vector { y[i] = x[i] * x[i] + 1.0 } }"
    code = assembly(parse_ir(emit_kernel_text(text, TARGETS[target]).text), TARGETS[target], level=1)
    assert register in code
    assert "fmadd" not in code and "fmla" not in code, "contraction would change the last bit"


@pytest.mark.skipif(not host_target().has_avx2, reason="needs a processor with AVX2")
@pytest.mark.parametrize("target", [X86_64, X86_64_V3], ids=["x86-64", "x86-64-v3"])
def test_narrower_vectors_give_the_same_answers(target: Target) -> None:
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


@pytest.mark.parametrize("length", [8, 20, 64])
def test_the_first_step_of_a_reduction_is_not_added_to_nothing(length: int) -> None:
    """LLVM drops no operation that may raise."""
    body = f"cell a: f64 = 0.0; for i in 0:{length} vector {{ a add= x[i] * x[i] }}; s[] = a"
    module = emit_kernel_text(f"kernel k(x: f64[{length}], s: f64[]) {{ {body} }}", TARGETS["x86-64-v4"]).text
    assert not re.search(r"constrained.fadd.*splat \(double 0x8000000000000000\)", module)
