"""Context managers of the user's whose `__enter__` and `__exit__` are converted, so that they see tracers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.user_methods import users_method
from jitml.trace.record.recording import home_of, unsupported


class Manager:
    """A context manager by converted functions."""

    __slots__ = ("begin", "end")

    def __init__(self, begin: Callable[[], Any], end: Callable[..., Any]) -> None:
        self.begin = begin
        self.end = end

    def __enter__(self) -> Any:
        return self.begin()

    def __exit__(self, *error: Any) -> Any:
        return self.end(*error)


def managed(hooks: ModelHooks, obj: Any) -> Any:
    """`with obj`: a context manager of the user's sees tracers; of all others, itself."""
    kind = type(obj)
    if home_of(kind) in ("_thread", "threading") or getattr(obj, "func", None) is inspect.unwrap(np.printoptions):
        name = "np.printoptions" if home_of(kind) == "contextlib" else f"a {kind.__name__}"
        unsupported(
            f"{name} would be entered only once, while the function is traced, and not at every call",
            "Put the `with` around the call of the jitted function.",
        )
    begin, end = users_method(kind, "__enter__"), users_method(kind, "__exit__")
    if begin is None or end is None:
        return obj
    return Manager(hooks.method(obj, "__enter__", begin), hooks.method(obj, "__exit__", end))
