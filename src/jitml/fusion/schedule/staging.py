"""Staging plans: what do several passes over a row need, and how much work is it to make it again?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.nest import GroupNest, reachable
from jitml.fusion.schedule.reduction_passes import Pass
from jitml.kernels.schedule import Stage
from jitml.kernels.target import work_of as work_of_function


class Plan:
    """In which passes over a row are scalars computed, if nothing is kept from one to the next?

    first, last: of each scalar, a pass.
    ends: the last pass that stores or sums it, and not only what is made of it.
    users: what is made of it.
    """

    def __init__(self, passes: Sequence[Pass]) -> None:
        self.passes = passes
        self.first: dict[Scalar, int] = {}
        self.last: dict[Scalar, int] = {}
        self.users: dict[Scalar, list[Scalar]] = {}
        self.ends = {s: k for k, step in enumerate(passes) for s in step.roots}
        for k, step in enumerate(passes):
            for s in reachable(step.roots, self.first):
                self.first[s] = k
                for a in s.args:
                    self.users.setdefault(a, []).append(s)
        for k, step in reversed([*enumerate(passes)]):
            self.last |= dict.fromkeys(reachable(step.roots, self.last), k)


Home = Callable[[Scalar, float, int, Plan, Mapping[Scalar, str]], str]


def staged(nest: GroupNest, passes: Sequence[Pass], home: Home) -> list[Stage]:
    """What later passes over a row would make again, and where it waits.

    Args:
        home: where a scalar may wait, given it, the work on it, the pass that makes it, the plan and what is staged already;
            empty if it is to be made again.
    """
    if len(passes) < 2 or not nest.inner:
        return []
    plan, inside = Plan(passes), {name for axis in nest.inner for name in axis.members}
    names = {s: name for name, s in nest.stageable.items()}
    known: dict[Scalar, str] = {}  # staged -> the output that it waits in
    found: list[Stage] = []
    for now, step in enumerate(passes):
        here = reachable(step.roots, known)
        again = [s for s in here if plan.ends.get(s, 0) > now or any(plan.first[user] > now for user in plan.users.get(s, ()))]
        homes: dict[Scalar, str] = {}
        for s in again:
            # What is the same for a whole row, and was made in an earlier pass, is not made again.
            anew = [a for a in reachable([s], known) if a.variables & inside or plan.first[a] == now]
            if s in names and s.variables & inside and (place := home(s, work_on(anew), now, plan, known | homes)):
                homes[s] = place
        found += [Stage(names[s], place) for s, place in homes.items()]
        known |= homes
    return found


def work_of(scalars: Iterable[Scalar]) -> float:
    """The work on scalars and what they are made of."""
    return work_on(reachable(scalars))


def work_on(scalars: Iterable[Scalar]) -> float:
    return sum(work_of_function(a.value) for a in scalars if a.kind == "apply")
