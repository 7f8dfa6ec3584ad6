"""Memory-bound kernels on the device, in per cent of the copy of the same minute."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import optree

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Skipped
from gpu.memory_bound import KERNELS, Kernel
from gpu.roofline import figures_of
from gpu.speed.columns import compiled, to_device, to_host
from gpu.speed.suites import require_near
from gpu.speed.timing import medians, rotating, timings, turn

USUAL, SIZES = 1 << 26, (1 << 24, 1 << 28)
_RTOL = {"f2": 2e-2, "f4": 1e-4, "f8": 1e-9}
_ALSO_LARGE = ("scale", "sum of all", "sum of columns", "softmax, rows of 1000", "layernorm", "transpose")

_ready: dict[str, Any] = {}


def cases(setting: Setting) -> Cases:
    chosen = [(kernel, dtype, USUAL) for kernel in KERNELS.values() for dtype in kernel.dtypes]
    chosen += [(KERNELS[name], "f4", elements) for name in _ALSO_LARGE for elements in SIZES]
    if setting.device != "real":
        chosen = [(kernel, dtype, 100_000) for kernel, dtype, elements in chosen if elements == USUAL]
    for kernel, dtype, elements in chosen:
        yield f"{name_of(kernel, dtype, elements)}, compiled", partial(prepare, kernel, dtype, elements, setting)
    for n in range(-len(chosen) % setting.processes):  # see suites.py
        yield f"(place {n})", dict
    for kernel, dtype, elements in chosen:
        yield name_of(kernel, dtype, elements), partial(measure, kernel, dtype, elements, setting)


def name_of(kernel: Kernel, dtype: str, elements: int) -> str:
    return f"{kernel.name}, {dtype}" + ("" if elements == USUAL else f", 2^{elements.bit_length() - 1}")


def prepare(kernel: Kernel, dtype: str, elements: int, setting: Setting) -> None:
    """Compiled, and right at a smaller size: that of the measurement would take NumPy seconds."""
    with turn(alone=False):
        column = "jitml" if setting.backend == "cuda" else "stand-in"
        function = compiled(column, kernel.function)
        args = kernel.arguments(100_000, dtype)
        with np.errstate(all="ignore"):
            expected = optree.tree_leaves(kernel.function(*args))
        require_near([to_host(x) for x in optree.tree_leaves(function(*to_device(column, args)))], expected, _RTOL[dtype])
        _ready[name_of(kernel, dtype, elements)] = function


def measure(kernel: Kernel, dtype: str, elements: int, setting: Setting) -> Outcome:
    function = _ready.pop(name_of(kernel, dtype, elements), None)
    if function is None:
        raise Skipped("it was not compiled, or is wrong")
    column = "jitml" if setting.backend == "cuda" else "stand-in"
    with turn(alone=True):
        args = kernel.arguments(elements, dtype)
        own = to_device(column, args)
        results = optree.tree_leaves(function(*own))
        least = kernel.least_bytes(elements, dtype, [(tuple(x.shape), np.dtype(x.dtype).itemsize) for x in results])
        model = _model(function, args)
        del args, results
        samples = timings({"ours": rotating(function, [own])}, rounds=7)
        copy = copy_rate()
    seconds = medians(samples)["ours"]
    rate = least / seconds / 1e9
    figures = {"us": 1e6 * seconds, "GB/s": rate, "% of copy": 100 * rate / copy if copy else float("nan")}
    figures |= {f"model: {name}": model[name] for name in ("launches", "MB", "H100 us") if name in model}
    return {"figures": figures | {"least MB": least / 1e6}, "samples": samples, "model": model}


def _model(jitted: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    try:
        return figures_of(jitted.lower(*args))
    except Exception as error:  # times are worth having without it
        return {"model": f"{type(error).__name__}: {str(error)[:200]}"}


@cache
def _raw() -> Any:
    from gpu.raw import Raw

    return Raw()


def copy_rate() -> float:
    """Gigabytes a second of the best copy, now; 0 without a device."""
    try:
        from gpu.speed.limits import copy_rates

        return copy_rates(_raw(), 1 << 28, rounds=2)["best GB/s"]
    except Exception:  # no device: the stand-in's times are of nothing
        return 0.0
