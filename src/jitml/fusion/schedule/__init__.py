"""Scheduling: how do a group's loops run?  A schedule is data; here it is applied to loops and written down.

`canonical` makes the loop tree of a box of a group, all loops serial; a schedule's primitives make other trees of it; `write`
makes statements of the last. Which schedule that is, a back end says (`Scheduler`), or the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jitml.errors import ScheduleError
from jitml.fusion.schedule.canonical import canonical
from jitml.fusion.schedule.nest import GroupNest, all_scalars
from jitml.fusion.schedule.primitives import apply
from jitml.fusion.schedule.text import show_tree
from jitml.fusion.schedule.tree import LoopTree, Misfit
from jitml.fusion.schedule.write import write
from jitml.kernels.schedule import Primitive, show_primitive

__all__ = ["GroupNest", "LoopTree", "Scheduler", "all_scalars", "canonical", "scheduled", "serial", "write"]

Scheduler: TypeAlias = Callable[[GroupNest], tuple[Primitive, ...]]


def serial(nest: GroupNest) -> tuple[Primitive, ...]:
    """The schedule that leaves all loops as they are."""
    return ()


def scheduled(nest: GroupNest, primitives: tuple[Primitive, ...], kernel: str) -> LoopTree:
    """The loops of one box as a schedule has them.

    Raises:
        ScheduleError: a primitive does not fit; the message shows the loops that it found.
    """
    tree = canonical(nest)
    for primitive in primitives:
        try:
            tree = apply(tree, primitive, nest)
        except Misfit as misfit:
            raise ScheduleError(
                f"schedule of {kernel}: {show_primitive(primitive)}: {misfit.message}",
                remedy=f"Its loops are then:\n{show_tree(tree, mark=misfit.loop)}",
            ) from None
    return tree
