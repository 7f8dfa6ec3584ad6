"""Pointwise loops: how do pointwise loops run?

In the order of what they store; in chunks for threads, in tiles where arrays are transposed.
"""

from __future__ import annotations

from contextlib import ExitStack

from jitml.fusion.schedule.nest import SHORT_ROW, GroupNest, chunk_stop, write_stores
from jitml.fusion.schedule.views import Axis
from jitml.kernels.ir import Expr, Kind

TILE = 32  # elements on each side of a tile through which a transposed array is read
TINY = 2  # elements of a last axis that is written out, though its stores are strided then


def write_points(nest: GroupNest) -> None:
    axes = nest.axes
    if not axes:
        write_stores(nest, nest.points.stores)
        return
    parallel = nest.time > nest.target.cost.parallel_ns
    partner = _transposed_with(nest)
    if partner is not None:
        _write_tiles(nest, partner, parallel)
    elif (
        len(axes) > 1
        and isinstance(axes[-1].size, int)
        and nest.extent(axes[-1]) <= TINY
        and nest.extent(axes[-2]) >= 2 * SHORT_ROW
    ):
        _write_across(nest, parallel)
    elif parallel and (len(axes) == 1 or nest.extent(axes[0]) < 4 * nest.target.limits.cores):
        _write_chunks(nest)
    else:
        with ExitStack() as loops:
            for axis in axes:
                kind: Kind = "vector" if axis is axes[-1] else "parallel" if parallel and axis is axes[0] else "serial"
                grain = nest.grain(nest.extent(axis)) if kind == "parallel" else 1
                loops.enter_context(nest.writer.loop(axis.name, *nest.span(axis), kind, grain=grain, binds=axis.members))
            write_stores(nest, nest.points.stores)


def _write_chunks(nest: GroupNest) -> None:
    """Threads take chunks of the longest axis, which comes first; the rest runs inside a chunk."""
    w = nest.writer
    longest = max(nest.axes, key=nest.extent)
    (low, high), stop = nest.limits(longest), nest.stop(longest)
    rest = nest.size(nest.axes) // nest.extent(longest)
    step = max(1 if longest is not nest.axes[-1] else 512, nest.target.blocks.chunk // rest)
    with w.loop("c0", low, stop, "parallel", step=step, grain=nest.grain(-(-(high - low) // step))) as c, ExitStack() as loops:
        for axis in nest.axes:
            limits = (c, chunk_stop(c, step, low, stop)) if axis is longest else nest.span(axis)
            kind: Kind = "vector" if axis is nest.axes[-1] else "serial"
            loops.enter_context(w.loop(axis.name, *limits, kind, binds=axis.members))
        write_stores(nest, nest.points.stores)


def _write_across(nest: GroupNest, parallel: bool) -> None:
    """Vectors along the last axis but one; the last, which would fill no vector, is written out inside."""
    w = nest.writer
    *lead, wide, tiny = nest.axes
    (low, high), stop = nest.limits(wide), nest.stop(wide)
    limits: tuple[Expr, Expr] = nest.span(wide)
    with ExitStack() as loops:
        for axis in lead:
            kind: Kind = "parallel" if parallel and axis is lead[0] else "serial"
            grain = nest.grain(nest.extent(axis)) if kind == "parallel" else 1
            loops.enter_context(w.loop(axis.name, *nest.span(axis), kind, grain=grain, binds=axis.members))
        if parallel and not lead:
            step = max(512, nest.target.blocks.chunk // nest.extent(tiny))
            c = loops.enter_context(w.loop("c0", low, stop, "parallel", step=step, grain=nest.grain(-(-(high - low) // step))))
            limits = (c, chunk_stop(c, step, low, stop))
        loops.enter_context(w.loop(wide.name, *limits, "vector", binds=wide.members))
        loops.enter_context(w.loop(tiny.name, *nest.span(tiny), "unroll", binds=tiny.members))
        write_stores(nest, nest.points.stores)


def _transposed_with(nest: GroupNest) -> Axis | None:
    """The axis along which some load is contiguous while the last axis, along which is stored, jumps."""
    last = nest.axes[-1]
    if nest.extent(last) < TILE:
        return None
    for steps in nest.load_steps():
        if steps is not None and steps.get(last.name, 0) not in (0, 1):
            for axis in nest.axes[:-1]:
                if steps.get(axis.name) == 1 and nest.extent(axis) >= TILE:
                    return axis
    return None


def _write_tiles(nest: GroupNest, partner: Axis, parallel: bool) -> None:
    w, last = nest.writer, nest.axes[-1]
    others = [a for a in nest.axes if a not in (partner, last)]
    low, high = nest.limits(partner)
    first, _ = nest.limits(last)
    kind: Kind = "parallel" if parallel else "serial"
    grain = nest.grain(-(-(high - low) // TILE)) if parallel else 1
    with (
        w.loop(f"{partner.name}b", *nest.span(partner), kind, step=TILE, grain=grain) as p,
        nest.all_loops(others),
        w.loop(f"{last.name}b", *nest.span(last), "serial", step=TILE) as q,
    ):
        stop, end = chunk_stop(p, TILE, low, nest.stop(partner)), chunk_stop(q, TILE, first, nest.stop(last))
        with (
            w.loop(partner.name, p, stop, "serial", binds=partner.members),
            w.loop(last.name, q, end, "vector", binds=last.members),
        ):
            write_stores(nest, nest.points.stores)
