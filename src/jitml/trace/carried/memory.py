"""Carried memory: which memory do arrays have that go from one iteration to the next?

New memory in each pass, with their contents.

That is right as long as nobody else sees the memory that a name stood for before: `CarriedMemory` checks it for all names of a
loop.
"""

from __future__ import annotations

import itertools
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from jitml.errors import UnsupportedError
from jitml.ir.graph import Value
from jitml.records import dataclass
from jitml.trace.carried.body import RegionBody
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import user_source
from jitml.trace.speculation.modes import Decider, Mode, Site
from jitml.trace.storage.storage import Rival, Storage, leave_region
from jitml.trace.symbolic.booleans import Truth, as_value
from jitml.trace.values.aliases import either, faces, one_of, serials_of
from jitml.trace.values.boxing import TracedArray, lift
from jitml.trace.values.container_identity import find
from jitml.trace.values.kinds import Kind, same
from jitml.trace.values.open_names import payload


class Demotable(Protocol):
    site: Site
    source: Any
    born: int
    mode: Mode
    body: RegionBody
    trip: Any
    index: Value
    extents: Any
    missing: dict[tuple[int, Truth], Any]

    @property
    def may_be_plain(self) -> bool: ...

    @property
    def decider(self) -> Decider: ...

    def demote(self, reason: BaseException, mode: Mode | None = None) -> None: ...


@dataclass
class Carried:
    """Something that goes from one iteration to the next: as the loop begins, as its body begins and as that ends."""

    before: Callable[[], Value]  # computed outside the body
    start: Value
    end: Value

    @classmethod
    def of_truth(cls, before: Callable[[], Truth], start: Value, end: Truth) -> Carried:
        return cls(lambda: as_value(before()), start, as_value(end))


class CarriedMemory:
    """New memory for the arrays that names bring into an iteration: right as long as nobody else sees the old one."""

    def __init__(self, loop: Demotable) -> None:
        self.loop = loop
        self.known: dict[Storage, tuple[TracedArray, TracedArray, Value]] = {}  # entry storage -> what it was, is, holds
        self.after: dict[Storage, TracedArray] = {}  # storage at the end of the body -> the array after the loop
        self.objects: dict[tuple[int, int], TracedArray] = {}  # of an array at the end and as the loop begins: that after it
        self.made: dict[Storage, TracedArray] = {}  # as the body ends -> the array that a name hands out
        self.lists: set[int] = set()  # that loops in the body have filled, by id, and a name hands out
        self.shared: set[Storage] = set()  # that more than one array stands for at the end of the body
        self.handed: list[tuple[TracedArray | None, TracedArray]] = []  # as the loop begins, if it is there, and as the body ends
        self.twins: dict[tuple[int, int], TracedArray] = {}  # of what shows the same: the object from before, or another one
        self.twins_at_start: dict[int, TracedArray] = {}  # by what it was before the loop, by id
        self.taken: set[Value] = set()  # inputs of the body that some name carries: another name of the same array need not

    def stand_in(self, leaf: Any, kind: Kind, name: str) -> tuple[TracedArray, Value]:
        """An array with the contents of `leaf`; the same for names that hold the same array."""
        before = leaf if type(leaf) is TracedArray else lift(leaf)
        if before.storage not in self.known:
            start = self.loop.body.trace.builder.add_input(kind.aval)
            self.known[before.storage] = (before, kind.show(start), start)
        first, now, start = self.known[before.storage]
        if not same(first, before):
            self._demote(f"{name} shares memory with another name that the loop binds anew")
        return (now, start) if before is first else (self._another(before, now), start)

    def _another(self, before: TracedArray, now: TracedArray) -> TracedArray:
        """Of what shows the same as an array that has a stand-in: another object in the first iteration, and later perhaps."""
        if id(before) not in self.twins_at_start:
            own = TracedArray(now.storage, now.steps, now.aval, now.layout, now.writeable)
            self.twins_at_start[id(before)] = one_of(now, (now, own), self.loop.decider)
        return self.twins_at_start[id(before)]

    def kept(self, least: int, before: Any, end: Any) -> Any:
        """What a name is after the loop that shows the same all the time: another object perhaps, if an iteration has run."""
        if type(before) is not TracedArray or before is end:
            return before
        if least:
            return end
        if (id(before), id(end)) not in self.twins:
            self.twins[id(before), id(end)] = either(before, end, self.loop.decider)
        return self.twins[id(before), id(end)]

    def object_after(self, end: TracedArray, before: TracedArray | None, least: int) -> TracedArray:
        """What a name is after the loop that has ended its body with an array: an object for each that there is."""
        key = id(end), 0 if least or before is None else id(before)
        if key not in self.objects:
            whole = self.after[end.storage]
            numbers, decider = faces(end)
            if before is not None and not least:
                numbers, decider = numbers | faces(before)[0], self.loop.decider
            made = TracedArray(whole.storage, whole.steps, whole.aval, whole.layout, whole.writeable)
            made = whole if whole.faces is None else made
            made.faces = numbers, None if decider is None else self.loop.decider
            self.objects[key] = made
        return self.objects[key]

    def show(self, end: TracedArray, new: TracedArray, before: TracedArray | None, least: int) -> TracedArray:
        """The same where the loop hands the array out for it, as this one."""
        if end.storage.appended or end.storage.listed is not None:
            new.storage.listed = end.storage.listed or Decider(self.loop.site)
        self.after.setdefault(end.storage, new)
        return self.object_after(end, before, least)

    def check(self, ends: Sequence[tuple[Sequence[TracedArray], Sequence[TracedArray]]], shown: Iterable[Any]) -> None:
        """Refuse to take new memory where somebody sees the old one, too.

        Args:
            ends: for each name, its arrays as the loop begins and as the body ends.
            shown: what all locals hold as the body ends, and names that it does not carry held before.
        """
        goes_to: dict[Storage, TracedArray] = {}
        owners: dict[Storage, Storage | None] = {}
        written = self.loop.body.written
        counts = Counter(after.storage for _, afters in ends for after in afters)
        self.shared = {storage for storage, count in counts.items() if count > 1}
        if any(storage.appended for storage in written):
            self._demote("an array that is there before the loop is appended to a list, and changed")
        for befores, afters in ends:
            for before, after in itertools.zip_longest(befores, afters):
                entry = before.storage if before is not None else None
                if after.storage.trace is not self.loop.body.trace:
                    self._demote("a name comes to stand for an array that was there before the loop", Mode.PEELED)
                known = after if entry is None else goes_to.setdefault(entry, after)
                if after.storage.appended and before is not None and self.known[before.storage][1].storage.mutated:
                    self._demote("an array is appended to a list, and changed in the next iteration")
                if entry is not None and self._is_doubtful(entry, after.storage):
                    self._demote("a name may come to stand for an array that has another name, and is changed")
                are_views = entry is not None and entry.is_external and known is not after  # of an argument, or that itself
                if are_views or not same(known, after) or owners.setdefault(after.storage, entry) is not entry:
                    self._demote("names share memory at the end of an iteration, but not at its start", Mode.PEELED)
        for entry, (_, now, _) in self.known.items():
            if now.storage.appended:
                entry.listed = Decider(self.loop.site)
            if entry in written or (now.storage.mutated and self._is_seen(entry, shown)):
                self._demote("a name is bound to a new array, and the one it was bound to before is written", Mode.PEELED)

    def _is_seen(self, entry: Storage, shown: Iterable[Any]) -> bool:
        """Whether somebody else may see what a name has brought along; what a first iteration apart has made, only locals can."""
        is_older = entry.is_external or entry.serial < self.loop.born  # what an attribute holds is met as it is read
        return is_older or bool(entry.others) or entry in _storages_among(shown)

    def _is_doubtful(self, entry: Storage, end: Storage) -> bool:
        """Whether, in the next iteration, something is written that a name may stand for besides what stands for it here."""
        if entry not in self.known:
            return False
        now = self.known[entry][1].storage
        written = self.loop.body.written
        others = [rival for rival in end.others if rival is not now]
        return any(x in written for x in others) or (bool(others) and any(x.storage.mutated for _, x, _ in self.known.values()))

    def leave(self) -> None:
        """The arrays after the loop are there."""
        entries = {now.storage: before.storage for before, now, _ in self.known.values()}
        pairs = [(inside, now.storage) for inside, now in self.after.items()]
        leave_region(pairs, Decider(self.loop.site), entries)
        self._part(pairs)
        self.twins.clear()
        self.objects.clear()
        self.twins_at_start.clear()

    def _part(self, pairs: Iterable[tuple[Storage, Storage]]) -> None:
        """Nothing says when two are what the body has made: not even if something else says when they are one of before."""
        groups: defaultdict[int, list[Storage]] = defaultdict(list)
        for inside, outside in pairs:
            for serial in serials_of(inside):
                groups[serial].append(outside)
        for now in (now.storage for _, now, _ in self.known.values()):
            groups.pop(now.serial, None)
        for group in groups.values():
            for one, other in itertools.combinations(group, 2):
                one.meet(Rival(weakref.ref(other), self.loop.decider, overlaps=True))

    def _demote(self, reason: str, mode: Mode = Mode.PLAIN) -> None:
        if self.loop.mode >= mode:
            mode = Mode.PLAIN
        self.loop.demote(UnsupportedError(reason, source=user_source()), mode)


def _storages_among(values: Iterable[Any]) -> set[Storage]:
    """Those of arrays, also in containers and objects."""
    values = [*values]
    spaces = (getattr(x, "__dict__", {}).values() for x in find(values).values())
    leaves = [leaf for x in itertools.chain(values, *spaces) for leaf in flatten(payload(x))[0]]
    return {leaf.storage for leaf in leaves if type(leaf) is TracedArray}
