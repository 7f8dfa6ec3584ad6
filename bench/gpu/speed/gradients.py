"""The gradient suite on the device, beside JAX, which derives the same source, and PyTorch, which has it restated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autodiff import WORKLOADS
from autodiff.columns import ours
from autodiff.workload import Workload
from gpu.cases import Cases, Setting
from gpu.speed.suites import Program, suite_cases

Function = Callable[..., Any]
COLUMNS = ("jitml", "jax", "torch.compile")
_LOOPS = ("leapfrog", "jacobi", "lstm")


def cases(setting: Setting) -> Cases:
    return suite_cases([program(workload, setting) for workload in WORKLOADS.values()], setting, COLUMNS)


def program(workload: Workload, setting: Setting) -> Program:
    size = workload.small if setting.device == "emulated" else workload.full
    return Program(
        workload.name,
        workload.by_hand,
        lambda seed: workload.make_inputs(size, seed),
        own={
            "jitml": lambda: _ours(workload),
            "stand-in": lambda: _ours(workload),
            "jax": lambda: _jax(workload),
            "torch.compile": lambda: _torch(workload),
        },
    )


def _ours(workload: Workload) -> Function:
    return ours.jitted(workload)[1]


def _jax(workload: Workload) -> Function:
    from autodiff.columns import with_jax

    return with_jax.jitted(workload)[1]


def _torch(workload: Workload) -> Function:
    """Restated in tensors, and compiled, but for loops, which it would unroll for minutes."""
    import torch

    from autodiff.columns import with_torch

    torch.set_default_device("cuda")
    derivative = with_torch.functions(workload)[1]
    return derivative if workload.name in _LOOPS else torch.compile(derivative, dynamic=False)
