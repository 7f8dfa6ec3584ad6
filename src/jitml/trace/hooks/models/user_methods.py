"""Special methods: which of them the user wrote, and what Python or a library may call of them out of sight.

`Asking` guards what those read that are not converted; who calls them in sight, `model.py` and `objects.py` say.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, MappingView
from types import FunctionType, NoneType, SimpleNamespace
from typing import Any

import numpy as np

from jitml.trace.environment.guarded_loads import load
from jitml.trace.environment.name_lookup import NameHooks
from jitml.trace.environment.unseen_reads import guard_librarys, refuse_unseen, runs_unseen
from jitml.trace.record.guards import Slot
from jitml.trace.record.libraries import is_library
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.recording import Trace, home_of
from jitml.trace.values.boxing import TracedArray, TracedScalar, is_traced
from jitml.trace.values.numbers import TracedNumber

PLAIN = frozenset({
    TracedArray, TracedScalar, TracedNumber, bool, int, float, complex, str, bytes, NoneType, list, tuple, dict, set, slice,
    range, np.ndarray, np.bool_, np.int32, np.int64, np.float32, np.float64, np.complex128, np.dtype,
})  # fmt: skip
# What makes a number, a sequence or memory of an object: an index, a bound, an argument of C code.
CONVERSIONS = (
    "__index__", "__int__", "__float__", "__complex__", "__trunc__", "__bool__", "__len__", "__length_hint__", "__iter__",
    "__next__", "__getitem__", "__array__", "__array_interface__", "__buffer__", "__bytes__", "__fspath__",
)  # fmt: skip
_NUMBERS = (bool, int, float, complex, NoneType, TracedNumber)
EQUALITY, ORDER = ("__eq__", "__ne__", "__hash__"), ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")


def static(kind: Any, name: str) -> Any:
    """What a class has under a name, as it stands there."""
    return next((vars(cls)[name] for cls in kind.__mro__ if name in vars(cls)), None)


def users_method(kind: Any, name: str) -> FunctionType | None:
    """A special method that the user wrote in Python."""
    if kind in PLAIN:
        return None
    member = static(kind, name)
    return member if type(member) is FunctionType and not is_library(member) else None


def may_look(kind: Any, name: str) -> bool:
    """Whether what a class has for an operator may call special methods of the operands."""
    if kind in _NUMBERS or (kind in (str, bytes) and name != "__mod__"):
        return False
    member = static(kind, name)
    return member is not None and member is not vars(object).get(name)


def parts_of(xs: Iterable[Any]) -> Iterator[Any]:
    """These, and what containers among them hold, that is not plain."""
    waiting, seen = [*xs], set()
    while waiting:
        x = waiting.pop()
        kind: Any = type(x)
        if kind in PLAIN:
            if kind not in CONTAINERS and kind is not set:
                continue
        elif home_of(kind).startswith("jitml."):
            continue
        if issubclass(kind, (*CONTAINERS, set, frozenset, MappingView)):
            if id(x) not in seen:
                seen.add(id(x))
                held = x if kind is tuple or kind is list else _held(x)  # of most there is no more to ask
                waiting += [y for y in held if type(y) not in PLAIN or type(y) in CONTAINERS]
        if kind not in PLAIN:
            yield x


def _held(x: Any) -> Iterable[Any]:
    """What stands in a container, whatever its class makes of iteration, which of a sparse matrix has no end."""
    base: Any = next((kind for kind in (*CONTAINERS, set, frozenset) if isinstance(x, kind)), None)
    if base is dict:
        return (*dict.keys(x), *dict.values(x))
    return x if base is None else base.__iter__(x)


def kind_of(x: Any) -> type:
    """The class of a value, as Python's messages know it."""
    return x.__class__ if is_traced(x) else type(x)


def named(x: Any) -> str:
    """The name of x's type, as Python's messages have it."""
    cls = kind_of(x)
    return f"numpy.{cls.__name__}" if cls.__module__ == "numpy" else cls.__name__


def is_made_up(cls: Any, name: str) -> bool:
    """Whether converted code of the class says what an attribute is, or that there is none."""
    member = inspect.getattr_static(cls, name, None)
    return isinstance(member, property | functools.cached_property) or (member is None and bool(users_method(cls, "__getattr__")))


def require_attribute(trace: Trace, obj: Any, name: str, slot: Slot, has: bool) -> None:
    """An object from outside has an attribute of this name, or not."""
    if users_method(type(obj), "__getattribute__"):
        refuse_unseen(trace, obj, slot)
    elif (id(obj), name) not in trace.changes.stored and not is_made_up(type(obj), name):
        known = trace.copies.watched.get(id(obj))
        has = has if known is None else hasattr(known.original, name)  # whatever has become of the copy
        text = f"hasattr({trace.host.name(slot)}, {name!r})"
        trace.host.require(load(trace, hasattr, slot, name, text), has)


class Asking(NameHooks):
    """Hooks that guard what is called out of sight; `calls.Hooks` has them too."""

    __slots__ = ()

    def unseen(self, *xs: Any, methods: tuple[str, ...] = ()) -> None:
        """Python or a library may now call special methods of these, out of sight: any, if none is named.

        Those of the user's are refused of objects from outside, those of a library may read all.
        """
        guard_librarys(self.trace, *xs)
        for x in xs:
            kind: Any = type(x)
            slot = None if kind in PLAIN else self.trace.outside.places.get(id(x))
            is_compared = isinstance(x, SimpleNamespace) and (not methods or "__eq__" in methods)  # C compares its attributes
            if slot is not None and (is_compared or runs_unseen(kind, methods)):
                refuse_unseen(self.trace, x, slot)

    def unseen_inside(self, *xs: Any, methods: tuple[str, ...] = ()) -> None:
        """The same of all that these hold."""
        for x in parts_of(xs):
            self.unseen(x, methods=methods)

    def converted(self, *xs: Any) -> None:
        """Python or C code may now make a number, a sequence or memory of these: arguments, indices, the bounds of slices."""
        for x in xs:
            kind = type(x)
            if kind is slice:
                self.converted(x.start, x.stop, x.step)
            elif kind is tuple:
                self.converted(*x)
            elif kind not in PLAIN:
                self.unseen(x, methods=CONVERSIONS)

    def placed(self, index: Any) -> Any:
        """`obj[index] = value` or `del obj[index]` is about to happen."""
        self.converted(index)
        return self.hashed(index)

    def mapping(self, x: Any) -> Any:
        """`**x`: Python is about to ask for its keys, and its items by these."""
        if type(x) is not dict:
            self.unseen(x)
        return x

    def hashed(self, key: Any) -> Any:
        """A dict or a set is about to look for this: `d[key]`, `{key}`."""
        for x in parts_of([key]):
            if users_method(type(x), "__hash__") is not None:
                self.unseen(x, methods=EQUALITY)
        return key
