"""Functions of Python's that ask special methods: `len`, `iter`, `int`, `sorted`, and those of `operator`.

Those of the user's are converted where the function itself asks for one (`models/objects.py`); of what a library may call by
itself (`sorted`, `np.asarray`) is guarded what it reads (`models/user_methods.py`).
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from jitml.errors import Cause
from jitml.trace.carried.iterators import gone_through
from jitml.trace.hooks.assignments import Assignments
from jitml.trace.hooks.models.model import BINARY, COMPARE
from jitml.trace.hooks.models.user_methods import EQUALITY, ORDER, PLAIN, named, static, users_method
from jitml.trace.record.recording import home_of, unsupported
from jitml.trace.regions.identity import are_taken_for_equal, place_of_equal
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import call

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


class PythonFunctions(Assignments):
    """The hooks of what asks special methods; `calls.Hooks` has them too."""

    __slots__ = ()

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
            found = self.models[type(args[0])].iterator(self, args[0])
            return otherwise(*args) if found is NotImplemented else found
        elif function is next and 0 < len(args) < 3 and users_method(type(args[0]), "__next__"):
            unsupported(f"a {type(args[0]).__name__} goes on by its __next__", "Take the items of a list.", Cause.ITERATOR)
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


def finding(function: Any) -> Any:
    """What is called for `l.index` and its like: C would find NaN by the identity of tracers, which are not what Python finds."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    return functools.partial(_FINDING[name], owner) if type(owner) in (list, tuple, deque) and name in _FINDING else function


def _count(held: Any, x: Any, /) -> int:
    return sum(are_taken_for_equal(y, x) for y in held)


def _index(held: Any, x: Any, start: Any = 0, stop: Any = sys.maxsize, /) -> int:
    places = range(*slice(start, stop).indices(len(held)))
    place = place_of_equal((held[n] for n in places), x)
    return int(type(held)().index(x)) if place is None else places[place]  # which raises as Python does


def _remove(held: Any, x: Any, /) -> None:
    if (place := place_of_equal(held, x)) is None:
        type(held)().remove(x)
    else:
        del held[place]


_FINDING: dict[str, Callable[..., Any]] = {"count": _count, "index": _index, "remove": _remove}


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
