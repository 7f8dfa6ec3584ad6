"""Aliasing between objects of host calls and arrays of the function: which of these show memory that an object has?

A program has an array of its own for what a host call returns. What the function wrote there the object would not see, nor it
what the object writes there: such an array is read-only, and is not read any more once the object has written.
"""

from __future__ import annotations

import weakref
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import numpy as np

from jitml.errors import JitmlError, LentMemory
from jitml.ir.graph import Value
from jitml.records import dataclass
from jitml.trace.record.object_state import parts_of
from jitml.trace.record.parts import CallPart
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import active_trace, unsupported, user_source
from jitml.trace.storage.storage import OVERWRITES, REMEDY_OF_OVERWRITING, Storage
from jitml.trace.values.boxing import TracedArray

LOOKED_AT = (weakref.ref, ContextVar)  # objects whose methods are called for what is there
_CONTAINERS = (list, dict, deque, tuple)


@dataclass(frozen=True)
class HeldMemory:
    """Memory of this call that an object has, and the function as well: what it was made of, or what is taken of it."""

    array: np.ndarray[Any, Any]
    storage: Callable[[], Storage | None]

    def overwritten_by(self, kind: type) -> None:
        """The object has written there, which the program's own array does not show: nobody may look at that from now on."""
        storage = self.storage()
        if storage is not None and (storage.is_external or storage.trace is not active_trace()):
            unsupported(f"a {kind.__module__}.{kind.__qualname__} {OVERWRITES}", REMEDY_OF_OVERWRITING)
        if storage is not None:
            storage.overwritten = self.array


class HeldMemories(list[HeldMemory], CallPart):
    """All of it."""


@dataclass(frozen=True)
class Sealed:
    """A copy of a container that the function may not change: what is raised if it does, and the copy's leaves."""

    error: JitmlError
    copied: object
    leaves: Sequence[object]


class SealedCopies(list[Sealed], CallPart):
    """Those of a call."""


@dataclass(frozen=True)
class GivenObject:
    """A weak reference or a context variable has given an object: what is raised if one of its class has another name, too."""

    kind: type
    error: JitmlError


class GivenObjects(list[GivenObject], CallPart):
    """Those of a call."""


def hold(array: np.ndarray[Any, Any], traced: TracedArray) -> None:
    """Remember that an object has the memory of an array, which is this one in the program."""
    active_trace().call[HeldMemories].append(HeldMemory(array, weakref.ref(traced.storage)))


def hold_shared(result: Any, seen: Any, objects: Collection[Any]) -> None:
    """Of the results of a call, those that show memory of objects it was given, or has made, or are containers of theirs.

    Args:
        seen: what the result is in this call.
    """
    if type(seen) is not np.ndarray and not isinstance(seen, _CONTAINERS):
        return
    if any(isinstance(x, LOOKED_AT) for x in objects):
        _hold(result, seen, lambda x: True)
        return
    arrays, known = arrays_of(objects), {id(part) for part in parts_of(objects, closed_over)}
    _hold(result, seen, lambda x: id(x) in known or (type(x) is np.ndarray and any(np.may_share_memory(x, y) for y in arrays)))


def _hold(result: Any, seen: Any, is_shared: Callable[[Any], bool]) -> None:
    if type(seen) is np.ndarray:
        if type(result) is TracedArray and is_shared(seen):
            hold(seen, read_only(result))
    elif isinstance(seen, _CONTAINERS) and type(result) is type(seen) and len(result) == len(seen):
        if not isinstance(seen, tuple) and is_shared(seen):
            message = f"the function changes a {type(seen).__qualname__} that a library's object has given and keeps"
            error = LentMemory(message, source=user_source())
            active_trace().call[SealedCopies].append(Sealed(error, result, flatten(result)[0]))
        for key in seen if isinstance(seen, dict) else range(len(seen)):
            _hold(result[key], seen[key], is_shared)


def read_only(result: Any) -> Any:
    """What may be an object's own array: what is written there would be lost."""
    if type(result) is TracedArray:
        result.writeable = False
        result.storage.of_object = True
    return result


def arrays_of(objects: Collection[Any]) -> list[np.ndarray[Any, Any]]:
    """The arrays that objects hold, and other memory of theirs as arrays of bytes."""
    parts = parts_of(objects, closed_over)
    lent = (np.frombuffer(x, np.uint8) for x in parts if isinstance(x, (bytearray, array)) and len(x))
    return [*(x for x in parts if isinstance(x, np.ndarray)), *lent]


def closed_over(function: FunctionType) -> Iterable[Any]:
    return (function.__closure__, function.__defaults__)


def is_unwritten(storage: Storage, value: Value, writes: int, own: Any) -> bool:
    """Whether an array is what it was; `own`: what the object has for that memory, into which it may have written itself."""
    is_others = storage.overwritten is not None and storage.overwritten is not own
    return not is_others and (storage.value is value or storage.writes == writes)
