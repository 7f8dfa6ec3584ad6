"""HotCallees: what a statement that runs as Python calls in place of a function: the same, compiled once it is hot.

Functions of libraries are called as they are, and so are those that functions make, often anew in each call, and those that ask
who has called them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from jitml.dispatch.renting import PlainTurn, Rent
from jitml.sections.watchers import is_watched
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import current_trace

_ASK_WHO_CALLS = {"warn", "_getframe", "currentframe", "stack", "extract_stack", "findCaller"}
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class HotCallees:
    """The functions that plain statements call.

    Args:
        jitted: `jitml.jit` of one, with the options of the function around, and what it has cost.

    Attributes:
        compiled: the names of those that have been compiled.
    """

    def __init__(self, jitted: Callable[[FunctionType, Rent], Callable[..., Any]]) -> None:
        self._jitted = jitted
        self._known: WeakKeyDictionary[FunctionType, _HotCallee] = WeakKeyDictionary()
        self.compiled: set[str] = set()

    def __call__(self, function: Any) -> Any:
        """What to call in its place."""
        if is_watched():
            return function
        kind = type(function)
        if kind is FunctionType:
            return self._callee(function)
        if kind is MethodType and type(function.__func__) is FunctionType:
            made = self._callee(function.__func__)
            return function if made is function.__func__ else MethodType(made, function.__self__)
        return function

    def _callee(self, function: FunctionType) -> Callable[..., Any]:
        known = self._known.get(function)
        if known is None:
            code = function.__code__
            if function.__closure__ is not None or code.co_flags & _GENERATORS or "<locals>" in function.__qualname__:
                return function
            if is_library(function) or _ASK_WHO_CALLS.intersection(code.co_names):
                return function
            known = self._known[function] = _HotCallee(function, self._compile)
        return known.now

    def _compile(self, function: FunctionType, rent: Rent) -> Callable[..., Any]:
        self.compiled.add(function.__name__)
        return self._jitted(function, rent)


class _HotCallee:
    """One function; `now` is what is called: itself while it is timed, then what it was compiled to, or the plain function."""

    def __init__(self, function: FunctionType, jitted: Callable[[FunctionType, Rent], Callable[..., Any]]) -> None:
        self._jitted = jitted
        self._rent = Rent()
        self._turn: PlainTurn | None = None  # the outermost call that is timed
        self.now: Callable[..., Any] = self._timed(function)

    def _timed(self, function: FunctionType) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            if self._turn is not None or current_trace() is not None:
                return function(*args, **kwargs)
            self._turn = turn = PlainTurn(self._rent.paid)
            try:
                return function(*args, **kwargs)
            finally:
                self._turn = None
                turn.seen()
                self._settle(function)

        return called

    def _settle(self, function: FunctionType) -> None:
        if self._rent.is_due():
            self.now = self._jitted(function, self._rent)
        elif self._rent.is_small:
            self.now = function


__all__ = ["HotCallees"]
