"""Which other array may one be that comes out of a branch or a loop?  `Origin`s, each with the condition on which it is that one.

A region hands out new memory with the contents. That is right as long as nobody writes (`Storage.may_be` sees to that). What the
function returns is made by the cases: the argument itself, a part of another result, or new memory (`results.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitml.ir.dims import syms_in
from jitml.ir.graph import Value
from jitml.trace.context import Trace
from jitml.trace.decisions import Mode, Site
from jitml.trace.standins import TracedArray
from jitml.trace.steps import Step
from jitml.trace.storage import Case, Origin, Storage, nothing


def origin_of(array: TracedArray) -> Origin:
    """The array itself."""
    storage = array.storage
    return Origin(weakref.ref(storage), array.steps, array.writeable, weakref.ref(array))


def possible(array: TracedArray) -> list[Case]:
    """What an array may be, the first that holds, where its own memory is one of them."""
    return [*others(array), Case(True, origin_of(array))]


def others(array: TracedArray) -> list[Case]:
    """What it may be besides its own memory."""
    is_whole = array.storage.whole is not None and array.storage.whole() is array
    return [Case(test, origin if is_whole else seen(origin, array)) for test, origin in array.storage.cases]


def storages_of(storage: Storage) -> set[Storage]:
    """The memory that an array of a storage may show, as far as it is still there."""
    return {storage, *(there for case in storage.cases if (there := case.origin.storage()) is not None)}


def seen(origin: Origin, array: TracedArray) -> Origin:
    """An origin of a whole storage, seen as this array sees the storage."""
    return replace(origin, steps=(*origin.steps, *array.steps), writeable=array.writeable, array=nothing)


def part_of(array: TracedArray, steps: Sequence[Step], writeable: bool) -> Origin:
    """A view of an array."""
    return Origin(weakref.ref(array.storage), (*array.steps, *steps), writeable and array.writeable)


def gone(origin: Origin) -> Origin:
    """Memory that nothing else stands for any more."""
    return replace(origin, storage=nothing, array=nothing)


def is_known(steps: Sequence[Step], trace: Trace) -> bool:
    """Whether a trace can take a view."""
    return has_known_sizes(steps, trace) and all(map(trace.sees, places(steps)))


def places(steps: Sequence[Step]) -> list[Value]:
    """The values that say where windows begin."""
    return [start for step in steps for start in step.starts]


def with_places(origin: Origin, values: Mapping[Value, Value]) -> Origin:
    """The same with other values there."""
    if values.keys().isdisjoint(places(origin.steps)):
        return origin
    steps = tuple(replace(step, starts=tuple(values.get(v, v) for v in step.starts)) for step in origin.steps)
    return replace(origin, steps=steps, array=nothing)


def has_known_sizes(steps: Sequence[Step], trace: Trace) -> bool:
    """Whether a trace knows the sizes that views mention."""
    syms = syms_in(tuple(param for step in steps for param in step.params.values()))
    return all(trace.sees(trace.root.sizes[sym]) for sym in syms)


def link(array: TracedArray, cases: Sequence[Case], site: Site, mode: Mode) -> None:
    """Say what an array may be that a region has handed out: the first that holds."""
    storage = array.storage
    storage.whole = weakref.ref(array)
    storage.cases = tuple(cases)
    for _, origin in cases:
        other = origin.storage()
        if other is not None:
            storage.may_be(other, site, mode)
