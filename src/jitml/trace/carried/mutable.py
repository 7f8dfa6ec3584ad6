"""Mutable state: what can a region change that was there before it, and what is in it, by key?

The items of a dict or a list, the attributes of an object that the function has made, one attribute of an object from outside (or
one global name), what is added to a list from outside. Loops carry what is in it (`container_items.py`), branches join it
(`regions/branch.py`), as if each item had a name: everyone who has the object sees it there.
"""

from __future__ import annotations

import abc
import typing
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from types import SimpleNamespace
from typing import Any

from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.recording import is_users_class
from jitml.trace.rewrite.driver_protocol import UNDEF

_PLAIN_BASES: tuple[Any, ...] = (object, abc.ABC, typing.Generic, typing.Protocol, SimpleNamespace)
Items = dict[Any, Any]


class Mutable(ABC):
    """Something that a region may change, and which everyone sees who has it."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    @property
    def key(self) -> Hashable:
        return id(self.obj)

    @abstractmethod
    def items(self) -> Items:
        """What is in it now; UNDEF for what may be there and is not."""

    @abstractmethod
    def put(self, items: Mapping[Any, Any]) -> None:
        """Have this in it, and nothing else."""

    def text(self, key: Any) -> str:
        """What messages call an item."""
        return f"{type(self.obj).__name__} item {key!r}"


class _DictItems(Mutable):
    __slots__ = ()

    def items(self) -> Items:
        return dict(self.obj)

    def put(self, items: Mapping[Any, Any]) -> None:
        if self.obj.keys() != items.keys() or [*self.obj] != [*items]:
            self.obj.clear()
        self.obj.update(items)


class _ListItems(Mutable):
    __slots__ = ()

    def items(self) -> Items:
        return dict(enumerate(self.obj))

    def put(self, items: Mapping[Any, Any]) -> None:
        self.obj[:] = items.values()


class _OwnAttributes(Mutable):
    """Of an object that has nothing else, and is the function's own, or a copy."""

    __slots__ = ()

    def items(self) -> Items:
        found = {}
        for name, slot in slots_of(type(self.obj)).items():
            try:
                found[name] = slot.__get__(self.obj)
            except AttributeError:  # not set
                continue
        return found | getattr(self.obj, "__dict__", {})

    def put(self, items: Mapping[Any, Any]) -> None:
        slots = slots_of(type(self.obj))
        for name in self.items().keys() & slots.keys() - items.keys():
            slots[name].__delete__(self.obj)
        for name, value in items.items():
            if name in slots:
                slots[name].__set__(self.obj, value)
        if (space := getattr(self.obj, "__dict__", None)) is not None:
            _DictItems(space).put({name: value for name, value in items.items() if name not in slots})

    def text(self, key: Any) -> str:
        return f"{type(self.obj).__name__}.{key}"


class OuterName(Mutable):
    """An attribute of an object from outside, or a global name, which is bound when the call has succeeded.

    Args:
        stored: what such names have become, by the id of their owner and name.
        before: what it is as the region begins; UNDEF if it is not there.
    """

    __slots__ = ("before", "is_new", "name", "shown", "stored")

    def __init__(self, owner: Any, name: str, shown: str, stored: dict[tuple[int, str], Any], before: Any) -> None:
        super().__init__(owner)
        self.name = name
        self.shown = shown
        self.stored = stored
        self.before = before
        self.is_new = self.key not in stored  # whether the function has not set it before

    @property
    def key(self) -> tuple[int, str]:
        return id(self.obj), self.name

    def items(self) -> Items:
        return {self.name: self.stored.get(self.key, self.before)}

    def put(self, items: Mapping[Any, Any]) -> None:
        (value,) = items.values()
        if value is UNDEF or (self.is_new and value is self.before):
            self.stored.pop(self.key, None)
        else:
            self.stored[self.key] = value

    def text(self, key: Any) -> str:
        return self.shown


class Tail(Mutable):
    """What is added to a list from outside."""

    __slots__ = ()
    obj: OpenList

    def items(self) -> Items:
        return {None: self.obj.tail}

    def put(self, items: Mapping[Any, Any]) -> None:
        self.obj.tail = items[None]

    def text(self, key: Any) -> str:
        return self.obj.name


def mutable(obj: Any) -> Mutable | None:
    """What a region can carry of an object; None if that is not all that there is to it."""
    kind: Any = type(obj)
    if kind is dict:
        return _DictItems(obj)
    if kind is list:
        return _ListItems(obj)
    if kind is SimpleNamespace or (is_users_class(kind) and all(b in _PLAIN_BASES or is_users_class(b) for b in kind.__mro__)):
        return _OwnAttributes(obj)
    return None


__all__ = ["Mutable", "OuterName", "Tail", "mutable"]
