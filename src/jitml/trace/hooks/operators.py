"""Special methods: what if `len`, `in`, a truth, a `for` or a function of Python's asks a special method of the user's?

It is converted.

Where no class has such a method in Python, the hooks do what Python does; operators have a file of their own. What a library may
call by itself (`sorted`, `np.asarray`) is not converted: then what those methods read is guarded (`user_methods.py`).
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import deque
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, cast

import numpy as np

from jitml.ir import ops
from jitml.trace.carried.containers import gone_through
from jitml.trace.environment.class_guards import require_none_registered
from jitml.trace.environment.loads import require_unset
from jitml.trace.environment.process_state import in_environ
from jitml.trace.environment.unseen_reads import guard_librarys
from jitml.trace.hooks.binary_operators import BINARY, COMPARE, REPEATED, OperatorHooks
from jitml.trace.hooks.user_methods import EQUALITY, ORDER, PLAIN, kind_of, named, parts_of, static, users_method
from jitml.trace.host_calls.objects import TracedObject
from jitml.trace.record.recording import home_of, is_users_class, unsupported
from jitml.trace.values.boxing import TracedArray, TracedScalar, is_traced, read
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import call
from jitml.trace.values.type_unions import may_be_none, require_type_known

# Functions that ask one method of their first argument, or the next of these.
_ASK: dict[Any, tuple[str, ...]] = {
    float: ("__float__", "__index__"), int: ("__int__", "__index__"), complex: ("__complex__", "__float__", "__index__"),
    operator.index: ("__index__",), abs: ("__abs__",), round: ("__round__",), reversed: ("__reversed__",),
    operator.neg: ("__neg__",), operator.pos: ("__pos__",), operator.invert: ("__invert__",), operator.abs: ("__abs__",),
}  # fmt: skip
_OPERATORS = {
    **{function: ("binary", name) for name, (function, _) in BINARY.items()}, pow: ("binary", "pow"),
    **{function: ("compare", name) for name, (function, *_) in COMPARE.items()},
    **{getattr(operator, f"i{name}"): ("in_place", name) for name in BINARY if name not in ("divmod", "and", "or")},
    operator.iand: ("in_place", "and"), operator.ior: ("in_place", "or"),
}  # fmt: skip
# How many of their arguments functions go through.
_GO_THROUGH: dict[Any, int] = {
    list: 1, tuple: 1, set: 1, frozenset: 1, sum: 1, any: 1, all: 1, sorted: 1, enumerate: 1, deque: 1, zip: 1 << 30,
}  # fmt: skip
# Functions of integers, and at which argument those begin.
_OF_INTEGERS: dict[Any, int] = {
    range: 0, hex: 0, bin: 0, oct: 0, chr: 0, math.comb: 0, math.perm: 0, math.gcd: 0, math.lcm: 0, round: 1, enumerate: 1,
    itertools.islice: 1,
}  # fmt: skip
SPECIAL = frozenset({*_ASK, *_OPERATORS, *_OF_INTEGERS, len, bool, iter, next, operator.truth, operator.not_, operator.contains})
# Functions that call special methods of what is in their arguments, and which.
_LOOK_INSIDE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sorted", "max", "min", "sort"), ORDER), **dict.fromkeys(("any", "all", "filter"), ("__bool__", "__len__")),
    **dict.fromkeys(("index", "count", "remove", "set", "frozenset", "hash"), EQUALITY),
}  # fmt: skip
# Functions that look them up in a dict or a set, beside the methods of these.
_LOOK_UP = {"dict", "Counter", "OrderedDict", "defaultdict", "fromkeys"}


class FreshRows:
    """`iter(x)` of an array; as long as nobody has gone on with it, the array itself will do."""

    __slots__ = ("array", "rows")

    def __init__(self, array: TracedArray) -> None:
        self.array = array
        self.rows: Iterator[Any] | None = None

    def __iter__(self) -> FreshRows:
        return self

    def __next__(self) -> Any:
        if self.rows is None:
            self.rows = iter(self.array)
        return next(self.rows)


class Specials(OperatorHooks):
    """The hooks of what asks special methods; `calls.Hooks` has them too."""

    __slots__ = ()

    # Truth, length, membership, iteration

    def true(self, x: Any) -> Any:
        """What has the truth of x."""
        if type(x) in PLAIN:
            return x
        if type(x) is TracedObject:
            return x.truth()
        special = self.special(x, "__bool__")
        if special is not None:
            result = special()
            if kind_of(result) is not bool:
                raise TypeError(f"__bool__ should return bool, returned {named(result)}")
            return result
        if static(type(x), "__bool__") is None and users_method(type(x), "__len__") is not None:
            return self.length(x) != 0
        self.unseen(x, methods=("__bool__", "__len__"))
        return x

    def unheeded(self, x: Any) -> Any:
        """What Python itself is going to ask for its truth or its order."""
        if type(x) not in PLAIN:
            self.unseen(x)
        return x

    def length(self, x: Any) -> Any:
        """`len(x)`"""
        if type(x) is TracedObject:
            return x.length()
        special = self.special(x, "__len__")
        if special is None:
            self.unseen(x, methods=("__len__", "__getattribute__", "__getattr__"))
            return call(len, gone_through(x))
        n = special()
        if type(n) is TracedScalar:
            n = call(int, n) if n.dtype.kind in "iu" else n
        if type(n) is TracedNumber and n.slot is None and n.kind is int:
            value = read(n)
            return TracedNumber.of_value(
                self.trace, ops.check(value, ops.ge(value, 0), error="ValueError", message="__len__() should return >= 0")
            )
        if not hasattr(type(n), "__index__") or kind_of(n) is float:
            raise TypeError(f"'{named(n)}' object cannot be interpreted as an integer")
        if n < 0:
            raise ValueError("__len__() should return >= 0")
        return n if is_traced(n) else operator.index(n)

    def is_in(self, x: Any, some: Any) -> Any:
        """`x in some`"""
        kind = type(some)
        if kind is TracedObject:
            return some.contains(x)
        if kind.__module__ == "os":
            return in_environ(self.trace, x)
        special = self.special(some, "__contains__")
        if special is not None:
            return call(bool, self.true(special(x)))
        if static(kind, "__contains__") is not None and not (
            isinstance(some, (list, tuple, deque)) and any(users_method(type(y), "__eq__") for y in (x, *some))
        ):
            self.unseen_inside(some, x, methods=("__contains__", *EQUALITY))
            return call(operator.contains, gone_through(some), x)
        found: Any = False
        for y in self.gone_through(some):
            is_it = True if x is y else self.true(self.compare("eq", y, x))
            if not is_traced(is_it):
                if is_it:
                    return True
                continue
            found = is_it if found is False else call(np.logical_or, found, is_it)
        return found if found is False else call(bool, found)

    def is_not_in(self, x: Any, some: Any) -> Any:
        """`x not in some`"""
        return self.not_(self.is_in(x, some))

    def gone_through(self, x: Any) -> Any:
        """What is iterated over in the place of x."""
        x = gone_through(x)
        kind = type(x)
        if kind in PLAIN:
            return x
        special = self.special(x, "__iter__")
        if special is not None:
            found = self._iterator(special())
            if type(found) is FreshRows and found.rows is None:
                return found.array
            return self._steps(found) if users_method(type(found), "__next__") else gone_through(found)
        if static(kind, "__iter__") is None and users_method(kind, "__getitem__"):
            return self._items(x)
        self.unseen(x, methods=("__iter__", "__getitem__", "__len__", "__next__"))
        return x

    def _iterator(self, x: Any) -> Any:
        if not hasattr(type(x), "__next__"):
            raise TypeError(f"iter() returned non-iterator of type '{named(x)}'")
        return x

    def _steps(self, x: Any) -> Iterator[Any]:
        """What the user's `__next__` gives."""
        following = self.special(x, "__next__")
        assert following is not None
        while True:
            try:
                item = following()
            except StopIteration:
                return
            yield item

    def _items(self, x: Any) -> Iterator[Any]:
        """What the user's `__getitem__` gives for 0, 1, ..."""
        index = 0
        while True:
            try:
                item = self.item(x, index)
            except IndexError:
                return
            yield item
            index += 1

    def matched(self, x: Any, by_class: bool, names: tuple[str, ...]) -> Any:
        """What patterns are going to look at: those of classes load these attributes, and those that classes name."""
        if may_be_none(x):
            require_type_known(x)
        waiting = [*parts_of([x])]
        self.unseen(*waiting, methods=("__len__", "__getitem__", *EQUALITY))
        if by_class and any(is_users_class(cast(Any, type(part))) for part in waiting):
            require_none_registered(self.trace)
        seen: set[int] = set()
        while waiting and by_class:
            part = waiting.pop()
            slot = self.trace.places.get(id(part))
            if slot is None or id(part) in seen:
                continue
            seen.add(id(part))
            for name in dict.fromkeys((*names, *getattr(type(part), "__match_args__", ()))):
                if isinstance(static(type(part), name), (FunctionType, property)):
                    continue
                if (id(part), name) in self.trace.stored or name in self.trace.set_in_classes:
                    unsupported(f"{self.trace.host.name(slot)}.{name} is changed, and then matched", "Match before, or use if.")
                if not hasattr(part, name):
                    require_unset(self.trace, slot, name)
                    continue
                value = self.attr(part, name)  # an array is then found again by those who are handed it
                if type(value) is TracedNumber:
                    value.known()
                waiting += parts_of([value])
        return x

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
        return self._made_of([super().item(obj, index)], obj)

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

    # Functions of Python's that ask special methods

    def asked(self, otherwise: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of one of `SPECIAL`; `otherwise` is what it does where nothing is the user's."""
        if all(type(x) in PLAIN for x in args) and not (function is iter and len(args) == 1):
            return otherwise(*args, **kwargs)
        if function in _OPERATORS and len(args) == 2 and not kwargs:
            hook, name = _OPERATORS[function]
            forward = ("__i", "__") if hook == "in_place" else ("__",)
            backward = f"__{COMPARE[name][2]}__" if hook == "compare" else f"__r{name}__"
            is_users = any(users_method(type(args[0]), f"{start}{name}__") for start in forward)
            if is_users or users_method(type(args[1]), backward) or (name == "ne" and users_method(type(args[0]), "__eq__")):
                return getattr(self, hook)(name, *args)
        elif len(args) == 1 and not kwargs and function in (bool, operator.truth, operator.not_):
            truth = self.true(args[0])
            return self.not_(truth) if function is operator.not_ else call(bool, truth)
        elif len(args) == 1 and not kwargs and function is len:
            return self.length(args[0])
        elif len(args) == 2 and not kwargs and function is operator.contains:
            return self.is_in(args[1], args[0])
        elif function is iter and len(args) == 1:
            return self._iter(otherwise, args[0])
        elif function is next and 0 < len(args) < 3 and users_method(type(args[0]), "__next__"):
            return self._next(*args)
        elif args and not kwargs:
            for name in _ASK.get(function, ()):
                if (special := self.special(args[0], name)) is not None:
                    return _of_kind(function, name, args[0], special(*args[1:]))
                if static(type(args[0]), name) is not None:
                    break
            if (first := _OF_INTEGERS.get(function)) is not None:
                return otherwise(*args[:first], *map(self.integers, args[first:]))
            if function is reversed and users_method(type(args[0]), "__getitem__") and not hasattr(type(args[0]), "__reversed__"):
                return (self.item(args[0], n) for n in reversed(range(operator.index(self.length(args[0])))))
        self.unseen(*args)
        return otherwise(*args, **kwargs)

    def _iter(self, otherwise: Callable[..., Any], x: Any) -> Any:
        if type(x) is TracedArray and x.ndim:
            return FreshRows(x)
        special = self.special(x, "__iter__")
        if special is not None:
            return self._iterator(special())
        if static(type(x), "__iter__") is None and users_method(type(x), "__getitem__"):
            return self._items(x)
        self.unseen(x, methods=("__iter__", "__getitem__", "__len__", "__next__"))
        return otherwise(x)

    def _next(self, x: Any, *default: Any) -> Any:
        following = self.special(x, "__next__")
        assert following is not None
        try:
            return following()
        except StopIteration:
            if default:
                return default[0]
            raise

    def given_to(self, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a function that may iterate over some, or ask what these hold."""
        name = getattr(function, "__name__", "")
        count = 1 if function in (max, min) and len(args) == 1 else 0
        if isinstance(function, type) or function in (sum, any, all, sorted):
            count = 1 << 30 if getattr(function, "__module__", "") == "itertools" else _GO_THROUGH.get(function, count)
        args = tuple(self.gone_through(x) if n < count else gone_through(x) for n, x in enumerate(args))
        if name in _LOOK_INSIDE:
            look = functools.partial(self.unseen_inside, methods=_LOOK_INSIDE[name])
            look(*args)
            args = tuple(looked_at(x, look) for x in args)
        elif name in _LOOK_UP:
            self.unseen(*args)  # which may be mappings
            args = tuple(looked_at(self.hashed(x), self.hashed) for x in args)
        return args


def looked_at(x: Any, look: Callable[[Any], object]) -> Any:
    """An iterator that has each item looked at before it is handed out; all else is x itself: a file is one, and more."""
    if not isinstance(x, Iterator) or home_of(type(x)) not in ("builtins", "itertools"):
        return x

    def items() -> Iterator[Any]:
        for item in x:
            look(item)
            yield item

    return items()


def asked_by(function: Any) -> tuple[str, ...]:
    """The special methods that a function of Python's calls of what is in its arguments."""
    return _LOOK_INSIDE.get(getattr(function, "__name__", ""), ())


def _of_kind(function: Any, name: str, x: Any, result: Any) -> Any:
    """What a number's type makes of what a special method has given."""
    kind = {"__float__": float, "__int__": int, "__index__": int, "__complex__": complex}.get(name)
    if kind is None:
        return result
    if type(result) is TracedNumber:
        fits = result.kind is kind or (kind is int and result.kind is bool)
    else:
        fits = issubclass(result.__class__, kind)
    if not fits:
        raise TypeError(f"{type(x).__name__}.{name} returned non-{kind.__name__} (type {named(result)})")
    return result if function is operator.index else call(function, result)


__all__ = ["SPECIAL", "FreshRows", "Specials", "asked_by", "looked_at"]
