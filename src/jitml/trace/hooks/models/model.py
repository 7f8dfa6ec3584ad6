"""Python's data model for rewritten code: what does it do with a value, and whom does an operator ask first?

A `Model` is how values of one kind are treated: without state, and found by the class of a value (`table.py`). `ModelHooks`
are the hooks that ask the models; where all operands are plain, Python answers at once.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from jitml.errors import Cause
from jitml.imports.late import late
from jitml.trace.carried.container_items import effect
from jitml.trace.carried.iterators import gone_through
from jitml.trace.effects.attribute_stores import refuse_write, require_carried, require_own
from jitml.trace.effects.side_effects import own_parts
from jitml.trace.environment.guarded_loads import require_member
from jitml.trace.environment.unseen_reads import guard_librarys
from jitml.trace.hooks.models.user_methods import EQUALITY, ORDER, PLAIN, Asking, may_look, named, static, users_method
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.kinds import is_decided

if TYPE_CHECKING:
    from jitml.trace.regions import identity, select
else:
    identity = late("jitml.trace.regions.identity")
    select = late("jitml.trace.regions.select")


BINARY: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (operator.add, "+"), "sub": (operator.sub, "-"), "mul": (operator.mul, "*"), "truediv": (operator.truediv, "/"),
    "floordiv": (operator.floordiv, "//"), "mod": (operator.mod, "%"), "pow": (operator.pow, "** or pow()"),
    "matmul": (operator.matmul, "@"), "lshift": (operator.lshift, "<<"), "rshift": (operator.rshift, ">>"),
    "and": (operator.and_, "&"), "or": (operator.or_, "|"), "xor": (operator.xor, "^"), "divmod": (divmod, "divmod()"),
}  # fmt: skip
COMPARE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "lt": (operator.lt, "<", "gt"), "le": (operator.le, "<=", "ge"), "eq": (operator.eq, "==", "eq"),
    "ne": (operator.ne, "!=", "ne"), "gt": (operator.gt, ">", "lt"), "ge": (operator.ge, ">=", "le"),
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {"neg": operator.neg, "pos": operator.pos, "invert": operator.invert, "abs": abs}
# Methods by which `obj += v` and its like change an object.
_IN_PLACE = frozenset(f"__i{name.strip('_')}__" for name in vars(operator) if f"i{name.strip('_')}" in operator.__all__)
REPEATED = (list, tuple, str, bytes, bytearray, deque)  # whose `+` and `*` wait until other operands have been asked


class Model(Protocol):
    """How rewritten code treats values of one kind.  What a kind says nothing of, `ObjectModel` does (`objects.py`)."""

    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        """`x.name`"""

    def has(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        """`hasattr(x, name)`; NotImplemented: it is asked as of all objects."""
        return NotImplemented

    def class_of(self, x: Any) -> type:
        """`type(x)`"""

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        """What stands for x on the left of `x.name = v` and `x[index] = v`."""

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        """`x[index]`"""

    def callee(self, hooks: ModelHooks, x: Any) -> Any:
        """What `x(...)` calls; NotImplemented: what `callees.py` says of all callables."""
        return NotImplemented

    def operate(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        """`x.__add__(other)` and its like, if no operand has such a method of the user's; NotImplemented leaves it to Python."""
        return NotImplemented

    def half(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        """The same, also of comparisons, if an operand has one."""

    def compare(self, hooks: ModelHooks, x: Any, name: str, other: Any) -> Any:
        """`x < other` and its like; NotImplemented leaves it to the user's methods, and to Python."""
        return NotImplemented

    def truth(self, hooks: ModelHooks, x: Any) -> Any:
        """What has the truth of x."""

    def length(self, hooks: ModelHooks, x: Any) -> Any:
        """`len(x)`"""

    def contains(self, hooks: ModelHooks, x: Any, item: Any) -> Any:
        """`item in x`"""

    def iterator(self, hooks: ModelHooks, x: Any) -> Any:
        """`iter(x)`; NotImplemented leaves it to Python."""

    def iterated(self, hooks: ModelHooks, x: Any) -> Any:
        """What is iterated over in the place of x."""


class ModelHooks(Asking):
    """The hooks that ask models; `calls.Hooks` has them too."""

    __slots__ = ()
    models: ClassVar[Mapping[type, Model]]

    @abstractmethod
    def conv(self, function: Any) -> Any:
        """What is called in the place of a function."""

    # Of one value

    def attr(self, obj: Any, name: str) -> Any:
        """`obj.name` was loaded."""
        return self.models[type(obj)].attribute(self, obj, name)

    def own(self, obj: Any) -> Any:
        """`obj.name = v` or `obj[index] = v` is about to happen."""
        return self.models[type(obj)].target(self, obj)

    def setting(self, obj: Any, name: str) -> Any:
        """`obj.name = v` or `del obj.name` is."""
        require_carried(obj, name)
        return self.own(obj)

    def item(self, obj: Any, index: Any) -> Any:
        """`obj[index]` was loaded."""
        if users_method(type(obj), "__getitem__") is None:
            guard_librarys(self.trace, obj)
        if isinstance(obj, dict):
            self.hashed(index)
        elif isinstance(obj, (*REPEATED, range, np.ndarray)):
            index = self.integers(index)
        else:
            self.converted(index)
        return self.made_of([self.models[type(obj)].item(self, obj, index)], obj)

    def grow(self, obj: Any) -> None:
        """`obj += v` is about to happen: a list or its like changes, all else is bound anew."""
        if isinstance(obj, (list, dict, set, deque, bytearray, array)):
            require_own(self.trace, obj)
            effect(obj)
        elif id(obj) in self.trace.outside.places and any(_changes_unseen(type(obj), name) for name in _IN_PLACE):
            refuse_write(self.trace, obj)

    def true(self, x: Any) -> Any:
        """What has the truth of x."""
        return x if type(x) in PLAIN else self.models[type(x)].truth(self, x)

    def not_(self, x: Any) -> Any:
        """`not x`"""
        x = self.true(x)
        return select.negation(x) if is_traced(x) and not is_decided(x) else not x

    def unheeded(self, x: Any) -> Any:
        """What Python itself is going to ask for its truth or its order."""
        if type(x) not in PLAIN:
            self.unseen(x)
        return x

    def length(self, x: Any) -> Any:
        """`len(x)`"""
        return self.models[type(x)].length(self, x)

    def is_in(self, x: Any, some: Any) -> Any:
        """`x in some`"""
        return self.models[type(some)].contains(self, some, x)

    def is_not_in(self, x: Any, some: Any) -> Any:
        """`x not in some`"""
        return self.not_(self.is_in(x, some))

    def gone_through(self, x: Any) -> Any:
        """What is iterated over in the place of x."""
        x = gone_through(x)
        return x if type(x) in PLAIN else self.models[type(x)].iterated(self, x)

    def integers(self, x: Any) -> Any:
        """What Python is about to make integers of, an index or bounds, with those of the user's objects in their places."""
        kind = type(x)
        if kind is slice:
            bounds = (x.start, x.stop, x.step)
            found = [*map(self.integers, bounds)]
            return x if all(a is b for a, b in zip(found, bounds)) else slice(*found)
        if kind is tuple:
            found = [*map(self.integers, x)]
            return x if all(a is b for a, b in zip(found, x)) else (*found,)
        if users_method(kind, "__index__"):
            return self.conv(operator.index)(x)
        self.converted(x)
        return x

    def special(self, x: Any, name: str) -> Callable[..., Any] | None:
        """A special method of the user's, bound and converted."""
        method = users_method(type(x), name)
        if method is None:
            return None
        if name in ORDER and method.__code__.co_filename == "<string>" and dataclasses.is_dataclass(x):
            unsupported(f"a {type(x).__qualname__} is compared field by field", "Compare its fields.", Cause.OBJECT)
        bound = self.method(x, name, method)
        if bound.func is method:  # it has no source
            self.unseen(x)
        return bound

    def method(self, x: Any, name: str, method: FunctionType) -> functools.partial[Any]:
        """A method of the user's, bound and converted."""
        require_member(self.trace, type(x), name, method)
        return functools.partial(self.convert(method), x)

    # Of two operands, in the order in which Python asks them

    def binary(self, name: str, x: Any, y: Any) -> Any:
        """`x + y` and its like."""
        function = BINARY[name][0]
        kind, other = type(x), type(y)
        if kind in PLAIN and other in PLAIN:
            return function(x, y)
        forward, backward = f"__{name}__", f"__r{name}__"
        if users_method(kind, forward) is None and users_method(other, backward) is None:
            for one, method, another in ((x, forward, y), (y, backward, x)):
                if (found := self.models[type(one)].operate(self, one, method, another)) is not NotImplemented:
                    return found
            if may_look(kind, forward) or may_look(other, backward):
                self.unseen(x, y)
            return self.made_of([function(x, y)], x, y)
        attempts = [(x, forward, y)]
        if other is not kind and (member := static(other, backward)) is not None:
            is_first = issubclass(other, kind) and member is not static(kind, backward)
            attempts.insert(0 if is_first else 1, (y, backward, x))
        waiting = [one for one in attempts if name in ("add", "mul") and isinstance(one[0], REPEATED)]
        for one, method, another in [*(one for one in attempts if one not in waiting), *waiting]:
            result = self.models[type(one)].half(self, one, method, another)
            if result is not NotImplemented:
                return result
        raise TypeError(f"unsupported operand type(s) for {BINARY[name][1]}: '{named(x)}' and '{named(y)}'")

    def in_place(self, name: str, x: Any, y: Any) -> Any:
        """What `x += y` and its like bind x to."""
        function = getattr(operator, f"i{name}")
        if type(x) in PLAIN and type(y) in PLAIN:
            return function(x, y)
        special = self.special(x, f"__i{name}__")
        if special is not None:
            result = special(y)
            return self.binary(name, x, y) if result is NotImplemented else result
        if type(x) is list and name == "add" and users_method(type(y), "__radd__") is None:
            return function(x, self.gone_through(y))
        if users_method(type(x), f"__{name}__") is None and users_method(type(y), f"__r{name}__") is None:
            self.unseen(x, y)
            return self.made_of([function(x, y)], x, y)
        result = self.models[type(x)].half(self, x, f"__i{name}__", y) if not isinstance(x, REPEATED) else NotImplemented
        return self.binary(name, x, y) if result is NotImplemented else result

    def compare(self, name: str, x: Any, y: Any) -> Any:
        """`x < y` and its like."""
        function, symbol, swapped = COMPARE[name]
        kind, other = type(x), type(y)
        if kind in PLAIN and other in PLAIN and not (kind is other and kind in CONTAINERS):
            return function(x, y)
        for one, asked, another in ((x, name, y), (y, swapped, x)):
            if (found := self.models[type(one)].compare(self, one, asked, another)) is not NotImplemented:
                return found
        forward, backward = f"__{name}__", f"__{swapped}__"
        names = {forward, backward, *(["__eq__"] if name == "ne" else [])}
        if not any(users_method(which, method) for which in (kind, other) for method in names):
            if may_look(kind, forward) or may_look(other, backward):
                self.unseen_inside(x, y, methods=EQUALITY if name in ("eq", "ne") else ORDER)
            if kind is other and kind in (list, tuple, dict):
                return self._compare_held(name, x, y)
            return self.made_of([function(x, y)], x, y)
        attempts = [(x, forward, y), (y, backward, x)]
        if other is not kind and issubclass(other, kind):
            attempts.reverse()
        for one, method, another in attempts:
            result = self.models[type(one)].half(self, one, method, another)
            if result is not NotImplemented:
                return result
        if name in ("eq", "ne"):
            return (x is y) == (name == "eq")
        raise TypeError(f"'{symbol}' not supported between instances of '{named(x)}' and '{named(y)}'")

    def _compare_held(self, name: str, x: Any, y: Any) -> Any:
        """The same of two containers: what they hold is compared by identity first, which finds NaN."""
        if name in ("eq", "ne"):
            return identity.are_taken_for_equal(x, y) == (name == "eq")
        if type(x) is not dict:
            for one, other in zip(x, y):
                if not identity.are_taken_for_equal(one, other):
                    return self.compare(name, one, other)
            x, y = len(x), len(y)
        return COMPARE[name][0](x, y)

    def unary(self, name: str, x: Any) -> Any:
        """`-x` and its like."""
        if type(x) not in PLAIN:
            special = self.special(x, f"__{name}__")
            if special is not None:
                return special()
            self.unseen(x)
        return self.made_of([_UNARY[name](x)], x)

    def made_of(self, box: list[Any], *operands: Any) -> Any:
        """What an operator gives, which alone is in the list: an object of a library's is the function's own, as in a call."""
        if type(box[0]) not in PLAIN:
            own_parts(self.trace, box, operands, may_be_new=True)
        return box[0]


def _changes_unseen(cls: Any, name: str) -> bool:
    """Whether a class has a method of this name that is not converted."""
    return static(cls, name) is not None and users_method(cls, name) is None
