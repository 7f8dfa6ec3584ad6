"""Reachability: all that things hold, and what functions close over."""

from __future__ import annotations

import gc
import operator
import re
import struct
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GenericAlias,
    MethodType,
    MethodWrapperType,
    ModuleType,
    TracebackType,
)
from typing import Any

import numpy as np

from jitml.trace.record.recording import current_trace, home_of
from jitml.trace.values.boxing import is_traced

_MOST_PARTS = 10_000  # that are looked at
NUMBERS = (bool, int, float, complex, str, bytes, type(None))
# What has no state, or none that a call could change.
_STATELESS = (
    *NUMBERS, type, ModuleType, CodeType, FrameType, TracebackType, GenericAlias, range, slice, np.generic, np.dtype, np.ufunc,
    FunctionType, MethodType, BuiltinFunctionType, MethodWrapperType, re.Match, struct.Struct, property, staticmethod,
    classmethod, weakref.ref, operator.itemgetter, operator.attrgetter, operator.methodcaller,
    type(NotImplemented), type(...),
)  # fmt: skip


def iterators_in(things: Iterable[Any]) -> dict[int, Any]:
    """Iterators among these, in what they hold, and in what functions close over."""
    return {id(x): x for x in reachable_from(things, within_functions=True) if hasattr(type(x), "__next__")}


def reachable_from(things: Iterable[Any], *, within_functions: bool = False) -> Iterator[Any]:
    """These, and all that they hold, except for what is from outside, and numbers and their like."""
    trace = current_trace()
    outside = trace.outside.places if trace is not None else {}
    waiting, seen = [*things], set[int]()
    while waiting and len(seen) < _MOST_PARTS:
        x = waiting.pop()
        kind: Any = type(x)
        if kind in NUMBERS or is_traced(x) or id(x) in seen or id(x) in outside:
            continue
        if within_functions and kind is FunctionType:
            seen.add(id(x))
            waiting += [*called_by(x), *(x.__defaults__ or ())]
        if issubclass(kind, _STATELESS):
            continue
        if home_of(kind).startswith("jitml.") or (trace is not None and id(x) in trace.copies.watched):
            continue
        seen.add(id(x))
        yield x
        if (namespace := namespace_of(x)) and id(namespace) not in seen:  # which is a part of the object's own state
            seen.add(id(namespace))
            waiting += namespace.values()
        if not issubclass(kind, np.ndarray) or x.dtype.hasobject:
            waiting += gc.get_referents(x)


def called_by(function: Any) -> tuple[Any, ...]:
    """Where a function has its state: in the object that it is a method of, in what it closes over, in itself."""
    if isinstance(function, type | ModuleType):
        return ()
    if isinstance(function, FunctionType):
        return tuple(x for cell in function.__closure__ or () for x in contents_of_cell(cell))
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type | ModuleType):
        return (owner,)
    return () if isinstance(function, BuiltinFunctionType) else (function,)


def contents_of_cell(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def namespace_of(x: Any) -> Mapping[str, Any]:
    """An object's own attributes; `vars` would call a `__getattribute__` of the user's."""
    try:
        found: Mapping[str, Any] = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return found
