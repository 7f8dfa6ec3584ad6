"""Branch capture: how does an `if` on a traced condition become a `cond` node?

Both branches are recorded from the same state, then merged.

What differs at their ends, names and storages that either writes, is a result of the region (`join.py`). A branch that ends
with an exception is never merged: a `check` claims that it is not taken, and where that fails Python itself says what happens.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.container_items import effect, open_list
from jitml.trace.carried.iterators import IteratorsBefore, iterators_among
from jitml.trace.carried.mutable import Items, Mutable, Tail
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.record.recording import active_trace, refuse, user_source
from jitml.trace.regions.join import Finish, Merge
from jitml.trace.rewrite.driver_protocol import UNDEF, Names, Values
from jitml.trace.speculation.modes import Decider, OpenRegions, RecordedRegion, Site, decisions, is_ours, site
from jitml.trace.speculation.paths import require_not
from jitml.trace.symbolic.sizes import NO_FACTS, Facts
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.kinds import truth
from jitml.trace.values.numbers import TracedNumber

_MOST_IN_ITSELF = 24


class Side:
    """One branch."""

    def __init__(self, branch: bool, decider: Decider) -> None:
        self.branch = branch
        self.body = RegionBody(decider)
        self.ends: dict[str, Any] = {}
        self.changed: dict[Hashable, tuple[Mutable, Items]] = {}  # what it changes: what was in it before, and then at its end


class Fork(RecordedRegion):
    """A condition on which two bodies hang."""

    is_strict = False  # whether a number of which it leaves the type open is so strictly (`type_unions.py`)

    def __init__(self, test: Any, place: Site | None = None) -> None:
        self.site = place or site()
        self.decider = Decider(self.site)
        self.source = user_source()
        self.test = truth(test)
        self.facts = facts_of(test)
        self.sides: dict[bool, Side] = {}
        self.place = self.site, decisions().apart
        self.raising = decisions().raising.get(self.place, {})
        self._open: Side | None = None
        self.iterators: dict[int, Any] = {}
        for branch, raised in self.raising.items():
            require_not(self.test if branch else ops.bit_not(self.test), raised, self.site, self.source)

    def enter_side(self, branch: bool) -> None:
        """Begin to record a branch; what a check has ruled out of the other one holds here, where no region is needed."""
        if not self.raising:
            self._require_end()
            self._open = self.sides[branch] = Side(branch, self.decider)
            self.trace = self._open.body.trace
            self.trace.facts = self.facts[0 if branch else 1]
            self.trace.local[IteratorsBefore].update(self.iterators)
            self._open.body.resume()
            active_trace().call[OpenRegions].append(self)

    def _require_end(self) -> None:
        """Both sides are traced: a recursion that one of them would end does not end, and each level costs more than the last.

        Raises:
            RecursionError: this construct stands inside itself too often.
        """
        if sum(region.site[0] == self.site[0] for region in active_trace().call[OpenRegions]) >= _MOST_IN_ITSELF:
            raise RecursionError("a branch on a traced condition is entered again and again inside itself")

    def leave_side(self) -> None:
        side = self._open
        if side is not None:
            self.end_recording()
            for key, (what, before) in side.changed.items():
                side.changed[key] = what, what.items()
                what.put(before)
            side.body.suspend()
            self._open = None
            del self.trace  # which would keep arrays of before

    def take(self, what: Mutable) -> bool:
        """The side that is recorded is about to change something."""
        assert self._open is not None
        if what.key not in self._open.changed:
            self._open.changed[what.key] = what, what.items()
        return True

    def append_to(self, obj: OpenList) -> None:
        self.take(Tail(obj))

    def amend(self, error: BaseException) -> None:
        """Of an exception that is the program's own: the branch that raised it is not taken, or the program ends."""
        if self._open is not None and not is_ours(error):
            self.raise_here(repr(error))

    def settle(self, error: BaseException) -> None:
        """Only one side is traced."""
        decisions().demote(self.site, self.decider.mode, error)

    def give_up(self, message: str, remedy: str) -> NoReturn:
        """The sides cannot be merged."""
        error = UnsupportedError(message, source=user_source(), remedy=remedy)
        decisions().reconsider(active_trace(), error)
        self.settle(error)
        refuse(error)

    def raise_here(self, raised: str) -> NoReturn:
        """The open branch ends with an exception."""
        assert self._open is not None
        decisions().leave_out(self.place, self._open.branch, raised)

    def merge(self, names: Sequence[str]) -> dict[str, Any]:
        """What the names hold after both branches; storages are written."""
        then, orelse = self.sides[True], self.sides[False]
        merge = Merge(self, {id(what.obj) for what in self._changed()})
        merged = {name: merge.name(name, then.ends.get(name, UNDEF), orelse.ends.get(name, UNDEF)) for name in names}
        changed = [(what, self._joined(merge, what)) for what in self._changed()]
        merge.emit(list(dict.fromkeys((*then.body.written, *orelse.body.written))))
        then.body.close()
        orelse.body.close()
        self.sides.clear()
        for what, items in changed:
            effect(what.obj, what)
            what.put({key: finish() for key, finish in items.items()})
        return {name: finish() for name, finish in merged.items()}

    def _changed(self) -> Iterable[Mutable]:
        """All that the sides change."""
        return {key: what for side in self.sides.values() for key, (what, _) in side.changed.items()}.values()

    def _joined(self, merge: Merge, what: Mutable) -> dict[Any, Finish]:
        """What is in it after both branches, as far as one has changed that."""
        before = what.items()
        then, orelse = (self.sides[branch].changed.get(what.key, (what, before))[1] for branch in (True, False))
        if [*then] != [*orelse] or any(item is UNDEF for item in (*then.values(), *orelse.values())):
            open_list(what.obj, [*before.values()])
            kind = type(what.obj).__name__
            self.give_up(
                f"a {kind} has other items or attributes after one branch on a traced condition than after the other", ""
            )
        return {key: merge.name(what.text(key), then[key], orelse[key]) for key in then}

    def is_made_here(self, leaf: TracedArray) -> bool:
        return any(leaf.storage.trace is side.body.trace for side in self.sides.values())


class TracedIf(Fork):
    """The driver of an `if`."""

    drives = True

    def enter(self, names: Names, values: Values, targets: Names = ()) -> None:
        self.names = names
        self.entry = {name: values.get(name, UNDEF) for name in names}
        self.iterators = iterators_among(values)
        self.ends = self.entry
        self.locals = values

    def __iter__(self) -> Iterator[bool]:
        for branch in (True, False):
            if branch not in self.raising or len(self.raising) == 2:
                self._branch = branch
                self.enter_side(branch)
                yield branch

    def load(self) -> tuple[Any, ...]:
        return tuple(self.entry.values())

    def step(self, values: Values, stop: Any = False) -> None:
        ends = {name: values.get(name, UNDEF) for name in self.names}
        if self.raising:
            self.ends = ends
        else:
            self.sides[self._branch].ends = ends
            self.leave_side()

    def result(self) -> tuple[Any, ...]:
        held = self.ends if self.raising else self.merge(self.names)
        # Whether an array of before is still there decides what may be written: neither this nor a frame's `locals()` keeps one.
        self.ends, self.entry, self.iterators = {}, {}, {}
        self.locals.clear()
        return tuple(held[name] for name in self.names)


def facts_of(test: Any) -> Facts:
    """What a condition says about sizes where it holds, and where it does not."""
    return test.facts if type(test) is TracedNumber else NO_FACTS


__all__ = ["Fork", "TracedIf", "facts_of"]
