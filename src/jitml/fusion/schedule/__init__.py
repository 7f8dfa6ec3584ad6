"""Scheduling: how do a group's loops run?  A schedule is data; here it is applied to loops and written down.

`canonical` makes the loop tree of a box of a group, all loops serial; a schedule's primitives make other trees of it; `write`
makes statements of the last. Which schedule that is, a back end says (`Scheduler`), or the user. Loops that are no group's are
statements from the start (`primitives/statements.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jitml.errors import ScheduleError
from jitml.fusion.schedule.canonical import canonical
from jitml.fusion.schedule.nest import GroupNest, all_scalars
from jitml.fusion.schedule.primitives import apply
from jitml.fusion.schedule.primitives.kinds import require_kind
from jitml.fusion.schedule.tree import LoopTree, Misfit, TreeLoop
from jitml.fusion.schedule.tree_text import show_tree
from jitml.fusion.schedule.write_tree import write
from jitml.kernels.ir import Kernel
from jitml.kernels.schedule import Primitive, Schedule, introduced, show_primitive
from jitml.kernels.target import Target
from jitml.records import dataclass

__all__ = ["SERIAL", "GroupNest", "LoopTree", "Scheduler", "all_scalars", "canonical", "fitting", "scheduled", "write"]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A back end's heuristics: which schedule suits?

    Attributes:
        group: a box of a group.
        op: the loops that an op has written itself, of which all together take so many ns in order, or so.
        scalars: a region of single elements.
    """

    group: Callable[[GroupNest], tuple[Primitive, ...]]
    op: Callable[[Kernel, Target, float], tuple[Primitive, ...]]
    scalars: Callable[[Kernel, Target], tuple[Primitive, ...]]


SERIAL = Scheduler(lambda nest: (), lambda kernel, target, ns: (), lambda kernel, target: ())  # all loops stay as they are


def scheduled(nest: GroupNest, primitives: tuple[Primitive, ...], kernel: str) -> LoopTree:
    """The loops of one box as a schedule has them.

    Raises:
        ScheduleError: a primitive does not fit; the message shows the loops that it found.
    """
    tree = canonical(nest)
    for primitive in primitives:
        try:
            require_kind(primitive, nest.target)
            tree = apply(tree, primitive, nest)
        except Misfit as misfit:
            raise refusal(kernel, f"{show_primitive(primitive)}: {misfit.message}", misfit.tree or tree, misfit.loop) from None
    return tree


def refusal(kernel: str, reason: str, tree: LoopTree, loop: TreeLoop | None = None) -> ScheduleError:
    """A schedule's error, with the loops as they are, and a mark at the one that it is about."""
    return ScheduleError(f"schedule of {kernel}: {reason}", remedy=f"Its loops:\n{show_tree(tree, loop)}")


def fitting(given: Schedule, nests: Sequence[GroupNest], kernel: str) -> Schedule:
    """A schedule of the user's, if it is one for these boxes, and its names are free.

    Raises:
        ScheduleError: it is not.
    """
    if len(given.boxes) != len(nests):
        boxes = "\n".join(f"box {n}:\n{show_tree(canonical(nest))}" for n, nest in enumerate(nests))
        what = f"it has primitives for {len(given.boxes)} boxes of loops, of which there are {len(nests)}"
        raise ScheduleError(f"schedule of {kernel}: {what}", remedy=f"Write `box 0 {{ ... }}` for each of them:\n{boxes}")
    for nest, primitives in zip(nests, given.boxes):
        for primitive in primitives:
            if (name := introduced(primitive)) and (nest.knows(name) or _GENERATED.fullmatch(name)):
                raise refusal(kernel, f"{show_primitive(primitive)}: the name {name} is taken", canonical(nest))
    return given


_GENERATED = re.compile(r"(t|row|tile|sums)\d+|for|in|point|bind|cell|scratch|recall|store|end|most|grain|jam")
