"""Every op's batching rule, by its row: all rows at once are what the op gives row by row, wherever the rows lie."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from jitml.autograd.batching.vmap import spread
from jitml.autograd.core.batch import Batch, Batched, vmap
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import OPS, Op, recording
from jitml.ir.types import F64, aval_of
from support.op_cases import CASES, OpCase, Sample, results

ROWS = 3
Array = np.ndarray
CONSTANTS = (ops.full, ops.empty, ops.array, ops.iota)
BATCHED = [(case, sample) for case in CASES.values() if case.op not in CONSTANTS for sample in case.samples]


# `spread` binds; products are fused when no transform is to come.
@pytest.mark.parametrize("op", [op for op in OPS.values() if op not in (*CONSTANTS, ops.bind, ops.fused)], ids=str)
def test_every_op_has_a_rule(op: Op) -> None:
    assert op in vmap, f"give {op} a batching rule in autograd/rules/batching/{op.family}.py"


def draws(case: OpCase, sample: Sample) -> list[list[Array]]:
    """Operands of each row."""
    dtype = F64 if "f" in case.kinds else case.dtypes[0]
    return [list(case.inputs(sample, dtype, seed=seed)) for seed in range(ROWS)]


def choices(case: OpCase, operands: int) -> Iterator[tuple[bool, ...]]:
    """Which operands may be batched: not the mask of a compress, whose rows would differ in size."""
    for flags in itertools.product((True, False), repeat=operands):
        if any(flags) and not (case.op is ops.compress and flags[1]):
            yield flags


def batched_graph(case: OpCase, sample: Sample, rows: Sequence[Sequence[Array]], flags: Sequence[bool], masked: bool) -> Graph:
    """Inputs: a mask if `masked`, then operands with rows along an axis of each its own; output: rows in front."""
    inner, b = GraphBuilder(), GraphBuilder()
    with recording(inner):
        graph = inner.build(results(case, *[inner.add_input(aval_of(x)) for x in rows[0]], **sample.params))
    with recording(b):
        mask = b.add_input(aval_of(np.ones(ROWS, bool))) if masked else None
        args = [
            Batched(b.add_input(aval_of(np.stack([x] * ROWS, axis(n, x)))), axis(n, x)) if flag else b.add_input(aval_of(x))
            for n, (x, flag) in enumerate(zip(rows[0], flags))
        ]
        batch = Batch(ROWS, active=mask)
        return verify(b.build([batch.front(x) for x in spread(batch, graph, args)]))


def axis(operand: int, x: Array) -> int:
    return (operand + 1) % (x.ndim + 1)


@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
@pytest.mark.parametrize(("case", "sample"), BATCHED, ids=[f"{c.op}-{n}" for n, (c, _) in enumerate(BATCHED)])
def test_rows(case: OpCase, sample: Sample, masked: bool) -> None:
    rows = draws(case, sample)
    for flags in choices(case, len(rows[0])):
        graph = batched_graph(case, sample, rows, flags, masked)
        args = [np.stack([row[n] for row in rows], axis(n, rows[0][n])) if flag else rows[0][n] for n, flag in enumerate(flags)]
        found = interpret(graph, [*([np.ones(ROWS, bool)] if masked else []), *args])
        for r, row in enumerate(rows):
            operands = [row[n] if flag else rows[0][n] for n, flag in enumerate(flags)]
            for got, expected in zip(found, results(case, *operands, **sample.params), strict=True):
                np.testing.assert_allclose(got[r], expected, rtol=1e-12, atol=1e-12)
