"""Tiny reductions: how do many tiny reductions run?  Written out, side by side in the lanes of vectors."""

from __future__ import annotations

from contextlib import ExitStack

from jitml.fusion.schedule.nest import SHORT_ROW, GroupNest, write_stores
from jitml.fusion.schedule.passes import identity, passes_of, write_updates
from jitml.kernels.ir import Kind

MOST_UNROLLED = 64  # points of a loop's body that are written out


def is_tiny_inside(nest: GroupNest) -> bool:
    """Whether each step of the first loop is a handful of short sums (3 by 3 products): too short for vectors."""
    if not nest.outer or not nest.inner or len(passes_of(nest)[0]) > 1:
        return False
    first, *rest = nest.outer
    short = all(isinstance(axis.size, int) and nest.extent(axis) <= SHORT_ROW for axis in (*rest, *nest.inner))
    return bool(rest) and short and nest.extent(first) > SHORT_ROW and nest.size(nest.axes) <= MOST_UNROLLED * nest.extent(first)


def write_unrolled(nest: GroupNest) -> None:
    """One loop, and inside it straight code."""
    w, (step,), per_row = nest.writer, *passes_of(nest)
    parallel = nest.time > nest.target.cost.parallel_ns
    with ExitStack() as loops:
        for axis in nest.outer:
            is_first = axis is nest.outer[0]
            kind: Kind = "unroll" if not is_first else "parallel" if parallel else "serial"
            grain = nest.grain(nest.extent(axis)) if kind == "parallel" else 1
            loops.enter_context(w.loop(axis.name, *nest.span(axis), kind, grain=grain, binds=axis.members))
        for r in step.reductions:
            w.cell(r.cell, identity(r))
        with ExitStack() as inner:
            for axis in nest.inner:
                inner.enter_context(w.loop(axis.name, *nest.span(axis), "unroll", binds=axis.members))
            write_updates(nest, step)
        write_stores(nest, per_row)
