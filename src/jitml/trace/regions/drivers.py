"""Traced drivers: which region does a traced `if`, `for`, `while` or `and` become, or one that began as plain Python?

`driver_protocol.py` is the protocol that they follow, `hooks/control_flow.py` asks here for one. Branches are captured in
`branch.py`, loops in `for_loop.py` and `while_loop.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import length_hint
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.config import CONFIG
from jitml.errors import Cause
from jitml.imports.late import late
from jitml.ir.dims import Dim
from jitml.trace.lists.sequences import Rows, rows_of
from jitml.trace.record.recording import active_trace, current_trace, unsupported, user_source
from jitml.trace.rewrite.driver_protocol import Driver, Names, Values
from jitml.trace.speculation import paths
from jitml.trace.speculation.modes import Mode, OpenRegions, Site, decisions, refuse_region, site
from jitml.trace.storage.storage import Storage, StoreCount
from jitml.trace.symbolic.sizes import value_of_size
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.container_identity import MadeInside
from jitml.trace.values.kinds import is_decided, truth

if TYPE_CHECKING:
    from jitml.trace.regions import branch as branches
    from jitml.trace.regions import for_loop, select, while_loop
    from jitml.trace.regions import loop as loops
    from jitml.trace.rewrite.induction import Directions
else:
    branches = late("jitml.trace.regions.branch")
    select = late("jitml.trace.regions.select")
    while_loop = late("jitml.trace.regions.while_loop")
    for_loop = late("jitml.trace.regions.for_loop")
    loops = late("jitml.trace.regions.loop")


def outcome(test: Any) -> bool | None:
    """The truth of something traced, where Python decides by it; None if a region is to be captured."""
    if is_decided(test):
        return bool(test)
    place = site()
    return assumed(test, place) if paths.is_decided(place) else None


def assumed(test: Any, place: Site) -> bool:
    """The truth of a condition in the call that is traced; from here on the program takes it for granted."""
    taken = bool(paths.decide(truth(test), place))
    trace = active_trace()
    trace.facts = (*trace.facts, *branches.facts_of(test)[0 if taken else 1])
    return taken


def branch(test: Any) -> Any:
    """Of `if test`, undecided."""
    return branches.TracedIf(test)


def choice(test: Any) -> Any:
    """Of `x if test else y`."""
    return select.Ternary(test)


def operand(left: Any, stops_at: bool) -> Any:
    """Of `left or right`, and of `left and right`, where a False stops."""
    return select.Both(left, stops_at)


def require(ok: Any) -> Any:
    """Of `assert ok`."""
    return select.require(ok)


def rest(place: Site, stop: Any, *, born: int) -> Any:
    """Of a `while` that began as plain Python, and whose test or flag (then `stop`) turns out to be traced."""
    return while_loop.TracedWhile(place, stop, born=born)


def rows(iterable: Any, place: Site) -> tuple[Driver | None, Iterable[Any]]:
    """The driver of a `for` over this, if it is to be rolled; and what plain Python iterates over if not."""
    trace = current_trace()
    found = rows_of(iterable) if trace is not None else None
    if found is None:
        return None, iterable
    is_plain = mode_at(place) is Mode.PLAIN
    if isinstance(found.trip, Dim):
        if is_plain:
            return None, map(found.at, range(paths.decide(value_of_size(found.trip), place)))
    elif found.trip < 2 or is_plain:
        return None, iterable
    return for_loop.For(found, place), iterable


def here() -> Site:
    """The place of a construct that begins as plain Python."""
    trace = current_trace()
    return site() if trace is not None else ()


def mode_at(place: Site) -> Mode:
    """How the construct at a place is traced."""
    return decisions().mode(place)


def while_(names: Names, values: Values, counters: Directions, grows: Names, place: Site) -> Driver | None:
    """Of a `while`, unless it is known to be none that can be rolled from its first iteration on."""
    trace = current_trace()
    if trace is None or mode_at(place) is not Mode.ROLLED or raises(place):
        return None
    made = while_loop.TracedWhile(place)
    made.enter(names, values, (), counters, grows)
    return made


def raises(place: Site) -> str:
    """The exception with which the body of a `while` is known to end."""
    return decisions().raising.get((place, decisions().apart), {}).get(True, "")


def never(test: Any, raised: str, place: Site) -> None:
    """A `while` whose body ends with an exception is not entered, or the program's own Python says what happens."""
    paths.require_not(truth(test), raised, place, user_source())


def birth() -> int:
    """A number that tells storages of before from those to come."""
    return next(Storage.count)


class Mark:
    """How far the recording is where a `while` is about to evaluate its test, which is evaluated again if it is traced."""

    def __init__(self) -> None:
        trace = current_trace()
        self.trace = trace
        self.nodes = len(trace.builder.nodes) if trace is not None else 0
        self.stores = trace.call[StoreCount].count if trace is not None else 0

    def check(self) -> None:
        """Refuse a test that has done more than compute a value."""
        trace = active_trace()
        if trace is not self.trace or trace.call[StoreCount].count != self.stores:
            unsupported("the test of a loop whose first iteration differs from the others draws random numbers or writes")


def loops_inside(trace: Any) -> int:
    """How many loops are being recorded inside a body."""
    regions = active_trace().call[OpenRegions]
    place = [region.trace for region in regions].index(trace)
    return sum(isinstance(region, loops.TracedLoop) for region in regions[place + 1 :])


def made(obj: Any) -> Any:
    """An object that the function has just made."""
    trace = current_trace()
    if trace is not None and trace.is_body:
        trace.local[MadeInside][id(obj)] = obj
    return obj


def counted(iterable: Iterable[Any], place: Site) -> Iterator[Any]:
    """The elements of a loop that is unrolled into the graph, as long as that stays in bounds."""
    trace = current_trace()
    if trace is None:
        yield from iterable
        return
    before, known = len(trace.builder.nodes), decisions()
    most, remedy = CONFIG.max_unroll, "Write it so that it can stay a loop, or raise the limit JITML_MAX_UNROLL."
    if known.limits.iterations is not None:
        most, remedy = min(most, known.limits.iterations), "Write it so that it can stay a loop."
    profile = known.profile
    unrolled = profile.loop(place, known.effort.recorded, _length(iterable)) if profile is not None else None
    try:
        for done, element in enumerate(iterable):
            known.step()
            if unrolled is not None:
                unrolled.go_on(known.effort.recorded)
            recorded = len(trace.builder.nodes) - before
            if done >= most and recorded >= done and known.end_is_in_sight():
                most = min(2 * most, CONFIG.max_unroll)
            is_in_vain = unrolled is not None and recorded >= done > 1 and known.is_in_vain(unrolled)
            if is_in_vain or recorded > 10 * CONFIG.max_unroll or (done >= most and recorded >= done):
                refuse_region(
                    f"a loop is unrolled into the graph, and after {done} iterations there is no end to it"
                    f" ({recorded} operations)",
                    place,
                    remedy,
                    Cause.UNROLLED,
                )
            yield element
    finally:
        if profile is not None and unrolled is not None:
            profile.ended(unrolled)


def _length(iterable: Iterable[Any]) -> int | None:
    """How many elements there are, if that can be told without running code of the user's."""
    if isinstance(iterable, Rows):
        return iterable.trip if isinstance(iterable.trip, int) else None
    if isinstance(iterable, (TracedArray, np.ndarray)):
        return iterable.shape[0] if iterable.ndim and isinstance(iterable.shape[0], int) else None
    kind = type(iterable)
    if kind in (enumerate, zip, map):
        parts: tuple[Any, ...] = iterable.__reduce__()[1]  # type: ignore[assignment]
        lengths = [_length(part) for part in (parts[:1] if kind is enumerate else parts[kind is map :])]
        known = [length for length in lengths if length is not None]
        return min(known) if len(known) == len(lengths) else None
    hint = length_hint(iterable, -1) if kind.__module__ == "builtins" and kind is not GeneratorType else -1
    return hint if hint >= 0 else None


def dead_end() -> bool:
    """Whether to leave out a `raise` because a captured branch ends with it."""
    trace = current_trace()
    region = trace.call[OpenRegions].last if trace is not None else None
    if region is not None:
        region.raise_here(f"the exception raised at {user_source()}")
    return False
