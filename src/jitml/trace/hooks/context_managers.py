"""Context managers of the user's whose `__enter__` and `__exit__` are converted, so that they see tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Manager:
    """A context manager by converted functions."""

    __slots__ = ("begin", "end", "obj")

    def __init__(self, obj: Any, begin: Callable[..., Any], end: Callable[..., Any]) -> None:
        self.obj = obj
        self.begin = begin
        self.end = end

    def __enter__(self) -> Any:
        return self.begin(self.obj)

    def __exit__(self, *error: Any) -> Any:
        return self.end(self.obj, *error)
