"""Keys of dicts and Counters: equal ones may be of other types, or hold something else (`1`, `True`, `1.0`).

Dicts are compared by their keys, which Python finds equal; `form` tells such apart. Most dicts have texts for keys: these need it
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from jitml.trace.context import Trace, is_users_class
from jitml.trace.host import IMMUTABLE, Slot

_BY_TYPE = (bool, int, str, bytes, type(None), np.integer, np.bool_, np.str_, np.bytes_)
_BY_TEXT = (float, complex, np.inexact, *IMMUTABLE)


def form(keys: Iterable[Any]) -> tuple[Any, ...]:
    """What equal keys may differ in."""
    return tuple(map(_told, keys))


def _told(key: Any) -> Any:
    kind: Any = type(key)
    if isinstance(key, (tuple, frozenset)):
        return kind, form(key)
    if isinstance(key, Enum):
        return kind
    if isinstance(key, _BY_TEXT):
        return kind, repr(key)
    if not isinstance(key, _BY_TYPE) and is_users_class(kind) and hasattr(key, "__dict__"):
        return kind, tuple((name, _exactly(value)) for name, value in vars(key).items())
    return kind


def _exactly(value: Any) -> Any:
    """Of what nobody has found equal."""
    if isinstance(value, tuple):
        return type(value), tuple(map(_exactly, value))
    return (type(value), repr(value)) if isinstance(value, (*_BY_TYPE, *_BY_TEXT)) else id(value)


def require_form(trace: Trace, keys: Mapping[Any, Any], find: Callable[[], Slot], name: str) -> None:
    """The keys are of the types that they are of now."""
    if any(type(key) is not str for key in keys):
        trace.host.require(trace.host.compute(form, (find(),), f"types of the keys of {name}"), form(keys))


__all__ = ["form", "require_form"]
