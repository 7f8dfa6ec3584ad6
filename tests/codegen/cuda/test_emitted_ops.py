"""Every op as CUDA C++, run by emulation.

Pointwise ones on edge values, with the loops of the CPU, which compile sooner; the others on the samples of their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from jitml.codegen.cuda.schedule import SCHEDULER
from jitml.codegen.cuda.target import cuda_target
from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.fusion.fuse import fuse
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import DTYPES, Aval, DType
from jitml.kernels.interpret import KernelFunction
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from jitml.memory.program import Program
from support.cuda_emulation import has_compiler
from support.emitted_cuda import agree, emulated
from support.fused import fuse as cpu_fuse
from support.op_cases import CASES, Array, edge_inputs, results

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler")
TRIED = [DTYPES[name] for name in ("f32", "bool", "i8", "f64", "f16", "i64")]
OTHERS = (ops.select, ops.convert, ops.raise_divide, ops.raise_overflow, ops.raise_underflow, ops.raise_invalid)
RARE = ("sin", "cos", "tan")  # of large numbers
# Which of two zeros is the greater differs between NumPy's own loops, by dtype and by processor.
EITHER_ZERO = (ops.maximum, ops.minimum, ops.fmax, ops.fmin)
POINTWISE = [name for name, case in CASES.items() if case.op.family == "pointwise" and case.op not in OTHERS]
MOVING = [name for name, case in CASES.items() if case.op.family != "pointwise"]

Samples = Iterable[tuple[tuple[Array, ...], Mapping[str, Any]]]


@dataclass(frozen=True)
class Recorded:
    """An op on several operands: each call is an output, or more, of one graph."""

    name: str
    graph: Graph
    args: list[Array]
    program: Program

    @classmethod
    def of(cls, name: str, samples: Samples, *, of_gpu: bool) -> Recorded:
        b, args, outputs = GraphBuilder(), list[Array](), []
        for own, params in samples:
            values = [b.add_input(Aval(a.shape, a.dtype)) for a in own]
            with recording(b):
                outputs += results(CASES[name], *values, **params)
            args += own
        graph = b.build(outputs)
        kernels = fuse(graph, scheduler=SCHEDULER, target=cuda_target()) if of_gpu else cpu_fuse(graph)
        return cls(name, graph, args, plan(verify_program(kernels)))

    def check(self, kernels: dict[int, KernelFunction]) -> None:
        """Compare what the program gives, whose kernels these run, with the graph's answer."""
        case = CASES[self.name]
        with np.errstate(all="ignore"):
            found = run(self.program, [a.copy() for a in self.args], kernels)
            for x, expected in zip(found, interpret(self.graph, self.args), strict=True):
                zeros = case.op in EITHER_ZERO or not (case.ulps == 0 and expected.dtype.kind == "f")
                if not zeros:
                    np.testing.assert_array_equal(np.signbit(x[expected == 0]), np.signbit(expected[expected == 0]), self.name)
                agree(x, expected, self.name, is_exact=case.ulps == 0)


def on_edges(name: str) -> Recorded:
    case = CASES[name]

    def operands(dtype: DType) -> tuple[Array, ...]:
        first, *rest = edge_inputs(case, dtype)
        if case.op is ops.pow and dtype.kind in "iu":
            rest = [np.maximum(y, 0) for y in rest]  # jitml.numpy refuses negative powers of integers
        return (first, *rest)

    return Recorded.of(name, ((operands(dtype), {}) for dtype in case.dtypes if dtype.kind != "c"), of_gpu=False)


def on_samples(name: str) -> Recorded:
    """Each sample in one dtype: in turn, so that the row as a whole has most of them."""
    case = CASES[name]
    dtypes = [dtype for dtype in TRIED if dtype in case.dtypes] or list(case.dtypes)
    chosen = [(s, dtypes[n % len(dtypes)]) for n, s in enumerate(case.samples)]
    return Recorded.of(name, ((tuple(map(np.asarray, case.inputs(s, dtype))), s.params) for s, dtype in chosen), of_gpu=True)


@pytest.fixture(scope="module")
def cases() -> dict[str, tuple[Recorded, dict[int, KernelFunction]]]:
    """All kernels of this file, built in one go."""
    found = [on_samples(name) for name in MOVING] + [on_edges(name) for name in POINTWISE]
    return {case.name: (case, kernels) for case, kernels in zip(found, emulated([case.program for case in found]), strict=True)}


Cases = dict[str, tuple[Recorded, dict[int, KernelFunction]]]


@pytest.mark.parametrize("name", [*MOVING, *POINTWISE])
def test_emulation_gives_numpys_answer(name: str, cases: Cases) -> None:
    case, kernels = cases[name]
    case.check(kernels)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_cpu_and_gpu_have_the_same_bits_of_functions(name: str) -> None:
    """Both write the same rules; what the C library computes in rare places is not compared."""
    rows = [n for n in POINTWISE if CASES[n].ulps and "f" in CASES[n].kinds and n not in RARE]
    rng, b, outputs = np.random.default_rng(0), GraphBuilder(), []
    x = rng.normal(0, 3, 4000).astype(DTYPES[name])
    given = b.add_input(Aval(x.shape, x.dtype))
    with recording(b):
        for row in rows:
            outputs.append(CASES[row].op(*[given] * len(CASES[row].samples[0].shapes)))
    graph = b.build(outputs)
    program = plan(fuse(graph, scheduler=SCHEDULER, target=cuda_target()))
    (kernels,) = emulated([program], interprets=False)
    with np.errstate(all="ignore"):
        expected = compile_program(plan(cpu_fuse(graph)))(x)
    for row, found, other in zip(rows, run(program, [x], kernels), expected, strict=True):
        np.testing.assert_array_equal(found, other, row)
