"""Assignment hooks: what converted code binds and augments, `obj.w += v`, `obj[i] += v`, imports and classes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.util import resolve_name
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from jitml.errors import Cause
from jitml.trace.carried.container_items import effect
from jitml.trace.carried.outer_lists import only
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.modules import is_changeable
from jitml.trace.hooks.models.stores import sets_itself, takes_items
from jitml.trace.record.loaded_modules import require_module
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import TracedArray, is_traced, lift
from jitml.trace.values.registry import call


class Assignments(ModelHooks):
    """The hooks of what is bound; `calls.Hooks` has them too."""

    __slots__ = ()
    effect = staticmethod(effect)
    only = staticmethod(only)
    slice = staticmethod(slice)

    def imported(self, value: Any, name: str, module: str, level: int) -> Any:
        """`from module import name` has given this."""
        if level:
            module = resolve_name("." * level + module, self.function.__globals__["__package__"])
        home = sys.modules.get(module)
        if type(home) is not ModuleType or not hasattr(home, name):
            return value
        self.module(home, module)
        return self.attr(home, name)

    def module(self, value: Any, name: str) -> Any:
        """`import name` has given this."""
        if type(value) is ModuleType and sys.modules.get(name) is value and is_changeable(value):
            require_module(self.trace, name)
        return value

    def aug_attr(self, obj: Any, name: str, operation: str) -> Callable[[Any], None]:
        """`obj.name += value`, as a function of the value, which is evaluated after the target has been loaded."""
        before = self.attr(obj, name)

        def store(value: Any) -> None:
            after = self.in_place(operation, before, value)
            if after is not before or type(after) is not TracedArray or sets_itself(obj, name):
                setattr(self.setting(obj, name), name, after)

        return store

    def aug_item(self, obj: Any, index: Any, operation: str) -> Callable[[Any], None]:
        """`obj[index] += value`, likewise."""
        if type(obj) is np.ndarray:
            obj = lift(obj)
        if _is_mask(obj, index):
            return functools.partial(self._aug_where, obj, index, operation)
        return functools.partial(self._aug_loaded, obj, index, operation, self.item(obj, index))

    def _aug_loaded(self, obj: Any, index: Any, operation: str, before: Any, value: Any) -> None:
        if not is_traced(before):
            self.grow(before)
        after = self.in_place(operation, before, value)
        if after is before and type(after) is TracedArray and takes_items(obj):
            if type(obj) is not TracedArray or after.storage is obj.storage:
                return  # written in place, through the view or in the container's own array
        own: Any = obj if isinstance(obj, tuple) else self.own(obj)  # a tuple raises, wherever it is from
        own[index] = after

    def _aug_where(self, obj: TracedArray, mask: TracedArray, operation: str, value: Any) -> None:
        if np.ndim(value) > obj.ndim - mask.ndim:
            return self._aug_loaded(obj, mask, operation, self.item(obj, mask), value)
        # x[mask] has a size that depends on data, but what becomes of x does not: computed everywhere, kept where true.
        updated = self.in_place(operation, obj.copy(), value)
        where = mask.reshape((*mask.shape, *(1,) * (obj.ndim - mask.ndim)))
        call(np.copyto, obj, updated, where=where)

    def left(self, kind: str) -> NoReturn:
        """A statement of a kind that only Python runs."""
        if kind == "ClassDef":
            self.class_made()
        what = "patterns are matched" if kind == "Match" else "exceptions may be handled"
        unsupported(f"{what} in the jitted function", "Ask for the condition, with an `if` or np.where.", Cause.SYNTAX)

    def class_made(self) -> NoReturn:
        """A class is made, by a statement or a call, which would be another one in each call."""
        unsupported("a class is made in the jitted function", "Define it outside.", Cause.OBJECT)

    def outer(self, name: str) -> NoReturn:
        """A global or nonlocal name is about to be bound, which changes what others see."""
        what = f"the jitted function assigns the global or nonlocal name {name!r}"
        unsupported(what, "Return the value instead.", Cause.EFFECT)


def _is_mask(obj: Any, index: Any) -> bool:
    """Whether `obj[index]` is chosen by a traced mask."""
    if type(obj) is not TracedArray or type(index) is not TracedArray or index.dtype != np.bool_:
        return False
    return index.shape == obj.shape[: index.ndim]
