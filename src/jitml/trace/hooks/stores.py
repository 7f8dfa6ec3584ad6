"""Store targets: what stands on the left of `obj.name = v` and `obj[index] = v`?

The object, or what calls the hooks in its place.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from types import FunctionType, MemberDescriptorType
from typing import Any, NoReturn, Protocol

import numpy as np

from jitml.trace.record.libraries import is_library
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.tracers import TracedScalar


class Stores(Protocol):
    """The hooks of stores."""

    def store_attr(self, obj: Any, name: str, value: Any) -> None: ...

    def delete_attr(self, obj: Any, name: str) -> None: ...

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
        accesses.delete_attr(obj, name)

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


class Sparse:
    """Stands for a sparse matrix of the function's own on the left of an assignment: what is in it are numbers."""

    __slots__ = ("_matrix",)
    _matrix: Any

    def __init__(self, matrix: Any) -> None:
        object.__setattr__(self, "_matrix", matrix)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._matrix, name, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        if any(map(is_traced, flatten((index, value))[0])):
            unsupported(
                f"an item of a {type(self._matrix).__name__} that the function has made is set, and where or to what is computed",
                "Collect the items and make the matrix of them, as coo_matrix((values, (rows, columns))), or set an array's.",
            )
        self._matrix[index] = value

    def __delattr__(self, name: str) -> None:
        delattr(self._matrix, name)

    def __delitem__(self, index: Any) -> None:
        del self._matrix[index]


def stores_itself(obj: Any) -> bool:
    """Whether what `obj[index] = value` does is the user's."""
    method = inspect.getattr_static(type(obj), "__setitem__", None)
    return isinstance(method, FunctionType) and not is_library(method)


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
