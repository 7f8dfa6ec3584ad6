"""Staleness: does a host call see what the jitted function has changed?

Not in an object from outside, which changes when all is done.

`S @ x` of a sparse matrix looks at `S.data` as it is when the program calls it. Where the function writes into that array, or
sets an attribute of `S`, be it before or after the call, nothing says whether that has happened by then: the function is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from jitml.errors import JitmlError, LentMemory, Source, UnsupportedError
from jitml.records import dataclass, replace
from jitml.trace.host_calls.objects import TracedObject, arrays_apart, original_of
from jitml.trace.record.guards import Slot
from jitml.trace.record.object_state import CONTAINERS, is_polynomial, parts_of
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, refuse, user_source
from jitml.trace.speculation.modes import Decisions
from jitml.trace.values.boxing import LiftedArrays, is_traced

# What properties of these names tell does not depend on what arrays hold.
_OF_FORM = {"shape", "ndim", "dtype", "size", "nnz", "itemsize", "nbytes", "format", "order", "o", "variable", "degree"}
_REMEDY = "Change it outside of the jitted function, or let the call have a new object or the arrays themselves."


@dataclass(frozen=True)
class Given:
    """A host call, where it stands, and all that objects from outside hold which it is given.

    is_next: whether what the function changes from now on may come before the call, as in a loop.
    """

    name: str
    source: Source | None
    parts: tuple[Any, ...]
    is_next: bool


class GivenCalls(list[Given], CallPart):
    """Those of a call."""


def give(name: str, things: Iterable[Any]) -> None:
    """A host call is about to be recorded: of a function, perhaps a method, and arguments.

    Raises:
        UnsupportedError: the function has changed what one of them holds.
    """
    objects = [
        x for x in map(original_of, things) if type(x) is not TracedObject and not is_traced(x) and not isinstance(x, np.ufunc)
    ]
    replaced = {id(array) for x in things if type(x) is TracedObject for array, _ in arrays_apart(x)}
    parts = tuple(x for x in parts_of(objects) if not is_traced(x) and id(x) not in replaced)
    if parts:
        root = active_trace().root
        given = Given(name, user_source(), parts, active_trace().is_body)
        root.call[GivenCalls].append(given)
        require_as_given(root, [replace(given, is_next=True)])


def require_unchanged(name: str, obj: Any) -> None:
    """Something is read of an object from outside as it is before the call: what is written later is not in it.

    In a loop what stands later in the body is written before the next iteration.
    """
    if active_trace().is_body:
        give(name, (obj,))
        return
    parts = tuple(parts_of([original_of(obj)]))
    require_as_given(active_trace().root, [Given(name, user_source(), parts, is_next=True)])


def is_computed(obj: Any, name: str, found: Any) -> bool:
    """Whether an attribute that an object from outside has before the call may be another one once its arrays are written."""
    is_kept = name in getattr(obj, "__dict__", ()) or name in _OF_FORM
    return not is_kept and not callable(found) and not is_of_its_memory(found, obj)


def is_of_its_memory(found: Any, obj: Any) -> bool:
    """Whether this is an array that shows memory of an object's."""
    if type(found) is not np.ndarray:
        return False
    return any(isinstance(x, np.ndarray) and np.may_share_memory(found, x) for x in parts_of([obj]))


def require_as_given(root: Trace, calls: Iterable[Given]) -> None:
    """Refuse changes of what host calls are given."""
    written = {slot: array for slot, array, _ in root.call[LiftedArrays].written()}
    if not written and not root.changes.stored and not root.copies.watched:
        return
    for call in calls:
        for x in call.parts:
            # A container changes when all is done: what has been called before sees it as it should.
            known = root.copies.by_original.get(id(x)) if call.is_next and isinstance(x, CONTAINERS) else None
            if root.changes.is_changed(x):
                _refuse(call)
            if known is not None and known.is_changed():
                _refuse(call, LentMemory)
            for slot, array in written.items() if isinstance(x, np.ndarray) else ():
                if np.may_share_memory(x, array):
                    _hand_over(root, slot, array, array is x)
                    _refuse(call)


def _hand_over(root: Trace, slot: Slot, array: Any, is_whole: bool) -> None:
    """Trace once more, with calls that are given the object as it is then: a copy with the array that is written in it."""
    if is_whole:
        take_at_run_time(root, array)
    outer = {lent.slot for lent in root.outside.lent.values()}
    for (function, base, is_constant, key), place in root.outside.loaded.items() if is_whole else ():
        if place == slot and function is getattr and isinstance(key, str) and not is_constant and base in outer:
            known = root.call[Decisions].apart_from.setdefault(root.host.name(base), set())
            if key not in known:
                known.add(key)
                root.call[Decisions].again()


def require_unread(root: Trace) -> None:
    """Trace once more where the function writes arrays of polynomials that NumPy's code has read as they are now.

    In a loop it would see them as they become.
    """
    written = [array for _, array, _ in root.call[LiftedArrays].written()]
    for known, _ in root.outside.raw if written else ():
        if any(known is array for array in written):
            take_at_run_time(root, known)


def take_at_run_time(trace: Trace, array: Any) -> None:
    """Trace once more, with polynomials of which the function writes an array taken at run time, as other objects are."""
    is_new = False
    for slot, x in trace.outside.objects.items():
        key = next((key for key, part in vars(x).items() if part is array), None) if is_polynomial(x) else None
        if key is not None:
            known = trace.call[Decisions].apart_from.setdefault(trace.host.name(slot), set())
            is_new = is_new or key not in known
            known.add(key)
    if is_new:
        trace.call[Decisions].again()


def _refuse(call: Given, kind: type[JitmlError] = UnsupportedError) -> NoReturn:
    message = f"{call.name} is given an object that the jitted function changes, and might see it as it was or as it becomes"
    refuse(kind(message, source=call.source, remedy=_REMEDY))
