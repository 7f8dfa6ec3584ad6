"""Unseen reads: what does code that is not converted read of what is outside?

`guard_state`: all that it may read, compared at each call.

`pickle.dumps(obj)`, `sorted(objs)`: what the user's special methods mention, and what objects of libraries hold, of arrays also
what is in them. What does not show all that it holds is refused.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from operator import getitem
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from jitml.records import dataclass, field
from jitml.trace.environment.equality_guards import require_value
from jitml.trace.environment.loads import load, require_elements, require_keys
from jitml.trace.environment.sourceless import instructions
from jitml.trace.environment.tracked_copies import met
from jitml.trace.environment.understood import PLAIN, Way, way_of
from jitml.trace.record.containers import to_load
from jitml.trace.record.device_arrays import is_on_device
from jitml.trace.record.guards import Slot
from jitml.trace.record.object_state import CONTAINERS, HEAP_TYPE, is_visible, slots_of
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, home_of, is_users, is_users_class, unsupported
from jitml.trace.rewrite.code_names import codes_inside, names_in_code
from jitml.trace.values.boxing import LiftedArrays, is_traced

# Special methods that only the conversion calls, or that have nothing to do with computing.
_SEEN = {
    "__init__", "__new__", "__post_init__", "__call__", "__repr__", "__str__", "__format__",
    "__reduce__", "__getstate__", "__setstate__", "__getattr__", "__enter__", "__exit__", "__init_subclass__",
    "__class_getitem__", "__setattr__", "__setitem__", "__del__", "__dir__",
}  # fmt: skip
_STATELESS = ("builtins", "abc", "typing", "numbers", "enum", "dataclasses", "contextlib", "jitml")  # modules of classes
_MOST_BYTES = 1 << 20  # of an array whose contents are compared at each call


@dataclass
class UnseenReads(CallPart):
    """What code that is not converted reads.

    frozen: objects whose attributes are guarded, and which: names, or None for all.
    special: what runs for special methods of a class.
    """

    frozen: set[tuple[Slot, frozenset[str] | None]] = field(default_factory=set)
    special: dict[tuple[type, tuple[str, ...]], list[FunctionType]] = field(default_factory=dict)


def is_read_unseen(trace: Trace, slot: Slot, name: str) -> bool:
    """Whether code that is not converted has read an attribute."""
    return any(place == slot and (names is None or name in names) for place, names in trace.call[UnseenReads].frozen)


def run_unseen(trace: Trace, kind: Any, methods: tuple[str, ...] = ()) -> list[FunctionType]:
    """Functions that run where a library calls special methods, out of sight of the conversion, as `sorted` calls `__lt__`.

    Only what the user wrote counts, and what it mentions: the class's own methods and properties, and functions.

    Args:
        methods: which those are; any, if none is named.
    """
    if (kind, methods) not in trace.call[UnseenReads].special:
        trace.call[UnseenReads].special[kind, methods] = _find_unseen(kind, methods)
    found: list[FunctionType] = trace.call[UnseenReads].special[kind, methods]
    return found


def _find_unseen(kind: Any, methods: tuple[str, ...]) -> list[FunctionType]:
    members = {name: member for cls in reversed(kind.__mro__) for name, member in vars(cls).items()}
    special = [name for name in members if name[:2] == "__" == name[-2:] and name not in _SEEN]
    return _with_what_they_run([members[name] for name in special if not methods or name in methods], members)


def _with_what_they_run(waiting: list[Any], members: Mapping[str, Any]) -> list[FunctionType]:
    """The user's functions among these, and those that they mention."""
    found: dict[FunctionType, None] = {}
    while waiting:
        member = waiting.pop()
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not isinstance(function, FunctionType) or function in found:
            continue
        if is_users(function.__code__.co_filename) or function.__code__.co_filename == "<string>":
            found[function] = None
            waiting += outer_values(function).values()
            waiting += [members[name] for name in names_in_code(function.__code__) if name in members]
    return list(found)


def _names_in_part(trace: Trace, kind: Any, names: frozenset[str]) -> frozenset[str]:
    """Names that are read of an object which code that mentions these names may hand to anything: its own methods, too."""
    if not is_users_class(kind):
        return names
    members = {name: member for cls in reversed(kind.__mro__) for name, member in vars(cls).items()}
    mentioned = _with_what_they_run([members[name] for name in names if name in members], members)
    return names | names_in(run_unseen(trace, kind)) | names_in(mentioned)


def names_in(functions: Iterable[FunctionType]) -> frozenset[str]:
    """Names in functions: among them those of the attributes that they read."""
    return frozenset().union(*(names_in_code(function.__code__) for function in functions))


@lru_cache(maxsize=1024)
def _globals_in(code: CodeType) -> frozenset[str]:
    codes = (code, *codes_inside(code))
    return frozenset(what for inner in codes for step, what in instructions(inner) if step == "LOAD_GLOBAL")


def outer_values(function: FunctionType) -> dict[str, Any]:
    """What a function loads by name, as far as it is bound: globals, and what it closes over."""
    found = {name: function.__globals__[name] for name in _globals_in(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def guard_state(trace: Trace, value: Any, slot: Slot, names: frozenset[str] | None = None) -> None:
    """What code that is not converted is about to read of a value: all, or the attributes of these names."""
    is_object = trace.outside.objects.get(slot) is value
    if is_traced(value) or (is_object and way_of(value) is Way.PARTS):  # made anew of what is guarded
        return
    host, name = trace.host, trace.host.name(slot)
    written = {attribute for owner, attribute in trace.changes.stored if owner == id(value)}
    kind: Any = type(value)
    written |= trace.changes.in_classes if is_users_class(kind) else set()
    known = met(trace, value)
    if (known is not None and known.is_changed()) or not written.isdisjoint(written if names is None else names):
        unsupported(f"{name} is changed, and then used by code that is not converted", "Hand on what it needs.")
    for contents, what in trace.outside.raw:
        _require_unwritten(trace, contents, what)
    if (slot, names) in trace.call[UnseenReads].frozen:
        return
    trace.call[UnseenReads].frozen.add((slot, names))
    if isinstance(value, PLAIN):
        require_value(trace, slot, value)
    elif isinstance(value, CONTAINERS):
        for key, item in require_keys(trace, value, slot, name):
            among = None if names is None else _names_in_part(trace, type(item), names)
            _guard_part(trace, item, load(trace, to_load(value), slot, key, f"{name}[{key!r}]"), among)
    elif isinstance(value, (set, bytearray, array, memoryview)):
        require_elements(trace, value, slot, name)
    elif is_on_device(value):
        unsupported(f"{name} is on a device, and code that is not converted reads it", "Hand on np.asarray(x) of it.")
    elif isinstance(value, np.ndarray):
        _guard_contents(trace, value, slot, name)
    else:
        host.require_same(slot, value)
        if way_of(value) in (Way.ITSELF, Way.PARTS, Way.GENERATOR):
            return
        if not is_visible(kind):
            unsupported(
                f"{name} ({home_of(kind)}.{kind.__qualname__}) is read by code that is not converted, and does not show all that "
                "it holds: it cannot be compared at each call",
                "Hand on what is needed of it, or use it outside of the jitted function.",
            )
        host.require_type(slot, kind)
        for key, place in _attributes(trace, value, slot, name, names):
            part = getattr(value, key)
            _guard_part(trace, part, place, None if names is None else _names_in_part(trace, type(part), names))


def guard_librarys(trace: Trace, *values: Any) -> None:
    """Objects of libraries' classes (a sparse matrix, a polynomial) that their own code reads now: all that they hold."""
    for value in values:
        if value is os.environ and id(value) not in trace.outside.places:
            trace.outside.places[id(value)] = trace.host.hold(value, "os.environ")
        slot = trace.outside.places.get(id(value))
        if slot is not None and is_librarys(value):
            guard_state(trace, value, slot)


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


def _guard_contents(trace: Trace, value: np.ndarray[Any, Any], slot: Slot, name: str) -> None:
    """An array is this very one, and holds what it holds now."""
    _require_unwritten(trace, value, name)
    if value.nbytes > _MOST_BYTES or (value.dtype.hasobject and not all(isinstance(item, PLAIN) for item in value.flat)):
        what = "holds objects" if value.dtype.hasobject else f"has {value.nbytes} bytes"
        unsupported(
            f"{name} is read by code that is not converted, and {what}: it cannot be compared at each call",
            "Let the jitted function read it, or hand on what is needed of it.",
        )
    trace.outside.raw.append((value, name))
    trace.host.require_same(slot, value)
    trace.host.require_contents(slot, value)


def _require_unwritten(trace: Trace, value: np.ndarray[Any, Any], name: str) -> None:
    """What code that is not converted sees of an array is what is there before the call."""
    for concrete, tracer in trace.call[LiftedArrays].inputs.values():
        if tracer.storage.mutated and np.may_share_memory(concrete, value):
            unsupported(
                f"{name} is written, and then read by code that is not converted, which sees what it was before the call",
                "Let the jitted function read it, or hand on what is needed of it.",
            )


def require_unread(trace: Trace) -> None:
    """Refuse to write arrays that code which is not converted has read: in a loop it would see them as they become."""
    written = [array for _, array, _ in trace.call[LiftedArrays].written()]
    for known, name in trace.outside.raw if written else ():
        if any(known is array for array in written):
            unsupported(
                f"{name} is written, and read by code that is not converted, which sees what it was before the call",
                "Let the jitted function read it, or hand on what is needed of it.",
            )


def _attributes(trace: Trace, value: Any, slot: Slot, name: str, names: frozenset[str] | None) -> list[tuple[str, Slot]]:
    """An object's own attributes, as far as they are asked for, and those of its class, and their slots."""
    host = trace.host
    found: list[tuple[str, Slot]] = []
    everything = names is None or not names.isdisjoint({"__dict__", "vars", "getattr", "hasattr"})
    if hasattr(value, "__dict__"):
        attributes = host.compute(vars, (slot,), f"vars({name})")
        if everything:
            host.require(host.compute(tuple, (attributes,), f"attributes of {name}"), tuple(vars(value)))
        chosen = [key for key in vars(value) if everything or key in (names or ())]
        found += [(key, load(trace, getitem, attributes, key, f"{name}.{key}")) for key in chosen]
    for key, member in {key: member for cls in reversed(type(value).__mro__) for key, member in vars(cls).items()}.items():
        if (
            names is not None
            and key in names
            and key not in getattr(value, "__dict__", ())
            and not hasattr(type(member), "__get__")
        ):
            found.append((key, load(trace, getattr, slot, key, f"{name}.{key}")))
    chosen = [key for key in slots_of(type(value)) if hasattr(value, key) and (everything or key in (names or ()))]
    return found + [(key, load(trace, getattr, slot, key, f"{name}.{key}")) for key in chosen]


def _guard_part(trace: Trace, value: Any, slot: Slot, names: frozenset[str] | None) -> None:
    """A part of an object's state; one that is known already is only the same."""
    if id(value) in trace.outside.places and (trace.outside.places[id(value)], names) in trace.call[UnseenReads].frozen:
        trace.host.require_same(slot, value)
        return
    if type(value).__flags__ & HEAP_TYPE:
        trace.outside.places.setdefault(id(value), slot)
    guard_state(trace, value, slot, names)
