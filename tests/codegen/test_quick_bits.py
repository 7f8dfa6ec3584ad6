"""Quick code and full code compute the same bits: each op on edge values and on its samples, and whole programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import jitml
from codegen.tiers import same_bits, tier
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.op import recording
from jitml.ir.types import Aval
from jitml.memory.plan import plan
from support.fused import fuse
from support.op_cases import CASES
from test_edge_values import NAMES, operands
from test_layers import together

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from workloads import WORKLOADS


def of_both(graph: Graph, args: list[Any]) -> tuple[list[Any], list[Any]]:
    program, results = plan(fuse(graph)), []
    for name in ("quick", "full"):
        with tier(name):
            executable = compile_program(program)
        results.append(executable(*[np.array(a) for a in args]))
        # A program may have no loop that matters: it is made with the least effort in either.
        assert executable.tier in (name, "full") and not executable.is_made_better
    return results[0], results[1]


@pytest.mark.parametrize("name", NAMES)
def test_ops_on_edge_values(name: str) -> None:
    case, b = CASES[name], GraphBuilder()
    args, outputs = [], []
    for dtype in case.dtypes:
        if dtype.kind == "c":
            continue
        own = operands(case, dtype)
        values = [b.add_input(Aval(a.shape, a.dtype)) for a in own]
        with recording(b):
            outputs.append(case.op(*values))
        args += own
    for k, (quick, full) in enumerate(zip(*of_both(b.build(outputs), args), strict=True)):
        assert same_bits(quick, full), f"output {k}"


@pytest.mark.parametrize("name", CASES)
def test_ops_on_their_samples(name: str) -> None:
    program = together(name)
    for k, (quick, full) in enumerate(zip(*of_both(program.graph, program.fresh_args()), strict=True)):
        assert same_bits(quick, full), f"output {k}"


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads(name: str) -> None:
    workload, found = WORKLOADS[name], []
    for asked in ("quick", "full"):
        function = workload.function if workload.loss is None else jitml.grad(workload.loss, argnums=workload.argnums)
        args = workload.make_inputs(workload.small, 1)
        with tier(asked):
            found.append(optree.tree_leaves((jitml.jit(function)(*args), args)))
    for k, (quick, full) in enumerate(zip(*found, strict=True)):
        assert same_bits(quick, full), f"leaf {k}"
