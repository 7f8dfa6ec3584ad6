"""Object state: what does an object hold, and has a call changed that?

`ObjectState`: what its parts are now, compared with what they become.

Of a library's object this is all that Python's garbage collector finds in it; what a class that is written in C keeps to itself,
pickling shows.
"""

from __future__ import annotations

import gc
import pickle
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np

from jitml.device.view import DeviceView, address
from jitml.trace.record.class_caches import by_class

CONTAINERS = (list, tuple, dict, deque)
HEAP_TYPE = 1 << 9  # CPython's flag of classes made by a class statement, and of some that C makes
_SHOW_ALL = {object, SimpleNamespace, BaseException}  # classes written in C of which attributes tell all
_MOST_BYTES = 1 << 26  # of an object that is copied
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
    """All that objects hold; of functions, what `within` says."""
    waiting, found = [*objects], dict[int, Any]()
    while waiting and len(found) < _MOST_PARTS:
        x = waiting.pop()
        if id(x) not in found and not issubclass(type(x), (type, ModuleType, *_NUMBERS, str, bytes)):
            found[id(x)] = x
            waiting += within(x) if isinstance(x, FunctionType) else gc.get_referents(x)
    return [*found.values()]


def is_polynomial(x: Any) -> bool:
    """Whether an object is of a class of NumPy's that computes with tracers."""
    kind: Any = type(x)
    return kind is np.poly1d or str(kind.__module__).startswith("numpy.polynomial")


def is_large(x: Any) -> bool:
    """Whether an object holds more than is copied to see what a call does to it."""
    parts = parts_of([x])
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray)) > _MOST_BYTES


class ObjectState:
    """What an object holds.

    Names may be added: there libraries keep what they have found out.
    """

    __slots__ = ("_memory", "_parts", "_pickled")

    def __init__(self, x: Any) -> None:
        self._parts = parts_of([x])
        self._memory = [_contents(part) for part in self._parts]
        self._pickled = None if is_large(x) else _pickled(x)

    def is_of(self, x: Any) -> bool:
        """Whether the same object still holds this."""
        if self._pickled is not None and self._pickled == _pickled(x):
            return True
        after = [*map(_contents, self._parts)]
        kind: Any = type(x)
        if self._pickled is not None:
            is_explained = any(map(_has_more, self._memory, after))
        else:
            is_explained = is_visible(kind) or is_large(x)
        return is_explained and all(map(_is_like, self._memory, after))


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


def _contents(x: Any) -> Any:
    if type(x) is DeviceView:
        return x.dtype.str, x.shape, address(x)
    if isinstance(x, np.ndarray):
        memory = [*map(id, x.flat)] if x.dtype.hasobject else crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)
        return x.dtype.str, x.shape, memory
    if isinstance(x, dict):
        return dict(x)
    return [*x] if isinstance(x, (list, set, deque)) else _attributes(x)


def _attributes(x: Any) -> dict[str, Any]:
    """What stands in an object's namespace and slots: the collector finds the values alone."""
    if isinstance(x, (FunctionType, tuple, frozenset)):
        return {}
    found = dict(getattr(x, "__dict__", None) or {})
    return found | {name: getattr(x, name) for name in slots_of(type(x)) if hasattr(x, name)}


def _has_more(before: Any, after: Any) -> bool:
    return isinstance(before, dict) and len(before) < len(after)


def _is_like(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        added = after.keys() - before.keys()
        kept = all(name in after and after[name] is value for name, value in before.items())
        return kept and all(isinstance(name, str) for name in added)
    if isinstance(before, list):
        return len(before) == len(after) and all(x is y for x, y in zip(before, after))
    return bool(before == after)


def _pickled(x: Any) -> bytes | None:
    try:
        return pickle.dumps(x)
    except Exception:  # whatever a class's own code may raise; then its parts are compared
        return None
