"""Program size: is what has been traced too much for one program, and which statement has brought most of it?"""

from __future__ import annotations

from jitml.errors import UnsupportedError
from jitml.trace.speculation.compile_cost import ProgramSize
from jitml.trace.speculation.limits import TraceLimits, beyond
from jitml.trace.trace import Traced


def too_large(traced: Traced, limits: TraceLimits) -> UnsupportedError | None:
    """The refusal of a program beyond the limits that it was traced with, at what has brought most operations; else None."""
    size = ProgramSize.of(traced.graph.nodes)
    nodes, seconds = size.cheap + size.other, size.compile_seconds()
    stack, is_loop = traced.profile.heaviest("recorded") if traced.profile is not None else ((), False)
    if limits.nodes is not None and nodes > limits.nodes:
        return beyond(f"{nodes} operations have been recorded, too many for one program", stack, is_loop)
    if limits.seconds is not None and seconds > limits.seconds:
        return beyond(f"it would take some {seconds:.1f} s to compile {nodes} operations", stack, is_loop)
    return None


__all__ = ["too_large"]
