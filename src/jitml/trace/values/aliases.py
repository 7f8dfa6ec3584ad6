"""Aliases after a join: which other array may one be that comes out of a branch or a loop?

`AliasOrigin`s say so, each with the condition on which it is that one.

A region hands out new memory with the contents. That is right as long as nobody writes (`Storage.may_be` sees to that). What the
function returns is made by the cases: the argument itself, a part of another result, or new memory (`trace/results.py`).

Views of one memory look alike; whether two are one object, `is` tells. Each stand-in is an object of its own, with a number. One
that a branch hands out, and that may be one or another of them, has the numbers of both, its `faces`. No truth says which. What a
loop hands out may have been made by any iteration, so that two of one number may be one object, or two.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jitml.ir.dims import syms_in
from jitml.ir.graph import Value
from jitml.trace.record.recording import Trace
from jitml.trace.speculation.modes import Decider
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.storage import AliasOrigin, Case, Faces, Storage, nothing
from jitml.trace.symbolic.booleans import all_of, any_of, negated
from jitml.trace.values.tracers import TracedArray


def origin_of(array: TracedArray) -> AliasOrigin:
    """The array itself."""
    storage = array.storage
    serials = frozenset((storage.serial,))
    return AliasOrigin(weakref.ref(storage), array.steps, array.writeable, faces(array), serials, weakref.ref(array))


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


def serials_of(storage: Storage) -> frozenset[int]:
    """Those of the memory that an array of a storage may show, of what is not there any more, too; not of what is older."""
    cases = (origin for _, origin in storage.cases if (there := origin.storage()) is None or there.trace is storage.trace)
    return frozenset((storage.serial,)).union(*(origin.serials for origin in cases))


def seen(origin: AliasOrigin, array: TracedArray) -> AliasOrigin:
    """An origin of a whole storage, seen as this array sees the storage."""
    return replace(origin, steps=(*origin.steps, *array.steps), writeable=array.writeable, faces=faces(array), array=nothing)


def part_of(array: TracedArray, steps: Sequence[Step], writeable: bool, faces: Faces) -> AliasOrigin:
    """A view of an array."""
    whole = origin_of(array)
    return replace(whole, steps=(*array.steps, *steps), writeable=writeable and array.writeable, faces=faces, array=nothing)


def gone(origin: AliasOrigin) -> AliasOrigin:
    """Memory that nothing else stands for any more."""
    return replace(origin, storage=nothing, serials=frozenset(), array=nothing)


def left_behind(origin: AliasOrigin) -> AliasOrigin:
    """Memory whose contents go on elsewhere: what is the same array can still be told."""
    return replace(origin, storage=nothing, array=nothing)


def is_known(steps: Sequence[Step], trace: Trace) -> bool:
    """Whether a trace can take a view."""
    return has_known_sizes(steps, trace) and all(map(trace.sees, places(steps)))


def places(steps: Sequence[Step]) -> list[Value]:
    """The values that say where windows begin."""
    return [start for step in steps for start in step.starts]


def with_places(origin: AliasOrigin, values: Mapping[Value, Value]) -> AliasOrigin:
    """The same with other values there."""
    if values.keys().isdisjoint(places(origin.steps)):
        return origin
    steps = tuple(replace(step, starts=tuple(values.get(v, v) for v in step.starts)) for step in origin.steps)
    return replace(origin, steps=steps, array=nothing)


def has_known_sizes(steps: Sequence[Step], trace: Trace) -> bool:
    """Whether a trace knows the sizes that views mention."""
    syms = syms_in(tuple(param for step in steps for param in step.params.values()))
    return all(trace.sees(trace.sizes.values[sym]) for sym in syms)


def link(array: TracedArray, cases: Sequence[Case], decider: Decider) -> None:
    """Say what an array may be that a region has handed out: the first that holds."""
    storage = array.storage
    storage.whole = weakref.ref(array)
    storage.cases = tuple(_once(cases, decider))
    for _, origin in storage.cases:
        other = origin.storage()
        if other is not None:
            storage.may_be(other, decider)


def _once(cases: Sequence[Case], decider: Decider) -> list[Case]:
    """The same with each array once: else there are twice as many after each of a row of branches that may keep one."""
    found: list[Case] = []
    for test, origin in cases:
        known = next((n for n, case in enumerate(found) if _is_same(case.origin, origin)), None)
        if known is None:
            found.append(Case(test, origin))
        else:
            between = any_of(*(other for other, _ in found[known + 1 :]))
            test = any_of(found[known].test, all_of(test, negated(between)))
            found[known] = Case(test, of_either(found[known].origin, origin, decider))
    return found


def of_either(x: AliasOrigin, y: AliasOrigin, decider: Decider) -> AliasOrigin:
    """One of two that show the same, or both what is not there any more."""
    if x.faces[0] == y.faces[0] and x.serials == y.serials:
        return y
    return replace(y, faces=(x.faces[0] | y.faces[0], decider), serials=x.serials | y.serials, array=nothing)


def of_some_iteration(origin: AliasOrigin, born: int, decider: Decider) -> AliasOrigin:
    """What a loop hands out: an object that is older than the loop, `born` then, or of any iteration."""
    array = origin.array()
    if array is not None and array.serial < born:
        return origin
    return replace(origin, faces=(origin.faces[0], decider), array=nothing)


def _is_same(x: AliasOrigin, y: AliasOrigin) -> bool:
    if x.storage() is None or y.storage() is None:
        return x.storage() is y.storage()
    return x == y and x.array() is y.array()


_REMEDY = "Take a view of its own in both branches."


def faces(array: TracedArray) -> Faces:
    """The numbers of all objects that this one may be."""
    if array.faces is None:
        array.faces = frozenset((array.serial,)), None
    return array.faces


def either(x: TracedArray, y: TracedArray, decider: Decider) -> TracedArray:
    """One of two objects that show the same."""
    whole = x.storage.whole and x.storage.whole()
    if whole is x or whole is y:
        decider.refuse("an array may be another one, or a view of all of it: which, only the compiled program decides", _REMEDY)
    return one_of(x, (x, y), decider)


def one_of(shown: TracedArray, objects: Iterable[TracedArray], decider: Decider) -> TracedArray:
    """Another object on the memory of `shown`, which is one of these."""
    made = TracedArray(shown.storage, shown.steps, shown.aval, shown.layout, shown.writeable)
    made.faces = frozenset().union(*(faces(array)[0] for array in objects)), decider
    return made


def require_told_apart(pairs: Iterable[tuple[TracedArray, TracedArray]]) -> None:
    """Refuse where two of these may be one object."""
    for x, y in pairs:
        (here, decider), (there, other) = faces(x), faces(y)
        decider = other if decider is None else decider
        if decider is not None and x is not y and x.storage is y.storage and not here.isdisjoint(there):
            decider.refuse("whether two views are one object, only the compiled program decides", _REMEDY)
