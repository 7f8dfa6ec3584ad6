"""Storage model: what is mutation, once programs are values?  A `Storage` holds the current value of one base array, a view is a
chain of index maps (`Step`) over it.

Reading a view applies its steps to the storage's value; writing goes back through them (each index map has an exact
inverse, or `update_slice` for a slice) and gives the storage a new value. Thus all views of one storage see all writes.
Strides, counted in elements, are followed only because NumPy's answer to "is this reshape a view?" depends on them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from jitml.errors import Cause
from jitml.ir.graph import Value
from jitml.records import dataclass, field
from jitml.trace.record.concrete_evaluation import EnteredValues
from jitml.trace.record.guards import Slot
from jitml.trace.record.parts import CallPart, LocalPart
from jitml.trace.record.recording import Trace, active_trace, leaked, unsupported
from jitml.trace.speculation.modes import Decider
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.strides import Ints, c_strides
from jitml.trace.symbolic.booleans import Truth

Faces = tuple[frozenset[int], Decider | None]  # numbers of array objects, and what leaves open which of them it is


def nothing() -> None:
    """What is not there any more."""
    return None


@dataclass(frozen=True)
class AliasOrigin:
    """An array that another one may be: which storage, if that is still there, and how it is seen.

    `array` is the very object, where that is still there, and `faces` are the numbers of all that it may be
    (`values/aliases.py`). `serials` are those of the storage, or of all that it may be, where none of them is there any more.
    """

    storage: Callable[[], Storage | None]
    steps: tuple[Step, ...]
    writeable: bool
    faces: Faces = field(compare=False)
    serials: frozenset[int] = field(compare=False)
    array: Callable[[], Any] = field(default=nothing, compare=False)


class Case(NamedTuple):
    """An array is a certain other one where the truth holds, and none of the cases before."""

    test: Truth
    origin: AliasOrigin


class Rival(NamedTuple):
    """A storage that may be the same memory as another one. overlaps: nothing says which of the two is to be returned."""

    storage: weakref.ref[Storage]
    decider: Decider
    overlaps: bool = False


APART = (
    "arrays are returned that share memory, or do not: only the compiled program decides",
    "Copy one of them: x = x.copy().",
)
CHANGED_ITEM = "an item of a list that a loop appends to is changed in it, and has another name"


class Storage:
    """The memory of one base array: what it holds now and, for an array from outside, where it comes from.

    `slot` is the array itself in the host program, `entry` what the graph is given: the same, or a copy in native layout.
    `serial` says which storages are older; `rivals` are those that may be the same memory. Of `cases` the first that holds says
    which of them it is, of all that `whole` shows. What a generator of random numbers is kept in, `draws` says; `of_object`,
    that it shows an array which belongs to an object of a host call.
    """

    __slots__ = (
        "__weakref__", "appended", "cases", "draws", "entry", "listed", "loads", "mutated", "of_object", "outdated",
        "rewritten", "rivals", "rows_of", "serial", "slot", "strides", "trace", "value", "whole", "writes",
    )  # fmt: skip
    count = itertools.count()

    def __init__(self, trace: Trace, value: Value, *, strides: Ints | None = None, slot: Slot = -1, entry: Slot = -1) -> None:
        self.trace = trace
        self.value = value
        self.strides = c_strides(value.shape) if strides is None else strides
        self.slot = slot
        self.entry = entry
        self.mutated = False
        self.writes = 0
        self.loads = 0
        self.appended = 0  # how often a loop's body appends it to lists
        self.listed: Decider | None = None  # the loop that has left a copy in a list, where NumPy's has the array itself
        self.outdated: Decider | None = None  # the same, where the body then writes into rows of that list
        self.rows_of: Decider | None = None  # the loop whose list holds parts of it: read twice, one item is two of them
        self.rewritten: Callable[[], None] | None = None  # whom to tell before a view is written through
        self.serial = next(Storage.count)
        self.rivals: list[Rival] = []
        self.cases: tuple[Case, ...] = ()
        self.whole: weakref.ref[Any] | None = None
        self.draws = False
        self.of_object = False

    @property
    def is_external(self) -> bool:
        """Whether the caller, or a later call, can see what is written here."""
        return self.slot >= 0

    def load(self) -> Value:
        """The current value; refused outside the trace that the storage belongs to."""
        trace = active_trace()
        if self.trace.closed or not self.trace.encloses(trace):
            raise leaked(self.trace.builder)
        if self.outdated is not None:
            self.outdated.refuse(CHANGED_ITEM, "Append a copy.")
        if trace is not self.trace:
            self._enter(trace)
        self.loads += 1
        return self.value

    def store(self, value: Value) -> None:
        """Replace the whole value."""
        trace = active_trace()
        if self.trace.closed or not self.trace.encloses(trace):
            raise leaked(self.trace.builder)
        if self.listed is not None:
            self.listed.refuse("an array is changed after a loop has appended it to a list", "Append a copy.")
        for rival in self.rivals:
            if rival.storage() is not None:
                text = f"an array {value.aval} is written that may be, or share memory with, another one"
                rival.decider.refuse(
                    f"{text}: which, only the compiled program decides", "Copy it in both branches: x = x.copy()."
                )
        if trace is not self.trace:
            self._enter(trace)
            self._report(trace)
        self.value = value
        self.mutated = True
        self.writes += 1
        trace.call[StoreCount].count += 1

    def may_be(self, other: Storage, decider: Decider, *, overlaps: bool = False) -> None:
        """Only the compiled program knows whether the two are one memory: neither may be written while both are there.

        Args:
            overlaps: nor may both be returned, for the caller would see whether they are.
        """
        self.meet(Rival(weakref.ref(other), decider, overlaps))
        for rival in tuple(other.rivals):
            self.meet(Rival(rival.storage, decider, overlaps or rival.overlaps))

    def meet(self, rival: Rival) -> None:
        """It may be the same memory as this one, whatever else that may be."""
        other = rival.storage()
        if other is None or other is self or any(r.storage() is other and r.overlaps >= rival.overlaps for r in self.rivals):
            return
        self.rivals.append(rival)
        other.rivals.append(rival._replace(storage=weakref.ref(self)))

    @property
    def others(self) -> list[Storage]:
        """What it may be the same memory as, as far as that is still there."""
        return [storage for rival in self.rivals if (storage := rival.storage()) is not None]

    def says_when_it_is(self, other: Storage) -> bool:
        """Whether a case tells when it is a part of that."""
        return any(case.origin.storage() is other for case in self.cases)

    def require_apart(self, returned: Collection[int]) -> None:
        """Refuse to return it if others that are returned (`id`s of storages), or the caller's own, may share its memory."""
        for rival in self.rivals:
            other = rival.storage()
            if rival.overlaps and other is not None and (other.is_external or id(other) in returned):
                rival.decider.refuse(*APART)

    def _enter(self, trace: Trace) -> None:
        """A body of a region sees what the storage held as the body began through an input of its own."""
        if trace is self.trace or trace.parent is None or self in trace.local[EnteredStorages].known:
            return
        self._enter(trace.parent)
        entered = trace.local[EnteredStorages]
        if trace.is_body:
            inside = trace.builder.add_input(self.value.aval)
            entered.known[self] = (self.value, inside)
            trace.local[EnteredValues][inside] = self.value
            self.value = inside
        elif entered.hands_on:
            entered.known[self] = (self.value, self.value)

    def _report(self, trace: Trace) -> None:
        """Everything between the array's own trace and the write has to hand the result on."""
        inner: Trace | None = trace
        while inner is not None and inner is not self.trace:
            entered = inner.local[EnteredStorages]
            if not (inner.is_body or entered.hands_on):
                if self.draws:
                    unsupported(
                        "a generator from outside draws random numbers inside a function that is being transformed",
                        "Draw them outside of it, and pass them to it.",
                        Cause.RANDOM,
                    )
                unsupported(
                    f"an array {self.value.aval} from outside is written inside a function that is being transformed",
                    "Return the new value from the function instead, or write to a copy made inside it.",
                )
            entered.written[self] = None
            inner = inner.parent


@dataclass
class EnteredStorages(LocalPart):
    """Storages from around a trace that it uses.

    hands_on: of a function that is transformed: whether what it writes outside comes out as a result.
    known: what they held as the body of a region began, outside and inside.
    """

    hands_on: bool = False
    known: dict[Storage, tuple[Value, Value]] = field(default_factory=dict)
    written: dict[Storage, None] = field(default_factory=dict)


@dataclass
class StoreCount(CallPart):
    """How often a storage got a new value."""

    count: int = 0


class LentStorages(dict[Storage, None], CallPart):
    """Storages of whose arrays the function of a transform has written copies."""


def leave_region(pairs: Sequence[tuple[Storage, Storage]], decider: Decider, entries: Mapping[Storage, Storage]) -> None:
    """Arrays that a region hands out are new ones after it, and may be the same memory as whatever they may be inside.

    Where that is known already, cases say when; else they may not be returned.

    Args:
        pairs: each storage inside, and a new one that has its contents, or a part of them.
        entries: of a storage that stands for another one inside, that.
    """
    after: dict[Storage, list[Storage]] = {}
    for inside, outside in pairs:
        after.setdefault(inside, []).append(outside)
    for parts in after.values():
        for one, other in itertools.combinations(parts, 2):
            if not (one.says_when_it_is(other) or other.says_when_it_is(one)):
                one.may_be(other, decider, overlaps=True)
    for inside, outside in pairs:
        for rival in inside.rivals:
            storage = rival.storage()
            if storage is None or storage is outside:  # which has been linked to what it may be
                continue
            for other in after.get(storage, ()):  # not what else that one may be, if no iteration has run, say
                if rival.overlaps or other not in outside.others:
                    outside.meet(Rival(weakref.ref(other), decider, overlaps=True))
            other = entries.get(storage, storage)
            is_there = storage not in after and other.trace.encloses(active_trace())
            if is_there and (rival.overlaps or other not in outside.others):
                outside.may_be(other, decider, overlaps=True)


def read_through(storage: Storage, steps: tuple[Step, ...]) -> Value:
    """What a view shows now."""
    value = storage.load()
    for step in steps:
        value = step.read(value)
    return value


def write_through(storage: Storage, steps: tuple[Step, ...], value: Value) -> None:
    """Give a view new contents."""
    if storage.rewritten is not None:
        storage.rewritten()
    bases = [storage.load()]
    for position, step in enumerate(steps):
        # Only a window needs to know what surrounds it, so the chain is read no further than the last one.
        if not any(later.is_window for later in steps[position + 1 :]):
            break
        bases.append(step.read(bases[-1]))
    for position in reversed(range(len(steps))):
        base = bases[position] if position < len(bases) else value
        value = steps[position].write(base, value)
    storage.store(value)
