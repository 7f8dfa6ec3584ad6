"""What may a function find outside itself, and what keeps it from going stale?  Every load is entered in the host program.

Arrays become hidden inputs, read anew at every call; numbers and strings are guarded by value, containers item by item,
functions by identity and code, objects by identity and class, those that are arguments by class alone. The attributes of an
object are guarded as the function loads them; where code that is not converted is about to read it (`pickle.dumps(obj)`,
`sorted(objs)`), all that this may read is, and of arrays also what they hold.
"""

from __future__ import annotations

import copy
import dis
import functools
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from operator import getitem
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitml.ir.types import is_supported
from jitml.trace.context import Trace, home_of, is_users, is_users_class, unsupported
from jitml.trace.host import IMMUTABLE, Const, Slot
from jitml.trace.numbers import TracedNumber
from jitml.trace.open_lists import OpenList
from jitml.trace.random import TracedGenerator, from_outside, is_generator
from jitml.trace.tracers import is_traced, lift, scalar
from jitml.trace.tree import is_record

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), type(...), range, np.generic, np.dtype, Enum, slice, frozenset,
    *IMMUTABLE,
)  # fmt: skip
CONTAINERS = (list, tuple, dict, deque)
_MOST_ITEMS = 1000
_HEAP_TYPE = 1 << 9  # CPython's flag of classes made by a class statement
# Special methods that only the conversion calls, or that have nothing to do with computing.
_SEEN = {
    "__init__", "__new__", "__post_init__", "__call__", "__repr__", "__str__", "__format__",
    "__reduce__", "__getstate__", "__setstate__", "__getattr__", "__enter__", "__exit__", "__init_subclass__",
    "__class_getitem__", "__setattr__", "__setitem__", "__del__", "__dir__",
}  # fmt: skip
_STATELESS = ("builtins", "abc", "typing", "numbers", "enum", "dataclasses", "contextlib", "jitml")  # modules of classes
_MOST_BYTES = 1 << 20  # of an array whose contents are compared at each call


def place_of(trace: Trace, obj: Any) -> Slot | None:
    """The slot of an object from outside; None for one that the function made itself, and for built-in types.

    An object that came in unseen (out of a set, from library code) is held: it is always this very one.
    """
    if id(obj) in trace.places:
        return trace.places[id(obj)]
    if id(obj) in trace.watched:
        found: Slot = trace.watched[id(obj)].find()
        return found
    home = home_of(obj if isinstance(obj, type) else type(obj))
    if id(obj) in trace.own or home == "builtins" or home.startswith("numpy"):
        return None
    name = obj.__qualname__ if isinstance(obj, type) else f"a {type(obj).__qualname__}"
    slot = trace.host.hold(obj, name)
    watch(trace, obj, slot)
    return slot


def load(trace: Trace, function: Callable[..., Any], base: Slot | Const, key: Any, name: str) -> Slot:
    """The slot of `function(base, key)`: loaded once in the host program, however often the function asks."""
    memo = (function, id(base.value) if isinstance(base, Const) else base, isinstance(base, Const), key)
    if memo not in trace.loaded:
        trace.loaded[memo] = trace.host.compute(function, (base, Const(key)), name)
    return trace.loaded[memo]


def observe(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """A value from outside, as the function shall see it; guarded so that no later call sees another one."""
    host = trace.host
    if is_traced(value) or type(value) is TracedGenerator:
        return value
    if isinstance(value, np.ndarray):
        return lift(value, slot)
    if is_generator(value):
        return from_outside(trace, value, slot)
    if is_number(value):
        if trace.decisions is not None and name in trace.decisions.moving:
            return number_stand_in(trace, value, slot, name)
        trace.guarded.add(name)
    if isinstance(value, _PLAIN):
        if type(value) is frozenset:
            observe_keys(trace, value, name)
        host.require(slot, value)
        return value
    trace.met[id(value)] += 1
    if isinstance(value, CONTAINERS):
        return _observe_container(trace, value, slot, name)
    if isinstance(value, (set, bytearray)):
        _require_elements(trace, value, slot, name)
        return value
    if type(value) is functools.partial:
        for part in ("func", "args", "keywords"):
            observe(trace, getattr(value, part), load(trace, getattr, slot, part, f"{name}.{part}"), f"{name}.{part}")
    if type(value).__flags__ & _HEAP_TYPE and not isinstance(value, type) and trace.decisions is not None:
        if name in trace.decisions.moving:
            _watch_exchanged(trace, value, slot)
            return value
        trace.guarded.add(name)
    watch(trace, value, slot)
    trace.objects[slot] = value
    return value


def is_number(value: Any) -> bool:
    """Whether a number may stand for any other of its type."""
    return type(value) in (int, float) or (isinstance(value, np.number) and is_supported(value.dtype))


def number_stand_in(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """A number that is another one at each call: only its type is guarded."""
    trace.host.require_type(slot, type(value))
    if type(value) in (int, float):
        return TracedNumber(trace, slot, value)
    return scalar(trace.number_input(trace.host.compute(np.generic.item, (slot,), name), value.item(), value.dtype))


def watch_argument(trace: Trace, obj: Any, slot: Slot) -> None:
    """An object that is passed: another instance of its class will do, if it is as different from the other arguments."""
    if isinstance(obj, (type, FunctionType, MethodType, BuiltinFunctionType, ModuleType)) or not type(obj).__flags__ & _HEAP_TYPE:
        watch(trace, obj, slot)
        return
    _compare(trace, obj, slot)
    if id(obj) not in trace.places:
        watch(trace, obj, slot, identity=False)


def observe_keys(trace: Trace, keys: Iterable[Any], name: str) -> None:
    """Objects that are keys of a dict, or in a set: what is looked up there may be one of them, or none."""
    for key in keys:
        if isinstance(key, (tuple, frozenset)):
            observe_keys(trace, key, name)
        elif not isinstance(key, (*_PLAIN, type)):
            slot = trace.host.hold(key, f"a key of {name}")
            if id(key) in trace.places:
                _compare(trace, key, slot)
            else:
                watch(trace, key, slot)
            trace.objects[slot] = key


def _watch_exchanged(trace: Trace, obj: Any, slot: Slot) -> None:
    """An object that is another one at each call, for the function exchanges it: as different from others as it is here."""
    for other, known in trace.objects.items():
        if other != slot:
            trace.host.require_identity(other, slot, obj is known)
    trace.exchanged.add(slot)
    trace.objects[slot] = obj
    if id(obj) not in trace.places:
        watch(trace, obj, slot, identity=False)


def watch(trace: Trace, obj: Any, slot: Slot, *, identity: bool = True) -> None:
    """An object from outside: it is always this one, and of this class; its attributes are guarded as they are loaded."""
    if identity:
        trace.host.require_same(slot, obj)
        _compare(trace, obj, slot)
    trace.places[id(obj)] = slot
    if type(obj).__flags__ & _HEAP_TYPE:  # of others, the class cannot be exchanged
        trace.host.require_type(slot, type(obj))


def _compare(trace: Trace, obj: Any, slot: Slot) -> None:
    """Whether the object is one of those that calls exchange stays as it is: `is` cannot be seen."""
    for other, known in trace.objects.items():
        if (other in trace.host.arguments or other in trace.exchanged) and other != slot:
            trace.host.require_identity(other, slot, obj is known)


def require_unset(trace: Trace, slot: Slot, name: str) -> None:
    """An object has no attribute of this name itself."""
    text = f"{trace.host.name(slot)}.{name} is not set"
    trace.host.require(trace.host.compute(_has_unset, (slot, Const(name)), text), True)


def _has_unset(obj: Any, name: str) -> bool:
    return name not in vars(obj)


def is_read_unseen(trace: Trace, slot: Slot, name: str) -> bool:
    """Whether code that is not converted has read an attribute."""
    return any(place == slot and (names is None or name in names) for place, names in trace.frozen)


def run_unseen(trace: Trace, kind: Any, methods: tuple[str, ...] = ()) -> list[FunctionType]:
    """Functions that run where a library calls special methods, out of sight of the conversion, as `sorted` calls `__lt__`.

    Only what the user wrote counts, and what it mentions: the class's own methods and properties, and functions.

    Args:
        methods: which those are; any, if none is named.
    """
    if (kind, methods) not in trace.unseen:
        trace.unseen[kind, methods] = _find_unseen(kind, methods)
    found: list[FunctionType] = trace.unseen[kind, methods]
    return found


def _find_unseen(kind: Any, methods: tuple[str, ...]) -> list[FunctionType]:
    members = {name: member for cls in reversed(kind.__mro__) for name, member in vars(cls).items()}
    special = [name for name in members if name[:2] == "__" == name[-2:] and name not in _SEEN]
    waiting = [members[name] for name in special if not methods or name in methods]
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


def names_in(functions: Iterable[FunctionType]) -> frozenset[str]:
    """Names in functions: among them those of the attributes that they read."""
    return frozenset().union(*(names_in_code(function.__code__) for function in functions))


@lru_cache(maxsize=1024)
def names_in_code(code: CodeType) -> frozenset[str]:
    """Names of globals and attributes in a code object, and in those inside it."""
    return frozenset(code.co_names).union(*map(names_in_code, _inside(code)))


@lru_cache(maxsize=1024)
def _globals_in(code: CodeType) -> frozenset[str]:
    loads = (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    return frozenset(loads).union(*map(_globals_in, _inside(code)))


def _inside(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def outer_values(function: FunctionType) -> dict[str, Any]:
    """What a function loads by name, as far as it is bound: globals, and what it closes over."""
    found = {name: function.__globals__[name] for name in _globals_in(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def guard_state(trace: Trace, value: Any, slot: Slot, names: frozenset[str] | None = None) -> None:
    """What code that is not converted is about to read of a value: all, or the attributes of these names."""
    if is_traced(value):
        return
    host, name = trace.host, trace.host.name(slot)
    written = {attribute for owner, attribute in trace.stored if owner == id(value)}
    if not written.isdisjoint(written if names is None else names):
        unsupported(f"{name} is changed, and then used by code that is not converted", "Hand on what it needs.")
    for known, what in trace.raw:
        _require_unwritten(trace, known, what)
    if (slot, names) in trace.frozen:
        return
    trace.frozen.add((slot, names))
    if isinstance(value, _PLAIN):
        host.require(slot, value)
    elif isinstance(value, CONTAINERS):
        for key, item in _require_keys(trace, value, slot, name):
            _guard_part(trace, item, load(trace, getitem, slot, key, f"{name}[{key!r}]"), names)
    elif isinstance(value, (set, bytearray, array, memoryview)):
        _require_elements(trace, value, slot, name)
    elif isinstance(value, np.ndarray):
        _guard_contents(trace, value, slot, name)
    else:
        host.require_same(slot, value)
        if isinstance(value, (type, FunctionType, ModuleType)) or not type(value).__flags__ & _HEAP_TYPE:
            return
        host.require_type(slot, type(value))
        kind: Any = type(value)
        for key, place in _attributes(trace, value, slot, name, names):
            _guard_part(trace, getattr(value, key), place, None if names is None else names | names_in(run_unseen(trace, kind)))


def guard_librarys(trace: Trace, *values: Any) -> None:
    """Objects of libraries' classes (a sparse matrix, a polynomial) that their own code reads now: all that they hold."""
    for value in values:
        slot = trace.places.get(id(value))
        if slot is not None and is_librarys(value):
            guard_state(trace, value, slot)


def is_librarys(value: Any) -> bool:
    """Whether a value is of a library's class, or of one made of it, and may change."""
    if isinstance(value, (array, memoryview)):
        return True
    is_object = type(value).__flags__ & _HEAP_TYPE and not isinstance(value, (*_PLAIN, *CONTAINERS, type, np.ndarray))
    return bool(is_object) and any(map(_has_state, type(value).__mro__))


@lru_cache(maxsize=4096)
def _has_state(cls: type) -> bool:
    """Whether a class is a library's, and methods of it may read what its instances hold."""
    home = home_of(cls).partition(".")[0]
    return home not in _STATELESS and not is_users_class(cls)


def _guard_contents(trace: Trace, value: np.ndarray[Any, Any], slot: Slot, name: str) -> None:
    """An array is this very one, and holds what it holds now."""
    _require_unwritten(trace, value, name)
    if value.nbytes > _MOST_BYTES or (value.dtype.hasobject and not all(isinstance(item, _PLAIN) for item in value.flat)):
        what = "holds objects" if value.dtype.hasobject else f"has {value.nbytes} bytes"
        unsupported(
            f"{name} is read by code that is not converted, and {what}: it cannot be compared at each call",
            "Let the jitted function read it, or hand on what is needed of it.",
        )
    trace.raw.append((value, name))
    trace.host.require_same(slot, value)
    trace.host.require_contents(slot, value)


def _require_unwritten(trace: Trace, value: np.ndarray[Any, Any], name: str) -> None:
    """What code that is not converted sees of an array is what is there before the call."""
    for concrete, tracer in trace.arrays.values():
        if tracer.storage.mutated and np.may_share_memory(concrete, value):
            unsupported(
                f"{name} is written, and then read by code that is not converted, which sees what it was before the call",
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
    slots = (key for cls in type(value).__mro__ for key in vars(cls).get("__slots__", ()) if key != "__dict__")
    chosen = [key for key in slots if hasattr(value, key) and (everything or key in (names or ()))]
    return found + [(key, load(trace, getattr, slot, key, f"{name}.{key}")) for key in chosen]


def _guard_part(trace: Trace, value: Any, slot: Slot, names: frozenset[str] | None) -> None:
    """A part of an object's state; one that is known already is only the same."""
    if id(value) in trace.places and (trace.places[id(value)], names) in trace.frozen:
        trace.host.require_same(slot, value)
        return
    if type(value).__flags__ & _HEAP_TYPE:
        trace.places.setdefault(id(value), slot)
    guard_state(trace, value, slot, names)


def _require_elements(trace: Trace, value: Any, slot: Slot, name: str) -> None:
    """What a set, a bytearray, an `array.array` or a memoryview holds."""
    copied: Any = frozenset(value) if isinstance(value, set) else bytes(value)
    if isinstance(value, set):
        observe_keys(trace, value, name)
    trace.host.require(trace.host.compute(type(copied), (slot,), name), copied)
    trace.places[id(value)] = slot


def _require_keys(trace: Trace, value: Any, slot: Slot, name: str) -> list[tuple[Any, Any]]:
    """A container's type, and its keys or length; gives keys and items."""
    host = trace.host
    if len(value) > _MOST_ITEMS:
        unsupported(f"{name} has {len(value)} items, too many to be checked at each call", "Make it an array.")
    host.require_type(slot, type(value))
    if isinstance(value, dict):
        observe_keys(trace, value, name)
        host.require(host.compute(tuple, (slot,), f"tuple({name})"), tuple(value))
        return list(value.items())
    host.require(host.compute(len, (slot,), f"len({name})"), len(value))
    return list(enumerate(value))


def _observe_container(trace: Trace, value: Any, slot: Slot, name: str) -> Any:
    """A list, tuple, dict or deque with all its items observed: a copy, if there is anything in it to be lifted."""
    if slot in trace.containers:
        return trace.containers[slot]
    known = next((other for other in trace.watched.values() if other.original is value), None)
    if known is not None:  # it has been met elsewhere
        trace.host.require_identity(known.find(), slot, True)
        trace.containers[slot] = known.copy
        return known.copy
    if type(value) is list and trace.decisions is not None and name not in trace.decisions.closed:
        if name in trace.decisions.moving:
            return _open_list(trace, value, slot, name)
        trace.guarded.add(name)
    items = _require_keys(trace, value, slot, name)
    trace.containers[slot] = value  # a container that holds itself ends here
    seen = [(key, _observe_item(trace, slot, name, key, item)) for key, item in items]
    result = value
    if not isinstance(value, tuple) or any(after is not before for (_, after), (_, before) in zip(seen, items)):
        result = with_items(value, seen)
    if result is not value and not isinstance(value, tuple):
        trace.watched[id(result)] = Watched(result, value, lambda: slot, name, entries(result))
    trace.containers[slot] = result
    trace.places[id(result)] = slot
    trace.kept.append(result)
    return result


def _open_list(trace: Trace, value: list[Any], slot: Slot, name: str) -> OpenList:
    def item(index: int) -> Any:
        found, text = value[index], f"{name}[{index}]"
        place = load(trace, getitem, slot, index, text)
        return number_stand_in(trace, found, place, text) if is_number(found) else observe(trace, found, place, text)

    result = OpenList(trace, slot, name, value, item)
    trace.watched[id(result)] = Watched(result, value, lambda: slot, name, ())
    trace.places[id(result)] = slot
    trace.containers[slot] = result
    return result


@dataclass(frozen=True)
class Watched:
    """A copy of a container from outside, and what was in it: keys and items.

    Args:
        original: the caller's own.
        find: enters it in the host program.
    """

    copy: Any
    original: Any
    find: Callable[[], Slot]
    name: str
    before: tuple[tuple[Any, Any], ...]


def entries(x: Any) -> tuple[tuple[Any, Any], ...]:
    """What is in a container, in order: keys, names of attributes or positions, and items."""
    if isinstance(x, dict):
        return tuple(x.items())
    if is_record(x):
        own = getattr(x, "__dict__", {})
        slots = [name for name in dict.fromkeys(_slots(type(x))) if name not in own and hasattr(x, name)]
        return (*own.items(), *((name, getattr(x, name)) for name in slots))
    return tuple(enumerate(x))


def _slots(cls: type) -> Iterator[str]:
    for base in reversed(cls.__mro__):
        yield from (name for name, member in vars(base).items() if isinstance(member, MemberDescriptorType))


def kind_of_container(x: Any) -> Any:
    """The library's class of a container, whose methods do not see what those of a class made of it would do."""
    return next(cls for cls in type(x).__mro__ if cls.__module__ in ("builtins", "collections"))


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
            kind.extend(copied, value)
        getattr(copied, "__dict__", {}).update(vars(value))
    for key, item in items:
        kind.__setitem__(copied, key, item)
    return copied


def _observe_item(trace: Trace, slot: Slot, name: str, key: Any, value: Any) -> Any:
    text = f"{name}[{key!r}]"
    return observe(trace, value, load(trace, getitem, slot, key, text), text)
