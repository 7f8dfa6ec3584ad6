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
from jitml.trace.hooks.operators import Specials
from jitml.trace.hooks.user_methods import static
from jitml.trace.host_calls.array_ownership import own_arrays
from jitml.trace.record.guards import HostConst
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.recording import is_users_class
from jitml.trace.values.boxing import is_traced, lift

_ATOMS = (type(None), type(...), bool, int, float, complex, str, bytes, range, np.generic, type, FunctionType, ModuleType)
_OWN_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__new__")


class Copies(Specials):
    """The hooks of functions that copy objects; `calls.Hooks` has them too."""

    __slots__ = ()
    _call_outside: Callable[..., Any]  # of `calls.Hooks`
    made: Callable[[Any], Any]  # of `steering.Steering`

    def copied(self, x: Any, /) -> Any:
        """`copy.copy(x)`"""
        if (special := self.special(x, "__copy__")) is not None:
            return special()
        if is_traced(x):
            return copy.copy(x)
        if isinstance(x, CONTAINERS):
            return self._own(copy.copy(x))
        if not _has_plain_state(x):
            return self._copied_outside(copy.copy, x)
        return self._made(x, self._state(x))

    def deeply_copied(self, x: Any, memo: Any = None) -> Any:
        """`copy.deepcopy(x)`"""
        memo = {} if memo is None else memo
        if type(x) is np.ndarray:
            x = lift(x)
        if id(x) in memo:
            return memo[id(x)]
        if isinstance(x, _ATOMS):
            return x
        if (special := self.special(x, "__deepcopy__")) is not None:
            made = special(memo)
        elif is_traced(x):
            made = copy.deepcopy(x)
        elif type(x) in (list, dict, tuple, set, deque, OrderedDict, defaultdict) or hasattr(x, "_make"):
            return self._deep_container(x, memo)
        elif _has_plain_state(x):
            made = memo[id(x)] = self._made(x, {})
            for name, value in self._state(x).items():
                object.__setattr__(made, name, self.deeply_copied(value, memo))
        elif type(x) is MethodType:
            made = MethodType(x.__func__, self.deeply_copied(x.__self__, memo))
        else:
            made = self._copied_outside(copy.deepcopy, x, memo)
        memo[id(x)] = made
        memo.setdefault(id(memo), []).append(x)  # alive as long as its id is known, as Python does it
        return made

    def _copied_outside(self, function: Callable[..., Any], x: Any, *memos: dict[int, Any]) -> Any:
        """What Python makes of it: new in each call, and what it holds, too."""
        before = {id(part) for memo in memos for part in memo.values()} | {id(x)}
        made = self._call_outside(function, x, *memos)
        for part in (made, *(part for memo in memos for part in memo.values())):
            if id(part) not in before:
                self._own(part)
                own_arrays([part], is_new=True)
        return made

    def _deep_container(self, x: Any, memo: Any) -> Any:
        if isinstance(x, tuple):
            items = [self.deeply_copied(item, memo) for item in x]
            if id(x) in memo:  # it holds itself
                return memo[id(x)]
            is_same = all(after is before for after, before in zip(items, x))
            made = x if is_same else x._make(items) if hasattr(x, "_make") else tuple(items)
        elif isinstance(x, dict):
            made = memo[id(x)] = defaultdict(x.default_factory) if type(x) is defaultdict else type(x)()
            made.update((self.deeply_copied(key, memo), self.deeply_copied(item, memo)) for key, item in x.items())
        elif type(x) is deque:
            made = memo[id(x)] = deque(maxlen=x.maxlen)
            made.extend(self.deeply_copied(item, memo) for item in x)
        else:
            made = memo[id(x)] = type(x)()
            for item in x:
                made.append(self.deeply_copied(item, memo)) if type(x) is list else made.add(self.deeply_copied(item, memo))
        memo[id(x)] = made
        memo.setdefault(id(memo), []).append(x)
        return made

    def as_dict(self, obj: Any, *, dict_factory: Any = dict) -> Any:
        """`dataclasses.asdict(obj)`"""
        if not _is_dataclass(obj):
            return dataclasses.asdict(obj)  # raises
        return self._fields_of(obj, self.conv(dict_factory))

    def as_tuple(self, obj: Any, *, tuple_factory: Any = tuple) -> Any:
        """`dataclasses.astuple(obj)`"""
        if not _is_dataclass(obj):
            return dataclasses.astuple(obj)  # raises
        return self._fields_of(obj, lambda pairs: self.conv(tuple_factory)([value for _, value in pairs]))

    def _fields_of(self, x: Any, make: Callable[[list[tuple[str, Any]]], Any]) -> Any:
        if _is_dataclass(x):
            return make([(f.name, self._fields_of(self.attr(x, f.name), make)) for f in dataclasses.fields(x)])
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*[self._fields_of(item, make) for item in x])
        if isinstance(x, (list, tuple)):
            return type(x)([self._fields_of(item, make) for item in x])
        if isinstance(x, dict):
            pairs = [(self._fields_of(key, make), self._fields_of(item, make)) for key, item in x.items()]
            if type(x) is defaultdict:
                return defaultdict(x.default_factory, pairs)
            return type(x)(pairs)
        return self.deeply_copied(x)

    def replaced(self, obj: Any, /, **changes: Any) -> Any:
        """`dataclasses.replace(obj, **changes)`"""
        if _is_dataclass(obj):
            missing = _parameters(obj).keys() - changes.keys()
            changes |= {name: self.attr(obj, name) for name in missing if hasattr(obj, name)}
            if changes.keys() == _parameters(obj).keys():
                return self.conv(type(obj))(**changes)  # which may run the user's code
        return self._own(dataclasses.replace(obj, **changes))

    def _own(self, made: Any) -> Any:
        """What is new in each call."""
        self.trace.own[id(made)] = made
        return made

    def _state(self, x: Any) -> dict[str, Any]:
        """The attributes of an object, as the function sees them."""
        names = [*getattr(x, "__dict__", ())]
        slot = place_of(self.trace, x)
        if slot is not None and hasattr(x, "__dict__"):
            name = self.trace.host.name(slot)
            space = load(self.trace, _namespace, slot, None, f"vars({name})")
            keys = self.trace.host.compute(tuple, (space,), f"attributes of {name}")
            self.trace.host.require(keys, tuple(names))
            names = [key for key in names if (id(x), key) not in self.trace.deleted]
            names += [key for owner, key in self.trace.stored if owner == id(x) and key not in names]
        for key in _slots(type(x)):
            is_set = hasattr(x, key)
            if slot is not None and (id(x), key) not in self.trace.stored:
                has = self.trace.host.compute(hasattr, (slot, HostConst(key)), f"hasattr({self.trace.host.name(slot)}, {key!r})")
                self.trace.host.require(has, is_set)
            names += [key] if is_set or (id(x), key) in self.trace.stored else []
        return {name: self.attr(x, name) for name in names if not is_gone(self.trace, x, name)}

    def _made(self, x: Any, state: dict[str, Any]) -> Any:
        made = self._own(object.__new__(type(x)))
        for name, value in state.items():
            object.__setattr__(made, name, value)
        return self.made(made)


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


FUNCTIONS_THAT_COPY: dict[Any, str] = {
    copy.copy: "copied", copy.deepcopy: "deeply_copied", dataclasses.asdict: "as_dict", dataclasses.astuple: "as_tuple",
    dataclasses.replace: "replaced",
}  # fmt: skip

__all__ = ["FUNCTIONS_THAT_COPY", "Copies"]
