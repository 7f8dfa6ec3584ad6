"""Where layers are joined that know nothing of each other: who compiles operations on device arrays, and transforms."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from jitml.api import jit
from jitml.device.on_host import on_host
from jitml.device.operations import compile_by
from jitml.dispatch.on_device import compile_programs_by, on_device
from jitml.interrupts import uninterrupted
from jitml.trace.trace import Traced


def join() -> None:
    """Have programs compiled; once is enough."""
    compile_programs_by(_compile_transform)
    compile_by(jit, on_host, lambda: import_module("jitml.numpy"))


def _compile_transform(traced: Traced) -> Callable[..., Any]:
    """What runs the program of a transform outside `jit` on the device of its arrays."""

    def compile_graph() -> Callable[..., Any]:
        from jitml import pipeline  # brings llvmlite, which transforms on NumPy's arrays do not need

        assert traced.device is not None
        backend = pipeline.backend_named(traced.device.backend)
        executable = pipeline.compile_graph(traced.graph, backend, aliases=traced.aliases, strides=traced.strides)
        return on_device(traced, traced.device, executable)

    return uninterrupted(compile_graph)


__all__ = ["join"]
