"""Watched copies: containers from outside as the function sees them, and what was in them; `write_back.py` compares."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jitml.records import dataclass, field
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.record.container_contents import kind_of_container
from jitml.trace.record.guards import Slot
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.parts import CallPart
from jitml.trace.record.pytree import is_record
from jitml.trace.record.recording import Trace
from jitml.trace.record.state import TrackedContainer


class TrackedCopy(TrackedContainer):
    """Of a list, a dict or a record, or of a list of which only its growth is known."""

    def is_changed(self) -> bool:
        if type(self.copy) is OpenList:
            return any(type(part) is not list or part for part in self.copy.parts)
        after = entries(self.copy)
        if len(after) != len(self.before) or any(b is not d for (_, b), (_, d) in zip(self.before, after)):
            return True
        # Places are numbers, new ones each time.
        return (isinstance(self.copy, dict) or is_record(self.copy)) and any(
            a is not c for (a, _), (c, _) in zip(self.before, after)
        )


@dataclass
class Loads(CallPart):
    """What has been loaded from outside.

    met: how often containers and objects have been, by id.
    containers: what stands for those.
    items: how many are guarded one by one.
    exchanged: objects that are others at each call, though no arguments.
    exchangeable: these and arguments, by id.
    crowd: what is none of these, where they are many, by id.
    guarded: names of numbers that are guarded by value.
    """

    met: Counter[int] = field(default_factory=Counter)
    containers: dict[Slot, object] = field(default_factory=dict)
    items: int = 0
    exchanged: set[Slot] = field(default_factory=set)
    exchangeable: dict[int, Slot] = field(default_factory=dict)
    crowd: dict[int, Slot] = field(default_factory=dict)
    guarded: set[str] = field(default_factory=set)


def entries(x: Any) -> tuple[tuple[Any, Any], ...]:
    """What is in a container, in order: keys, names of attributes or positions, and items."""
    if isinstance(x, dict):
        return tuple(kind_of_container(x).items(x))
    if is_record(x):
        own = getattr(x, "__dict__", {})
        slots = [name for name in slots_of(type(x)) if name not in own and hasattr(x, name)]
        return (*own.items(), *((name, getattr(x, name)) for name in slots))
    return tuple(enumerate(kind_of_container(x).__iter__(x)))


def met(trace: Trace, value: Any) -> TrackedContainer | None:
    """What is known of a container, or a record, that has been met elsewhere."""
    return trace.copies.by_original.get(id(value))


def watch_copy(trace: Trace, watched: TrackedCopy) -> None:
    """Compare a copy with what it was, when the function has ended."""
    trace.copies.watched[id(watched.copy)] = watched
    trace.copies.by_original.setdefault(id(watched.original), watched)
