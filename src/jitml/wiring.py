"""Where layers are joined that know nothing of each other: what compiles functions, transforms, and operations on devices."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from jitml.api import jit
from jitml.device.on_host import on_host
from jitml.device.operations import compile_by
from jitml.dispatch.on_device import compile_programs_by, counted, device_for, on_device
from jitml.imports.late import late
from jitml.interrupts import uninterrupted
from jitml.options import Options
from jitml.program_cache.compile import compile_graph as compile_or_load
from jitml.program_cache.variants import KeptVariants
from jitml.trace.traced import Traced

if TYPE_CHECKING:
    from jitml import pipeline
    from jitml.pipeline import Lowered
else:
    pipeline = late("jitml.pipeline")


def join() -> None:
    """Have programs compiled; once is enough."""
    compile_programs_by(_compile_transform)
    compile_by(jit, on_host, lambda: import_module("jitml.numpy"))


def _compile_transform(traced: Traced) -> Callable[..., Any]:
    """What runs the program of a transform outside `jit` on the device of its arrays."""

    def compile_graph() -> Callable[..., Any]:
        assert traced.device is not None
        backend = pipeline.backend_named(traced.device.backend)
        executable = pipeline.compile_graph(traced.graph, backend, aliases=traced.aliases, strides=traced.strides)
        return on_device(traced, traced.device, executable)

    return uninterrupted(compile_graph)


def _given(traced: Traced, options: Options) -> dict[str, Any]:
    """What the graph of a jitted function is compiled with, and shown with."""
    return {
        "aliases": traced.aliases,
        "strides": traced.strides,
        "threads": options.threads,
        "fastmath": options.fastmath,
        "schedules": dict(options.schedules),
    }


def compile_traced(traced: Traced, options: Options, name: str) -> Callable[..., Any]:
    """What runs the program of a jitted function of this name."""

    def compile_graph() -> Callable[..., Any]:
        device = device_for(traced, options.device, name)
        if device is None:
            return compile_or_load(traced.graph, **_given(traced, options))
        backend = pipeline.backend_named(device.backend)
        executable = pipeline.compile_graph(traced.graph, backend, **_given(traced, options), watch=True)
        return (on_device if traced.device else counted)(traced, device, executable)

    return uninterrupted(compile_graph)


def kept_variants(function: Callable[..., Any], options: Options) -> KeptVariants | None:
    """Where variants of a jitted function are kept for later processes; None for nowhere."""
    return KeptVariants(function, options, lambda traced: _given(traced, options)) if type(function) is FunctionType else None


def lower_traced(traced: Traced, options: Options, name: str) -> Lowered:
    """Every stage of it."""

    def lower() -> Lowered:
        device = device_for(traced, options.device, name)
        return pipeline.lower(
            traced.graph, None if device is None else pipeline.backend_named(device.backend), **_given(traced, options)
        )

    return uninterrupted(lower)


__all__ = ["compile_traced", "join", "kept_variants", "lower_traced"]
