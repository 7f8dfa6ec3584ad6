"""The op table on the device: each op's samples of each dtype, as one program, beside the graph's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gpu.cases import Cases, Setting
from gpu.running import check_graph
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder
from jitml.ir.op import recording
from jitml.ir.types import DTYPES, Aval, DType
from support.op_cases import CASES, OpCase, Sample, results

DTYPES_TRIED = [DTYPES[name] for name in ("f32", "f64", "i64", "bool", "i32", "f16", "u16", "i8", "u64", "c64", "c128")]
# Some of its parameters take an array's values, of which the table's own bounds hold on the processor alone.
_LOOSE = ("c",)


def cases(setting: Setting) -> Cases:
    """Dtype by dtype, so that every op is tried before any has been tried with all."""
    for dtype in DTYPES_TRIED:
        for name, case in CASES.items():
            if dtype in case.dtypes:
                yield f"{name} {dtype.name}", partial(check_op, case, dtype, setting.backend)


def check_op(case: OpCase, dtype: DType, backend: str) -> None:
    """All samples at once, as one program; if that fails, one by one, so that the error is of the sample that it lies in."""
    try:
        check_samples(case, case.samples, dtype, backend)
    except Exception:
        for sample in case.samples:
            with_shapes(partial(check_samples, case, [sample], dtype, backend), f"{sample.shapes} {dict(sample.params)}")
        raise


def with_shapes(check: Callable[[], None], shapes: str) -> None:
    try:
        check()
    except Exception as error:
        error.operands = shapes  # type: ignore[attr-defined]  # errors may carry what they like
        raise


def check_samples(case: OpCase, samples: Sequence[Sample], dtype: DType, backend: str) -> None:
    b, args, outputs = GraphBuilder(), [], []
    for sample in samples:
        own = [np.asarray(a) for a in case.inputs(sample, dtype)]
        values = [b.add_input(Aval(a.shape, a.dtype)) for a in own]
        params = sample.params | ({"kind": "stable"} if case.op is ops.argsort else {})  # else NumPy orders ties as it likes
        with recording(b):
            outputs += results(case, *values, **params)
        args += own
    is_exact = case.op.family == "pointwise" and dtype.kind not in _LOOSE
    check_graph(b.build(outputs), args, backend, case.ulps if is_exact else None)
