"""Call hooks: what is really called where converted code calls something?  `Hooks.conv`, the hook planted at every call.

Functions of the registry take the place of NumPy's, the user's functions are converted, impure ones are refused; what others are
given to call back is converted first.
"""

from __future__ import annotations

import functools
import inspect
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.imports.late import late
from jitml.trace.carried.list_buffers import Growing, Probe
from jitml.trace.effects.side_effects import LOOKERS, watched
from jitml.trace.environment.name_lookup import is_made_plainly
from jitml.trace.hooks.callees import Callees
from jitml.trace.hooks.impure import is_one_of
from jitml.trace.hooks.models.formatting import written
from jitml.trace.hooks.models.table import MODELS
from jitml.trace.hooks.models.user_methods import users_method
from jitml.trace.hooks.python_functions import SPECIAL
from jitml.trace.hooks.unconverted_calls import is_ours
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import unsupported
from jitml.trace.regions import drivers
from jitml.trace.symbolic.booleans import as_value
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.open_names import OpenName, bound
from jitml.trace.values.registry import FUNCTIONS, has_meaning, of_its_type
from jitml.trace.values.text import percent
from jitml.trace.values.type_unions import NONE, is_of, may_be_none

if TYPE_CHECKING:
    from jitml.trace.regions import identity, select
    from jitml.trace.values import python_sum
else:
    select = late("jitml.trace.regions.select")
    identity = late("jitml.trace.regions.identity")
    python_sum = late("jitml.trace.values.python_sum")


class Hooks(Callees):
    """What converted code calls: `__jm`. One for each function and trace."""

    __slots__ = ()
    models = MODELS

    @staticmethod
    def is_one(*args: Any) -> Any:
        return identity.is_one(*args)

    @staticmethod
    def summed(*args: Any) -> Any:
        return python_sum.settled(*args)

    def push(self, items: Any, item: Any) -> Any:
        """`items.append(item)` in a loop, of a list that only this name holds; the name is bound to the result."""
        items = bound(items)
        if type(items) is Growing:
            return items.push(item)
        if type(items) is Probe:
            return items.push(item, drivers.loops_inside(items.trace))
        self.conv(items.append)(item)
        return items

    def listing(self, function: Any) -> Any:
        """What `dir()`, `vars()` and `locals()` call, which look at the frame that calls them."""
        if is_one_of(function, (dir, vars, locals)):
            unsupported(f"{function.__name__}() shows names that conversion has added", "Name what is wanted.")
        return self.conv(function)

    def added(self, total: Any, rest: Any, item: Any) -> tuple[Any, Any]:
        """What a sum is after one more item, and what rounding has lost."""
        if users_method(type(total), "__add__") or users_method(type(item), "__add__") or users_method(type(item), "__radd__"):
            return self.binary("add", python_sum.settled(total, rest), item), 0.0
        return python_sum.added(total, rest, item)

    def is_same(self, x: Any, y: Any) -> Any:
        """`x is y`, one of them True or False: Python's bools are the same where they are equal."""
        return of_its_type(_is_same, *((y, x) if type(x) is bool else (x, y)))

    def is_not_same(self, x: Any, y: Any) -> Any:
        """`x is not y`"""
        return self.not_(self.is_same(x, y))

    def is_none(self, x: Any, y: Any) -> Any:
        """`x is None`"""
        number = x if y is None else y
        if type(number) is OpenName:
            return number.is_there(False)
        return TracedNumber.of_value(self.trace, as_value(is_of(number, NONE))) if may_be_none(number) else x is y

    def is_not_none(self, x: Any, y: Any) -> Any:
        """`x is not None`"""
        outcome = self.is_none(x, y)
        return select.negation(outcome) if type(outcome) is TracedNumber else not outcome

    def is_not_one(self, x: Any, y: Any) -> bool:
        """`x is not y`"""
        return not identity.is_one(x, y)

    def percent(self, template: Any, values: Any) -> Any:
        """`"..." % values`"""
        return percent(template, written(values) if type(template) is str else values)

    def conv(self, function: Any) -> Any:
        """A function is about to be called."""
        if (found := self.models[type(function)].callee(self, function)) is not NotImplemented:
            return found
        owner = getattr(function, "__self__", None)
        if is_traced(owner) or (isinstance(owner, np.ufunc) and function not in FUNCTIONS):
            return functools.partial(self._of_ours, function)
        called = self.callee(function)
        if type(function) in (BuiltinFunctionType, type) and function in SPECIAL:
            called = functools.partial(self.asked, called, function)
        if _is_converted(function):
            return called
        if not is_one_of(function, LOOKERS):
            called = functools.partial(self.given, called, function)
        return called if _is_compiled(function) else watched(called, function)


def _is_converted(function: Any) -> bool:
    """Whether all that a call does is told by hooks: it runs the user's functions, or ours."""
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is functools.partial:
        is_apart = type(plain.func) is not FunctionType or is_library(plain.func)  # then that is looked at by itself
        return is_apart or _is_converted(plain.func)
    if isinstance(plain, type):
        return is_made_plainly(plain)
    called = plain if type(plain) is FunctionType else inspect.getattr_static(type(plain), "__call__", None)
    if type(called) is FunctionType and not is_library(called):
        return True
    return is_ours(function)


def _is_compiled(function: Any) -> bool:
    """Whether all that a call does is told by tracers."""
    return has_meaning(function) and getattr(function, "__module__", "") not in ("builtins", "collections")


def _is_same(x: Any, y: bool) -> Any:
    return x == y if (x.kind if type(x) is TracedNumber else type(x)) is bool else x is y
