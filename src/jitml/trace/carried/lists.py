"""Carried lists: what does a loop carry for a list that it appends to?

`ListName`: nothing but the number of items, and often not even that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitml.ir.graph import Value
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.leaves import CarriedLeaf
from jitml.trace.carried.list_buffers import Growing, Probe, columns_for
from jitml.trace.carried.memory import CarriedMemory, Demotable
from jitml.trace.carried.variables import CarriedOutcome, Name
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.pytree import flatten
from jitml.trace.speculation.modes import Decider, Mode, Site
from jitml.trace.storage.storage import EnteredStorages, Storage
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.kinds import take_apart
from jitml.trace.values.numbers import TracedNumber, of_size
from jitml.trace.values.ragged import SIZE

_CHANGED = "has an item that is changed, and has another name"


class ListName(Name):
    """A name of a list that the body appends to; what is appended shows in the first pass.

    Where each iteration appends the same number of items, the loop's index says how many there are, else they are counted.
    """

    def __init__(self, name: str, entry: Any) -> None:
        super().__init__(name, entry)
        self.probe: Probe | None = None
        self.is_own = type(entry) is not Growing  # and not that of a loop around this one
        self.before = entry
        self.rate = 0
        if not self.is_own:
            self._grow(entry)

    def _grow(self, entry: Growing) -> None:
        self.entry = entry
        self.held = take_apart(entry)
        self.leaves = [CarriedLeaf(leaf, SIZE, {int}) for leaf in self.held.leaves]
        self.is_carried = True
        self.direction = 1

    def assume_carried(self) -> None:
        """Its memory is made for what the first pass sees."""

    @property
    def kept(self) -> Any:
        return self.before

    def prepare(self, loop: Demotable, *, is_whole: bool) -> None:
        """Make memory for what the pass before has seen; outside the body."""
        if self.probe is None or not self.probe.items:
            return
        found = columns_for(self.probe, loop.site, loop.trip, is_whole=is_whole)
        if found is None:
            loop.demote(self._error("is given items that hold containers, or are no values of one type"), Mode.PLAIN)
        assert found is not None
        columns, count, self.rate = found
        self.probe = None
        self._grow(Growing(columns, count))

    def begin(self, body: RegionBody, memory: CarriedMemory) -> None:
        if type(self.entry) is not Growing:
            count = SIZE.show(body.trace.builder.add_input(SIZE.aval))
            self.start = self.probe = Probe(self.entry, memory.loop, count)
            return
        if self.is_own:
            self.entry.columns.pushed.clear()
            self.entry.columns.is_written = False
        if self.rate:
            place = body.trace.sizes.names[memory.loop.index]
            self.start = Growing(self.entry.columns, of_size(self.entry.count + self.rate * place))
        else:
            super().begin(body, memory)

    def moves(self, end: Any, loop: Demotable) -> bool:
        if self.probe is not None:
            if end is not self.probe:
                loop.demote(self._error("is a list, and becomes something else in the loop"), Mode.PLAIN)
            if self.probe.is_guessed and not self.probe.items:
                loop.demote(self._error("is read where only the compiled program knows which item it is"), Mode.PLAIN)
            return bool(self.probe.items)
        if self.is_own and self.entry.columns.misfits:
            self.entry, self.rate = self.before, 0
            return True
        if self.rate and type(end) is Growing:
            if type(end.count) is TracedNumber and end.count.size is not None and end.count.size - _size(self.start) == self.rate:
                return False
            self.rate = 0
            return True
        return super().moves(end, loop)

    def outcome(self, end: Any, body: RegionBody, site: Site, least: int, memory: CarriedMemory) -> CarriedOutcome:
        if self.probe is not None:
            return CarriedOutcome([], lambda _: self.probe.before if self.probe is not None else self.entry)
        columns = self.entry.columns
        for storage, writes in columns.pushed.items():
            if storage.writes != writes:
                memory.loop.demote(self._error("is given an array that is changed afterwards"), Mode.PLAIN)
        copied = self._copied()
        if not copied.isdisjoint(body.written):
            memory.loop.demote(self._error("holds an array that is changed in the loop"), Mode.PLAIN)
        if columns.is_written and not copied.isdisjoint(body.trace.local[EnteredStorages].known):
            memory.loop.demote(self._error(_CHANGED), Mode.PLAIN)
        if self.rate:
            count = of_size(self.entry.count + self.rate * memory.loop.trip)
            made = CarriedOutcome([], lambda _: Growing(columns, count))
        else:
            made = super().outcome(end, body, site, least, memory)
        show = made.show

        def finish(results: list[Value]) -> Any:
            held = {x.storage for _, x in memory.handed} | {now.storage for _, now, _ in memory.known.values()}
            if columns.is_written and not held.isdisjoint(columns.pushed):
                memory.loop.demote(self._error(_CHANGED), Mode.PLAIN)
            columns.is_shared |= bool(copied) or any(x.appended > 1 or x.others or x in held for x in columns.pushed)
            for storage in copied:
                storage.listed = Decider(columns.site)
                storage.outdated = Decider(columns.site) if columns.is_written else storage.outdated
            growing = show(results)
            return growing.finished() if self.is_own else growing

        made.show = finish
        return made

    def _copied(self) -> set[Storage]:
        """The memory of arrays that the list has held before: their rows are copies."""
        is_copied = self.is_own and not self.entry.columns.head
        leaves = flatten([*self.before])[0] if is_copied else ()
        return {leaf.storage for leaf in leaves if type(leaf) is TracedArray}


def _size(growing: Growing) -> Any:
    return growing.count.size if type(growing.count) is TracedNumber else growing.count


def name_of(name: str, value: Any, direction: int, grows: Sequence[str]) -> Name:
    """What a loop keeps of a name that holds a value as it begins."""
    is_list = type(value) in (list, Growing) or (type(value) is TracedList and type(value.rows) is int)
    return ListName(name, value) if is_list and name in grows else Name(name, value, direction)


__all__ = ["ListName", "name_of"]
