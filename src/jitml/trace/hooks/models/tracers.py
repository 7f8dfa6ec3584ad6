"""Tracers: how does rewritten code treat arrays and numbers?  They answer by themselves, as NumPy's and Python's do."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.objects import ObjectModel
from jitml.trace.values.boxing import TracedArray, lift
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import call_for_each_type, of_its_type
from jitml.trace.values.tracer_operators import called_by_name
from jitml.trace.values.type_unions import doubt_of, has_attribute, types_of


class StandInModel(ObjectModel):
    """Generators, lists from outside that only grow, and all others that look up their attributes themselves."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return getattr(x, name)


class TracerModel(StandInModel):
    """And are stored into."""

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        return x


class NumberModel(TracerModel):
    """Numbers, whose types the running program may know alone."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        """An attribute that numbers of some types have, and stand-ins of others must not show; it may itself tell the type."""
        if doubt_of(x) is not None:
            if all(inspect.isroutine(getattr(which, name, None)) for which in types_of(x)):
                method: Any = lambda y, *args, **kwargs: hooks.attr(y, name)(*args, **kwargs)  # noqa: E731
                return functools.partial(call_for_each_type, x, method, x)
            return of_its_type(hooks.attr, x, name) if hasattr(None, name) else call_for_each_type(x, hooks.attr, x, name)
        if type(x) is TracedNumber and not has_attribute(x, name):
            raise AttributeError(f"'{x.kind.__name__}' object has no attribute '{name}'")
        return called_by_name(x, name)

    def has(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return of_its_type(has_attribute, x, name)


class PythonNumberModel(NumberModel):
    def half(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        return NotImplemented


class ArrayModel(TracerModel):
    def half(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        return NotImplemented if _defers(other, type(x)) else super().half(hooks, x, method, other)


class ScalarModel(NumberModel, ArrayModel):
    """NumPy's numbers, which are Python's where types are in doubt."""


class RangeModel(ObjectModel):
    """Ranges of numbers that only the program knows, which need not know what they say of themselves."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return getattr(x.known(), name)

    def has(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return hasattr(range, name)

    def class_of(self, x: Any) -> type:
        return range


class ConcreteArrayModel(ObjectModel):
    """Arrays that have come in unseen: as soon as they are looked at they are tracers."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return getattr(lift(x), name)

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        return lift(x)

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        return lift(x)[index]


def _defers(other: Any, kind: type) -> bool:
    """Whether arrays, or NumPy's numbers, leave an operator to the other operand, as NumPy does."""
    protocol = inspect.getattr_static(type(other), "__array_ufunc__", inspect)
    if protocol is not inspect:
        return protocol is None
    if kind is TracedArray:
        return bool(getattr(other, "__array_priority__", -1e6) > 0.0)
    # What is no array to NumPy is an object, whose method ufuncs call.
    return bool(getattr(other, "__array_priority__", -1e6) > -1e6) or not _is_an_array(type(other))


def _is_an_array(kind: Any) -> bool:
    """Whether NumPy makes an array of objects of this class."""
    is_sequence = hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not issubclass(kind, dict)
    return hasattr(kind, "__array__") or is_sequence
