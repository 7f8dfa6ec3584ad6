"""Formatting: what may be written into a text?  Numbers, arrays, constants, and containers of these; no objects."""

from __future__ import annotations

from collections import deque
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitml.trace.environment.guarded_loads import with_items
from jitml.trace.environment.tracked_copies import entries
from jitml.trace.hooks.models.user_methods import users_method
from jitml.trace.record.guards import IMMUTABLE
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import home_of, unsupported
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.text import TracedText, text

_CONSTANT = (
    bool, int, float, complex, str, bytes, bytearray, type(None), type(...), range, slice, np.generic, np.dtype, np.ndarray, Enum,
    type, FunctionType, MethodType, BuiltinFunctionType, ModuleType, BaseException, set, frozenset, *IMMUTABLE,
)  # fmt: skip
_CONTAINERS = (list, tuple, dict, deque)
_WRITES = ("__str__", "__repr__", "__format__")


def written(x: Any, around: tuple[int, ...] = ()) -> Any:
    """A value that is written into a text: a container is a new one, so that it is no longer the caller's.

    Raises:
        UnsupportedError: it is an object, or holds one.
    """
    if is_traced(x) or type(x) is TracedText or id(x) in around:
        return x
    kind: Any = type(x)
    if not any(users_method(kind, name) for name in _WRITES):
        if kind in _CONTAINERS or (issubclass(kind, tuple) and hasattr(x, "_make")):
            return with_items(x, [(key, written(part, (*around, id(x)))) for key, part in entries(x)])
        is_computed = isinstance(x, BaseException) and any(
            is_traced(leaf) or type(leaf) is TracedText for leaf in flatten(x.args)[0]
        )
        if not is_computed and (isinstance(x, _CONSTANT) or home_of(kind).startswith("jitml.")):
            return x
    unsupported(f"a {kind.__qualname__} is written into a text", "Write the numbers, arrays and texts that it holds.")


def written_text(*parts: Any) -> Any:
    """An f-string: texts, and triples of a value, a conversion and a format."""
    return text(*((written(part[0]), *part[1:]) if type(part) is tuple else part for part in parts))
