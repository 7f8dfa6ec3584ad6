"""Whole programs on the device: the corpus and the everyday suite, beside plain NumPy; small sizes first, then large ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gpu.cases import Cases, Setting
from gpu.running import check_function, check_jitted, require_backend
from programs.corpus import NAMES, load
from workloads import WORKLOADS, Workload


def cases(setting: Setting) -> Cases:
    require_backend(setting.backend)
    for name in WORKLOADS:
        yield f"{name}, small", partial(check_workload, WORKLOADS[name], WORKLOADS[name].small)
    for name in NAMES:
        yield f"{name}, small", partial(check_program, name, "small")
    for name, workload in WORKLOADS.items():
        if workload.full > workload.small:
            yield f"{name}, medium", partial(check_workload, workload, medium(workload))
    for name in NAMES:
        yield f"{name}, large", partial(check_program, name, "large")


def check_program(name: str, size: str) -> None:
    program = load(name)
    check_function(program.function, partial(program.arguments, size, 0))


def check_workload(workload: Workload, size: int) -> None:
    import jitml

    make: Callable[[], tuple[Any, ...]] = partial(workload.make_inputs, size)
    if workload.loss is None:
        check_function(workload.function, make)
    else:
        check_jitted(jitml.jit(jitml.grad(workload.loss, argnums=workload.argnums), verify="never"), workload.function, make)


def medium(workload: Workload) -> int:
    """A size between the small and the full one, where blocks and their remainders are many; images come in fours."""
    return max(workload.small, 4 * (workload.full // 52) + 4)
