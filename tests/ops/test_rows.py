"""Each primitive's result rule agrees with its meaning, on every sample of its row."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.ir.types import aval_of
from support.op_cases import CASES, OpCase, results


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_result_rule_agrees_with_evaluation(case: OpCase) -> None:
    for sample in case.samples:
        for dtype in case.dtypes:
            inputs = case.inputs(sample, dtype)
            expected = case.op.aval(*map(aval_of, inputs), **sample.params)
            avals = expected if isinstance(expected, tuple) else (expected,)
            for got, aval in zip(map(np.asarray, results(case, *inputs, **sample.params)), avals, strict=True):
                assert got.shape == aval.shape
                # SciPy widens float16; the interpreter rounds back to the result rule's dtype.
                assert got.dtype == aval.dtype or dtype.itemsize == 2
