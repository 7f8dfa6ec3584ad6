"""Attributes of objects: what is `x.name` of values of Python's and of the user's classes, and where is it from?

What comes from outside is entered in the host program and guarded (`guarded_loads.py`); arrays become tracers; properties and
other descriptors of the user's are converted.
"""

from __future__ import annotations

import functools
import inspect
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType
from typing import Any

import numpy as np

from jitml.errors import Cause
from jitml.trace.effects.attribute_stores import (
    held_value,
    is_open,
    require_not_made_up,
)
from jitml.trace.effects.inheritance import NOTHING, from_class
from jitml.trace.effects.side_effects import own_parts
from jitml.trace.environment.class_guards import require_class
from jitml.trace.environment.guarded_loads import load, observe, place_of, require_member, require_unset
from jitml.trace.environment.tracked_copies import entries
from jitml.trace.environment.unseen_reads import guard_librarys, is_librarys
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.user_methods import require_attribute, users_method
from jitml.trace.record.libraries import is_library
from jitml.trace.record.pytree import is_record
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.storage.storage import Storage
from jitml.trace.values.boxing import LiftedArrays, TracedArray, is_traced, lift
from jitml.trace.values.numbers import TracedNumber


def attribute(hooks: ModelHooks, x: Any, name: str) -> Any:
    """`x.name`"""
    trace, kind = hooks.trace, type(x)
    descriptor = inspect.getattr_static(kind, name, None)
    if isinstance(descriptor, property | functools.cached_property):
        require_member(trace, kind, name, descriptor)
    if _is_written(descriptor) and not (is_librarys(x) and is_library(descriptor.fget)):
        return hooks.convert(descriptor.fget)(x)
    if isinstance(descriptor, functools.cached_property) and name not in vars(x) and (id(x), name) not in trace.changes.stored:
        if active_trace() is not trace and not active_trace().is_body:  # what is differentiated computes it each time
            return hooks.convert(descriptor.func)(x)
        unsupported(f"{name} of a {kind.__name__} is kept by its first reading", "Read it once before.", Cause.EFFECT)
    if isinstance(descriptor, functools.singledispatchmethod):
        unsupported(f"{kind.__name__}.{name} chooses among functions that may change", "Ask isinstance instead.")
    getter = users_method(type(descriptor), "__get__")
    if getter is not None and (hasattr(type(descriptor), "__set__") or name not in getattr(x, "__dict__", ())):
        require_class(trace, type(descriptor))
        return hooks.convert(getter)(descriptor, x, kind)
    if isinstance(x, tuple) and name in getattr(kind, "_fields", ()):
        return hooks.item(x, kind._fields.index(name))  # whose items have been seen when the tuple was
    if (id(x), name) in trace.changes.stored:
        return held_value(trace.changes.stored, (id(x), name))
    fallback = users_method(kind, "__getattr__") if descriptor is None else None
    if fallback is not None and name not in getattr(x, "__dict__", (name,)):
        return _missing(hooks, x, name, fallback)
    try:
        value = getattr(x, name)
    except AttributeError:
        if (refuse := trace.copies.withheld.get(id(x), {}).get(name)) is not None:
            refuse()
        if (slot := place_of(trace, x)) is not None:
            require_attribute(trace, x, name, slot, False)
        raise
    if is_open(value) and name in getattr(x, "__dict__", ()):
        del value  # which would be held twice
        return held_value(vars(x), name)
    return _as_seen(hooks, x, name, value, descriptor)


def _as_seen(hooks: ModelHooks, x: Any, name: str, value: Any, descriptor: Any) -> Any:
    """What Python has found as an attribute, as the function shall see it."""
    if id(x) in hooks.trace.copies.watched and is_record(x) and name in dict(entries(x)):
        return lift(value) if type(value) is np.ndarray else value
    slot = place_of(hooks.trace, x)
    if slot is None and (found := from_class(hooks, x, name, descriptor)) is not NOTHING:
        return found
    if is_traced(value) or slot is None:
        if type(value) is np.ndarray:
            return _of_object(x, value) if is_librarys(x) else lift(value)
        # What neither the class nor the object shows is in memory of the object's that C alone knows.
        is_hidden = descriptor is None and name not in getattr(x, "__dict__", ())
        own_parts(hooks.trace, [value], (x, value) if is_hidden else (x,))
        return value
    if isinstance(value, (MethodType, BuiltinFunctionType, MethodWrapperType)) and not _is_kept(x, name, value):
        if type(value) is MethodType and value.__self__ is x:
            # Of the bound method, so that a function put in its place is seen, in the class or in the instance.
            method = load(hooks.trace, getattr, slot, name, f"{hooks.trace.host.name(slot)}.{name}")
            function = load(hooks.trace, getattr, method, "__func__", f"{name}.__func__")
            hooks.trace.host.require_same(function, value.__func__)
            hooks.trace.outside.places.setdefault(id(value.__func__), function)
            if hasattr(x, "__dict__"):  # where another object's method may be put
                owner = load(hooks.trace, getattr, method, "__self__", f"{name}.__self__")
                hooks.trace.host.require_identity(owner, slot, True)
            if name in getattr(x, "__dict__", ()):  # this very one, and no new one
                hooks.trace.outside.objects[method] = value
        return value
    if _is_written(descriptor) and is_librarys(x) and not callable(value):
        guard_librarys(hooks.trace, x)
    if _is_written(descriptor) and is_librarys(value):  # it makes a new one each time
        guard_librarys(hooks.trace, x)
        return value
    text = f"{hooks.trace.host.name(slot)}.{name}"
    require_not_made_up(hooks.trace, x, name, descriptor)
    place = load(hooks.trace, getattr, slot, name, text)
    if type(value) is float:  # a hyper-parameter that changes between calls is no reason to compile again
        hooks.trace.host.require_type(place, float)
        return TracedNumber(hooks.trace, place, value)
    if name == "__dict__":  # which would show what the function sets
        unsupported(f"{text} is read", "Name the attributes.")
    return observe(hooks.trace, value, place, text)


def _missing(hooks: ModelHooks, x: Any, name: str, fallback: FunctionType) -> Any:
    """An attribute that the class makes up, by `__getattr__`."""
    made_up = hooks.method(x, "__getattr__", fallback)
    slot = place_of(hooks.trace, x)
    if slot is not None:
        require_unset(hooks.trace, slot, name)
    return made_up(name)


def _is_written(descriptor: Any) -> bool:
    """Whether it is a property that is written in Python."""
    return isinstance(descriptor, property) and type(descriptor.fget) is FunctionType


def _of_object(x: Any, array: np.ndarray[Any, Any]) -> TracedArray:
    """An array of an object of the function's own whose methods are a library's: they would not see what is written there.

    It is another one at each call, as the object is, unless the object has it from its class.
    """
    lifted = active_trace().call[LiftedArrays].known
    if id(array) in lifted and lifted[id(array)].storage.of_object:
        return lifted[id(array)]
    is_new = id(array) not in lifted and any(part is array for part in getattr(x, "__dict__", {}).values())
    found = lift(array)
    view: TracedArray = found[...]
    if is_new:
        storage = Storage(active_trace().root, found.storage.value, strides=found.layout)
        view = lifted[id(array)] = TracedArray(storage, (), found.aval, found.layout, False)
        storage.of_object = True
    view.writeable = False
    return view


def _is_kept(x: Any, name: str, function: Any) -> bool:
    """Whether an attribute is this function, which others may replace, and no method that is made when it is loaded."""
    return function.__self__ is not x and getattr(x, name) is function
