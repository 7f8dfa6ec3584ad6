"""What a mask keeps, by whole vectors: every dtype and length, at the end of an array too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.ir.cpu import X86_64_V3, X86_64_V4
from jitml.codegen.llvm.runtime.jit import assembly
from jitml.codegen.llvm.runtime.jit import parse as parse_ir
from jitml.kernels.text.parser import parse
from support.llvm_kernels import emit_kernel_text, memory_for, program_of, run_program, texts_of

PACK = """
kernel k(x: f64[{n}], m: bool[{n}], y: f64[{room}]) {{
  cell s0: i64 = 0
  for k0 in 0:{n} {{
    y[minimum(s0, {last})] = x[k0]
    s0 add= i64(m[k0])
  }}
}}
"""


@pytest.mark.parametrize("dtype", "?bhilBHILefdFD")
def test_every_dtype_and_length(dtype: str) -> None:
    rng = np.random.default_rng(0)

    @jitml.jit
    def kept(x: Any, m: Any) -> Any:
        return x[m], np.nonzero(m)[0]

    for n in (0, 1, 7, 8, 9, 31, 64, 65, 127, 300):
        x = rng.integers(0, 2 if dtype == "?" else 100, n).astype(dtype)
        for density in (0.0, 0.3, 0.97, 1.0):
            m = rng.random(n) < density
            for got, expected in zip(kept(x, m), (x[m], np.nonzero(m)[0]), strict=True):
                np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize("n", [5, 40, 67])
def test_columns_of_rows_in_either_order(n: int) -> None:
    rng = np.random.default_rng(n)
    x, m = rng.normal(size=(6, n)), rng.random(n) < 0.6

    @jitml.jit
    def kept(x: Any, m: Any) -> Any:
        return x[:, m], x.T[m], (2 * x)[:, m]

    for a in (x, np.asfortranarray(x), x[::-1]):
        for got, expected in zip(kept(a, m), (a[:, m], a.T[m], (2 * a)[:, m]), strict=True):
            np.testing.assert_array_equal(got, expected, strict=True)


def test_nothing_is_stored_beyond_an_array() -> None:
    kernel = parse(PACK.format(n=67, room=67, last=66))
    memory = memory_for(kernel)
    memory["m"][:] = True
    room = np.full(67 + 16, -1.0)
    memory["y"] = room[:67]
    run_program(program_of([kernel]), memory)
    np.testing.assert_array_equal(room[:67], memory["x"])
    assert (room[67:] == -1).all()


def test_a_vector_is_packed_where_an_instruction_does_it_and_there_is_room() -> None:
    def code(target: Any, room: int = 999, last: int = 998) -> str:
        text = PACK.format(n=999, room=room, last=last)
        return str(assembly(parse_ir(texts_of(emit_kernel_text(text, target))["usual"]), target, level=1))

    assert "vcompresspd" in code(X86_64_V4) or "vpcompressq" in code(X86_64_V4)
    assert "compress" not in code(X86_64_V3)
    assert "compress" not in code(X86_64_V4, 500, 499)


def test_arrays_that_shrink_in_a_loop_are_packed_where_they_lie() -> None:
    def shrinking(x: Any, y: Any, steps: int) -> Any:
        total = 0.0
        for _ in range(steps):
            x = x * 0.9 + y
            keep = x > 0.3
            x, y = x[keep], y[keep]
            total += x.sum()
        return x, y, total

    x, y = np.random.default_rng(1).normal(size=(2, 3000))
    compiled = jitml.jit(shrinking)
    for got, expected in zip(compiled(x, y, 9), shrinking(x, y, 9), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    report = jitml.explain(compiled, x, y, 9)
    lines = [line.split() for line in report[report.index("each time") : report.index("_shapes")].splitlines()]
    assert sum(words[:2] == ["kernel", "k1_compress"] for words in lines if words) == 1
    copied = [words for words in lines if words[:1] == ["copy"]]
    assert all(words[-2:] == ["16", "B"] for words in copied), "numbers alone"
