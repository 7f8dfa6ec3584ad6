"""Rows as lanes: how do rows run that fill no vector?  As lanes: vectors across rows, each row written out inside.

A matrix of points in space, colours or the odds of three classes has rows of two to four elements. A vector along such a row is
mostly idle, and starts anew for each; one across rows is full, though its loads are strided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from jitml.fusion.schedule.nest import GroupNest, chunk_stop
from jitml.fusion.schedule.views import Axis
from jitml.kernels.ir import Expr, Kind

CHUNK = 512  # rows; threads take some multiple of them at once


@contextmanager
def across(nest: GroupNest, rows: Sequence[Axis], row: Sequence[Axis]) -> Iterator[None]:
    """Loops over rows of which the last is a vector; what is written inside is for one row, the loops over which are not begun.

    Threads share an axis that has steps enough for all of them, or chunks of the last one: that loop comes first.
    """
    w, (*lead, last) = nest.writer, rows
    (low, high), stop = nest.limits(last), nest.stop(last)
    limits: tuple[Expr, Expr] = nest.span(last)
    shared: Axis | None = None
    with ExitStack() as loops:
        if nest.time > nest.target.cost.parallel_ns:
            step = max(CHUNK, nest.target.blocks.chunk // max(1, nest.size(row)) // CHUNK * CHUNK)
            shared = max(lead, key=nest.extent, default=None)
            if high - low > step and (shared is None or nest.extent(shared) < 4 * nest.target.limits.cores):
                grain = nest.grain(-(-(high - low) // step))
                c = loops.enter_context(w.loop("c0", low, stop, "parallel", step=step, grain=grain))
                limits, shared = (c, chunk_stop(c, step, low, stop)), None
        for axis in sorted(lead, key=lambda axis: axis is not shared):
            kind: Kind = "parallel" if axis is shared else "serial"
            grain = nest.grain(nest.extent(axis)) if axis is shared else 1
            loops.enter_context(w.loop(axis.name, *nest.span(axis), kind, grain=grain, binds=axis.members))
        loops.enter_context(w.loop(last.name, *limits, "vector", binds=last.members))
        yield
