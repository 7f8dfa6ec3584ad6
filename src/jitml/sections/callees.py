"""HotCallees: what a statement that runs as Python calls in place of a function: the same, compiled once it is hot.

Functions of libraries are called as they are, and so are those that functions make, often anew in each call, and those that ask
who has called them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from jitml.dispatch.renting import PlainTurn, Rent
from jitml.sections.watchers import is_watched
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import current_trace

_UNKNOWN = object()
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
        self._known: dict[FunctionType, _HotCallee] = {}
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
            if not _is_compiled(function):
                return function
            known = self._known[function] = _HotCallee(function, self._compile)
        return known.now

    def _compile(self, function: FunctionType, rent: Rent) -> Callable[..., Any]:
        self.compiled.add(function.__name__)
        return self._jitted(function, rent)


def _is_compiled(function: FunctionType) -> bool:
    """Whether a function is compiled once it is hot."""
    code = function.__code__
    if function.__closure__ is not None or code.co_flags & _GENERATORS or "<locals>" in function.__qualname__:
        return False
    return not is_library(function) and _ASK_WHO_CALLS.isdisjoint(code.co_names)


def is_asked_for(called: ast.expr, caller: FunctionType) -> bool:
    """Whether something else may be called in place of what a call names: unless that is known, and no function of the user's."""
    found = _named(called, caller)
    found = found.__func__ if type(found) is MethodType else found
    return found is _UNKNOWN or (type(found) is FunctionType and _is_compiled(found))


def _named(called: ast.expr, caller: FunctionType) -> Any:
    """What a name, or an attribute of a module, is for a function now."""
    match called:
        case ast.Name(id=name):
            code = caller.__code__
            if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
                return _UNKNOWN
            return caller.__globals__.get(name, _UNKNOWN)
        case ast.Attribute(value=value, attr=attr) if type(module := _named(value, caller)) is ModuleType:
            return vars(module).get(attr, _UNKNOWN)
    return _UNKNOWN


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


__all__ = ["HotCallees", "is_asked_for"]
