"""Pointwise ops as native code where implementations go wrong: zeros of both signs, extremes, subnormals, infinities, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import Aval, DType
from jitml.memory.plan import plan
from support.fused import fuse
from support.op_cases import CASES, Array, OpCase, edge_inputs

# Complex numbers have a test of their own (tests/numpy/test_complex.py): infinities beside nan have no one answer.
# Some take a bool beside their operands; a conversion outside the target's range has no one answer in NumPy.
OTHERS = (ops.select, ops.convert, ops.raise_divide, ops.raise_overflow, ops.raise_underflow, ops.raise_invalid)
NAMES = [name for name, case in CASES.items() if case.op.family == "pointwise" and case.op not in OTHERS]
# Which of two zeros is the greater differs between NumPy's own loops, by dtype and by processor.
EITHER_ZERO = (ops.maximum, ops.minimum, ops.fmax, ops.fmin)


def operands(case: OpCase, dtype: DType) -> tuple[Array, ...]:
    first, *rest = edge_inputs(case, dtype)
    if case.op is ops.pow and dtype.kind in "iu":
        rest = [np.maximum(y, 0) for y in rest]  # jitml.numpy refuses negative powers of integers
    return (first, *rest)


def agrees(case: OpCase, got: Array, expected: Array) -> Array:
    """Where two results are the same, or as near as the op's row allows."""
    if expected.dtype.kind != "f":
        return np.asarray(got == expected)
    with np.errstate(all="ignore"):
        same_zero = (expected != 0) | (np.signbit(got) == np.signbit(expected)) | (case.op in EITHER_ZERO)
        same = ((got == expected) & same_zero) | (np.isnan(got) & np.isnan(expected))
        distance = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        near = distance <= case.ulps * np.spacing(np.abs(expected)).astype(np.float64)
    return np.asarray(same | (near & (expected != 0)))


@pytest.mark.parametrize("name", NAMES)
def test_edge_values_give_numpys_answer(name: str) -> None:
    case = CASES[name]
    b, args, outputs = GraphBuilder(), [], []
    dtypes = [dtype for dtype in case.dtypes if dtype.kind != "c"]
    for dtype in dtypes:
        own = operands(case, dtype)
        values = [b.add_input(Aval(a.shape, a.dtype)) for a in own]
        with recording(b):
            outputs.append(case.op(*values))
        args.append(own)
    graph = b.build(outputs)
    flat = [a for own in args for a in own]
    results = compile_program(plan(fuse(graph)))(*flat)
    for own, got, expected in zip(args, results, interpret(graph, flat), strict=True):
        wrong = np.flatnonzero(~agrees(case, got, expected))
        shown = [(*(a[k] for a in own), got[k], expected[k]) for k in wrong[:5]]
        assert not wrong.size, f"{name} {got.dtype}: operands, result, NumPy's: {shown}"


SUMS = {
    "of one": lambda x: x[:1].sum(),
    "along an axis of one": lambda x: x[:, None].sum(axis=1),
    "along no axis": lambda x: np.sum(x, axis=()),
    "of a scalar": lambda x: np.sum(x[0]),
    "of what is repeated": lambda x: np.broadcast_to(x, (3, 4)).sum(axis=0),
    "of complex numbers": lambda x: (x * (1 + 0j))[:, None].sum(axis=1).real,
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_not_minus_zero(name: str) -> None:
    """It begins with 0.0, even where nothing is left to add."""
    x = np.array([-0.0, 0.0, -0.0, 1.0])
    assert np.signbit(jitml.jit(SUMS[name])(x)).tolist() == np.signbit(SUMS[name](x)).tolist()


@pytest.mark.parametrize("n", [3, 30_000])
def test_nan_has_a_sign(n: int) -> None:
    """Constants that differ in nothing else are two: in a graph, in a kernel, and where kernels share a function."""

    def signs(x: Any) -> Any:
        found = []
        for number in (np.nan, -np.nan):
            found.append(np.copysign(x, number))
            found.append(np.signbit(np.full(x.shape, number)))
            found.append(np.cumsum(np.copysign(x, np.where(x > 0, number, x))))
        return found

    x = np.ones(n)
    for got, expected in zip(jitml.jit(signs)(x), signs(x), strict=True):
        np.testing.assert_array_equal(got, expected)
