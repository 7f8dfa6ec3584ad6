"""Outlined operations: quick code calls functions that programs share, full code has the instructions in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codegen.tiers import same_bits, tier
from jitml.codegen.llvm.ir.conventions import ModulePart
from jitml.codegen.llvm.ir.outlines import Outline, inlined, outlined
from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.op import recording
from jitml.ir.types import F64, Aval
from jitml.memory.plan import plan
from jitml.memory.program import Program
from support.fused import fuse


def program(count: int, size: int = 1003) -> Program:
    """Sines of sines, and a sum; all in one loop."""
    b = GraphBuilder()
    x = b.add_input(Aval((size,), F64))
    with recording(b):
        y = x
        for _ in range(count):
            y = ops.sin(y)
        graph: Graph = b.build([ops.add(y, x)])
    return plan(fuse(graph))


def kernel_of(count: int, size: int = 1003) -> ModulePart:
    parts = emit_program(program(count, size), cpu=host_cpu()).parts
    (part,) = [part for part in parts if part.short]
    return part


def lines(text: str) -> int:
    return text.count("\n")


def test_an_operation_more_is_a_line_more() -> None:
    six, seven = kernel_of(6), kernel_of(7)
    assert lines(seven.text) - lines(six.text) > 40
    assert lines(seven.short) - lines(six.short) == 2  # with a comment that says where it is from
    assert "@sin.v" in six.short and "@sin.v" not in six.text


def test_programs_share_what_they_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_of(3).outlines == kernel_of(3, 2003).outlines != ()
    made: list[Any] = []
    generate = jit.generate
    with tier("quick"):
        compile_program(program(3, 2003))
        monkeypatch.setattr(jit, "generate", lambda *a, **k: made.append(a) or generate(*a, **k))
        run = compile_program(program(3))
    assert len(made) == 1  # no sine
    x = np.linspace(-3.0, 3.0, 1003)
    y = x
    for _ in range(3):
        y = np.sin(y)
    np.testing.assert_allclose(run(x)[0], y + x, rtol=1e-14)


def test_rare_lanes_and_phis_behind_calls() -> None:
    """What is beyond the polynomials' range goes to the C library; the loop goes on from the block that the call is in."""
    x = np.where(np.arange(1003) % 7 == 0, 1e12, np.linspace(-30.0, 30.0, 1003))
    found = []
    for name in ("quick", "full"):
        with tier(name):
            found.append(compile_program(program(2))(x)[0])
    assert same_bits(*found)
    np.testing.assert_allclose(found[0], np.sin(np.sin(x)) + x, rtol=1e-14)


def test_phis_take_values_from_where_blocks_are_now() -> None:
    outline = Outline("hidden double @f.1(double %x0)", "entry:\n  ret double %x0", "")
    first = inlined("...", "  %a = call double @f.1(double %x)", outline, "start", "common.1")
    second = inlined("...", "  %b = call double @f.1(double %a)", outline, "common.1", "common.2")
    text, called = outlined(["start:", first, second, "  br label %end", "end:", "  %c = phi double [ %b, %common.2 ]"])
    assert "  %c = phi double [ %b, %start ]" in text.split("\n") and called == (outline,)
    assert outlined(["start:", "  ret void"]) == ("start:\n  ret void", ())
