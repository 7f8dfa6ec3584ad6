"""Derivatives on the device: each op's pullback beside the interpreter, and the gradient suite beside derivatives by hand."""

from __future__ import annotations

from functools import partial

import numpy as np

from autodiff import WORKLOADS
from autodiff.columns import ours
from autodiff.workload import Workload
from gpu.cases import Cases, Setting
from gpu.failures import Mismatch
from gpu.running import check_graph, check_jitted, require_backend
from jitml.autograd.reverse.linearize import vjp_graph
from jitml.ir.graph import GraphBuilder
from jitml.ir.op import recording
from jitml.ir.types import F64, aval_of
from support.op_cases import CASES, OpCase

SMOOTH = [case for case in CASES.values() if case.smooth is not None]


def cases(setting: Setting) -> Cases:
    require_backend(setting.backend)
    for workload in WORKLOADS.values():
        yield f"{workload.name}, small", partial(check_workload, workload, workload.small)
    for case in SMOOTH:
        yield f"pullback of {case.op}", partial(check_pullback, case, setting.backend)
    for workload in WORKLOADS.values():
        yield f"{workload.name}, medium", partial(check_workload, workload, max(workload.small, workload.full // 7 + 1))


def check_workload(workload: Workload, size: int) -> None:
    _, derivative = ours.jitted(workload)
    check_jitted(derivative, workload.by_hand, partial(workload.make_inputs, size))


def check_pullback(case: OpCase, backend: str) -> None:
    sample = case.samples[0]
    x = list(case.inputs(sample, F64, smooth=True))
    b = GraphBuilder()
    values = [b.add_input(aval_of(v)) for v in x]
    with recording(b):
        graph = b.build([case.op(*values, **sample.params)])
    backward = vjp_graph(graph, [i for i, v in enumerate(x) if v.dtype == F64])
    rng = np.random.default_rng(0)
    args = x + [rng.normal(size=v.shape) for v in backward.inputs[len(x) :]]
    if not backward.outputs:
        raise Mismatch("it has no outputs")
    check_graph(backward, args, backend)
