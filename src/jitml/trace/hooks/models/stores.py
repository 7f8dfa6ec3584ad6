"""Store targets: what stands on the left of `obj.name = v` and `obj[index] = v`?

The object, or what calls the hooks in its place.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from jitml.trace.effects.attribute_stores import HookProtocol, refuse_write, store
from jitml.trace.environment.guarded_loads import require_member
from jitml.trace.hooks.models.user_methods import users_method
from jitml.trace.values.tracers import TracedScalar


class Storing:
    """Stands on the left of an assignment for an object of the function's own, or a copy, whose `__setitem__` is the user's."""

    __slots__ = ("_target",)
    _target: tuple[HookProtocol, Any]

    def __init__(self, hooks: HookProtocol, obj: Any) -> None:
        object.__setattr__(self, "_target", (hooks, obj))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target[1], name, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        hooks, obj = self._target
        method = users_method(type(obj), "__setitem__")
        if method is None:
            refuse_write(hooks.trace, obj)
        require_member(hooks.trace, type(obj), "__setitem__", method)
        hooks.convert(method)(obj, index, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._target[1], name)

    def __delitem__(self, index: Any) -> None:
        del self._target[1][index]


class Outside(Storing):
    """Stands for an object from outside."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        store(*self._target, name, value)

    def __delattr__(self, name: str) -> None:
        hooks, obj = self._target
        refuse_write(hooks.trace, obj)

    def __delitem__(self, index: Any) -> None:
        hooks, obj = self._target
        refuse_write(hooks.trace, obj)


def stores_itself(obj: Any) -> bool:
    """Whether what `obj[index] = value` does is the user's."""
    return users_method(type(obj), "__setitem__") is not None


def takes_items(obj: Any) -> bool:
    """Whether all that `obj[index] = item` does, of an item that is there already, is nothing: a tuple raises, x.flat copies."""
    if isinstance(obj, (TracedScalar, np.flatiter, ChainMap)):  # which stores in the first of its dicts, wherever the item is
        return False
    return hasattr(type(obj), "__setitem__") and not stores_itself(obj)


def sets_itself(obj: Any, name: str) -> bool:
    """Whether what `obj.name = value` does is the user's, or to raise, as of the fields of a namedtuple."""
    setter = inspect.getattr_static(type(obj), "__setattr__", None)
    attribute = type(inspect.getattr_static(type(obj), name, None))
    return isinstance(setter, FunctionType) or (hasattr(attribute, "__set__") and attribute is not MemberDescriptorType)
