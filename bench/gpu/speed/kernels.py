"""Memory-bound kernels on the device, in per cent of the copy of the same minute."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import optree

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Skipped
from gpu.memory_bound import KERNELS, Kernel
from gpu.speed.columns import compiled, to_device, to_host
from gpu.speed.suites import RESERVED, model_of, require_near
from gpu.speed.timing import medians, rotating, timings, turn

USUAL, SIZES = 1 << 26, (1 << 24, 1 << 28)
_RTOL = {"f2": 2e-2, "f4": 1e-4, "f8": 1e-9}
_ALSO_LARGE = ("scale", "sum of all", "sum of columns", "softmax, rows of 1000", "layernorm", "transpose")

_ready: dict[str, Any] = {}


def cases(setting: Setting) -> Cases:
    chosen = [(kernel, dtype, USUAL) for kernel in KERNELS.values() for dtype in kernel.dtypes]
    chosen += [(KERNELS[name], "f4", elements) for name in _ALSO_LARGE for elements in SIZES]
    if setting.device != "real":
        chosen = [(kernel, dtype, 20_000) for kernel, dtype, elements in chosen if elements == USUAL]
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
    if setting.seconds_left < RESERVED:
        raise Skipped("no time left to compile it: what has been compiled is to be timed")
    with turn(alone=False):
        column = "jitml" if setting.backend == "cuda" else "stand-in"
        function = compiled(column, kernel.function)
        args = kernel.arguments(20_000, dtype)
        with np.errstate(all="ignore"):
            expected = optree.tree_leaves(kernel.function(*args))
        require_near([to_host(x) for x in optree.tree_leaves(function(*to_device(column, args)))], expected, _RTOL[dtype])
        function = compiled(column, kernel.function)  # anew: what has been called with two sizes runs as code for any size
        large = kernel.arguments(elements, dtype)
        results = optree.tree_leaves(function(*to_device(column, large)))
        least = kernel.least_bytes(elements, dtype, [(tuple(x.shape), np.dtype(x.dtype).itemsize) for x in results])
    _ready[name_of(kernel, dtype, elements)] = function, least, model_of(function, large)


def measure(kernel: Kernel, dtype: str, elements: int, setting: Setting) -> Outcome:
    found = _ready.pop(name_of(kernel, dtype, elements), None)
    if found is None:
        raise Skipped("it was not compiled, or is wrong")
    function, least, model = found
    column = "jitml" if setting.backend == "cuda" else "stand-in"
    args = kernel.arguments(elements, dtype)
    with turn(alone=True):
        own = to_device(column, args)
        samples = timings({"ours": rotating(function, [own])}, rounds=7)
        copy = copy_rate() if setting.device == "real" else 0.0
    seconds = medians(samples)["ours"]
    rate = least / seconds / 1e9
    figures = {"us": 1e6 * seconds, "GB/s": rate, "% of copy": 100 * rate / copy if copy else float("nan")}
    figures |= {f"model: {name}": model[name] for name in ("launches", "MB", "H100 us") if name in model}
    return {"figures": figures | {"least MB": least / 1e6}, "samples": samples, "model": model}


@cache
def _raw() -> Any:
    from gpu.raw import Raw

    return Raw()


def copy_rate() -> float:
    """Gigabytes a second of the best copy, now."""
    from gpu.speed.limits import copy_rates

    return copy_rates(_raw(), 1 << 29, rounds=2)["best GB/s"]
