"""Caches of what is said of classes. A class that a function has made is in none: it would be kept, and all that it refers to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 4096


def by_class(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """`function`, of a class, which is asked once of each that a module has; a metaclass may say that two of them are equal."""
    known: dict[int, tuple[Any, T]] = {}  # each with the class, which lives as long as its id stands here

    @wraps(function)
    def ask(kind: Any) -> T:
        if is_local(kind):
            return function(kind)
        found = known.get(id(kind))
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[id(kind)] = kind, function(kind)
        return found[1]

    return ask


def is_local(kind: Any) -> bool:
    """Whether a function has made a class, which may be gone some day."""
    return "<locals>" in kind.__qualname__


__all__ = ["by_class", "is_local"]
