"""Dispatchers and caches: what do functions give whose answers others decide?

Dispatchers, caches, libraries that are traced through: the host program asks them.

A dispatcher chooses by the class of its first argument, among functions that may be registered later. A cache answers with what
it has kept, which is computed again once it is cleared; a library as somebody has set it up. These two are asked before the
program starts.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

from jitml.errors import JitmlError
from jitml.interrupts import pass_on
from jitml.trace.environment.loads import observe_argument, observe_changing
from jitml.trace.environment.pending import require_shown
from jitml.trace.environment.understood import PLAIN, Way, is_iterator, way_of
from jitml.trace.record.guards import HostConst, Slot
from jitml.trace.record.libraries import is_library, is_traced_through
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.record.recording import Trace, outside_trace, unsupported
from jitml.trace.record.user_code import is_converted_inside
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.opaque_objects import is_opaque, original_of
from jitml.trace.values.registry import full_name, has_meaning, uncached

_DISPATCHER: Any = functools.singledispatch(lambda x: x)


@contextlib.contextmanager
def _managing() -> Iterator[None]:
    yield


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
    trace.host.require_same(trace.host.compute(dispatch, (HostConst(cls),), f"{name} for {cls.__name__}"), found)
    return found


def managing(function: Any) -> FunctionType | None:
    """The user's generator function behind `contextlib.contextmanager`; None of all else."""
    plain = function.__func__ if type(function) is MethodType else function
    inner = getattr(plain, "__wrapped__", None)
    is_manager = type(plain) is FunctionType and plain.__code__ is _managing.__code__
    return inner if is_manager and type(inner) is FunctionType and not is_library(inner) else None


def deprecated_part(function: Any) -> tuple[Any, str, type[Warning]] | None:
    """The user's function behind `warnings.deprecated`, and what that warns of at the caller's line; None of all else."""
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is not FunctionType or not is_library(plain) or not isinstance(getattr(plain, "__deprecated__", None), str):
        return None
    around = dict(zip(plain.__code__.co_freevars, (cell.cell_contents for cell in plain.__closure__ or ())))
    inner, message, category = (around.get(name) for name in ("arg", "msg", "category"))
    if around.get("stacklevel") != 1 or type(inner) is not FunctionType or category is None:
        return None
    return (inner if plain is function else MethodType(inner, function.__self__)), str(message), category


def cached_part(function: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """A function of the user's behind a cache, and what it is bound to; None of all others.

    One that is made inside keeps what is made inside, and is called like any other.
    """
    bound: tuple[Any, ...] = ()
    if type(function) is MethodType:
        function, bound = function.__func__, (function.__self__,)
    inner = uncached(function)
    is_users = inner is not function and type(inner) is FunctionType and not is_library(inner) and not has_meaning(inner)
    return (function, bound) if is_users and not is_converted_inside(inner) else None


def of_cache(trace: Trace, function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a cached function has for arguments that are known."""
    args, kwargs = tuple(map(_known, args)), {name: _known(x) for name, x in kwargs.items()}
    found = host_step(trace, function, args, kwargs)
    if found is None:
        unsupported(f"{function.__name__}, which keeps its results, is called with what is made in the jitted function")
    value, slot = found
    return observe_changing(trace, value, slot, trace.host.name(slot))


def _known(x: Any) -> Any:
    return x.known() if type(x) is TracedNumber else x


def is_foreign(function: Any) -> bool:
    """Whether a function may look at what others change: at what a library has been told."""
    return not isinstance(function, type) and is_traced_through(uncached(function))


def of_library(trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What such a function gives for what the host program has: it is asked at each call; `NotImplemented` of all else."""
    found = host_step(trace, function, args, kwargs)
    if found is None or is_iterator(found[0]):
        return NotImplemented
    value, slot = found
    if value is None:
        unsupported(
            f"{full_name(function)} returns nothing, and would do what it does while the function is traced",
            "Call it outside of the jitted function.",
        )
    return observe_argument(trace, value, slot, trace.host.name(slot))


def host_step(trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Slot] | None:
    """A call before the program starts, of what the host program has; None if anything else is given.

    Returns:
        What comes of it in this call, and its slot.
    """
    leaves, spec = flatten((args, kwargs))
    operands = [_operand(trace, x) for x in leaves]
    if None in operands:
        return None
    call = _StructuredCall(function, spec)
    given = [original_of(x) if type(x) is not TracedNumber else x.concrete for x in leaves]
    require_shown(trace, function, function.__name__, given)
    slots = tuple(x for x in operands if x is not None)
    text = f"{function.__name__}({', '.join('...' for _ in leaves)})"
    try:
        with outside_trace():
            value = call(*given)
    except JitmlError:
        raise
    except Exception as error:  # which the function may handle
        pass_on(error)
        trace.host.require(trace.host.compute(_Raised(call), slots, f"what {text} raises"), _named(error))
        raise
    return value, trace.host.compute(call, slots, text)


def _operand(trace: Trace, x: Any) -> Slot | HostConst | None:
    if type(x) is TracedNumber:
        return x.slot
    if not is_traced(x) and isinstance(x, PLAIN):
        return HostConst(x)
    if id(x) in trace.outside.places:
        return trace.outside.places[id(x)]
    return HostConst(x) if not is_opaque(x) and not is_traced(x) and way_of(x) is Way.ITSELF else None


class _StructuredCall:
    """A call with arguments of a structure."""

    def __init__(self, function: Any, spec: Any) -> None:
        self.function, self.spec = function, spec

    def __call__(self, *leaves: Any) -> Any:
        args, kwargs = unflatten(self.spec, leaves)
        return self.function(*args, **kwargs)


class _Raised:
    """The exception that a call raises, as a text; an empty one if it raises none."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call

    def __call__(self, *leaves: Any) -> str:
        try:
            self.call(*leaves)
        except Exception as error:
            pass_on(error)
            return _named(error)
        return ""


def _named(error: Exception) -> str:
    return f"{type(error).__qualname__}: {error}"
