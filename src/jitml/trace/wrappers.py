"""What do `functools.singledispatch` and `lru_cache` make of the user's functions?  The host program asks them at each call.

A dispatcher chooses by the class of its first argument, among functions that may be registered later. A cache answers with what
it has kept, which is computed again once it is cleared: it is asked before the program starts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from jitml.trace.context import Trace, outside_trace
from jitml.trace.host import Const, Slot
from jitml.trace.loaded_names import is_library
from jitml.trace.numbers import TracedNumber
from jitml.trace.outside import observe_changing
from jitml.trace.registry import has_meaning, uncached

_DISPATCHER: Any = functools.singledispatch(lambda x: x)


def is_dispatcher(function: Any) -> bool:
    """Whether `functools.singledispatch` has made a function."""
    return type(function) is FunctionType and function.__code__ is _DISPATCHER.__code__


def is_dispatch(function: Any) -> bool:
    """Whether this is what says what such a function calls."""
    return type(function) is FunctionType and function.__code__ is _DISPATCHER.dispatch.__code__


def chosen(trace: Trace, dispatch: Callable[[Any], Any], name: str, args: tuple[Any, ...]) -> Any:
    """The function for the class of the first argument, and none registered later."""
    if not args:
        raise TypeError(f"{name} requires at least 1 positional argument")
    return chosen_for(trace, dispatch, name, args[0].__class__)


def chosen_for(trace: Trace, dispatch: Callable[[Any], Any], name: str, cls: type) -> Any:
    """The same for a class."""
    found = dispatch(cls)
    trace.host.require_same(trace.host.compute(dispatch, (Const(cls),), f"{name} for {cls.__name__}"), found)
    return found


def cached_part(function: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """A function of the user's behind a cache, and what it is bound to; None of all others."""
    bound: tuple[Any, ...] = ()
    if type(function) is MethodType:
        function, bound = function.__func__, (function.__self__,)
    inner = uncached(function)
    is_users = inner is not function and type(inner) is FunctionType and not is_library(inner) and not has_meaning(inner)
    return (function, bound) if is_users else None


def of_cache(trace: Trace, function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a cached function has for arguments that are known."""
    given = [x.known() if type(x) is TracedNumber else x for x in (*args, *kwargs.values())]
    name = function.__name__
    key = (of_cache, function, *((id(x), None) if id(x) in trace.places else (type(x), x) for x in given), *kwargs)
    call = _Call(function, len(args), tuple(kwargs))
    if key not in trace.loaded:
        operands: list[Slot | Const] = [trace.places[id(x)] if id(x) in trace.places else Const(x) for x in given]
        trace.loaded[key] = trace.host.compute(call, tuple(operands), f"{name}(...)")
    with outside_trace():
        value = call(*given)
    return observe_changing(trace, value, trace.loaded[key], f"{name}(...)")


class _Call:
    """A call with some arguments given by name."""

    def __init__(self, function: Any, count: int, names: tuple[str, ...]) -> None:
        self.function, self.count, self.names = function, count, names

    def __call__(self, *given: Any) -> Any:
        return self.function(*given[: self.count], **dict(zip(self.names, given[self.count :])))
