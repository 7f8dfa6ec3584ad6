"""Pointwise ops on the device where implementations go wrong: zeros of both signs, extremes, subnormals, infinities, NaN."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpu.cases import Cases, Setting
from gpu.failures import Mismatch, with_texts
from jitml.codegen.backend import backend_named
from jitml.ir.graph import GraphBuilder
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.types import Aval, DType
from jitml.pipeline import lower
from support.op_cases import CASES, OpCase
from test_edge_values import NAMES, agrees, operands


def cases(setting: Setting) -> Cases:
    for name in NAMES:
        for dtype in CASES[name].dtypes:
            if dtype.kind != "c":
                yield f"{name} {dtype.name} at edge values", partial(check_op, CASES[name], dtype, setting.backend)


def check_op(case: OpCase, dtype: DType, backend: str) -> None:
    own = operands(case, dtype)
    b = GraphBuilder()
    values = [b.add_input(Aval(a.shape, a.dtype)) for a in own]
    with recording(b):
        output = case.op(*values)
    graph = b.build([output])
    with np.errstate(all="ignore"):
        (expected,) = interpret(graph, own)
    lowered = lower(graph, backend_named(backend))
    try:
        (got,) = lowered.compile()(*own)
        wrong = np.flatnonzero(~agrees(case, got, expected))
        if wrong.size:
            shown = [(*(a[k] for a in own), got[k], expected[k]) for k in wrong[:5]]
            raise Mismatch(f"{wrong.size} of {got.size} element by element: operands, result, NumPy's: {shown}")
    except Exception as error:
        with_texts(error, lowered.text)
        raise
