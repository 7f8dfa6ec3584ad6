"""Equality and sameness: keys, members of sets and other plain values that are equal may differ (`1`, `True`, `1.0`).

Dicts and sets are compared by what Python finds equal in them; `form` tells such apart. Most dicts have texts for keys: these
need it not. So do ranges (`range(0, 3, 2)` equals `range(0, 4, 2)`), slices, and what a class of the user's adds to a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import MemberDescriptorType
from typing import Any

import numpy as np

from jitml.trace.record.guards import IMMUTABLE, Slot
from jitml.trace.record.recording import Trace, is_users_class

_BY_TYPE = (bool, int, str, bytes, type(None), np.integer, np.bool_, np.str_, np.bytes_)
_BY_TEXT = (float, complex, np.inexact, *IMMUTABLE)


def form(keys: Iterable[Any]) -> tuple[Any, ...]:
    """What equal keys may differ in."""
    return tuple(map(_told, keys))


def _told(key: Any) -> Any:
    kind: Any = type(key)
    if isinstance(key, Enum):
        return kind
    own = _attributes(key, kind) if is_users_class(kind) else ()
    if isinstance(key, (tuple, frozenset)):
        return kind, form(key), own
    if isinstance(key, (range, slice)):
        return kind, form((key.start, key.stop, key.step)), repr(key)
    if isinstance(key, _BY_TEXT):
        return kind, repr(key), own
    return (kind, own) if own else kind


def _attributes(key: Any, kind: Any) -> tuple[tuple[str, Any], ...]:
    """What an object has in its namespace and slots; one that is equal to itself alone is always this one."""
    if kind.__eq__ is object.__eq__:
        return ()
    found = dict(getattr(key, "__dict__", {}))
    members = {name: member for cls in kind.__mro__ for name, member in vars(cls).items()}
    slots = [name for name, member in members.items() if isinstance(member, MemberDescriptorType)]
    found |= {name: getattr(key, name) for name in slots if hasattr(key, name)}
    return tuple((name, _exactly(value)) for name, value in found.items())


def _exactly(value: Any) -> Any:
    """Of what nobody has found equal."""
    if isinstance(value, tuple):
        return type(value), tuple(map(_exactly, value))
    return (type(value), repr(value)) if isinstance(value, (*_BY_TYPE, *_BY_TEXT)) else id(value)


def require_value(trace: Trace, slot: Slot, value: Any) -> None:
    """A plain value is exactly this, and not only equal."""
    kind: Any = type(value)
    trace.host.require(slot, value)
    if isinstance(value, (range, slice, frozenset)) or (is_users_class(kind) and not isinstance(value, Enum)):
        name = f"what makes {trace.host.name(slot)}"
        trace.host.require(trace.host.compute(_told, (slot,), name), _told(value))


def require_form(trace: Trace, keys: Mapping[Any, Any], find: Callable[[], Slot], name: str) -> None:
    """The keys are of the types that they are of now."""
    if any(type(key) is not str for key in keys):
        trace.host.require(trace.host.compute(form, (find(),), f"types of the keys of {name}"), form(keys))


__all__ = ["form", "require_form", "require_value"]
