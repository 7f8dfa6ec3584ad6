"""Guarded loads: what may a function find outside itself, and what keeps it from going stale?

Every load is entered in the host program.

Arrays become hidden inputs, read anew at every call; numbers and strings are guarded by value, containers item by item,
functions by identity and code, objects of the user's by identity and class, those that are arguments by class alone, and their
attributes as the function loads them (what code that is not converted is about to read: `unseen_reads.py`). All else, objects of
libraries above all, is taken at run time. `value_classification.py` has the table.
"""

from __future__ import annotations

import builtins
import copy
import functools
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from operator import getitem
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from jitml.errors import Cause
from jitml.imports.late import late_class
from jitml.ir.types import is_supported
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.environment.class_guards import require_class
from jitml.trace.environment.equality_guards import require_form, require_value
from jitml.trace.environment.tracked_copies import Loads, TrackedCopy, entries, met, watch_copy
from jitml.trace.environment.value_classification import PLAIN, Way, is_iterator, way_of
from jitml.trace.host_calls.generators import TracedGenerator, from_outside
from jitml.trace.record.container_contents import kind_of_container, to_count, to_list, to_load
from jitml.trace.record.guards import HostConst, Slot
from jitml.trace.record.libraries import is_library
from jitml.trace.record.object_state import HEAP_TYPE, slots_of
from jitml.trace.record.parts import CallPart
from jitml.trace.record.pytree import is_record
from jitml.trace.record.recording import Trace, home_of, unsupported
from jitml.trace.record.state import LentObject
from jitml.trace.speculation.modes import Decisions
from jitml.trace.values.boxing import is_traced, lift, scalar
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.opaque_objects import is_opaque, opaque, original_of
from jitml.trace.values.tracer_operators import called_by_name

_DECIMAL = late_class("decimal", "Decimal")
_MOST_ITEMS, _MOST_IN_ALL = 1000, 30_000
_MOST_GUARDED = 256  # items of a list from outside: those of longer ones are read as they are used
_MOST_COMPARED = 8  # objects that are compared one by one


class CalledArguments(dict[FunctionType, Slot], CallPart):
    """Functions that are arguments, or are held by them, and may be others, of the same code."""


def place_of(trace: Trace, obj: Any) -> Slot | None:
    """The slot of an object from outside; None for one that the function made itself, and for built-in types.

    An object that came in unseen (out of a set, from library code) is held: it is always this very one.
    """
    if id(obj) in trace.outside.places:
        return trace.outside.places[id(obj)]
    if id(obj) in trace.copies.watched:
        found: Slot = trace.copies.watched[id(obj)].find()
        return found
    home = home_of(obj if isinstance(obj, type) else type(obj))
    if id(obj) in trace.outside.own or home == "builtins" or home.startswith("numpy"):
        return None
    name = obj.__qualname__ if isinstance(obj, type) else f"a {type(obj).__qualname__}"
    slot = trace.host.hold(obj, name)
    watch(trace, obj, slot)
    return slot


def load(trace: Trace, function: Callable[..., Any], base: Slot | HostConst, key: Any, name: str) -> Slot:
    """The slot of `function(base, key)`: loaded once in the host program, however often the function asks."""
    memo = (function, id(base.value) if isinstance(base, HostConst) else base, isinstance(base, HostConst), key)
    if memo not in trace.outside.loaded:
        trace.outside.loaded[memo] = trace.host.compute(function, (base, HostConst(key)), name)
    return trace.outside.loaded[memo]


def observe(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """A value from outside, as the function shall see it; guarded so that no later call sees another one."""
    if is_traced(value) or type(value) is TracedGenerator or is_opaque(value):
        return value
    if value is vars(builtins):  # in the namespace of what `exec` has made; it may hold itself
        trace.host.require_same(slot, value)
        return value
    way = way_of(value)
    if way is Way.PARTS and is_method_of_opaque(value):
        way = Way.OPAQUE
    if way not in (Way.ARRAY, Way.GENERATOR, Way.VALUE):
        trace.call[Loads].met[id(value)] += 1
    match way:
        case Way.ARRAY:
            return lift(value, slot)
        case Way.GENERATOR:
            return from_outside(trace, value, slot)
        case Way.VALUE:
            return _observe_plain(trace, value, slot, name)
        case Way.ITEMS:
            return _observe_container(trace, value, slot, name)
        case Way.PARTS:  # one for each place, so that it is known as that when it is returned
            known = trace.outside.objects.get(slot)
            return known if type(known) is type(value) else observe_parts(trace, value, slot, name)
        case Way.OPAQUE:
            return lend(trace, value, slot, name)
    if is_record(value) and (known := met(trace, value)) is not None:  # among the arguments: its copy is changed
        trace.host.require_identity(known.find(), slot, True)
        return known.copy
    is_given = slot in trace.host.given
    may_move = is_given or name in trace.call[Decisions].moving
    if may_move and type(value) is FunctionType and _is_made_anew(value):
        trace.call[CalledArguments][value] = slot
        trace.host.require_type(slot, FunctionType)
        trace.host.require_same(load(trace, getattr, slot, "__code__", f"{name}.__code__"), value.__code__)
        _watch_exchanged(trace, value, slot)
        return value
    if _has_kin(type(value)) and not isinstance(value, type):
        if way is Way.ATTRIBUTES and may_move:  # of others, more is guarded than what is read
            _watch_exchanged(trace, value, slot)
            return value
        trace.call[Loads].guarded.add(name)
    watch(trace, value, slot)
    _know(trace, value, slot)
    return value


def _observe_plain(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    if is_number(value):
        is_given = slot in trace.host.given and _may_be_any(value)
        if is_given or name in trace.call[Decisions].moving:
            return number_stand_in(trace, value, slot, name)
        trace.call[Loads].guarded.add(name)
    if type(value) is frozenset:
        observe_keys(trace, value, name)
    if isinstance(value, _DECIMAL):  # it computes as the context says
        unsupported(f"{name} is a decimal number, which is not compiled", "Make it a float.", Cause.NUMBER)
    require_class(trace, type(value))
    require_value(trace, slot, value)
    return value


def observe_parts(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """What is made of other things, made anew of these as the function shall see them."""

    def part(attribute: str) -> Any:
        text = f"{name}.{attribute}"
        return observe(trace, getattr(value, attribute), load(trace, getattr, slot, attribute, text), text)

    trace.host.require_type(slot, type(value))
    if type(value) is functools.partial:
        seen: Any = functools.partial(part("func"), *part("args"), **part("keywords"))
        trace.outside.places[id(seen)] = slot
    elif type(value) is MethodType:
        seen = _bound(value, part("__func__"), part("__self__"))
    else:  # a method that is written in C
        part("__name__")
        seen = _bound(value, None, part("__self__"))
    trace.outside.kept.append(seen)
    _know(trace, seen, slot)
    return seen


def _bound(method: Any, function: Any, owner: Any) -> Any:
    """A method of what its owner has become."""
    if type(owner) is TracedGenerator:
        return method
    if owner is method.__self__:
        return method if function is None else MethodType(function, owner)
    return called_by_name(owner, method.__name__) if function is None else MethodType(function, owner)


def lend(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """An object of a library's: the function sees which one it is in each call, and what it keeps in attributes."""
    if is_iterator(value):
        unsupported(
            f"{name} is a {type(value).__qualname__} from outside, which goes forward as it is read: by tracing once more",
            "Make it a list before, or an iterator inside the jitted function.",
        )
    known = trace.outside.lent.get(id(value))
    if known is not None:
        trace.host.require_identity(known.slot, slot, True)
        return known.seen
    trace.host.require_type(slot, type(value))
    seen = opaque(value, slot)
    _compare(trace, seen, slot)
    trace.outside.lent[id(value)] = LentObject(slot, seen)
    trace.outside.places[id(value)] = trace.outside.places[id(seen)] = slot
    trace.outside.kept += [value, seen]
    _know(trace, seen, slot)
    return seen


def is_method_of_opaque(value: Any) -> bool:
    """Whether this is a method of an object of a library's."""
    owner = getattr(value, "__self__", None)
    return owner is not None and way_of(owner) is Way.OPAQUE


def is_number(value: Any) -> bool:
    """Whether a number may stand for any other of its type, which is none of the user's."""
    kind = type(value)
    return kind in (int, float) or (isinstance(value, np.number) and is_supported(value.dtype) and value.dtype.type is kind)


def number_stand_in(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """A number that is another one at each call: only its type is guarded."""
    trace.host.require_type(slot, type(value))
    if type(value) in (int, float):
        return TracedNumber(trace, slot, value)
    return scalar(trace.number_input(trace.host.compute(np.generic.item, (slot,), name), value.item(), value.dtype))


def observe_changing(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """The same of what changes often: a float may be any."""
    return number_stand_in(trace, value, slot, name) if _may_be_any(value) else observe(trace, value, slot, name)


def _may_be_any(value: Any) -> bool:
    return is_number(value) and isinstance(value, (float, np.floating))


def observe_argument(trace: Trace, obj: Any, slot: Slot, name: str) -> Any:
    """An object that is passed: another instance of its class will do, if it is as different from the other arguments."""
    if way_of(obj) is not Way.ATTRIBUTES:
        return observe(trace, obj, slot, name)
    if not _has_kin(type(obj)):
        watch(trace, obj, slot)
    else:
        _compare(trace, obj, slot)
        if id(obj) not in trace.outside.places:
            watch(trace, obj, slot, identity=False)
    _know(trace, obj, slot)
    return obj


def _has_kin(kind: type) -> bool:
    """Whether another object of this class will do in one's place."""
    return bool(kind.__flags__ & HEAP_TYPE) or kind is SimpleNamespace


def observe_keys(trace: Trace, keys: Iterable[Any], name: str) -> None:
    """Objects that are keys of a dict, or in a set: what is looked up there may be one of them, or none."""
    for key in keys:
        if isinstance(key, (tuple, frozenset)):
            observe_keys(trace, key, name)
        elif not isinstance(key, (*PLAIN, type)):
            slot = trace.host.hold(key, f"a key of {name}")
            if id(key) in trace.outside.places:
                _compare(trace, key, slot)
            else:
                watch(trace, key, slot)
            _know(trace, key, slot)


def _is_made_anew(function: FunctionType) -> bool:
    """Whether a function is likely to be made anew for each call: by another one, or by a line that runs again."""
    return ("<locals>" in function.__qualname__ or function.__name__ == "<lambda>") and not is_library(function)


def _watch_exchanged(trace: Trace, obj: Any, slot: Slot) -> None:
    """An object that is another one at each call, with the argument that holds it or by the function: as different from others
    as it is here."""
    loads = trace.call[Loads]
    _compare(trace, obj, slot)
    if id(obj) not in loads.exchangeable:
        for other, known in trace.outside.objects.items():
            if id(original_of(known)) not in loads.exchangeable and _may_be_one(obj, known):
                trace.host.require_identity(other, slot, obj is known)
    loads.exchanged.add(slot)
    _know(trace, obj, slot)
    if id(obj) not in trace.outside.places:
        watch(trace, obj, slot, identity=False)


def watch(trace: Trace, obj: Any, slot: Slot, *, identity: bool = True) -> None:
    """An object from outside: it is always this one, and of this class; its attributes are guarded as they are loaded."""
    if identity:
        trace.host.require_same(slot, obj)
        _compare(trace, obj, slot)
    trace.outside.places[id(obj)] = slot
    if is_record(obj):
        trace.outside.records.add(id(obj))
    if _has_kin(type(obj)):  # of others, the class cannot be exchanged
        trace.host.require_type(slot, type(obj))
        require_class(trace, type(obj))


def _compare(trace: Trace, obj: Any, slot: Slot) -> None:
    """Whether the object is one of those that calls exchange stays as it is: `is` cannot be seen."""
    key, exchangeable = id(original_of(obj)), trace.call[Loads].exchangeable
    if key in exchangeable:  # which is none of the others
        if exchangeable[key] != slot:
            trace.host.require_identity(exchangeable[key], slot, True)
    elif len(exchangeable) > _MOST_COMPARED:
        trace.call[Loads].crowd.setdefault(key, slot)
    else:
        for other in exchangeable.values():
            if other != slot and _may_be_one(obj, trace.outside.objects[other]):
                trace.host.require_identity(other, slot, False)


def _may_be_one(x: Any, y: Any) -> bool:
    """Whether objects of the types of these, which are guarded, may be one."""
    return type(original_of(x)) is type(original_of(y))


def _know(trace: Trace, obj: Any, slot: Slot) -> None:
    """Remember an object from outside, as the function sees it."""
    trace.outside.objects[slot] = obj
    if slot in trace.host.arguments or slot in trace.call[Loads].exchanged:
        trace.call[Loads].exchangeable.setdefault(id(original_of(obj)), slot)


def require_all_different(trace: Trace) -> None:
    """Where there are too many objects to compare each with all: no two are one."""
    loads, objects = trace.call[Loads], trace.outside.objects
    if loads.crowd:
        kinds = {type(original_of(objects[slot])) for slot in loads.exchangeable.values()}
        every = {**loads.crowd, **loads.exchangeable}.values()
        trace.host.require_all_different([s for s in every if s not in objects or type(original_of(objects[s])) in kinds])


def require_member(trace: Trace, cls: type, name: str, member: object) -> None:
    """A class still has this method or property."""
    trace.host.require_same(load(trace, getattr, HostConst(cls), name, f"{cls.__name__}.{name}"), member)


def require_unset(trace: Trace, slot: Slot, name: str) -> None:
    """An object has no attribute of this name itself."""
    text = f"{trace.host.name(slot)}.{name} is not set"
    trace.host.require(trace.host.compute(_has_unset, (slot, HostConst(name)), text), True)


def _has_unset(obj: Any, name: str) -> bool:
    is_in_slot = name in slots_of(type(obj)) and hasattr(obj, name)
    return name not in getattr(obj, "__dict__", ()) and not is_in_slot


def require_keys(trace: Trace, value: Any, slot: Slot, name: str) -> list[tuple[Any, Any]]:
    """A container's type, and its keys or length; gives keys and items."""
    host = trace.host
    kind, count, keys = kind_of_container(value), to_count(value), to_list(value)
    if count(value) > _MOST_ITEMS:
        unsupported(f"{name} has {count(value)} items, too many to be checked at each call", "Make it an array.", Cause.SLOW)
    trace.call[Loads].items += count(value)
    if trace.call[Loads].items > _MOST_IN_ALL:
        what = f"{name} is among more than {_MOST_IN_ALL} items of containers from outside"
        unsupported(f"{what}, too many to be checked at each call", "Make arrays of them.", Cause.SLOW)
    host.require_type(slot, type(value))
    require_class(trace, type(value))
    if isinstance(value, dict):
        observe_keys(trace, keys(value), name)
        host.require(host.compute(keys, (slot,), f"tuple({name})"), keys(value))
        require_form(trace, value, lambda: slot, name)
        return list(kind.items(value))
    host.require(host.compute(count, (slot,), f"len({name})"), count(value))
    return list(enumerate(kind.__iter__(value)))


def _observe_container(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """A list, tuple, dict or deque with all its items observed: a copy, if there is anything in it to be lifted."""
    if slot in trace.call[Loads].containers:
        return trace.call[Loads].containers[slot]
    if (known := met(trace, value)) is not None:
        trace.host.require_identity(known.find(), slot, True)
        trace.call[Loads].containers[slot] = known.copy
        return known.copy
    known_decisions = trace.call[Decisions]
    if type(value) is list and name not in known_decisions.closed:
        if len(value) > _MOST_GUARDED:
            known_decisions.moving.add(name)
        if name in known_decisions.moving:
            return _open_list(trace, value, slot, name)
        trace.call[Loads].guarded.add(name)
    items = require_keys(trace, value, slot, name)
    trace.call[Loads].containers[slot] = value  # a container that holds itself ends here
    look = functools.partial(_observe_item, trace, to_load(value), slot, name)
    seen = [(key, look(key, item)) for key, item in items]
    result = value
    if not isinstance(value, tuple) or any(after is not before for (_, after), (_, before) in zip(seen, items)):
        result = with_items(value, seen)
    if isinstance(result, defaultdict):
        observe_factory(trace, result, lambda: slot, name)
    if result is not value and not isinstance(value, tuple):
        watch_copy(trace, TrackedCopy(result, value, lambda: slot, name, entries(result)))
    trace.call[Loads].containers[slot] = result
    trace.outside.places[id(result)] = slot
    trace.outside.kept.append(result)
    return result


def observe_factory(trace: Trace, copied: defaultdict[Any, Any], find: Callable[[], Slot], name: str) -> None:
    """What makes the items that a copy of a `defaultdict` from outside does not have yet."""
    text = f"{name}.default_factory"
    copied.default_factory = observe(trace, copied.default_factory, load(trace, getattr, find(), "default_factory", text), text)


def _open_list(trace: Trace, value: list[Any], slot: Slot, name: str) -> OpenList:
    def item(index: int) -> Any:
        found, text = value[index], f"{name}[{index}]"
        place = load(trace, getitem, slot, index, text)
        return number_stand_in(trace, found, place, text) if is_number(found) else observe(trace, found, place, text)

    result = OpenList(trace, slot, name, value, item)
    watch_copy(trace, TrackedCopy(result, value, lambda: slot, name, ()))
    trace.outside.places[id(result)] = slot
    trace.call[Loads].containers[slot] = result
    return result


def with_items(value: Any, items: list[tuple[Any, Any]]) -> Any:
    if isinstance(value, tuple):
        parts = [item for _, item in items]
        return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
    kind = kind_of_container(value)
    if type(value) is kind:
        copied = copy.copy(value)
    else:
        copied = kind.__new__(type(value))
        if kind is defaultdict:
            copied.default_factory = value.default_factory
        if kind is deque:
            deque.__init__(copied, maxlen=value.maxlen)
        if isinstance(value, (list, deque)):
            kind.extend(copied, kind.__iter__(value))
        getattr(copied, "__dict__", {}).update(vars(value))
    for key, item in items:
        kind.__setitem__(copied, key, item)
    return copied


def _observe_item(trace: Trace, look: Callable[[Any, Any], Any], slot: Slot, name: str, key: Any, value: Any) -> Any:
    text = f"{name}[{key!r}]"
    return observe(trace, value, load(trace, look, slot, key, text), text)
