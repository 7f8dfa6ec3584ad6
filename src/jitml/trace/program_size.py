"""Program size: is what has been traced too much for one program, and which statement has brought most of it?"""

from __future__ import annotations

from jitml.errors import UnsupportedError
from jitml.ir.graph import Graph
from jitml.trace.speculation.limits import TraceLimits, beyond
from jitml.trace.trace import Traced

# Seconds of a processor, fitted to the corpus and to long straight programs; nine in ten are within a factor of 2.5. Operations
# of cheap families fuse; of the others each is a loop nest or a call of its own, and some passes compare each of them with each.
_PROGRAM, _CHEAP, _OTHER, _PAIR = 0.04, 0.0002, 0.0016, 8e-6
_CHEAP_FAMILIES = frozenset(("dynamic", "index_maps", "pointwise"))


def compile_seconds(graph: Graph) -> float:
    """What it is expected to take to compile a graph."""
    families = [node.op.family for node in graph.walk()]
    cheap = sum(family in _CHEAP_FAMILIES for family in families)
    other = len(families) - cheap
    return _PROGRAM + _CHEAP * cheap + _OTHER * other + _PAIR * other**2


def too_large(traced: Traced, limits: TraceLimits) -> UnsupportedError | None:
    """The refusal of a program beyond the limits that it was traced with, at what has brought most operations; else None."""
    nodes, seconds = sum(1 for _ in traced.graph.walk()), compile_seconds(traced.graph)
    stack, is_loop = traced.profile.heaviest("recorded") if traced.profile is not None else ((), False)
    if limits.nodes is not None and nodes > limits.nodes:
        return beyond(f"{nodes} operations have been recorded, too many for one program", stack, is_loop)
    if limits.seconds is not None and seconds > limits.seconds:
        return beyond(f"it would take some {seconds:.1f} s to compile {nodes} operations", stack, is_loop)
    return None


__all__ = ["compile_seconds", "too_large"]
