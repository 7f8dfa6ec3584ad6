"""Operators on objects with special methods of the user's: Python's protocol of who is asked first, and `NotImplemented`.

Where no operand's class has such a method in Python, the hooks do what the operator does.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import sys
from collections import deque
from collections.abc import Callable, Sequence
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from jitml.trace.effects.side_effects import own_parts
from jitml.trace.hooks.user_methods import EQUALITY, ORDER, PLAIN, Asking, named, static, users_method
from jitml.trace.host_calls.call import call_on_host
from jitml.trace.host_calls.objects import TracedObject
from jitml.trace.record.libraries import is_scipys
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.values.boxing import TracedArray, TracedScalar, is_traced
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import call

_NUMBERS = (bool, int, float, complex, NoneType, TracedNumber)
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
REPEATED = (list, tuple, str, bytes, bytearray, deque)  # whose `+` and `*` wait until other operands have been asked


class OperatorHooks(Asking):
    """The hooks of operators; `calls.Hooks` has them too."""

    __slots__ = ()
    not_: Callable[[Any], Any]  # of `steering.Steering`
    percent: Callable[[Any, Any], Any]  # of `calls.Hooks`
    true: Callable[[Any], Any]  # of `special_methods.Specials`, as is the next
    gone_through: Callable[[Any], Any]

    def special(self, x: Any, name: str) -> Callable[..., Any] | None:
        """A special method of the user's, bound and converted."""
        method = users_method(type(x), name)
        if method is None:
            return None
        self._require_member(type(x), name, method)
        if name in ORDER and method.__code__.co_filename == "<string>" and dataclasses.is_dataclass(x):
            return functools.partial(self._compare_records, name, method, x)
        converted = self.convert(method)
        if converted is method:  # it has no source
            self.unseen(x)
        return functools.partial(converted, x)

    def binary(self, name: str, x: Any, y: Any) -> Any:
        """`x + y` and its like."""
        function = BINARY[name][0]
        kind, other = type(x), type(y)
        if kind in PLAIN and other in PLAIN:
            return function(x, y)
        if name == "mod" and kind is str:
            return self.percent(x, y)
        forward, backward = f"__{name}__", f"__r{name}__"
        if users_method(kind, forward) is None and users_method(other, backward) is None:
            # Sparse matrices and linear operators: SciPy's code wants numbers.
            if is_traced(y) and hasattr(kind, forward) and is_scipys(kind):
                return call_on_host(getattr(x, forward), (y,), {})
            if is_traced(x) and hasattr(other, backward) and is_scipys(other):
                return call_on_host(getattr(y, backward), (x,), {})
            if other is TracedObject and kind is not TracedObject and backward in vars(TracedObject):
                return getattr(y, backward)(x)
            if may_look(kind, forward) or may_look(other, backward):
                self.unseen(x, y)
            return self._made_of([function(x, y)], x, y)
        attempts = [(x, forward, y)]
        if other is not kind and (member := static(other, backward)) is not None:
            is_first = issubclass(other, kind) and member is not static(kind, backward)
            attempts.insert(0 if is_first else 1, (y, backward, x))
        waiting = [one for one in attempts if name in ("add", "mul") and isinstance(one[0], REPEATED)]
        for one, method, another in [*(one for one in attempts if one not in waiting), *waiting]:
            result = self._half(one, method, another)
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
            return self._made_of([function(x, y)], x, y)
        result = self._half(x, f"__i{name}__", y) if not isinstance(x, REPEATED) else NotImplemented
        return self.binary(name, x, y) if result is NotImplemented else result

    def compare(self, name: str, x: Any, y: Any) -> Any:
        """`x < y` and its like."""
        function, symbol, swapped = COMPARE[name]
        kind, other = type(x), type(y)
        if kind in PLAIN and other in PLAIN and not (kind is other and kind in CONTAINERS):
            return function(x, y)
        if TracedObject in (kind, other):
            return x.compared(name, y) if kind is TracedObject else y.compared(swapped, x)
        forward, backward = f"__{name}__", f"__{swapped}__"
        names = {forward, backward, *(["__eq__"] if name == "ne" else [])}
        if not any(users_method(which, method) for which in (kind, other) for method in names):
            if may_look(kind, forward) or may_look(other, backward):
                self.unseen_inside(x, y, methods=EQUALITY if name in ("eq", "ne") else ORDER)
            return self._made_of([function(x, y)], x, y)
        attempts = [(x, forward, y), (y, backward, x)]
        if other is not kind and issubclass(other, kind):
            attempts.reverse()
        for one, method, another in attempts:
            result = self._half(one, method, another)
            if result is not NotImplemented:
                return result
        if name in ("eq", "ne"):
            return (x is y) == (name == "eq")
        raise TypeError(f"'{symbol}' not supported between instances of '{named(x)}' and '{named(y)}'")

    def _compare_records(self, name: str, method: FunctionType, x: Any, y: Any) -> Any:
        """What a method that `dataclasses` has made says of two records: they are compared field by field."""
        if type(x) is not type(y):
            return NotImplemented
        owner: Any = next(cls for cls in type(x).__mro__ if vars(cls).get(name) is method)
        names = [field.name for field in dataclasses.fields(owner) if field.compare]
        if name == "__eq__" and sys.version_info >= (3, 13):
            return self._equal_by_field(names, x, y)
        return self.compare(name.strip("_"), *(tuple(self.attr(one, name) for name in names) for one in (x, y)))

    def _equal_by_field(self, names: Sequence[str], x: Any, y: Any) -> Any:
        """`x.a == y.a and x.b == y.b`; until Python 3.13, tuples of the fields are compared, which look at identity first."""
        found: Any = True
        for name in names:
            truth = call(bool, self.true(found))
            if not is_traced(truth) and not truth:
                break
            equal = self.compare("eq", *(self.attr(one, name) for one in (x, y)))
            found = call(np.logical_and, truth, call(bool, self.true(equal))) if is_traced(truth) else equal
        return found

    def unary(self, name: str, x: Any) -> Any:
        """`-x` and its like."""
        if type(x) not in PLAIN:
            special = self.special(x, f"__{name}__")
            if special is not None:
                return special()
            self.unseen(x)
        return self._made_of([_UNARY[name](x)], x)

    def _half(self, x: Any, name: str, other: Any) -> Any:
        """What one operand makes of an operator."""
        kind = type(x)
        if name == "__ne__" and static(kind, name) is object.__ne__ and users_method(kind, "__eq__"):
            result = self._half(x, "__eq__", other)
            return result if result is NotImplemented else self.not_(self.true(result))
        if name.startswith("__r") and type(other) is TracedScalar and not hasattr(kind, "__array_ufunc__"):
            other = other.item()  # as NumPy hands it on
        special = self.special(x, name)
        if special is not None:
            return special(other)
        if kind is TracedNumber or (kind in (TracedArray, TracedScalar) and _defers(other, kind)):
            return NotImplemented
        member = getattr(kind, name, None)
        if member is None:
            return NotImplemented
        if may_look(kind, name):
            self.unseen(x, other)
        return self._made_of([member(x, other)], x, other)

    def _made_of(self, box: list[Any], *operands: Any) -> Any:
        """What an operator gives, which alone is in the list: an object of a library's is the function's own, as in a call."""
        if type(box[0]) not in PLAIN:
            own_parts(self.trace, box, operands, may_be_new=True)
        return box[0]


def may_look(kind: Any, name: str) -> bool:
    """Whether what a class has for an operator may call special methods of the operands."""
    if kind in _NUMBERS or (kind in (str, bytes) and name != "__mod__"):
        return False
    member = static(kind, name)
    return member is not None and member is not vars(object).get(name)


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
