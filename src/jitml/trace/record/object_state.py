"""Object state: what does an object hold?

Of a library's object this is all that Python's garbage collector finds in it.
"""

from __future__ import annotations

import gc
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from jitml.trace.record.class_caches import by_class

CONTAINERS = (list, tuple, dict, deque)
HEAP_TYPE = 1 << 9  # CPython's flag of classes made by a class statement, and of some that C makes
_SHOW_ALL = {object, SimpleNamespace, BaseException}  # classes written in C of which attributes tell all
_MOST_PARTS = 10_000  # of an object that are searched for what it keeps
_NUMBERS = (bool, int, float, complex)


@by_class
def slots_of(kind: Any) -> Mapping[str, MemberDescriptorType]:
    """The attributes that classes have `__slots__` for; one written in C, as `complex.real`, may be another object each time."""
    bases = [base for base in reversed(kind.__mro__) if "__slots__" in vars(base)]
    members = {name: member for base in bases for name, member in [*vars(base).items()]}
    return {name: member for name, member in members.items() if type(member) is MemberDescriptorType}


def _nothing(_: FunctionType) -> Iterable[Any]:
    return ()


def parts_of(objects: Collection[Any], within: Callable[[FunctionType], Iterable[Any]] = _nothing) -> list[Any]:
    """What objects hold, as far as it is looked at (`are_all`); of functions, what `within` says."""
    waiting, found = [*objects], dict[int, Any]()
    while waiting and len(found) < _MOST_PARTS:
        x = waiting.pop()
        if id(x) not in found and not issubclass(type(x), (type, ModuleType, *_NUMBERS, str, bytes)):
            found[id(x)] = x
            waiting += within(x) if isinstance(x, FunctionType) else gc.get_referents(x)
    return [*found.values()]


def are_all(parts: Collection[Any]) -> bool:
    """Whether what `parts_of` has found is all that there is."""
    return len(parts) < _MOST_PARTS


def is_polynomial(x: Any) -> bool:
    """Whether an object is of a class of NumPy's that computes with tracers."""
    kind: Any = type(x)
    return kind is np.poly1d or str(kind.__module__).startswith("numpy.polynomial")


@by_class
def is_visible(kind: Any) -> bool:
    """Whether all that objects of a class hold can be seen: in attributes, or as items."""
    return all(cls in _SHOW_ALL or cls in CONTAINERS or _is_made_in_python(cls) for cls in kind.__mro__)


def _is_made_in_python(cls: Any) -> bool:
    """Whether objects of a class need no more memory than what stands in its slots."""
    if not cls.__flags__ & HEAP_TYPE:
        return bool(cls.__basicsize__ == object.__basicsize__ and not cls.__itemsize__) or issubclass(cls, BaseException)
    base = max(other.__basicsize__ for other in cls.__bases__)
    members = sum(type(member) is MemberDescriptorType for member in vars(cls).values())
    extra = members + ("__dict__" in vars(cls)) + ("__weakref__" in vars(cls))
    return bool(cls.__basicsize__ <= base + extra * struct.calcsize("P"))
