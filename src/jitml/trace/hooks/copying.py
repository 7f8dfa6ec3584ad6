"""Copies of objects: what do `copy.copy`, `copy.deepcopy` and the functions of `dataclasses` make of objects?

New ones, of what the hooks load.

So arrays in them are traced, as everywhere, and read at each call. Objects that say themselves how they are copied by what is not
converted (`__reduce__`, a library's `__copy__`) are left to Python.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitml.trace.effects.attributes import is_gone
from jitml.trace.environment.loads import load, place_of
from jitml.trace.hooks.models.user_methods import static
from jitml.trace.hooks.unconverted_calls import OutsideCalls, made_like, own
from jitml.trace.host_calls.array_ownership import own_arrays
from jitml.trace.record.containers import contents, refill
from jitml.trace.record.guards import HostConst
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.recording import is_users_class
from jitml.trace.values.boxing import is_traced, lift

_ATOMS = (type(None), type(...), bool, int, float, complex, str, bytes, range, np.generic, type, FunctionType, ModuleType)
_OWN_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__new__")


def copied(hooks: OutsideCalls, x: Any, /) -> Any:
    """`copy.copy(x)`"""
    if (special := hooks.special(x, "__copy__")) is not None:
        return special()
    if is_traced(x):
        return copy.copy(x)
    if isinstance(x, CONTAINERS):
        return own(hooks.trace, copy.copy(x))
    if not _has_plain_state(x):
        return _copied_outside(hooks, copy.copy, x)
    return made_like(hooks.trace, x, _state(hooks, x))


def deeply_copied(hooks: OutsideCalls, x: Any, memo: Any = None) -> Any:
    """`copy.deepcopy(x)`"""
    memo = {} if memo is None else memo
    if type(x) is np.ndarray:
        x = lift(x)
    if id(x) in memo:
        return memo[id(x)]
    if isinstance(x, _ATOMS):
        return x
    if (special := hooks.special(x, "__deepcopy__")) is not None:
        made = special(memo)
    elif is_traced(x):
        made = copy.deepcopy(x)
    elif type(x) in (list, dict, tuple, set, deque, OrderedDict, defaultdict) or hasattr(x, "_make"):
        return _deep_container(hooks, x, memo)
    elif _has_plain_state(x):
        made = memo[id(x)] = made_like(hooks.trace, x, {})
        for name, value in _state(hooks, x).items():
            object.__setattr__(made, name, deeply_copied(hooks, value, memo))
    elif type(x) is MethodType:
        made = MethodType(x.__func__, deeply_copied(hooks, x.__self__, memo))
    else:
        made = _copied_outside(hooks, copy.deepcopy, x, memo)
    memo[id(x)] = made
    memo.setdefault(id(memo), []).append(x)  # alive as long as its id is known, as Python does it
    return made


def _copied_outside(hooks: OutsideCalls, function: Callable[..., Any], x: Any, *memos: dict[int, Any]) -> Any:
    """What Python makes of it: new in each call, and what it holds, too."""
    before = {id(part) for memo in memos for part in memo.values()} | {id(x)}
    made = hooks.call_outside(function, x, *memos)
    for part in (made, *(part for memo in memos for part in memo.values())):
        if id(part) not in before:
            own(hooks.trace, part)
            own_arrays([part], is_new=True)
    return made


def _deep_container(hooks: OutsideCalls, x: Any, memo: Any) -> Any:
    if isinstance(x, tuple):
        items = [deeply_copied(hooks, item, memo) for item in x]
        if id(x) in memo:  # it holds itself
            return memo[id(x)]
        is_same = all(after is before for after, before in zip(items, x))
        made = x if is_same else x._make(items) if hasattr(x, "_make") else tuple(items)
    else:
        kind: Any = type(x)
        given = {"maxlen": x.maxlen} if kind is deque else {}
        made = memo[id(x)] = kind(x.default_factory) if kind is defaultdict else kind(**given)
        refill(made, tuple(deeply_copied(hooks, part, memo) for part in contents(x)))
    memo[id(x)] = made
    memo.setdefault(id(memo), []).append(x)
    return made


def as_dict(hooks: OutsideCalls, obj: Any, *, dict_factory: Any = dict) -> Any:
    """`dataclasses.asdict(obj)`"""
    if not _is_dataclass(obj):
        return dataclasses.asdict(obj)  # raises
    return _fields_of(hooks, obj, hooks.conv(dict_factory))


def as_tuple(hooks: OutsideCalls, obj: Any, *, tuple_factory: Any = tuple) -> Any:
    """`dataclasses.astuple(obj)`"""
    if not _is_dataclass(obj):
        return dataclasses.astuple(obj)  # raises
    return _fields_of(hooks, obj, lambda pairs: hooks.conv(tuple_factory)([value for _, value in pairs]))


def _fields_of(hooks: OutsideCalls, x: Any, make: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    if _is_dataclass(x):
        return make([(f.name, _fields_of(hooks, hooks.attr(x, f.name), make)) for f in dataclasses.fields(x)])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_fields_of(hooks, item, make) for item in x])
    if isinstance(x, (list, tuple)):
        return type(x)([_fields_of(hooks, item, make) for item in x])
    if isinstance(x, dict):
        pairs = [(_fields_of(hooks, key, make), _fields_of(hooks, item, make)) for key, item in x.items()]
        if type(x) is defaultdict:
            return defaultdict(x.default_factory, pairs)
        return type(x)(pairs)
    return deeply_copied(hooks, x)


def replaced(hooks: OutsideCalls, obj: Any, /, **changes: Any) -> Any:
    """`dataclasses.replace(obj, **changes)`"""
    if _is_dataclass(obj):
        missing = _parameters(obj).keys() - changes.keys()
        changes |= {name: hooks.attr(obj, name) for name in missing if hasattr(obj, name)}
        if changes.keys() == _parameters(obj).keys():
            return hooks.conv(type(obj))(**changes)  # which may run the user's code
    return own(hooks.trace, dataclasses.replace(obj, **changes))


def _state(hooks: OutsideCalls, x: Any) -> dict[str, Any]:
    """The attributes of an object, as the function sees them."""
    names = [*getattr(x, "__dict__", ())]
    slot = place_of(hooks.trace, x)
    if slot is not None and hasattr(x, "__dict__"):
        name = hooks.trace.host.name(slot)
        space = load(hooks.trace, _namespace, slot, None, f"vars({name})")
        keys = hooks.trace.host.compute(tuple, (space,), f"attributes of {name}")
        hooks.trace.host.require(keys, tuple(names))
        names = [key for key in names if (id(x), key) not in hooks.trace.changes.deleted]
        names += [key for owner, key in hooks.trace.changes.stored if owner == id(x) and key not in names]
    for key in _slots(type(x)):
        is_set = hasattr(x, key)
        if slot is not None and (id(x), key) not in hooks.trace.changes.stored:
            has = hooks.trace.host.compute(hasattr, (slot, HostConst(key)), f"hasattr({hooks.trace.host.name(slot)}, {key!r})")
            hooks.trace.host.require(has, is_set)
        names += [key] if is_set or (id(x), key) in hooks.trace.changes.stored else []
    return {name: hooks.attr(x, name) for name in names if not is_gone(hooks.trace, x, name)}


def _namespace(x: Any, _: None) -> dict[str, Any]:
    return vars(x)


def _slots(kind: Any) -> list[str]:
    return [name for cls in kind.__mro__ for name, member in vars(cls).items() if type(member) is MemberDescriptorType]


def _parameters(x: Any) -> dict[str, Any]:
    """The fields that the `__init__` takes which a dataclass has been given; `InitVar`s are no others' fields."""
    own = {f.name for f in dataclasses.fields(x)}
    fields = x.__dataclass_fields__.items()
    return {name: f for name, f in fields if f.init and (name in own or "INITVAR" in str(f._field_type))}


def _is_dataclass(x: Any) -> bool:
    return hasattr(type(x), "__dataclass_fields__") and not isinstance(x, type)


def _has_plain_state(x: Any) -> bool:
    """Whether an object is nothing but its attributes, which are no properties, to those who copy it."""
    kind: Any = type(x)
    if not is_users_class(kind) or isinstance(x, (type, MethodType, BaseException)):
        return False
    is_plain = all(static(kind, name) in (None, static(object, name)) for name in _OWN_WAYS) and _is_built_on_object(kind)
    copies = static(kind, "__copy__") is None and static(kind, "__deepcopy__") is None
    names = (*getattr(x, "__dict__", ()), *_slots(kind))
    members = (static(kind, name) for name in names)
    return is_plain and copies and all(type(m) is MemberDescriptorType or not hasattr(type(m), "__set__") for m in members)


def _is_built_on_object(kind: Any) -> bool:
    """Whether no base class is written in C, as list is."""
    return all(cls is object or bool(cls.__flags__ & (1 << 9)) for cls in kind.__mro__)


FUNCTIONS_THAT_COPY: dict[Any, Callable[..., Any]] = {
    copy.copy: copied, copy.deepcopy: deeply_copied, dataclasses.asdict: as_dict, dataclasses.astuple: as_tuple,
    dataclasses.replace: replaced,
}  # fmt: skip
