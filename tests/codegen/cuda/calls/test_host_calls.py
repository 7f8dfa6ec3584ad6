"""Calls of Python from a program on a GPU, as work of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import CallPlan
from jitml.errors import FailedCheck
from jitml.ir.ops.host import HostFunction
from jitml.ir.types import F64, Aval
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from support.cuda_calls import program_of, run_plan


def _program(function: HostFunction) -> KernelProgram:
    buffers = [Buffer("x", F64, (6,)), Buffer("y", F64, (2, 3))]
    return program_of(buffers, Call("host", ("x",), ("y",), {"function": function, "shapes": ((2, 3),)}))


def _plan(call: Any, fills: bool = False) -> CallPlan:
    program = _program(HostFunction("f", call, (Aval((2, 3), F64),), fills=fills))
    return plan_call(program.steps[0], program, "call")  # type: ignore[arg-type]


def _double_into(x: np.ndarray[Any, Any], out: tuple[np.ndarray[Any, Any], ...]) -> tuple[np.ndarray[Any, Any], ...]:
    np.multiply(x, 2, out=out[0])
    return out


@pytest.mark.parametrize("plan", [_plan(lambda x: (x * 2,)), _plan(_double_into, fills=True)])
def test_results_are_copied_in_and_what_is_read_comes_in_the_shape_of_the_call(plan: CallPlan) -> None:
    found = run_plan(None, plan, {"x": np.arange(6.0), "y": np.zeros((2, 3))}, 0)
    np.testing.assert_array_equal(found["y"], 2 * np.arange(6.0).reshape(2, 3))
    assert [work.nbytes for work in plan.work] == [96]  # type: ignore[union-attr]


def test_what_python_raises_leaves_the_call_to_the_plain_function() -> None:
    with pytest.raises(FailedCheck, match="f raised ZeroDivisionError"):
        run_plan(None, _plan(lambda x: (x / (1 // 0),)), {"x": np.arange(6.0), "y": np.zeros((2, 3))}, 0)
