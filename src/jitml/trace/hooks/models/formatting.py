"""Formatting of objects: what does an object look like in a text?

As its `__str__`, `__repr__` or `__format__` say, which see tracers as helpers do.

Objects whose class leaves this to a library are written while the function is traced; that they look like this is checked at
every call. In lists and dicts `WrittenObject` stands for an object.
"""

from __future__ import annotations

import re
import string
from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import optree

from jitml.trace.environment.loads import place_of, with_items
from jitml.trace.environment.tracked_copies import entries
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.user_methods import static, users_method
from jitml.trace.record.guards import HostConst
from jitml.trace.record.pytree import NAMESPACE, flatten
from jitml.trace.record.recording import home_of, unsupported
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.text import TracedText, text

_CONSTANT = (
    bool, int, float, complex, str, bytes, bytearray, type(None), type(...), range, slice, np.generic, np.dtype, np.ndarray, Enum,
    type, FunctionType, MethodType, BuiltinFunctionType, ModuleType, BaseException, set, frozenset,
)  # fmt: skip
_CONTAINERS = (list, tuple, dict, deque)
_PERCENT = re.compile(r"%(?:\((?P<key>[^)]*)\))?[-#0 +]*(?P<width>\*|\d*)(?:\.(?P<digits>\*|\d*))?[hlL]?(?P<kind>.)")


class WrittenObject:
    """An object as it has written itself."""

    __slots__ = ("as_repr", "as_str")

    def __init__(self, as_str: Any, as_repr: Any) -> None:
        self.as_str = as_str  # a traced text until the program runs
        self.as_repr = as_repr

    def __str__(self) -> str:
        return self.as_str

    def __repr__(self) -> str:
        return self.as_repr

    def __format__(self, spec: str) -> str:
        return format(self.as_str, spec)


_REGISTER: Any = optree.register_pytree_node  # whose stubs ask for a collection
_REGISTER(WrittenObject, lambda x: ((x.as_str, x.as_repr), None), lambda _, parts: WrittenObject(*parts), namespace=NAMESPACE)


def shown(hooks: ModelHooks, x: Any) -> Any:
    """`str(x)` of an object; another value, whose containers hold no objects any more."""
    return _as_str(hooks, x) if _is_object(x) else _copied(hooks, x, ())


def shown_part(hooks: ModelHooks, part: Any) -> Any:
    """A part of an f-string, in which objects have written themselves."""
    if type(part) is not tuple:
        return part
    x, conversion, spec = part
    if not _is_object(x):
        return _copied(hooks, x, ()), conversion, spec
    if conversion == "a":
        unsupported("!a of an object", "Use !r.")
    if conversion:
        return (_as_str if conversion == "s" else _as_repr)(hooks, x), "s", spec
    if (method := users_method(type(x), "__format__")) is not None:
        return hooks.convert(method)(x, spec)
    if static(type(x), "__format__") is not object.__format__:
        return _fixed(hooks, x, format, spec)
    return part if spec else (_as_str(hooks, x), "s", "")  # an object has no formats: Python says so


def shown_twice(hooks: ModelHooks, x: Any) -> Any:
    """A value that may be asked for its `str` or its `repr`."""
    if not _is_object(x):
        return _copied(hooks, x, ())
    as_repr = _as_repr(hooks, x)
    is_other = isinstance(x, BaseException) or users_method(type(x), "__str__") is not None
    return WrittenObject(_as_str(hooks, x) if is_other else as_repr, as_repr)


def shown_in_percent(hooks: ModelHooks, template: Any, values: Any) -> Any:
    """The values of `template % values`: only `%s` and `%r` ask for texts."""
    if type(template) is not str:
        return values
    kinds = [(found["key"], found["kind"]) for found in _PERCENT.finditer(template) if found["kind"] != "%"]
    if type(values) is dict:
        texts = {key for key, kind in kinds if kind in "sra"}
        return {key: shown_twice(hooks, x) if key in texts else x for key, x in values.items()}
    if "*" in template:
        return values
    given = values if type(values) is tuple else (values,)
    hooks.converted(given)
    made = tuple(shown_twice(hooks, x) if kind in "sra" else x for x, (_, kind) in zip(given, kinds))
    made += given[len(kinds) :]
    return made if type(values) is tuple else made[0]


def shown_in_braces(hooks: ModelHooks, template: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`template.format(*args, **kwargs)`, field by field if there are objects; None if there is nothing to take apart."""
    given = (*args, *kwargs.values())
    has_objects = any(map(_is_object, given))
    if not has_objects and not any(type(x) in _CONTAINERS for x in given):
        return None
    parts: list[Any] = []
    used = 0
    for before, name, spec, conversion in string.Formatter().parse(template):
        parts.append(before)
        if name is None:
            continue
        if spec and "{" in spec:
            if not has_objects:
                return None
            unsupported("str.format with a format that is computed writes an object", "Use an f-string.")
        first, *steps = re.findall(r"^[^.[]*|\.[^.[]+|\[[^]]+\]", name)
        value = kwargs[first] if first and not first.isdigit() else args[int(first or used)]
        used += not first
        for step in steps:
            key = step[1:-1]
            value = hooks.attr(value, step[1:]) if step[0] == "." else hooks.item(value, int(key) if key.isdigit() else key)
        parts.append(shown_part(hooks, (value, conversion or "", spec)))
    return text(*parts)


def _is_object(x: Any) -> bool:
    """Whether a value is not one that every text shows in the same way."""
    kind = type(x)
    if is_traced(x) or isinstance(x, (*_CONSTANT, TracedText, WrittenObject)) or kind in _CONTAINERS:
        return isinstance(x, BaseException) and (users_method(type(x), "__str__") is not None or _holds_traced(x))
    return not home_of(kind).startswith("jitml.") and not (isinstance(x, tuple) and hasattr(x, "_fields") and not _has_users(x))


def _has_users(x: Any) -> bool:
    return any(users_method(type(x), name) for name in ("__str__", "__repr__", "__format__"))


def _as_str(hooks: ModelHooks, x: Any) -> Any:
    if (method := users_method(type(x), "__str__")) is not None:
        return hooks.convert(method)(x)
    member = static(type(x), "__str__")
    if isinstance(x, BaseException) and _holds_traced(x):
        return _of_arguments(hooks, x, member)
    return _as_repr(hooks, x) if member is object.__str__ else _fixed(hooks, x, str)


def _as_repr(hooks: ModelHooks, x: Any) -> Any:
    if (method := users_method(type(x), "__repr__")) is not None:
        return hooks.convert(method)(x)
    member = static(type(x), "__repr__")
    if is_dataclass(x) and hasattr(member, "__wrapped__"):  # the one that dataclasses make
        kind: Any = type(x)
        owner = next(cls for cls in kind.__mro__ if "__repr__" in vars(cls))
        names = [f.name for f in fields(owner) if f.repr]
        values = [shown_part(hooks, (hooks.attr(x, name), "r", "")) for name in names]
        written = [piece for name, value in zip(names, values) for piece in (", ", f"{name}=", value)][1:]
        return text(f"{kind.__qualname__}(", *written, ")")
    if isinstance(x, BaseException) and _holds_traced(x):
        return _of_arguments(hooks, x, member)
    return _fixed(hooks, x, repr)


def _holds_traced(error: BaseException) -> bool:
    """Whether what an exception was made of is known only to the running program, or has to be asked for."""
    return any(is_traced(leaf) or type(leaf) is TracedText for leaf in flatten(error.args)[0])


def _of_arguments(hooks: ModelHooks, error: BaseException, member: Any) -> Any:
    """What a method of Python's writes of an exception."""
    args = error.args
    one = shown_part(hooks, (args[0], "r" if member in (KeyError.__str__, BaseException.__repr__) else "s", ""))
    every = shown_part(hooks, (args, "r", ""))
    if member is BaseException.__repr__:
        return text(type(error).__name__, *(("(", one, ")") if len(args) == 1 else (every,)))
    if member in (KeyError.__str__, BaseException.__str__):
        return text(one if len(args) == 1 else every)
    unsupported(f"{type(error).__name__} writes what is computed", "Write its arguments.")


def _fixed(hooks: ModelHooks, x: Any, function: Callable[..., str], *given: Any) -> str:
    """What a library writes, which has to be the same at each call."""
    result = function(x, *given)
    slot = place_of(hooks.trace, x)
    if slot is not None:
        name = hooks.trace.host.name(slot)
        if hooks.trace.changes.is_changed(x) and static(type(x), "__repr__") is not object.__repr__:
            unsupported(f"{name} is changed, and then written by code that is not converted", "Write what it holds.")
        hooks.trace.host.require(
            hooks.trace.host.compute(function, (slot, *map(HostConst, given)), f"{function.__name__}({name})"), result
        )
    return result


def _copied(hooks: ModelHooks, x: Any, around: tuple[int, ...]) -> Any:
    """A container in which objects have written themselves; a new one, so that it is no longer the caller's."""
    if id(x) in around:
        return x
    inside = (*around, id(x))

    def item(part: Any) -> Any:
        if _is_object(part):
            as_repr = _as_repr(hooks, part)
            return WrittenObject(as_repr, as_repr)
        return _copied(hooks, part, inside)

    if type(x) in _CONTAINERS or (issubclass(type(x), tuple) and hasattr(x, "_make")):
        return with_items(x, [(key, item(part)) for key, part in entries(x)])
    return x
