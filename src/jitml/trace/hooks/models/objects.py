"""Objects: how does rewritten code treat what has no model of its own, values of Python's and of the user's classes?

As Python does, but what comes from outside is entered in the host program and guarded (`guarded_loads.py`), arrays become
tracers, and special methods, properties and other descriptors of the user's are converted. What Python or a library may call by
itself (`sorted`, `np.asarray`) is not converted: then what those methods read is guarded (`user_methods.py`).
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict, deque
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.errors import Cause
from jitml.imports.late import late
from jitml.ir import ops
from jitml.trace.carried.container_items import effect
from jitml.trace.carried.iterators import gone_through
from jitml.trace.effects.attribute_stores import require_outermost
from jitml.trace.environment.guarded_loads import place_of
from jitml.trace.hooks.models.formatting import written
from jitml.trace.hooks.models.model import Model, ModelHooks
from jitml.trace.hooks.models.stores import Outside, Storing, stores_itself
from jitml.trace.hooks.models.user_methods import EQUALITY, kind_of, may_look, named, static, users_method
from jitml.trace.record.recording import home_of, refuse_environ, unsupported
from jitml.trace.values.boxing import TracedScalar, is_traced, lift, read
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import FUNCTIONS, call
from jitml.trace.values.text import percent

if TYPE_CHECKING:
    from jitml.trace.effects import inheritance
    from jitml.trace.hooks.models import attributes
else:
    attributes = late("jitml.trace.hooks.models.attributes")
    inheritance = late("jitml.trace.effects.inheritance")


class ObjectModel(Model):
    """What has no model of its own."""

    def class_of(self, x: Any) -> type:
        return x.__class__ if home_of(type(x)).startswith("jitml.") else type(x)  # what a stand-in stands for

    # Attributes

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return attributes.attribute(hooks, x, name)

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        if id(x) in hooks.trace.copies.watched:
            require_outermost(hooks.trace, x)
        elif place_of(hooks.trace, x) is not None:
            require_outermost(hooks.trace, x)
            return Outside(hooks, x)
        if isinstance(x, list) or not home_of(type(x)).startswith("jitml."):  # x.flat[i] = v writes a traced array
            effect(x)
        return Storing(hooks, x) if stores_itself(x) else x

    # Items

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        method = users_method(type(x), "__getitem__")
        if method is not None:
            return hooks.method(x, "__getitem__", method)(index)
        if isinstance(x, dict) and type(x) is not dict and _inserts(x) and index not in x:
            missing = users_method(type(x), "__missing__")
            if missing is not None:
                return hooks.method(x, "__missing__", missing)(index)
            hooks.grow(x)
            if isinstance(x, defaultdict) and x.default_factory is not None:
                x[index] = hooks.conv(x.default_factory)()
        value = x[index]
        return lift(value) if type(value) is np.ndarray else value

    # Operators

    def half(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        kind = type(x)
        if method == "__ne__" and static(kind, method) is object.__ne__ and users_method(kind, "__eq__"):
            result = self.half(hooks, x, "__eq__", other)
            return result if result is NotImplemented else hooks.not_(hooks.true(result))
        if method.startswith("__r") and type(other) is TracedScalar and not hasattr(kind, "__array_ufunc__"):
            other = other.item()  # as NumPy hands it on
        special = hooks.special(x, method)
        if special is not None:
            return special(other)
        member = getattr(kind, method, None)
        if member is None:
            return NotImplemented
        if may_look(kind, method):
            hooks.unseen(x, other)
        return hooks.made_of([member(x, other)], x, other)

    # Truth, length, membership, iteration

    def truth(self, hooks: ModelHooks, x: Any) -> Any:
        special = hooks.special(x, "__bool__")
        if special is not None:
            result = special()
            if kind_of(result) is not bool:
                raise TypeError(f"__bool__ should return bool, returned {named(result)}")
            return result
        if static(type(x), "__bool__") is None and users_method(type(x), "__len__") is not None:
            return hooks.length(x) != 0
        hooks.unseen(x, methods=("__bool__", "__len__"))
        return x

    def length(self, hooks: ModelHooks, x: Any) -> Any:
        special = hooks.special(x, "__len__")
        if special is None:
            hooks.unseen(x, methods=("__len__", "__getattribute__", "__getattr__"))
            return call(len, gone_through(x))
        n = special()
        if type(n) is TracedScalar:
            n = call(int, n) if n.dtype.kind in "iu" else n
        if type(n) is TracedNumber and n.slot is None and n.kind is int:
            value = read(n)
            return TracedNumber.of_value(
                hooks.trace, ops.check(value, ops.ge(value, 0), error="ValueError", message="__len__() should return >= 0")
            )
        if not hasattr(type(n), "__index__") or kind_of(n) is float:
            raise TypeError(f"'{named(n)}' object cannot be interpreted as an integer")
        if n < 0:
            raise ValueError("__len__() should return >= 0")
        return n if is_traced(n) else operator.index(n)

    def contains(self, hooks: ModelHooks, x: Any, item: Any) -> Any:
        special = hooks.special(x, "__contains__")
        if special is not None:
            return call(bool, hooks.true(special(item)))
        if static(type(x), "__contains__") is not None and not (
            isinstance(x, (list, tuple, deque)) and any(users_method(type(y), "__eq__") for y in (item, *x))
        ):
            hooks.unseen_inside(x, item, methods=("__contains__", *EQUALITY))
            return call(operator.contains, gone_through(x), item)
        found: Any = False
        for y in hooks.gone_through(x):
            is_it = True if item is y else hooks.true(hooks.compare("eq", y, item))
            if not is_traced(is_it):
                if is_it:
                    return True
                continue
            found = is_it if found is False else call(np.logical_or, found, is_it)
        return found if found is False else call(bool, found)

    def iterator(self, hooks: ModelHooks, x: Any) -> Any:
        special = hooks.special(x, "__iter__")
        if special is not None:
            found = special()
            if not hasattr(type(found), "__next__"):
                raise TypeError(f"iter() returned non-iterator of type '{named(found)}'")
            return found
        if static(type(x), "__iter__") is None and users_method(type(x), "__getitem__"):
            unsupported(f"a {type(x).__name__} is gone through by its __getitem__", "Give its class an __iter__.", Cause.ITERATOR)
        hooks.unseen(x, methods=("__iter__", "__getitem__", "__len__", "__next__"))
        return NotImplemented

    def iterated(self, hooks: ModelHooks, x: Any) -> Any:
        found = self.iterator(hooks, x)
        if found is NotImplemented:
            return x
        if users_method(type(found), "__next__"):
            unsupported(f"a {type(found).__name__} is gone through by its __next__", "Go through a list.", Cause.ITERATOR)
        return gone_through(found)


class MethodModel(ObjectModel):
    """Methods of the user's, which have the attributes of their functions."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        if id(x.__func__) in hooks.trace.outside.places and not hasattr(MethodType, name):
            return hooks.attr(x.__func__, name)
        return super().attribute(hooks, x, name)


class SuperModel(ObjectModel):
    """`super()`"""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return inheritance.by_super(hooks, x, name)


class TextModel(ObjectModel):
    """Texts, of which `%` fills in what the program computes."""

    def half(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        if method == "__mod__":
            return percent(x, written(other))
        return super().half(hooks, x, method, other)

    def operate(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        return self.half(hooks, x, method, other) if method == "__mod__" else NotImplemented


class EnvironModel(ObjectModel):
    """`os.environ`, which may be another at each call."""

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        refuse_environ()

    def contains(self, hooks: ModelHooks, x: Any, item: Any) -> Any:
        refuse_environ()


class IndexTrickModel(ObjectModel):
    """`np.r_` and its like, called by their items."""

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        return FUNCTIONS[x](index) if x in FUNCTIONS else super().item(hooks, x, index)


def _inserts(obj: Any) -> bool:
    """Whether a dict gets a key that it lacks when that is looked up, as a defaultdict does."""
    method = getattr(type(obj), "__missing__", None)
    return method is not None and method is not Counter.__missing__
