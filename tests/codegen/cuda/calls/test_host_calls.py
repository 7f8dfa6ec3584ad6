"""Calls of Python from a program on a GPU, as work of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import jitml
from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import CallPlan
from jitml.errors import FailedCheck
from jitml.ir.ops.host import HostFunction
from jitml.ir.types import F64, Aval
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from support.cuda_calls import program_of, run_plan
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import emulated


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


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
def test_arrays_of_open_sizes_are_copied_as_far_as_they_go() -> None:
    """Behind a caller's array the device has nothing, or what is another's."""

    def f(x: Any) -> Any:
        return elliptic(x * 2, 0.5)[0] + elliptic(x, 0.5)[0], elliptic(x, 0.25)[1]

    elliptic = scipy.special.ellipj
    with emulated() as device:
        jitted = jitml.jit(f, device="cuda", dynamic=True, verify="never")
        for n in (5, 0, 1, 300):
            x = np.linspace(0, 1, n)
            for mine, wanted in zip(jitted(x), f(x), strict=True):
                np.testing.assert_array_equal(mine, wanted)
            on_device = jitml.asarray(x, device="cuda")
            for mine, wanted in zip(jitted(on_device), f(x), strict=True):
                np.testing.assert_array_equal(np.asarray(mine), wanted)
        assert device.launches and len(jitted.variants) == 2  # for arrays of the host and of the device
