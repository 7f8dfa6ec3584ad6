"""Every op, alone, through fusion: its row's samples in the planned interpreter against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.ir.graph import GraphBuilder
from jitml.ir.op import recording
from jitml.ir.types import Aval
from support.effort import by_samples
from support.fused import fuse_and_check
from support.op_cases import CASES, OpCase, results


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_op_alone(case: OpCase) -> None:
    dtypes = [d for d in case.dtypes if d.itemsize in (1, 2, 8)]
    for sample, some in by_samples(case.samples, dtypes):
        for dtype in some:
            args = case.inputs(sample, dtype)
            b = GraphBuilder()
            values = [b.add_input(Aval(a.shape, a.dtype)) for a in args]
            with recording(b):
                graph = b.build(results(case, *values, **sample.params))
            result = graph.outputs[0].dtype
            tolerance = {16: 4e-3, 32: 1e-5, 64: 1e-12}[np.finfo(result).bits] if result.kind in "fc" else 0
            fuse_and_check(graph, args, rtol=tolerance if np.dtype(dtype).kind in "fc" else 0)
