"""Carried containers: what of a dict or a list that a loop's body changes?  Its items are carried, as if each had a name.

`CarriedContents` puts into the very object what an iteration begins with, so that everyone who has the object sees it, puts back
what was there when a pass ends, and after the loop puts in the results. Which objects these are shows while the body is recorded.
One that the body has made shows again in each pass, as another one, so that the passes do not settle and the loop is not
captured.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from jitml.errors import Cause, UnsupportedError
from jitml.records import dataclass
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.list_buffers import Probe
from jitml.trace.carried.lists import ListName
from jitml.trace.carried.memory import CarriedMemory, Demotable
from jitml.trace.carried.outer_lists import OpenList, undecided
from jitml.trace.carried.variables import Name
from jitml.trace.record.parts import LocalPart
from jitml.trace.record.recording import active_trace, current_trace, unsupported, user_source
from jitml.trace.rewrite.protocol import Values
from jitml.trace.speculation.modes import OpenRegions, decisions
from jitml.trace.values.containers import MadeInside, require_settled
from jitml.trace.values.reachable import iterators_in

_MOST_CARRIED = 10_000  # items: more would take longer to carry than a loop is worth


@dataclass
class _ChangedContainer:
    """A container that was there before the loop, with a name for each item."""

    obj: Any
    keys: list[Any]
    names: list[Name]

    def put(self, items: list[Any]) -> None:
        if type(self.obj) is dict:
            self.obj.clear()
            self.obj.update(zip(self.keys, items))
        else:
            self.obj[:] = items

    def restore(self) -> None:
        """It holds again what it held before the loop."""
        self.put([name.entry for name in self.names])

    def ends(self, loop: Demotable) -> list[Any]:
        """What it holds as the body ends."""
        obj = self.obj
        if (list(obj) if type(obj) is dict else list(range(len(obj)))) != self.keys:
            if len(obj) > len(self.names) and all(item is name.start for item, name in zip(obj, self.names)):
                _open(obj)
            loop.demote(UnsupportedError(f"a {type(obj).__name__} gets other keys in the loop", source=user_source()))
        return list(obj.values() if type(obj) is dict else obj)


@dataclass
class _Appended(_ChangedContainer):
    """A list from outside that the body appends to, with one name for what is added."""

    def put(self, items: list[Any]) -> None:
        (self.obj.tail,) = items

    def restore(self) -> None:
        (name,) = self.names
        self.put([name.kept])

    def ends(self, loop: Demotable) -> list[Any]:
        return [self.obj.tail]


def _open(obj: Any) -> None:
    """Trace anew if this is a list from outside, which a loop seems to append to: then the loop can carry what it adds."""
    root, known = active_trace().root, decisions()
    watched = root.copies.watched.get(id(obj))
    if watched is None or type(watched.original) is not list or watched.name in known.closed or watched.name in known.moving:
        return
    regions = root.call[OpenRegions]
    if regions and regions[0].may_append:
        known.moving.add(watched.name)
        known.again()


class CarriedContents:
    """Of all dicts and lists that the body of one loop changes."""

    def __init__(self) -> None:
        self._all: dict[int, _ChangedContainer] = {}
        self.is_new = False  # whether the pass has found an object that it did not begin with

    @property
    def names(self) -> list[Name]:
        return [name for changed in self._all.values() for name in changed.names]

    @property
    def changed(self) -> Set[int]:
        """The objects, by id."""
        return self._all.keys()

    def take(self, obj: Any) -> bool:
        """Carry an object that is about to be changed, if it is of a kind that can be."""
        if id(obj) in self._all:
            return True
        if type(obj) not in (dict, list) or len(obj) > _MOST_CARRIED:
            return False
        items = dict(obj.items() if type(obj) is dict else enumerate(obj))
        names = [Name(f"{type(obj).__name__} {len(self._all)}, item {key!r}", item) for key, item in items.items()]
        for name in names:
            name.is_carried = False  # this pass has begun without it
        self._all[id(obj)] = _ChangedContainer(obj, list(items), names)
        self.is_new = True
        return True

    def append_to(self, obj: OpenList, body: RegionBody, memory: CarriedMemory) -> None:
        """Carry what is about to be appended to a list."""
        if type(obj.tail) is Probe and id(obj) not in self._all:  # of a loop around this one, which takes a first look
            obj.tail.is_inner = True
        elif id(obj) not in self._all:
            name = ListName(f"list {len(self._all)}, {obj.name},", obj.begin())
            self._all[id(obj)] = _Appended(obj, [], [name])
            name.begin(body, memory)
            obj.tail = name.start

    def prepare(self, loop: Demotable, *, is_whole: bool) -> None:
        """What lists that are appended to need outside the body."""
        for changed in self._all.values():
            if type(changed) is _Appended:
                changed.names[0].prepare(loop, is_whole=is_whole)

    def begin(self, body: RegionBody, memory: CarriedMemory) -> None:
        """The objects hold what an iteration begins with."""
        self.is_new = False
        for changed in self._all.values():
            for name in changed.names:
                name.begin(body, memory)
            changed.put([name.start for name in changed.names])

    def restore(self) -> None:
        """They hold again what they held before the loop."""
        for changed in self._all.values():
            changed.restore()

    def ends(self, loop: Demotable) -> Values:
        """What they hold as the body ends, by the names of their items."""
        found: dict[str, Any] = {}
        for changed in self._all.values():
            found.update((name.name, item) for name, item in zip(changed.names, changed.ends(loop)))
        return found

    def finish(self, held: dict[str, Any]) -> None:
        """After the loop they hold its results, which are taken out of what its names hold."""
        for changed in self._all.values():
            results = [held.pop(name.name) for name in changed.names]
            effect(changed.obj)
            changed.put(results)
        self._all = {}


def effect(obj: Any) -> None:
    """An object of Python's is about to be changed: once, while tracing.

    In a body that is fine for what it has made, and for what its loop carries.
    """
    trace = current_trace()
    require_settled(obj)
    if trace is None or not trace.is_body or id(obj) in trace.local[MadeInside]:
        return
    if type(obj) is OpenList:  # it sees for itself what is appended to it
        return
    region = trace.call[OpenRegions].last
    if region is not None and region.trace is trace and region.may_take:
        if region.take(obj):
            return
    elif type(obj) is list:
        _open(obj)
    undecided(obj)


def kept(obj: Any, name: str) -> None:
    """A cached property of an object is about to be kept, for good: by a loop's first iteration, if by any of its own."""
    trace = current_trace()
    if trace is None or not trace.is_body or id(obj) in trace.local[MadeInside]:
        return
    what = f"{name} of a {type(obj).__name__} is kept by its first reading"
    text = f"{what}, under a condition, or in a loop, that only the compiled program decides"
    region = trace.call[OpenRegions].last
    if region is not None and region.trace is trace:
        region.demote(UnsupportedError(text, source=user_source(), remedy="Read it once before."))
    unsupported(text, "Read it once before.")


class IteratorsBefore(dict[int, object], LocalPart):
    """Iterators of before the body of a region, by id."""


def iterators_among(values: Values) -> dict[int, Any]:
    """Iterators that names, or what they hold, have: going through one in a body would move it once, while tracing."""
    return iterators_in(values.values())


def gone_through(x: Any) -> Any:
    """Something is about to be iterated over: no iterator from outside and, in a body, none of before."""
    trace = current_trace() if hasattr(type(x), "__next__") else None
    if trace is not None and id(x) in trace.outside.places:
        name = trace.host.name(trace.outside.places[id(x)])
        unsupported(
            f"{name} is an iterator from outside: it would go on only once, while the function is traced, and not at every call",
            "Pass its next item, or a list, as an argument.",
            Cause.ITERATOR,
        )
    while trace is not None and trace.is_body:
        if id(x) in trace.local[IteratorsBefore]:
            unsupported(
                "an iterator goes on under a condition, or in a loop, that only the compiled program decides",
                "Make a list of it.",
                Cause.ITERATOR,
            )
        trace = trace.parent
    return x


__all__ = ["CarriedContents", "effect", "gone_through", "iterators_among", "kept"]
