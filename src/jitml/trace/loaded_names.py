"""What does a function find by name?  Globals, what it closes over, defaults: all entered in the host program and guarded."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from jitml.trace.context import Trace, is_converted, unsupported
from jitml.trace.host import Const, Slot
from jitml.trace.numbers import TracedNumber
from jitml.trace.outside import load, observe
from jitml.trace.random import is_generator
from jitml.trace.tracers import is_traced, lift


class Converter(Protocol):
    """What gives a function hooks (`convert.py`)."""

    def __call__(self, function: Callable[..., Any], *, lazily: bool = False) -> Callable[..., Any]: ...


def is_library(function: FunctionType) -> bool:
    """Whether a function is never rewritten."""
    file = function.__code__.co_filename
    return not is_converted(file) and file != "<string>"  # exec'd code has no source, but its globals are guarded


def base_of(trace: Trace, function: FunctionType) -> Slot | Const:
    """What the host program takes a function's code and defaults from: this very function, or the one it is given."""
    return trace.callees.get(function, Const(function))


class Names:
    """The hooks of names; `accesses.Accesses` has them too."""

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
        if slot is not None and type(value) is float and self.function in self.trace.callees:
            # What a lambda made anew at each call closes over is an argument of it, more or less.
            self.trace.host.require_type(slot, float)
            return TracedNumber(self.trace, slot, value)
        return value if slot is None else observe(self.trace, value, slot, name)

    def place(self, name: str) -> Slot | None:
        """The slot of a global or closure variable; None for a builtin."""
        function = self.function
        if name in function.__code__.co_freevars:
            number = function.__code__.co_freevars.index(name)
            cell: Slot | Const = Const((function.__closure__ or ())[number])
            if function in self.trace.callees:
                base, cells = self.trace.callees[function], f"{function.__name__}.__closure__"
                closure = load(self.trace, getattr, base, "__closure__", cells)
                cell = load(self.trace, operator.getitem, closure, number, f"{cells}[{number}]")
            return load(self.trace, getattr, cell, "cell_contents", name)
        if name in function.__globals__:
            return load(self.trace, operator.getitem, Const(function.__globals__), name, name)
        return None

    def part(self, attribute: str) -> Any:
        """The function's defaults, with arrays lifted."""
        value = getattr(self.function, attribute)
        if value is None:
            return None
        slot = load(self.trace, getattr, base_of(self.trace, self.function), attribute, f"{self.function.__name__}.{attribute}")
        return observe(self.trace, value, slot, f"{self.function.__name__}.{attribute}")

    def guard_all(self) -> None:
        """No source: everything the function could load by name is guarded at once; its arrays stay what they are."""
        function = self.function
        for name in (*function.__code__.co_freevars, *function.__code__.co_names):
            slot = self.place(name)
            if slot is not None:
                value = self._value_of(name)
                if is_generator(value):
                    unsupported(f"{name} would be drawn from once, while a function without source is traced", "Give it one.")
                if isinstance(value, np.ndarray):
                    lift(value, slot)
                    self.trace.host.require_same(slot, value)
                else:
                    observe(self.trace, value, slot, name)

    def _value_of(self, name: str) -> Any:
        function = self.function
        if name in function.__code__.co_freevars:
            return (function.__closure__ or ())[function.__code__.co_freevars.index(name)].cell_contents
        return function.__globals__[name]
