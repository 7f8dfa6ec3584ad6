"""Carried mutable state: what of a dict, a list or an object that a loop's body changes?  Its items, as if each had a name.

`CarriedContents` puts into the very object what an iteration begins with, so that everyone who has the object sees it, puts back
what was there when a pass ends, and after the loop puts in the results. Which objects these are shows while the body is recorded.
One that the body has made shows again in each pass, as another one, so that the passes do not settle and the loop is not
captured.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jitml.errors import UnsupportedError
from jitml.records import dataclass
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.list_buffers import Probe
from jitml.trace.carried.lists import ListName
from jitml.trace.carried.memory import CarriedMemory, Demotable
from jitml.trace.carried.mutable import Mutable, Tail, mutable
from jitml.trace.carried.outer_lists import ListsAlone, OpenList, undecided
from jitml.trace.carried.variables import Name
from jitml.trace.record.recording import active_trace, current_trace, user_source
from jitml.trace.rewrite.driver_protocol import UNDEF, Values
from jitml.trace.speculation.modes import OpenRegions, decisions
from jitml.trace.values.container_identity import MadeInside, require_settled

_MOST_CARRIED = 10_000  # items: more would take longer to carry than a loop is worth


@dataclass
class _Changed:
    """Something that was there before the loop, with a name for each item."""

    what: Mutable
    names: dict[Any, Name]

    def begin(self, body: RegionBody, memory: CarriedMemory) -> None:
        for name in self.names.values():
            name.begin(body, memory)
        self.what.put({key: name.start for key, name in self.names.items()})

    def restore(self) -> None:
        """It holds again what it held before the loop."""
        self.what.put({key: name.kept if type(name) is ListName else name.entry for key, name in self.names.items()})

    def ends(self, loop: Demotable) -> Values:
        """What it holds as the body ends, by the names of its items."""
        items = self.what.items()
        if [*items] != [*self.names]:
            open_list(self.what.obj, [name.start for name in self.names.values()])
            kind = type(self.what.obj).__name__
            loop.demote(UnsupportedError(f"a {kind} gets or loses items or attributes in the loop", source=user_source()))
        return {name.name: items[key] for key, name in self.names.items()}


def open_list(obj: Any, before: list[Any]) -> None:
    """Trace anew if this is a list from outside, or an attribute's own, with more than before: a loop can carry what it adds."""
    if type(obj) is not list or any(item is not old for item, old in zip(obj, before)):
        return
    root, known = active_trace().root, decisions()
    watched = root.copies.watched.get(id(obj))
    name = watched.name if watched is not None and type(watched.original) is list else ""
    name = name or root.call[ListsAlone].get(id(obj), (obj, ""))[1]
    regions = root.call[OpenRegions]
    if name and name not in known.closed | known.moving and regions and regions[0].may_append:
        known.moving.add(name)
        known.again()


class CarriedContents:
    """Of all that the body of one loop changes."""

    def __init__(self) -> None:
        self._all: dict[Hashable, _Changed] = {}
        self.is_new = False  # whether the pass has found something that it did not begin with

    @property
    def names(self) -> list[Name]:
        return [name for changed in self._all.values() for name in changed.names.values()]

    @property
    def changed(self) -> set[int]:
        """The objects, by id."""
        return {id(changed.what.obj) for changed in self._all.values()}

    def take(self, what: Mutable, loop: Demotable, *, may_be_new: bool) -> bool:
        """Carry something that is about to be changed, if that can be."""
        if what.key in self._all:
            return True
        items = what.items() if may_be_new else {}
        if not may_be_new or len(items) > _MOST_CARRIED:
            return False
        if any(item is UNDEF for item in items.values()):
            loop.demote(UnsupportedError(f"{what.text(*items)} is set in the loop, and not before", source=user_source()))
        names = {key: Name(f"{len(self._all)}: {what.text(key)}", item) for key, item in items.items()}
        for name in names.values():
            name.is_carried = False  # this pass has begun without it
        self._all[what.key] = _Changed(what, names)
        self.is_new = True
        return True

    def append_to(self, obj: OpenList, body: RegionBody, memory: CarriedMemory) -> None:
        """Carry what is about to be appended to a list."""
        if type(obj.tail) is Probe and id(obj) not in self._all:  # of a loop around this one, which takes a first look
            obj.tail.is_inner = True
        elif id(obj) not in self._all:
            name = ListName(f"list {len(self._all)}, {obj.name},", obj.begin())
            self._all[id(obj)] = _Changed(Tail(obj), {None: name})
            self._all[id(obj)].begin(body, memory)

    def prepare(self, loop: Demotable, *, is_whole: bool) -> None:
        """What they need outside the body."""
        for name in self.names:
            name.prepare(loop, is_whole=is_whole)

    def begin(self, body: RegionBody, memory: CarriedMemory) -> None:
        """The objects hold what an iteration begins with."""
        self.is_new = False
        for changed in self._all.values():
            changed.begin(body, memory)

    def restore(self) -> None:
        """They hold again what they held before the loop."""
        for changed in self._all.values():
            changed.restore()

    def ends(self, loop: Demotable) -> Values:
        """What they hold as the body ends, by the names of their items."""
        return {name: item for changed in self._all.values() for name, item in changed.ends(loop).items()}

    def finish(self, held: dict[str, Any]) -> None:
        """After the loop they hold its results, which are taken out of what its names hold."""
        for changed in self._all.values():
            results = {key: held.pop(name.name) for key, name in changed.names.items()}
            effect(changed.what.obj, changed.what)
            changed.what.put(results)
        self._all = {}


def effect(obj: Any, what: Mutable | None = None) -> None:
    """An object of Python's is about to be changed: once, while tracing.

    In a body that is fine for what it has made, and for what a loop carries or a branch joins.

    Args:
        what: of the object, if not all that is in it.
    """
    trace = current_trace()
    require_settled(obj)
    if trace is None or not trace.is_body or id(obj) in trace.local[MadeInside]:
        return
    if type(obj) is OpenList:  # it sees for itself what is appended to it
        return
    region, what = trace.call[OpenRegions].last, what or mutable(obj)
    if region is not None and region.trace is trace and what is not None and region.take(what):
        return
    open_list(obj, [])
    undecided(obj)


__all__ = ["CarriedContents", "effect", "open_list"]
