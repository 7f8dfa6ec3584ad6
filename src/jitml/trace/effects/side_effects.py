"""Side effects of code that is not converted: what does a call change that was there before the region in which it stands?

Such a call runs while the function is traced: once, however often the captured loop or branch around it will run. That is
right for what the region's own body has made. Everything else that the call can reach is looked at before and after it. Where
that has changed, or cannot be looked at, only the compiled program knows whether and how often it is to change: the loop is
unrolled, the branch is traced as this call takes it, or the function is refused (`open_lists.undecided`).

Objects from outside are watched by `snapshot.py`. What converted code changes is told by the hooks of stores.
"""

from __future__ import annotations

import functools
import operator
import struct
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from enum import Enum
from types import (
    MappingProxyType,
)
from typing import Any, cast

import numpy as np

from jitml.trace.carried.outer_lists import undecided
from jitml.trace.host_calls.array_ownership import ALONE, references
from jitml.trace.record.class_caches import by_class
from jitml.trace.record.container_contents import contents
from jitml.trace.record.object_state import slots_of
from jitml.trace.record.recording import Trace, current_trace, home_of, is_users_class
from jitml.trace.values.container_identity import MadeInside
from jitml.trace.values.reachable import NUMBERS, called_by, namespace_of, reachable_from

_MOST_BYTES = 1 << 26  # of an array that is compared
_CONTAINERS = (list, dict, set, deque, bytearray, array)
_LOCKS: tuple[Any, ...] = (type(threading.Lock()), type(threading.RLock()))  # whose text says by whom they are held
_EMPTY: dict[str, Any] = {}
# What is what it holds.
_VIEWS = (
    tuple, frozenset, MappingProxyType, type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()),
    operator.itemgetter,
)  # fmt: skip
# Functions that only look, at iterators and objects whose state nobody can see as well.
LOOKERS: tuple[Any, ...] = (
    isinstance, issubclass, callable, type, id, len, repr, str, format, print, hash, bool, hasattr, getattr, dir, vars,
)  # fmt: skip
_HEADER = object.__basicsize__
_POINTER = struct.calcsize("P")
_MISSING = object()
State = tuple[Any, ...] | None  # None where nobody can see it


class EffectWatch:
    """What a call can reach that is older than the region's body, and how it is before the call.

    Args:
        things: what is called, and what it is given.
        handled: containers whose changes the caller tells itself.
    """

    def __init__(self, things: Iterable[Any], handled: Iterable[Any] = ()) -> None:
        self.reached = {id(x): x for x in reachable_from(things)}
        trace = current_trace()
        known = {id(x) for x in handled}.union(trace.local[MadeInside] if trace is not None else ())
        self.before = [(x, state_of(x)) for key, x in self.reached.items() if key not in known and may_change(x)]

    def require_unchanged(self) -> None:
        """Refuse to go on in a region whose body has changed what is older.

        Raises:
            UnsupportedError: the region cannot be captured, nor run as plain Python.
        """
        for x, before in self.before:
            if before is None or differ(before, state_of(x)):
                undecided(x)

    def own(self, made: Iterable[Any]) -> None:
        """What a class has made is the body's own, and what its own objects have come to hold, unless it was there before."""
        trace = current_trace()
        if trace is not None and trace.is_body:
            roots = [*made, *(x for key, x in self.reached.items() if key in trace.local[MadeInside])]
            trace.local[MadeInside].update((id(x), x) for x in reachable_from(roots) if id(x) not in self.reached)


def watched(call: Callable[..., Any], function: Any) -> Callable[..., Any]:
    """What to call in the place of `call`, which runs a function that is not converted: inside a region it is watched."""
    trace = current_trace()
    if trace is None or not trace.is_body or any(function is looker for looker in LOOKERS):
        return call

    def run(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        owner = getattr(function, "__self__", None)
        watch = EffectWatch((*called_by(function), *given), (x for x in (owner, *given) if isinstance(x, _CONTAINERS[:-1])))
        try:
            result = call(*args, **kwargs)
        except Exception:
            watch.require_unchanged()
            raise
        watch.require_unchanged()
        watch.own([result] if is_new(function, result) else [])
        return result

    return run


def is_new(function: Any, result: Any) -> bool:
    """Whether what a call gives is sure to be made by it; a class of the user's may look it up."""
    return isinstance(function, type) and type(result) is function and not is_users_class(cast(Any, function))


def own_parts(trace: Trace, box: list[Any], things: Iterable[Any], *, may_be_new: bool = False) -> None:
    """What alone is in a list is the function's own if it was in things of its own; else it may be a library's, as in each call.

    Args:
        may_be_new: it is what a call has given, and its own as well if nobody else holds it.
    """
    home = home_of(type(box[0])).partition(".")[0]
    if (
        isinstance(box[0], Enum)
        or home in ("builtins", "numpy", "jitml")
        or id(box[0]) in trace.outside.places
        or id(box[0]) in trace.outside.own
    ):
        return
    if (may_be_new and references(box) <= ALONE) or any(x is box[0] for x in reachable_from(things)):
        trace.outside.own[id(box[0])] = box[0]


def may_change(x: Any) -> bool:
    """Whether an object has state of its own."""
    return not isinstance(x, _VIEWS) and type(x) is not object


def state_of(x: Any) -> State:
    """What an object is now, as far as it is not in its parts; None if nobody can see it."""
    kind: Any = type(x)
    found = [*_attributes(x, kind)]
    if isinstance(x, _CONTAINERS):
        return (*found, *contents(x))
    if isinstance(x, np.ndarray):
        if x.nbytes > _MOST_BYTES:
            return None
        return (*found, *(x.flat if x.dtype.hasobject else (x.tobytes(),)))
    if isinstance(x, BaseException):
        return (*found, *x.args)
    if isinstance(x, ContextVar):
        return (*found, x.get(_MISSING))
    if isinstance(x, functools.partial):
        return (*found, x.func, x.args, x.keywords)
    if isinstance(x, _LOCKS):
        return (*found, repr(x))
    return None if has_hidden_state(kind) else tuple(found)


def _attributes(x: Any, kind: Any) -> Iterator[Any]:
    namespace = namespace_of(x)
    yield from (*namespace.keys(), *namespace.values())
    for member in slots_of(kind).values():
        try:
            yield member.__get__(x)
        except AttributeError:
            yield _MISSING


@by_class
def has_hidden_state(kind: Any) -> bool:
    """Whether instances have memory beside their attributes, as those of classes that are written in C do.

    What is compared and hashed by value does not change.
    """
    extra = sum(_POINTER for offset in (kind.__dictoffset__, kind.__weakrefoffset__) if offset > 0)
    is_plain = kind.__basicsize__ - extra - _POINTER * len(slots_of(kind)) <= _HEADER
    return not is_plain and kind.__hash__ in (None, vars(object)["__hash__"])


def differ(before: State, after: State) -> bool:
    """Whether something else is there than before."""
    if before is None or after is None or len(before) != len(after):
        return True
    return any(
        x is not y and not (type(x) is type(y) and type(x) in NUMBERS and repr(x) == repr(y)) for x, y in zip(before, after)
    )


__all__ = ["LOOKERS", "EffectWatch", "own_parts", "watched"]
