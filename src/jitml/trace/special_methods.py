"""What if an operator, `len`, `in`, a truth or a `for` asks a special method of the user's?  It is converted: `Specials`, hooks.

Where no operand's class has such a method in Python, the hooks do what the operator does. Else they follow Python's protocol: who
is asked first, what `NotImplemented` and identity mean. What a library may call by itself (`sorted`, `np.asarray`) is not
converted: then what those methods read is guarded (`outside.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MappingView, Sequence
from types import FunctionType, NoneType
from typing import Any, cast

import numpy as np

from jitml.ir import ops
from jitml.trace.accesses import Accesses
from jitml.trace.classes import require_none_registered
from jitml.trace.contents import gone_through
from jitml.trace.context import home_of, is_users_class, refuse_environ, unsupported
from jitml.trace.doubts import may_be_none, require_type_known
from jitml.trace.hostcalls import call_on_host
from jitml.trace.libraries import is_scipys
from jitml.trace.loaded_names import Names, is_library
from jitml.trace.numbers import TracedNumber
from jitml.trace.objects import TracedObject
from jitml.trace.registry import call
from jitml.trace.state import CONTAINERS
from jitml.trace.tracers import TracedArray, TracedScalar, is_traced, read
from jitml.trace.unseen import guard_librarys, guard_state, names_in, outer_values, run_unseen

_PLAIN = frozenset({
    TracedArray, TracedScalar, TracedNumber, bool, int, float, complex, str, bytes, NoneType, list, tuple, dict, set, slice,
    range, np.ndarray, np.bool_, np.int32, np.int64, np.float32, np.float64, np.complex128, np.dtype,
})  # fmt: skip
_NUMBERS = (bool, int, float, complex, NoneType, TracedNumber)
_BINARY: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (operator.add, "+"), "sub": (operator.sub, "-"), "mul": (operator.mul, "*"), "truediv": (operator.truediv, "/"),
    "floordiv": (operator.floordiv, "//"), "mod": (operator.mod, "%"), "pow": (operator.pow, "** or pow()"),
    "matmul": (operator.matmul, "@"), "lshift": (operator.lshift, "<<"), "rshift": (operator.rshift, ">>"),
    "and": (operator.and_, "&"), "or": (operator.or_, "|"), "xor": (operator.xor, "^"), "divmod": (divmod, "divmod()"),
}  # fmt: skip
_COMPARE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "lt": (operator.lt, "<", "gt"), "le": (operator.le, "<=", "ge"), "eq": (operator.eq, "==", "eq"),
    "ne": (operator.ne, "!=", "ne"), "gt": (operator.gt, ">", "lt"), "ge": (operator.ge, ">=", "le"),
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {"neg": operator.neg, "pos": operator.pos, "invert": operator.invert, "abs": abs}
_REPEATED = (list, tuple, str, bytes, bytearray, deque)  # whose `+` and `*` wait until other operands have been asked
# Functions that ask one method of their first argument, or the next of these.
_ASK: dict[Any, tuple[str, ...]] = {
    float: ("__float__", "__index__"), int: ("__int__", "__index__"), complex: ("__complex__", "__float__", "__index__"),
    operator.index: ("__index__",), abs: ("__abs__",), round: ("__round__",), reversed: ("__reversed__",),
    operator.neg: ("__neg__",), operator.pos: ("__pos__",), operator.invert: ("__invert__",), operator.abs: ("__abs__",),
}  # fmt: skip
_OPERATORS = {
    **{function: ("binary", name) for name, (function, _) in _BINARY.items()}, pow: ("binary", "pow"),
    **{function: ("compare", name) for name, (function, *_) in _COMPARE.items()},
    **{getattr(operator, f"i{name}"): ("in_place", name) for name in _BINARY if name not in ("divmod", "and", "or")},
    operator.iand: ("in_place", "and"), operator.ior: ("in_place", "or"),
}  # fmt: skip
# How many of their arguments functions go through.
_GO_THROUGH: dict[Any, int] = {
    list: 1, tuple: 1, set: 1, frozenset: 1, sum: 1, any: 1, all: 1, sorted: 1, enumerate: 1, deque: 1, zip: 1 << 30,
}  # fmt: skip
SPECIAL = frozenset({*_ASK, *_OPERATORS, len, bool, iter, next, operator.truth, operator.not_, operator.contains})
_EQUALITY, _ORDER = ("__eq__", "__ne__", "__hash__"), ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
# Functions that call special methods of what is in their arguments, and which.
_LOOK_INSIDE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sorted", "max", "min", "sort"), _ORDER), **dict.fromkeys(("any", "all"), ("__bool__", "__len__")),
    **dict.fromkeys(("index", "count", "remove", "set", "frozenset"), _EQUALITY),
}  # fmt: skip
# Functions that look them up in a dict or a set, beside the methods of these.
_LOOK_UP = {"dict", "Counter", "OrderedDict", "defaultdict", "fromkeys"}


def static(kind: Any, name: str) -> Any:
    """What a class has under a name, as it stands there."""
    return next((vars(cls)[name] for cls in kind.__mro__ if name in vars(cls)), None)


def users_method(kind: Any, name: str) -> FunctionType | None:
    """A special method that the user wrote in Python."""
    if kind in _PLAIN:
        return None
    member = static(kind, name)
    return member if type(member) is FunctionType and not is_library(member) else None


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


class Specials(Accesses):
    """The hooks of operators; `calls.Hooks` has them too."""

    __slots__ = ()
    not_: Callable[[Any], Any]  # of `steering.Steering`
    percent: Callable[[Any, Any], Any]  # of `calls.Hooks`

    def special(self, x: Any, name: str) -> Callable[..., Any] | None:
        """A special method of the user's, bound and converted."""
        method = users_method(type(x), name)
        if method is None:
            return None
        self._require_member(type(x), name, method)
        if name in _ORDER and method.__code__.co_filename == "<string>" and dataclasses.is_dataclass(x):
            return functools.partial(self._compare_records, name, method, x)
        converted = self.convert(method, lazily=True)
        if converted is method:  # it has no source
            self.unseen(x)
        return functools.partial(converted, x)

    def unseen(self, *xs: Any, methods: tuple[str, ...] = ()) -> None:
        """Python or a library may now call special methods of these, out of sight: any, if none is named.

        What the user's mention is guarded; those of a library may read all.
        """
        guard_librarys(self.trace, *xs)
        for x in xs:
            kind: Any = type(x)
            slot = None if kind in _PLAIN else self.trace.places.get(id(x))
            if slot is not None and (functions := run_unseen(self.trace, kind, methods)):
                names = names_in(functions)
                guard_state(self.trace, x, slot, names)
                for function in functions:
                    self._guard_outer(function, names)

    def _guard_outer(self, function: FunctionType, names: frozenset[str]) -> None:
        """What a function that runs out of sight loads by name."""
        hooks = Names(self.trace, function, self.convert)
        for name, value in outer_values(function).items():
            slot = hooks.place(name)
            assert slot is not None
            guard_state(self.trace, value, slot, names)

    def unseen_inside(self, *xs: Any, methods: tuple[str, ...] = ()) -> None:
        """The same of all that these hold."""
        for x in parts_of(xs):
            self.unseen(x, methods=methods)

    def hashed(self, key: Any) -> Any:
        """A dict or a set is about to look for this: `d[key]`, `{key}`."""
        for x in parts_of([key]):
            if users_method(type(x), "__hash__") is not None:
                self.unseen(x, methods=_EQUALITY)
        return key

    # Operators

    def binary(self, name: str, x: Any, y: Any) -> Any:
        """`x + y` and its like."""
        function = _BINARY[name][0]
        kind, other = type(x), type(y)
        if kind in _PLAIN and other in _PLAIN:
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
            if _may_look(kind, forward) or _may_look(other, backward):
                self.unseen(x, y)
            return function(x, y)
        attempts = [(x, forward, y)]
        if other is not kind and (member := static(other, backward)) is not None:
            is_first = issubclass(other, kind) and member is not static(kind, backward)
            attempts.insert(0 if is_first else 1, (y, backward, x))
        waiting = [one for one in attempts if name in ("add", "mul") and isinstance(one[0], _REPEATED)]
        for one, method, another in [*(one for one in attempts if one not in waiting), *waiting]:
            result = self._half(one, method, another)
            if result is not NotImplemented:
                return result
        raise TypeError(f"unsupported operand type(s) for {_BINARY[name][1]}: '{_named(x)}' and '{_named(y)}'")

    def in_place(self, name: str, x: Any, y: Any) -> Any:
        """What `x += y` and its like bind x to."""
        function = getattr(operator, f"i{name}")
        if type(x) in _PLAIN and type(y) in _PLAIN:
            return function(x, y)
        special = self.special(x, f"__i{name}__")
        if special is not None:
            result = special(y)
            return self.binary(name, x, y) if result is NotImplemented else result
        if type(x) is list and name == "add" and users_method(type(y), "__radd__") is None:
            return function(x, self.gone_through(y))
        if users_method(type(x), f"__{name}__") is None and users_method(type(y), f"__r{name}__") is None:
            self.unseen(x, y)
            return function(x, y)
        result = self._half(x, f"__i{name}__", y) if not isinstance(x, _REPEATED) else NotImplemented
        return self.binary(name, x, y) if result is NotImplemented else result

    def compare(self, name: str, x: Any, y: Any) -> Any:
        """`x < y` and its like."""
        function, symbol, swapped = _COMPARE[name]
        kind, other = type(x), type(y)
        if kind in _PLAIN and other in _PLAIN and not (kind is other and kind in CONTAINERS):
            return function(x, y)
        if TracedObject in (kind, other):
            return x.compared(name, y) if kind is TracedObject else y.compared(swapped, x)
        forward, backward = f"__{name}__", f"__{swapped}__"
        names = {forward, backward, *(["__eq__"] if name == "ne" else [])}
        if not any(users_method(which, method) for which in (kind, other) for method in names):
            if _may_look(kind, forward) or _may_look(other, backward):
                self.unseen_inside(x, y, methods=_EQUALITY if name in ("eq", "ne") else _ORDER)
            return function(x, y)
        attempts = [(x, forward, y), (y, backward, x)]
        if other is not kind and issubclass(other, kind):
            attempts.reverse()
        for one, method, another in attempts:
            result = self._half(one, method, another)
            if result is not NotImplemented:
                return result
        if name in ("eq", "ne"):
            return (x is y) == (name == "eq")
        raise TypeError(f"'{symbol}' not supported between instances of '{_named(x)}' and '{_named(y)}'")

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
        if type(x) not in _PLAIN:
            special = self.special(x, f"__{name}__")
            if special is not None:
                return special()
            self.unseen(x)
        return _UNARY[name](x)

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
        if _may_look(kind, name):
            self.unseen(x, other)
        return member(x, other)

    # Truth, length, membership, iteration

    def true(self, x: Any) -> Any:
        """What has the truth of x."""
        if type(x) in _PLAIN:
            return x
        if type(x) is TracedObject:
            return x.truth()
        special = self.special(x, "__bool__")
        if special is not None:
            result = special()
            if _kind_of(result) is not bool:
                raise TypeError(f"__bool__ should return bool, returned {_named(result)}")
            return result
        if static(type(x), "__bool__") is None and users_method(type(x), "__len__") is not None:
            return self.length(x) != 0
        self.unseen(x, methods=("__bool__", "__len__"))
        return x

    def unheeded(self, x: Any) -> Any:
        """What Python itself is going to ask for its truth or its order."""
        if type(x) not in _PLAIN:
            self.unseen(x)
        return x

    def length(self, x: Any) -> Any:
        """`len(x)`"""
        if type(x) is TracedObject:
            return x.length()
        special = self.special(x, "__len__")
        if special is None:
            self.unseen(x)
            return call(len, gone_through(x))
        n = special()
        if type(n) is TracedScalar:
            n = call(int, n) if n.dtype.kind in "iu" else n
        if type(n) is TracedNumber and n.slot is None and n.kind is int:
            value = read(n)
            return TracedNumber.of_value(
                self.trace, ops.check(value, ops.ge(value, 0), error="ValueError", message="__len__() should return >= 0")
            )
        if not hasattr(type(n), "__index__") or _kind_of(n) is float:
            raise TypeError(f"'{_named(n)}' object cannot be interpreted as an integer")
        if n < 0:
            raise ValueError("__len__() should return >= 0")
        return n if is_traced(n) else operator.index(n)

    def is_in(self, x: Any, some: Any) -> Any:
        """`x in some`"""
        kind = type(some)
        if kind is TracedObject:
            return some.contains(x)
        if kind.__module__ == "os":
            refuse_environ()
        special = self.special(some, "__contains__")
        if special is not None:
            return call(bool, self.true(special(x)))
        if static(kind, "__contains__") is not None and not (
            isinstance(some, (list, tuple, deque)) and any(users_method(type(y), "__eq__") for y in (x, *some))
        ):
            self.unseen_inside(some, x, methods=("__contains__", *_EQUALITY))
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
        if kind in _PLAIN:
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
            raise TypeError(f"iter() returned non-iterator of type '{_named(x)}'")
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
        self.unseen(*waiting, methods=("__len__", "__getitem__", *_EQUALITY))
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
                if not hasattr(part, name) or isinstance(static(type(part), name), (FunctionType, property)):
                    continue
                if (id(part), name) in self.trace.stored or name in self.trace.set_in_classes:
                    unsupported(f"{self.trace.host.name(slot)}.{name} is changed, and then matched", "Match before, or use if.")
                value = self.attr(part, name)  # an array is then found again by those who are handed it
                if type(value) is TracedNumber:
                    value.known()
                waiting += parts_of([value])
        return x

    def item(self, obj: Any, index: Any) -> Any:
        """`obj[index]` was loaded."""
        is_asked = users_method(type(index), "__index__") and isinstance(obj, (*_REPEATED, range, np.ndarray))
        if users_method(type(obj), "__getitem__") is None:
            guard_librarys(self.trace, obj)
        if isinstance(obj, dict):
            self.hashed(index)
        return super().item(obj, self.conv(operator.index)(index) if is_asked else index)

    # Functions of Python's that ask special methods

    def asked(self, otherwise: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of one of `SPECIAL`; `otherwise` is what it does where nothing is the user's."""
        if all(type(x) in _PLAIN for x in args) and not (function is iter and len(args) == 1):
            return otherwise(*args, **kwargs)
        if function in _OPERATORS and len(args) == 2 and not kwargs:
            hook, name = _OPERATORS[function]
            forward = ("__i", "__") if hook == "in_place" else ("__",)
            backward = f"__{_COMPARE[name][2]}__" if hook == "compare" else f"__r{name}__"
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
        self.unseen(x)
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


def parts_of(xs: Iterable[Any]) -> Iterator[Any]:
    """These, and what containers among them hold, that is not plain."""
    waiting, seen = [*xs], set()
    while waiting:
        x = waiting.pop()
        kind: Any = type(x)
        if kind in _PLAIN and kind not in CONTAINERS and kind is not set:
            continue
        if home_of(kind).startswith("jitml."):
            continue
        if issubclass(kind, (*CONTAINERS, set, frozenset, MappingView)):
            if id(x) not in seen:
                seen.add(id(x))
                held = (*x, *x.values()) if isinstance(x, dict) else x
                waiting += [y for y in held if type(y) not in _PLAIN or type(y) in CONTAINERS]
        if kind not in _PLAIN:
            yield x


def asked_by(function: Any) -> tuple[str, ...]:
    """The special methods that a function of Python's calls of what is in its arguments."""
    return _LOOK_INSIDE.get(getattr(function, "__name__", ""), ())


def _may_look(kind: Any, name: str) -> bool:
    """Whether what a class has for an operator may call special methods of the operands."""
    if kind in _NUMBERS or (kind in (str, bytes) and name != "__mod__"):
        return False
    member = static(kind, name)
    return member is not None and member is not vars(object).get(name)


def _kind_of(x: Any) -> type:
    return x.kind if type(x) is TracedNumber else type(x)


def _named(x: Any) -> str:
    """The name of x's type, as Python's messages have it."""
    cls = _kind_of(x) if type(x) is TracedNumber else x.__class__ if is_traced(x) else type(x)
    return f"numpy.{cls.__name__}" if cls.__module__ == "numpy" else cls.__name__


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
        raise TypeError(f"{type(x).__name__}.{name} returned non-{kind.__name__} (type {_named(result)})")
    return result if function is operator.index else call(function, result)


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


__all__ = ["SPECIAL", "FreshRows", "Specials", "asked_by", "parts_of", "static", "users_method"]
