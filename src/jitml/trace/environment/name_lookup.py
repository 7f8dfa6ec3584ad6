"""Name lookup: what does a function find by name, among globals, what it closes over and defaults?

Globals, what it closes over, defaults: all entered in the host program and guarded.
"""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol

from jitml.trace.environment.guarded_loads import CalledArguments, load, observe
from jitml.trace.record.guards import HostConst, Slot
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import Trace
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.numbers import TracedNumber


class Converter(Protocol):
    """What gives a function hooks (`convert.py`)."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]: ...


def is_made_plainly(cls: type) -> bool:
    """Whether an object of a class is made by an `__init__` of the user's alone, which is converted."""
    init, new = inspect.getattr_static(cls, "__init__"), inspect.getattr_static(cls, "__new__")
    is_users = type(init) is FunctionType and not is_library(init)
    return type(cls) is type and new is vars(object)["__new__"] and is_users


def base_of(trace: Trace, function: FunctionType) -> Slot | HostConst:
    """What the host program takes a function's code and defaults from: this very function, or the one it is given."""
    return trace.call[CalledArguments].get(function, HostConst(function))


class NameHooks:
    """The hooks of names; `calls.Hooks` has them too."""

    __slots__ = ("convert", "function", "trace")

    def __init__(self, trace: Trace, function: FunctionType, convert: Converter) -> None:
        self.trace = trace  # the root
        self.function = function
        self.convert = convert

    def name(self, value: Any, name: str) -> Any:
        """A global or closure variable was loaded."""
        if is_traced(value):
            return value
        slot = self.place(name)
        if slot is not None and type(value) is float and self.function in self.trace.call[CalledArguments]:
            # What a lambda made anew at each call closes over is an argument of it, more or less.
            self.trace.host.require_type(slot, float)
            return TracedNumber(self.trace, slot, value)
        return value if slot is None else observe(self.trace, value, slot, name)

    def place(self, name: str) -> Slot | None:
        """The slot of a global or closure variable; None for a builtin."""
        function = self.function
        if name in function.__code__.co_freevars:
            return load(self.trace, getattr, self.cell(name), "cell_contents", name)
        if name in function.__globals__:
            return load(self.trace, operator.getitem, HostConst(function.__globals__), name, name)
        if hasattr(builtins, name):
            self.trace.host.require_unset(function.__globals__, name)
        return None

    def cell(self, name: str) -> Slot | HostConst:
        """The cell of a closure variable."""
        function = self.function
        number = function.__code__.co_freevars.index(name)
        if function not in self.trace.call[CalledArguments]:
            return HostConst((function.__closure__ or ())[number])
        base, cells = self.trace.call[CalledArguments][function], f"{function.__name__}.__closure__"
        closure = load(self.trace, getattr, base, "__closure__", cells)
        return load(self.trace, operator.getitem, closure, number, f"{cells}[{number}]")

    def part(self, attribute: str) -> Any:
        """The function's defaults, with arrays lifted."""
        value = getattr(self.function, attribute)
        if value is None:
            return None
        return observe(self.trace, value, self.place_of_part(attribute), f"{self.function.__name__}.{attribute}")

    def place_of_part(self, attribute: str) -> Slot:
        """The slot of the function's defaults."""
        return load(self.trace, getattr, base_of(self.trace, self.function), attribute, f"{self.function.__name__}.{attribute}")
