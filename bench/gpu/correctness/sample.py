"""A small program of each kind of kernel, for tools that make each a hundred times slower."""

from __future__ import annotations

from functools import partial

from gpu.cases import Cases, Setting
from gpu.correctness.ops import check_op
from gpu.correctness.programs import check_program
from gpu.correctness.sizes import check_kernel
from gpu.memory_bound import KERNELS
from jitml.ir.types import F32, F64
from support.op_cases import CASES

_OPS = (
    "add",
    "exp",
    "reduce_sum",
    "reduce_max",
    "argmax",
    "cumsum",
    "sort",
    "gather",
    "scatter",
    "dot_general",
    "transpose",
    "concat",
)
_KERNELS = ("sum of all", "sum of columns", "softmax, rows of 1000", "layernorm", "transpose", "gather of rows")


def cases(setting: Setting) -> Cases:
    for name in _KERNELS:
        yield f"{name}, 20,000", partial(check_kernel, KERNELS[name], 20_000, "f4")
    for name in _OPS:
        yield name, partial(check_op, CASES[name], F32 if F32 in CASES[name].dtypes else F64, setting.backend)
    for name in ("jacobi_2d", "histogram", "viterbi"):
        yield name, partial(check_program, name, "small")
