"""What stands on the left of `obj.name = v` and `obj[index] = v`?  The object, or what calls the hooks in its place."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any, NoReturn, Protocol

from jitml.trace.loaded_names import is_library


class Stores(Protocol):
    """The hooks of stores."""

    def store_attr(self, obj: Any, name: str, value: Any) -> None: ...

    def store_item(self, obj: Any, index: Any, value: Any) -> None: ...

    def refuse_write(self, obj: Any) -> NoReturn: ...


class Outside:
    """Stands for an object from outside on the left of an assignment."""

    __slots__ = ("_target",)
    _target: tuple[Stores, Any]

    def __init__(self, accesses: Stores, obj: Any) -> None:
        object.__setattr__(self, "_target", (accesses, obj))

    def __setattr__(self, name: str, value: Any) -> None:
        accesses, obj = self._target
        accesses.store_attr(obj, name, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        accesses, obj = self._target
        accesses.store_item(obj, index, value)

    def __delattr__(self, name: str) -> None:
        accesses, obj = self._target
        accesses.refuse_write(obj)

    def __delitem__(self, index: Any) -> None:
        accesses, obj = self._target
        accesses.refuse_write(obj)


class Storing:
    """Stands for an object of the function's own, or a copy, whose `__setitem__` is the user's, on the left of an assignment."""

    __slots__ = ("_target",)
    _target: tuple[Stores, Any]

    def __init__(self, accesses: Stores, obj: Any) -> None:
        object.__setattr__(self, "_target", (accesses, obj))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target[1], name, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        accesses, obj = self._target
        accesses.store_item(obj, index, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._target[1], name)

    def __delitem__(self, index: Any) -> None:
        del self._target[1][index]


def stores_itself(obj: Any) -> bool:
    """Whether what `obj[index] = value` does is the user's."""
    method = inspect.getattr_static(type(obj), "__setitem__", None)
    return isinstance(method, FunctionType) and not is_library(method)


def sets_itself(obj: Any, name: str) -> bool:
    """Whether what `obj.name = value` does is the user's."""
    setter = inspect.getattr_static(type(obj), "__setattr__", None)
    return isinstance(setter, FunctionType) or isinstance(inspect.getattr_static(type(obj), name, None), property)
