"""Every layer gives the same answer: the graph's interpreter, fused kernels under a memory plan, native code.

When one of these fails, the first pair of layers that disagrees is where to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.passes import run_passes
from jitml.ir.printer import show
from jitml.ir.text.parser import parse
from jitml.ir.types import DTYPES, Aval, DType
from jitml.kernels.program import KernelProgram
from jitml.kernels.text.printer import show_program
from jitml.kernels.text.program_parser import parse_program
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from support import effort
from support.fused import fuse
from support.op_cases import CASES, OpCase, Sample, results
from support.sized import padded
from support.strategies import (
    Program,
    floating_programs,
    laid_out,
    ordinary_inputs,
    programs_from_the_table,
    region_programs,
    sized_programs,
)

Array = np.ndarray[Any, Any]
# Sums and products associate freely, and native functions are some ulps from NumPy's.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9}
# The same programs in every run: a tolerance that one program in thousands exceeds must not fail a build by chance.
drawn = partial(settings, deadline=None, derandomize=True)
DTYPES_TRIED = [DTYPES[name] for name in ("bool", "i8", "u16", "i64", "f16", "f32", "f64", "c64", "c128")]


def assert_close(got: Sequence[Array], expected: Sequence[Array]) -> None:
    for k, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert (g.shape, g.dtype) == (e.shape, e.dtype), f"output {k}"
        if e.dtype.kind == "c":
            assert_close((g.real, g.imag), (e.real, e.imag))
            continue
        if e.dtype.kind != "f":
            np.testing.assert_array_equal(g, e, err_msg=f"output {k}")
            continue
        rtol = TOLERANCE[e.dtype.itemsize]
        finite = e[np.isfinite(e)].astype(np.float64)
        atol = rtol * float(np.max(np.abs(finite), initial=1.0))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(g.astype(np.float64), e.astype(np.float64), rtol=rtol, atol=atol, err_msg=f"output {k}")


def fused(program: Program, *, rolls: bool = True) -> KernelProgram:
    """Verified, and the same after a round trip through its text."""
    kernels = verify_program(fuse(program.graph, aliases=program.aliases, strides=program.strides, rolls=rolls))
    text = show_program(kernels)
    again = parse_program(text)
    assert show_program(again) == text
    assert (again.joined, again.packed) == (kernels.joined, kernels.packed)
    return kernels


def samples_of(case: OpCase) -> list[tuple[Sample, list[DType]]]:
    return effort.by_samples(case.samples, [*filter(DTYPES_TRIED.__contains__, case.dtypes)])


def single(name: str) -> list[Program]:
    """The samples of an op's row, as graphs of one node."""
    case = CASES[name]
    programs = []
    for sample, dtypes in samples_of(case):
        for dtype in dtypes:
            args = [np.asarray(a) for a in case.inputs(sample, dtype)]
            b = GraphBuilder()
            values = [b.add_input(Aval(a.shape, a.dtype)) for a in args]
            with recording(b):
                outputs = results(case, *values, **sample.params)
            programs.append(Program(b.build(outputs), args, {}))
    return programs


@pytest.mark.parametrize("name", CASES)
def test_every_op_through_fusion_and_memory(name: str) -> None:
    for program in single(name):
        assert_close(run(plan(fused(program)), program.fresh_args()), interpret(program.graph, program.args))


FOUND = {
    "an empty output beside a sum": """graph(a: f64[0,3]) {
      b: f64[0,3] = full {dtype=f64, shape=(0, 3), value=0.0}
      c: f64[] = dot_general a b {batch=((), ()), contract=((0, 1), (0, 1))}
      return b c }""",
    "a load hoisted out of an empty loop": """graph(a: f16[7]) {
      b: f16[0] = slice a {start=(0,), step=(1,), stop=(0,)}
      c: f16[0,3] = reshape b {shape=(0, 3)}
      d: bool[0,3] = convert c {dtype=bool}
      e: bool[3] = reduce_all d {axes=(0,)}
      return e }""",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_drawn_programs_found(name: str) -> None:
    graph = parse(FOUND[name])
    program = Program(graph, ordinary_inputs(graph), {})
    assert_close(run(plan(fused(program)), program.fresh_args()), interpret(graph, program.args))


@pytest.mark.parametrize("layout", ["C", "F", "reversed", "every other"])
def test_flips_of_every_layout(layout: str) -> None:
    graph = parse("graph(a: i64[3,4]) { b: i64[3,4] = flip a {axes=(0,)}; return b }")
    program = Program(graph, [laid_out(np.arange(12).reshape(3, 4), layout)], {})
    assert_close(run(plan(fused(program)), program.fresh_args()), interpret(graph, program.args))


def together(name: str) -> Program:
    """All samples of an op's row as one graph."""
    case = CASES[name]
    b, args, outputs = GraphBuilder(), [], []
    for sample, dtypes in samples_of(case):
        for dtype in dtypes:
            own = [np.asarray(a) for a in case.inputs(sample, dtype)]
            values = [b.add_input(Aval(a.shape, a.dtype)) for a in own]
            with recording(b):
                outputs += results(case, *values, **sample.params)
            args += own
    return Program(b.build(outputs), args, {})


@pytest.mark.parametrize("name", CASES)
def test_every_op_as_native_code(name: str) -> None:
    program = together(name)
    got = compile_program(plan(verify_program(fuse(program.graph))))(*program.fresh_args())
    assert_close(got, interpret(program.graph, program.args))


@drawn(max_examples=60)
@given(floating_programs())
def test_drawn_graphs_through_passes_fusion_and_memory(program: Program) -> None:
    kernels = fused(replace(program, graph=run_passes(program.graph)))
    assert_close(run(plan(kernels), program.fresh_args()), interpret(program.graph, program.args))


@drawn(max_examples=100)
@given(programs_from_the_table())
def test_drawn_programs_through_fusion_and_memory(program: Program) -> None:
    args = program.fresh_args()
    expected = interpret(program.graph, program.args)
    assert_close(run(plan(fused(program)), args), expected)
    for output, source in program.aliases.items():
        assert_close([args[source]], [expected[output]])
    for k, (before, after) in enumerate(zip(program.args, args)):
        if k not in program.aliases.values():
            np.testing.assert_array_equal(after, before)


@drawn(max_examples=effort.drawn(25, 60))
@given(region_programs())
def test_drawn_regions_through_passes_fusion_and_memory(program: Program) -> None:
    """As regions of kernels, and as kernels of plain loops where they can be."""
    assert show(parse(show(verify(program.graph)))) == show(program.graph)
    expected = interpret(program.graph, program.args)
    optimized = run_passes(program.graph, check=True)
    assert_close(interpret(optimized, program.args), expected)
    for graph in (program.graph, optimized):
        for rolls in (False, True):
            args = program.fresh_args()
            assert_close(run(plan(fused(replace(program, graph=graph), rolls=rolls)), args), expected)
            for output, source in program.aliases.items():
                assert_close([args[source]], [expected[output]])


@drawn(max_examples=15)
@given(region_programs())
def test_drawn_regions_as_native_code(program: Program) -> None:
    expected = interpret(program.graph, program.args)
    for rolls in (False, True):
        kernels = fuse(run_passes(program.graph), aliases=program.aliases, rolls=rolls)
        assert_close(compile_program(plan(kernels))(*program.fresh_args()), expected)


@drawn(max_examples=25)
@given(programs_from_the_table())
def test_drawn_programs_as_native_code(program: Program) -> None:
    args = program.fresh_args()
    graph = run_passes(program.graph)
    got = compile_program(plan(fuse(graph, aliases=program.aliases, strides=program.strides)))(*args)
    assert_close(got, interpret(program.graph, program.args))


@drawn(max_examples=80)
@given(sized_programs())
def test_drawn_sizes_through_fusion_and_memory(program: Program) -> None:
    with np.errstate(all="ignore"):
        got = run(plan(fused(program)), padded(program.graph, program.args))
    assert_close(got, interpret(program.graph, program.args))


@drawn(max_examples=25)
@given(sized_programs())
def test_drawn_sizes_as_native_code(program: Program) -> None:
    got = compile_program(plan(fuse(run_passes(program.graph))))(*padded(program.graph, program.args))
    assert_close(got, interpret(program.graph, program.args))
