"""Loop capture: how does a `for` or `while` become one node?

Its body is recorded over a symbolic index until nothing moves any more.

What a loop carries is found by recording: names whose value at the end of the body is not the one at its start, and storages
from outside that the body writes. A pass with what is known so far shows whether more is carried; the next pass starts there.
A loop inside is recorded in each of them: from its second recording on it starts with what the one before has carried, as else
the passes double with each level of a nest.
A name whose type moves gets a first iteration of its own (`Mode.PEELED`): after that it has the type of the others. What cannot
be captured at all is run as plain Python runs it (`Mode.PLAIN`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jitml.errors import UnsupportedError
from jitml.ir.graph import Value
from jitml.ir.types import I64, Aval
from jitml.trace.carried.aliases import Remains
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.container_items import CarriedContents
from jitml.trace.carried.iterators import IteratorsBefore, iterators_among
from jitml.trace.carried.lists import name_of
from jitml.trace.carried.memory import Carried, CarriedMemory
from jitml.trace.carried.mutable import Mutable
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.carried.sizes import CarriedExtents
from jitml.trace.carried.variables import CarriedOutcome, Name
from jitml.trace.record.recording import active_trace, user_source
from jitml.trace.rewrite.driver_protocol import UNDEF, Names, Values
from jitml.trace.speculation.modes import Decider, Mode, OpenRegions, RecordedRegion, Site, decisions, refuse_region
from jitml.trace.storage.storage import Storage
from jitml.trace.symbolic.booleans import Truth
from jitml.trace.symbolic.sizes import value_of_size
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.container_identity import HandedOut, UnsettledContainers, containers, find
from jitml.trace.values.kinds import same
from jitml.trace.values.open_names import payload

if TYPE_CHECKING:
    from jitml.trace.rewrite.induction import Directions

_MOST_PASSES = 6
_LATEST_PASS = 3  # in which an object of before may still be found: in the first, or the next ones, where types have moved
_INDEX = Aval((), I64)


class TracedLoop(RecordedRegion):
    """What `for` (`for_loop.py`) and `while` (`while_loop.py`) have in common: recording passes over a body."""

    drives = True
    body: RegionBody
    index: Value
    trip: Any = None  # how often it runs at most, if that is known
    remains: Remains
    may_append = True
    is_whole = False  # whether no escape ends it, as far as the last pass has shown

    def __init__(self, place: Site) -> None:
        self.site = place
        self.source = user_source()
        self.mode = decisions().mode(self.site)
        self.apart = decisions().apart
        self.born = next(Storage.count)
        self.held: dict[str, Any] = {}
        self.names: list[Name] = []
        self.contents = CarriedContents()
        self.missing: dict[tuple[int, Truth], Any] = {}  # what stands for arrays that names do not hold yet (`variables.py`)
        self.passes = 0
        self.is_recording = False
        self.is_done = False
        self.iterators: dict[int, Any] = {}
        self.ways: list[tuple[Name, Sequence[Any]]] = []
        self.rebound: list[Name] = []  # the targets that the body has bound to something else

    def enter(self, names: Names, values: Values, targets: Names = (), counters: Directions = (), grows: Names = ()) -> None:
        self.counters = dict(counters)
        self.grows = grows
        self.held = {name: values.get(name, UNDEF) for name in names}
        self.iterators = iterators_among(values)
        self.targets = targets
        self.befores = {name: values.get(name, UNDEF) for name in targets}  # `values` may change: they are the frame's
        self.memory = CarriedMemory(self)
        self.extents = CarriedExtents(self)
        self.locals = values

    def load(self) -> tuple[Any, ...]:
        if not self.is_recording:
            return tuple(self.held.values())
        return tuple(name.start for name in self.names)

    def result(self) -> tuple[Any, ...]:
        held, self.held = self.held, {}
        # Whether an array of before is still there decides what may be written: no driver, and no frame's `locals()`, keeps one.
        self.memory.known.clear()
        self.locals.clear()
        return tuple(held.values())

    def _record(self) -> None:
        """Begin a pass."""
        decisions().require_end()
        if not self.names:
            self.names = [name_of(n, value, self.counters.get(n, 0), self.grows) for n, value in self.held.items()]
            for name in self.names:
                if name.name in decisions().carried.get(self.site, ()):
                    name.assume_carried()
        self.missing.clear()
        for name in self.names:
            name.prepare(self, is_whole=self.is_whole)
        self.contents.prepare(self, is_whole=self.is_whole)
        self.passes += 1
        if self.passes > _MOST_PASSES:
            self.demote(UnsupportedError("what the loop carries does not settle", source=self.source))
        self.body = RegionBody(self.decider)
        self.trace = self.body.trace
        self.trace.local[IteratorsBefore].update(self.iterators)
        self.body.resume()
        active_trace().call[OpenRegions].append(self)
        self.is_recording = True

    def _begin(self) -> None:
        self.memory = CarriedMemory(self)
        self.extents.begin(self.body)
        for name in self.names:
            name.begin(self.body, self.memory)
        self.contents.begin(self.body, self.memory)

    def _suspend(self) -> None:
        self.end_recording()
        self.contents.restore()
        self.body.suspend()
        self.is_recording = False

    @property
    def all_names(self) -> list[Name]:
        """With those that items of changed containers have."""
        return [*self.names, *self.contents.names]

    def take(self, what: Mutable) -> bool:
        return self.contents.take(what, self, may_be_new=self.passes <= _LATEST_PASS)

    def append_to(self, obj: OpenList) -> None:
        """The body is about to append to a list from outside."""
        self.contents.append_to(obj, self.body, self.memory)

    def may_be_one(self, x: TracedArray, y: TracedArray) -> bool:
        """Whether two arrays in the body, which are two in this pass, may be one in some iteration."""
        if same(x, y):  # names that a pass takes for unchanged hold what an iteration before has put there
            return True
        carried = {now.storage for _, now, _ in self.memory.known.values()}
        here = {a.storage for a in (x, y) if self.body.trace.encloses(a.storage.trace)}  # that this iteration makes, or carries
        return any(a.storage in carried for a in (x, y)) and here <= carried

    def amend(self, error: BaseException) -> None:
        if self.may_be_plain:
            self.demote(error, Mode.PLAIN)

    def see_unbound(self, error: NameError) -> None:
        if self.mode is Mode.ROLLED and self.runs_surely and any(name.is_missing_in(error) for name in self.names):
            decisions().peel(self.site, self.apart, active_trace().call[OpenRegions], error)

    def settle(self, error: BaseException) -> None:
        """What says how often it runs is assumed to be as it is in this call."""
        if not self.is_open:
            decisions().demote(self.site, Mode.PLAIN, error)

    @property
    def may_be_plain(self) -> bool:
        """Whether it is known how often the loop runs."""
        return True

    @property
    def runs_surely(self) -> bool:
        """Whether a first iteration can be traced by itself."""
        return self.may_be_plain

    @property
    def is_open(self) -> bool:
        """Whether how often it runs may be a size of an argument that has been left open."""
        return not self.may_be_plain and bool(active_trace().inputs.opened)

    def demote(self, reason: BaseException, mode: Mode | None = None) -> None:
        """Trace the loop otherwise: the next mode that is left, or the one given."""
        if mode is None:
            mode = self._next_mode
        known = decisions()
        if not self.may_be_plain:
            known.reasons[self.site] = reason
            known.reconsider(active_trace(), reason)
            known.settle_open(active_trace(), reason, self)
        if self.is_open:
            refuse_region("this loop cannot be captured, and how often it runs is not known while it is traced", self.site)
        if mode is Mode.PEELED and self.mode is Mode.ROLLED:
            known.peel(self.site, self.apart, active_trace().call[OpenRegions], reason)
        known.demote(self.site, mode, reason)
        raise AssertionError("a loop that cannot be traced in any way")

    @property
    def decider(self) -> Decider:
        """Of what a name is where it is certain in the next mode."""
        return Decider(self.site, self._next_mode)

    @property
    def _next_mode(self) -> Mode:
        return Mode.PEELED if self.mode is Mode.ROLLED else Mode.PLAIN

    def _moved(self, values: Values) -> bool:
        """Whether the pass has shown that more is carried than it took for granted."""
        values = {**values, **self.contents.ends(self)}
        ends = [(name, values.get(name.name, UNDEF)) for name in self.all_names]
        self._see_exchange(ends)
        moved = [name for name, end in ends if name.moves(end, self)]  # all of them, not only the first
        if self.extents.settle() or moved or self.contents.is_new:
            return True
        arrays = [(name.arrays(name.entry), name.arrays(end)) for name, end in ends if end is not UNDEF]
        stored = active_trace().changes.stored.values()
        self.memory.check(arrays, [*values.values(), *stored, *(name.kept for name in self.all_names)])
        return False

    def _see_exchange(self, ends: list[tuple[Name, Any]]) -> None:
        """Names may exchange their arrays, as `x, y = y, x` does."""

    def _carried(self, values: Values, least: int) -> tuple[list[Carried], list[Storage], list[CarriedOutcome]]:
        """All that the loop carries. Call it in the body, at its end."""
        values = {**values, **self.contents.ends(self)}
        self._see_containers(values, least)
        ends = [(name, values.get(name.name, UNDEF)) for name in (*self.all_names, *self.rebound)]
        outcomes = [name.outcome(end, self.body, self.site, least, self.memory) for name, end in ends]
        carried = [Carried(partial(value_of_size, e.before), e.start, value_of_size(e.after)) for e in self.extents.all]
        carried += [c for outcome in outcomes for c in outcome.carried]
        storages = list(self.body.written)
        for storage in storages:
            outside, inside = self.body.entry(storage)
            carried.append(Carried(partial(_identity, outside), inside, storage.value))
        self.remains = Remains(self.memory, least)
        return [*carried, *self.remains.carried], storages, outcomes

    def _see_containers(self, values: Values, least: int) -> None:
        """What names hold as the body ends, and where it may not run, as the loop begins."""
        names = [*self.all_names, *self.rebound]
        ends = [(name, payload(values.get(name.name, UNDEF)), name.entry) for name in names]
        self.ways = [(name, [end] if least or entry is UNDEF else [end, entry]) for name, end, entry in ends if end is not UNDEF]
        changed = self.contents.changed
        if changed and not changed.isdisjoint(
            {*find(x for name, *both in ends if name.is_carried for x in both), *self.body.trace.local[UnsettledContainers]}
        ):
            text = "a list, a dict or an object that a name comes to hold is changed in the loop"
            self.demote(UnsupportedError(text, source=user_source()), Mode.PLAIN)

    def _hand_out(self) -> None:
        """Containers after the loop may be those that were there before it, or one another."""
        starts = [(payload(name.start), name.entry) for name, _ in self.ways]
        before = {id(x): old for start, entry in starts for x, (old,) in containers(start, (entry,))}
        handing = HandedOut(Decider(self.site), [self.body.trace], before)
        for name, ways in self.ways:
            now = payload(self.held.get(name.name, UNDEF))
            handing.hand_out(name.name, now, ways, [other.entry for other in self.all_names if other is not name])

    def _finish(self, results: list[Value], storages: list[Storage], outcomes: list[CarriedOutcome]) -> None:
        """After the loop: storages and names hold its results."""
        values = iter(results)
        for extent in self.extents.all:
            extent.end(next(values))
        decisions().carried[self.site] = frozenset(name.name for name in self.names if name.is_carried)
        names = [*self.all_names, *self.rebound]
        self.held = {name.name: outcome.show([next(values) for _ in outcome.carried]) for name, outcome in zip(names, outcomes)}
        self._hand_out()
        self.remains.finish(results[len(results) - len(self.remains.carried) :])
        self.memory.leave()
        for storage, value in zip(storages, values):
            storage.store(value)
        self.contents.finish(self.held)
        self.ways = []
        self.body.close()
        self.is_done = True
        self.names = []


def _identity(x: Value) -> Value:
    return x
