"""Library calls of the program interpreter; kernels and memory are tested with the plan."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.codegen.interpreter import run
from jitml.errors import LoweringError
from jitml.kernels.text.program_parser import parse_program
from jitml.memory.plan import plan

GEMM = """program(a, b) -> (c) {{ buffer a: f64[2, 3, 4]; buffer b: f64[2, 5, 4]; buffer t: f64[2, 3, 5]; buffer c: f64[2, 3, 5]
  {call}
  kernel k(t: f64[2, 3, 5], c: f64[2, 3, 5]) {{
    for i in 0:2 {{ for j in 0:3 {{ for l in 0:5 {{ c[i, j, l] = -1.0 * t[i, j, l] }} }} }} }} }}"""
CALL = (
    "gemm(a, b) -> (t) {a_batch=(12,), a_col=1, a_offset=0, a_row=4, b_batch=(20,), b_col=4, b_offset=0, b_row=1, batch=(2,),"
    " c_batch=(15,), c_col=1, c_offset=0, c_row=5, k=4, m=3, n=5}"
)


def test_gemm_with_a_transposed_operand() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4))
    (c,) = run(plan(parse_program(GEMM.format(call=CALL))), [a, b])
    np.testing.assert_allclose(c, -(a @ b.transpose(0, 2, 1)), rtol=1e-14)


def test_gemm_from_an_offset() -> None:
    call = CALL.replace("batch=(2,),", "batch=(1,),").replace("a_offset=0", "a_offset=12").replace("c_offset=0", "c_offset=15")
    a, b = np.ones((2, 3, 4)), np.ones((2, 5, 4))
    a[0] = np.nan
    (c,) = run(plan(parse_program(GEMM.format(call=call))), [a, b])
    np.testing.assert_array_equal(c[1], -4.0)


def test_an_unknown_call_is_a_gap_in_jitml() -> None:
    with pytest.raises(LoweringError, match="knows no library call fft"):
        run(plan(parse_program(GEMM.format(call="fft(a) -> (t)"))), [np.ones((2, 3, 4)), np.ones((2, 5, 4))])


def test_constants_are_read_only_inputs() -> None:
    text = """program(x) -> (y) { buffer x: f32[3]; constant c: f32[3] = [1.0, 2.0, nan]; buffer y: f32[3]
      kernel k(x: f32[3], c: f32[3], y: f32[3]) { for i in 0:3 vector { y[i] = x[i] * c[i] } } }"""
    (y,) = run(plan(parse_program(text)), [np.array([2, 2, 2], np.float32)])
    np.testing.assert_array_equal(y, np.array([2, 4, np.nan], np.float32))
