"""Unseen reads: what does code that is not converted read of what is outside?  Nothing that may change: that is refused.

`pickle.dumps(obj)`, `sorted(objs)`: what the user's special methods mention, and what objects of libraries hold.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from jitml.diagnostics.code_owners import is_users
from jitml.errors import Cause
from jitml.trace.environment.equality_guards import require_value
from jitml.trace.environment.value_classification import PLAIN, Way, way_of
from jitml.trace.record.array_memory import Array, disjoint
from jitml.trace.record.guards import Slot
from jitml.trace.record.object_state import CONTAINERS, HEAP_TYPE, are_all, parts_of
from jitml.trace.record.recording import Trace, home_of, is_users_class, unsupported
from jitml.trace.record.user_code import about
from jitml.trace.values.boxing import is_traced

# Special methods that only the conversion calls, or that have nothing to do with computing.
_SEEN = {
    "__init__", "__new__", "__post_init__", "__call__", "__repr__", "__str__", "__format__",
    "__reduce__", "__getstate__", "__setstate__", "__getattr__", "__enter__", "__exit__", "__init_subclass__",
    "__class_getitem__", "__setattr__", "__setitem__", "__del__", "__dir__",
}  # fmt: skip
_STATELESS = ("builtins", "abc", "typing", "numbers", "enum", "dataclasses", "contextlib", "jitml")  # modules of classes


def runs_unseen(kind: Any, methods: tuple[str, ...] = ()) -> bool:
    """Whether the user wrote special methods that a library calls, out of sight of the conversion, as `sorted` calls `__lt__`.

    Args:
        methods: which those are; any, if none is named.
    """
    members = {name: member for cls in reversed(kind.__mro__) for name, member in vars(cls).items()}
    special = [name for name in members if name[:2] == "__" == name[-2:] and name not in _SEEN]
    return any(_is_users(members[name]) for name in special if not methods or name in methods)


def _is_users(member: Any) -> bool:
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return isinstance(function, FunctionType) and (
        is_users(function.__code__.co_filename) or function.__code__.co_filename == "<string>"
    )


def require_constant(trace: Trace, value: Any, slot: Slot) -> None:
    """Code that is not converted is about to read a value from outside.

    Raises:
        UnsupportedError: it may change.
    """
    is_object = trace.outside.objects.get(slot) is value
    if is_traced(value) or (is_object and way_of(value) is Way.PARTS):  # made anew of what is guarded
        return
    is_changed = any(owner == id(value) for owner, _ in trace.changes.stored)
    if isinstance(value, PLAIN):
        require_value(trace, slot, value)
    elif way_of(value) in (Way.ITSELF, Way.PARTS, Way.GENERATOR) and not is_changed:
        trace.host.require_same(slot, value)
        trace.outside.read[slot] = value
    else:
        refuse_unseen(trace, value, slot)


def refuse_unseen(trace: Trace, value: Any, slot: Slot) -> NoReturn:
    """Refuse a value that may change between calls, or has been changed in this one."""
    kind: Any = type(value)
    unsupported(
        f"{trace.host.name(slot)} ({home_of(kind)}.{kind.__qualname__}) is read by code that is not converted, and may change",
        "Hand on what is needed of it, or use it outside of the jitted function.",
        Cause.OBJECT,
    )


def require_unchanged(trace: Trace, written: Mapping[Slot, Array]) -> None:
    """What is read unseen is not changed by the function: there it would be as it was before the call.

    Args:
        written: arrays from outside.

    Raises:
        UnsupportedError: an attribute of it is set, or an array that it holds is written.
    """
    stored = {owner for owner, _ in trace.changes.stored}
    for slot, value in [*trace.outside.read.items(), *((lent.slot, lent.seen) for lent in trace.outside.lent.values())]:
        name = trace.host.name(slot)
        if stored and (not are_all(parts := parts_of([value])) or any(id(part) in stored for part in parts)):
            _refuse_changed(trace, f"an attribute of {name} is set", slot)
        for place, x in written.items():
            if not apart_from_parts([x], value):
                _refuse_changed(trace, f"{trace.host.name(place)}, which {name} holds, is written", slot)
        if written:
            trace.host.require_apart([*written], slot, apart_from_parts)


def _refuse_changed(trace: Trace, what: str, slot: Slot) -> NoReturn:
    name = trace.host.name(slot)
    with about(name):
        unsupported(
            f"{what}, and code that is not converted reads {name}",
            f"Change a copy, or use {name} outside of the jitted function.",
            Cause.OBJECT,
        )


def apart_from_parts(written: Sequence[Array], value: Any) -> bool:
    """Whether arrays overlap none that an object or its class holds; no if it holds too much to tell."""
    parts = parts_of([value])
    shared = (member for cls in type(value).__mro__ for member in vars(cls).values())
    held = [x for x in (*parts, *shared) if isinstance(x, np.ndarray)]
    return are_all(parts) and all(disjoint(x, y) for x in written for y in held)


def guard_librarys(trace: Trace, *values: Any) -> None:
    """Objects of libraries' classes (a sparse matrix, a polynomial) that their own code reads now: all that they hold."""
    for value in values:
        if value is os.environ and id(value) not in trace.outside.places:
            trace.outside.places[id(value)] = trace.host.hold(value, "os.environ")
        slot = trace.outside.places.get(id(value))
        if slot is not None and is_librarys(value):
            require_constant(trace, value, slot)


def is_librarys(value: Any) -> bool:
    """Whether a value is of a library's class, or of one made of it, and may change."""
    if isinstance(value, (array, memoryview)):
        return True
    is_object = type(value).__flags__ & HEAP_TYPE and not isinstance(value, (*PLAIN, *CONTAINERS, type, np.ndarray))
    return bool(is_object) and any(map(_has_state, type(value).__mro__))


def _has_state(cls: type) -> bool:
    """Whether a class is a library's, and methods of it may read what its instances hold."""
    home = home_of(cls).partition(".")[0]
    return home not in _STATELESS and not is_users_class(cls)
