"""Caches of what is said of classes. A class that a function has made is in none: it would be kept, and all that it refers to."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

T = TypeVar("T")


def by_class(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """`function`, of a class, which is asked once of each that a module has."""
    cached = lru_cache(maxsize=4096)(function)

    @wraps(function)
    def ask(kind: Any) -> T:
        return function(kind) if is_local(kind) else cached(kind)

    return ask


def is_local(kind: Any) -> bool:
    """Whether a function has made a class, which may be gone some day."""
    return "<locals>" in kind.__qualname__


__all__ = ["by_class", "is_local"]
