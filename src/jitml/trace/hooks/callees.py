"""Call dispatch: what a callee is, and what is called in its place.

`RULES` are asked in order: the first that knows a callee says how it is called. What none knows is called as it is
(`unconverted_calls.py`).
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    MethodWrapperType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from jitml.device.array import Array
from jitml.device.registry import CPU
from jitml.errors import Cause
from jitml.trace.carried.iterators import gone_through
from jitml.trace.effects.attribute_stores import refuse_write, store
from jitml.trace.environment.class_guards import classes_in, require_registered
from jitml.trace.environment.functools_wrappers import require_no_wrapper
from jitml.trace.environment.process_state import asks_process
from jitml.trace.hooks.copying import FUNCTIONS_THAT_COPY
from jitml.trace.hooks.impure import MUTATORS, is_one_of
from jitml.trace.hooks.models.formatting import written, written_text
from jitml.trace.hooks.models.stores import Outside
from jitml.trace.hooks.models.user_methods import is_made_up, require_attribute, users_method
from jitml.trace.hooks.unconverted_calls import WEAK, OutsideCalls, close_lists
from jitml.trace.host_calls.generators import MethodDraw, maker, method_of
from jitml.trace.host_calls.postponed_effects import printed
from jitml.trace.lists.sequences import Range
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.device_arrays import device_name
from jitml.trace.record.fp_errors import ErrorState
from jitml.trace.record.libraries import is_called, is_library, is_scipys, is_sparse
from jitml.trace.record.recording import is_users_class, unsupported
from jitml.trace.values.boxing import TracedArray, is_traced
from jitml.trace.values.numbers import TracedNumber, combine
from jitml.trace.values.registry import FUNCTIONS, call, full_name, has_meaning, of_its_type, uncached
from jitml.trace.values.text import filled_in, joined, plain_key
from jitml.trace.values.type_unions import doubt_of

_WRITERS: set[Any] = {print, str, repr, format}
_CHANGES_FIRST = {
    *(("_heapq", name) for name in ("heapify", "heappop", "heappush", "heappushpop", "heapreplace")),
    *(("_bisect", name) for name in ("insort_left", "insort_right")),
    *(("_operator", name) for name in ("iadd", "iconcat", "imul", "ior", "iand", "ixor", "isub")),
}  # of modules and functions
# What has a hook of its own.
_HOOKS: dict[Any, str] = {
    operator.getitem: "item", operator.setitem: "_set_item", getattr: "_getattr", hasattr: "_hasattr", setattr: "_setattr",
    delattr: "_delattr", type: "_type_of", isinstance: "_isinstance", issubclass: "_is_subclass",
    vars: "_vars",
}  # fmt: skip


_WRAPPERS = (MethodWrapperType, WrapperDescriptorType)
_CHECKS = {"__instancecheck__": "_isinstance", "__subclasscheck__": "_is_subclass"}


class Callees(OutsideCalls):
    """What is called in the place of each callee; `calls.Hooks` has it too."""

    __slots__ = ()

    def callee(self, function: Any) -> Any:
        """What is called where no special method of the user's decides."""
        for rule in RULES:
            if (found := rule(self, function)) is not None:
                return found
        return functools.partial(self.call_outside, function)

    # The rules

    def _with_a_hook(self, function: Any) -> Any:
        """`getattr` and others that look into objects."""
        if function is np.dtype:
            return _dtype
        if type(function) in (operator.attrgetter, operator.methodcaller):
            unsupported(f"an operator.{type(function).__name__} reads objects out of sight", "Write a lambda.", Cause.OBJECT)
        if is_one_of(function.__origin__ if type(function) is GenericAlias else function, WEAK):
            return functools.partial(self.weakly, function)
        if type(function) not in (BuiltinFunctionType, type):
            return None
        if function in (bytearray, memoryview):
            return functools.partial(_of_memory, function)
        if function is np.errstate:
            return ErrorState
        return getattr(self, _HOOKS[function]) if function in _HOOKS else None

    def _of_the_process(self, function: Any) -> None:
        """What gives something else at each call."""
        if asks_process(function):
            self._refuse_once(function)

    def _in_the_registry(self, function: Any) -> Any:
        """What is compiled."""
        try:
            implementation = FUNCTIONS.get(function)
        except TypeError:  # unhashable callables
            return None
        if implementation is None:
            return None
        if is_one_of(function, _WRITERS):
            return functools.partial(self._writing, function)
        if getattr(function, "__module__", "") in ("builtins", "collections"):
            return functools.partial(self._iterating, function, functools.partial(call, function))
        return functools.partial(self._computing, function)

    def _wrapper(self, function: Any) -> Any:
        """What `functools` and `contextlib` have made around functions of the user's."""
        require_no_wrapper(function)
        if type(function) is functools.partial and (type(function.func) is not FunctionType or is_library(function.func)):
            return functools.partial(self.conv(function.func), *function.args, **function.keywords)
        return None

    def _users_function(self, function: Any) -> Any:
        """A function of the user's, or one that copies what is the user's."""
        if type(function) is not FunctionType:
            return None
        if function in FUNCTIONS_THAT_COPY:
            return functools.partial(FUNCTIONS_THAT_COPY[function], self)
        return None if is_library(function) else self.convert(function)

    def _slot_of_a_type(self, function: Any) -> Any:
        """A method of a type, called with the object: `np.ndarray.fill`, `object.__setattr__`."""
        owner = getattr(function, "__self__", None)
        if (check := _CHECKS.get(getattr(function, "__name__", ""))) and is_library(getattr(function, "__func__", function)):
            return functools.partial(self._checking, getattr(self, check), *(() if owner is None else (owner,)))
        if getattr(function, "__objclass__", None) is np.ndarray:
            return functools.partial(_unbound, function)
        if type(function) in _WRAPPERS and function.__name__ in ("__getattribute__", "__get__"):
            unsupported(f"{full_name(function)} reads an object out of sight", "Read the attribute.", Cause.OBJECT)
        if type(function) in _WRAPPERS and function.__name__ == "__init__" and function.__objclass__ is SimpleNamespace:
            unsupported("the attributes of a SimpleNamespace are all set at once", "Set them one by one.", Cause.OBJECT)
        if _is_store(function):
            return functools.partial(self._storing, function, *(() if owner is None else (owner,)))
        return None

    def _draw(self, function: Any) -> Any:
        """What makes generators of random numbers, or draws from one."""
        found = method_of(self.trace, function) or maker(function)
        found = function if found is None and isinstance(function, MethodDraw) else found
        return None if found is None else functools.partial(self._of_ours, found)

    def _of_ours(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of an array or a generator, which may ask special methods of what it is given."""
        self.unseen_inside(*args, *kwargs.values())
        return self.given(function, function, *args, **kwargs)

    def _of_text(self, function: Any) -> Any:
        """What makes text of parts."""
        owner = getattr(function, "__self__", None)
        if isinstance(owner, str) and function.__name__ in ("format", "join"):
            return functools.partial(self._filled_in if function.__name__ == "format" else joined, owner)
        if isinstance(owner, (bytes, bytearray)) and function.__name__ == "join":
            return lambda parts: self.call_outside(function, list(parts))
        if type(function) is MethodWrapperType and function.__name__ == "__str__" and not is_traced(owner):
            return functools.partial(self._writing, str, owner)
        return None

    def _change(self, function: Any) -> Any:
        """What changes its first argument. All other effects of what is not converted are looked at here."""
        if _changes_first(function):
            return functools.partial(self._changing, function)
        self.check_effects(function, getattr(function, "__self__", None))
        return None

    def _of_a_library(self, function: Any) -> Any:
        """What SciPy or another library has, and what other names have a meaning."""
        if is_scipys(function):
            return functools.partial(self._making if isinstance(function, type) else self._calling_library, function)
        if is_called(function) or (isinstance(function, type) and is_sparse(function)):
            return functools.partial(self._leaving_to_python, function)
        module = _module(function)
        if module == "math" and type(function) is BuiltinFunctionType:
            return functools.partial(_math, function)
        return self.conv(plain) if has_meaning(plain := uncached(function)) else None

    def _converted(self, function: Any) -> Any:
        """Methods and classes of the user's, transforms of ours, and classes that go through what they are given."""
        converted, module = self.convert(function), _module(function)
        is_class = isinstance(function, type)
        if is_class and not is_users_class(function) and converted is not function:
            if module.startswith("numpy"):
                return functools.partial(self._iterating, function, functools.partial(self._making, function))
            return functools.partial(self._handing if module == "itertools" else self._iterating, function, converted)
        if module.startswith("jitml"):
            return functools.partial(self._taking_apart, converted)
        if converted is not function or function is callable:
            return converted
        if is_class and function not in (map, filter) and not module.startswith("numpy"):
            return functools.partial(self._iterating, function, function)
        return functools.partial(self._ufunc, function) if isinstance(function, np.ufunc) else None

    # What they call

    def _isinstance(self, *args: Any) -> Any:
        return of_its_type(self._is_instance, *args)

    def _type_of(self, *args: Any, **kwargs: Any) -> Any:
        return of_its_type(self._type, *args, **kwargs)

    def _set_item(self, obj: Any, index: Any, value: Any) -> None:
        """`operator.setitem`"""
        self.own(obj)[index] = value

    def _setattr(self, obj: Any, name: str, value: Any, /) -> None:
        setattr(self.setting(obj, name), name, value)

    def _delattr(self, obj: Any, name: str, /) -> None:
        delattr(self.setting(obj, name), name)

    def _writing(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """`str(x)`, `print(x)` and their like."""
        given = tuple(map(gone_through, args))
        if function is builtins.print:
            return printed(*map(written, given), **kwargs)
        if kwargs or not 1 <= len(given) <= 1 + (function is builtins.format):
            return call(function, *given, **kwargs)
        spec = given[1] if len(given) > 1 else ""
        return self.text((given[0], {builtins.format: "", builtins.str: "s"}.get(function, "r"), spec))

    def text(self, *parts: Any) -> Any:
        """An f-string."""
        return written_text(*parts)

    def _filled_in(self, template: str, *args: Any, **kwargs: Any) -> Any:
        """`template.format(*args, **kwargs)`"""
        return filled_in(template, *map(written, args), **{name: written(x) for name, x in kwargs.items()})

    def _getattr(self, obj: Any, name: str, *default: Any) -> Any:
        if default and doubt_of(obj) is not None:
            return of_its_type(self._getattr, obj, name, *default)
        try:
            return self.attr(obj, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    def _vars(self, *objects: Any) -> Any:
        if len(objects) != 1 or not hasattr(objects[0], "__dict__"):
            self.check_effects(vars, None)
        return self.attr(objects[0], "__dict__")

    def _hasattr(self, obj: Any, name: str, /) -> Any:
        if (found := self.models[type(obj)].has(self, obj, name)) is not NotImplemented:
            return found
        slot = self.trace.outside.places.get(id(obj))
        if slot is None or type(name) is not str:
            return self.call_outside(hasattr, obj, name)
        if is_made_up(type(obj), name):
            try:
                self.attr(obj, name)
            except AttributeError:
                return False
            return True
        has = (id(obj), name) in self.trace.changes.stored or hasattr(obj, name)
        require_attribute(self.trace, obj, name, slot, has)
        return has

    def _type(self, *args: Any, **kwargs: Any) -> Any:
        """`type(x)`, or a new class."""
        return self.models[type(args[0])].class_of(args[0]) if len(args) == 1 else self.class_made()

    def _is_instance(self, x: Any, kinds: Any) -> Any:
        x = range(0) if type(x) is Range else x  # of whatever numbers
        _require_plain_classes(kinds)
        require_registered(self.trace, x.__class__, kinds)
        if type(x) is TracedArray and Array in (kinds if type(kinds) is tuple else (kinds,)):
            return device_name(self.trace) != CPU or isinstance(x, kinds)
        return isinstance(x, kinds)

    def _is_subclass(self, cls: Any, kinds: Any) -> Any:
        _require_plain_classes(kinds)
        if isinstance(cls, type):
            require_registered(self.trace, cls, kinds)
        return issubclass(cls, kinds)

    def _checking(self, check: Callable[..., Any], kind: Any, x: Any) -> Any:
        """`type.__instancecheck__(kind, x)`, as a class that has no other one asks it."""
        return check(x, kind)

    def _storing(self, function: Callable[..., Any], obj: Any, *args: Any) -> None:
        """`object.__setattr__(obj, name, value)` and its like: what a `__setattr__` of the class says is passed over."""
        if type(self.setting(obj, args[0]) if args else self.own(obj)) is not Outside:
            function(*(() if hasattr(function, "__self__") else (obj,)), *args)
        elif function.__name__ == "__setattr__" and len(args) == 2:
            store(self, obj, *args, plainly=True)
        else:
            refuse_write(self.trace, obj)

    def _changing(self, function: Callable[..., Any], target: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the standard library that changes its first argument."""
        close_lists([target])
        self.grow(target)
        self.unseen_inside(target, *args, methods=("__lt__", "__le__", "__gt__", "__ge__"))
        if type(target) is TracedList:
            return target.change(function, *args, **kwargs)
        return function(target, *args, **kwargs)


RULES: tuple[Callable[[Callees, Any], Any], ...] = (
    Callees._with_a_hook,
    Callees._of_the_process,
    Callees._in_the_registry,
    Callees._wrapper,
    Callees._users_function,
    Callees._slot_of_a_type,
    Callees._draw,
    Callees._of_text,
    Callees._change,
    Callees._of_a_library,
    Callees._converted,
)


def _is_store(function: Any) -> bool:
    """Whether a function sets or deletes an attribute as Python does where no class says otherwise."""
    return type(function) in _WRAPPERS and function.__name__ in ("__setattr__", "__delattr__")


def _require_plain_classes(kinds: Any) -> None:
    """Refuse classes that answer `isinstance` and `issubclass` themselves: protocols, and those of a metaclass that says how."""
    for kind in classes_in(kinds):
        is_asked = isinstance(kind, type) and any(users_method(type(kind), name) for name in _CHECKS)
        if is_asked or getattr(kind, "_is_protocol", False):
            unsupported(f"{kind.__name__} says itself what is an instance of it", "Ask for the class.", Cause.OBJECT)


def _dtype(*args: Any, **kwargs: Any) -> Any:
    """`np.dtype((float, n))`: NumPy takes what is no int for something else."""
    return np.dtype(*map(plain_key, args), **kwargs)


def _changes_first(function: Any) -> bool:
    """Whether a function changes its first argument: `heapq.heappush`, `list.append`."""
    name = getattr(function, "__name__", "")
    is_unbound = isinstance(getattr(function, "__objclass__", None), type) and getattr(function, "__self__", None) is None
    return (getattr(function, "__module__", ""), name) in _CHANGES_FIRST or (name in MUTATORS and is_unbound)


def _of_memory(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`memoryview(x)`, which an object cannot refuse by itself."""
    return args[0].data if args and is_traced(args[0]) else function(*args, **kwargs)


def _unbound(method: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.ndarray.fill(x, 0)`"""
    return getattr(x, method.__name__)(*args, **kwargs) if is_traced(x) else method(x, *args, **kwargs)


def _math(function: Callable[..., Any], *args: Any) -> Any:
    if any(type(a) is TracedNumber for a in args) and all(type(a) in (TracedNumber, int, float, bool) for a in args):
        return combine(function, *args)
    return function(*args)


def _module(function: Any) -> str:
    return getattr(function, "__module__", None) or ""
