"""The everyday suite on the device, beside CuPy, JAX and torch.compile. Loops over single elements are no work for a device."""

from __future__ import annotations

from gpu.cases import Cases, Setting
from gpu.speed.suites import Program, suite_cases
from workloads import WORKLOADS, Workload


def cases(setting: Setting) -> Cases:
    return suite_cases([program(workload, setting) for workload in WORKLOADS.values() if workload.family != "scalars"], setting)


def program(workload: Workload, setting: Setting) -> Program:
    size = workload.small if setting.device == "emulated" else workload.full
    return Program(
        workload.name,
        workload.function,
        lambda seed: workload.make_inputs(size, seed),
        workload.loss,
        workload.argnums,
        workload.mutates,
        max(workload.rtol, 1e-6),
    )
