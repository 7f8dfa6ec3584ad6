"""Class guards: is a class of the user's what it was?

`require_class`: its functions and descriptors, compared at each call, in one check.

Python asks special methods by itself, libraries call others: `A.__call__ = f`, or a method that a class did not have, is seen
whoever would have called it.
"""

from __future__ import annotations

import gc
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any

from jitml.errors import Cause
from jitml.records import dataclass, field
from jitml.trace.record.guards import HostConst
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, is_users_class, unsupported

_COMPARED_SOON = (NoneType, bool, int, float, str)
# Made when somebody asks for them.
_KEPT_BY_PYTHON = {"__slotnames__", "__annotations__", "__annotations_cache__", "__annotate_func__"}


class Members:
    """The functions and descriptors of a class, and how much stands in it.

    Attributes:
        space: the class's own dict. Two dicts that hold the same objects are compared faster than a few of their items.
        seen: what it was when the members were last found in it.
    """

    __slots__ = ("count", "members", "seen", "space")

    def __init__(self, cls: type) -> None:
        (self.space,) = gc.get_referents(vars(cls))  # the proxy around it would make each comparison slower
        self.seen = dict(self.space)
        self.members = _members(self.seen)
        self.count = _count(self.seen)
        self._see(self.seen)

    def are_in(self, cls: type) -> bool:
        space = dict(vars(cls))
        if _count(space) != self.count or any(space.get(name) is not member for name, member in self.members.items()):
            return False
        self._see(space)  # an attribute that is no function was bound anew, or Python keeps something there
        return True

    def _see(self, space: dict[str, Any]) -> None:
        self.seen = space if all(map(_is_compared_at_once, space.values())) else {}


def _is_compared_at_once(x: object) -> bool:
    """Whether it is compared by identity, or soon, and without a word of the user's code."""
    kind: Any = type(x)
    return kind in _COMPARED_SOON or kind.__eq__ is object.__eq__


def _members(space: Mapping[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in space.items() if hasattr(type(member), "__get__")}


def _count(space: Mapping[str, Any]) -> int:
    """How much stands in a class but for what Python keeps there by itself."""
    return len(space) - len(_KEPT_BY_PYTHON & space.keys())


@dataclass
class _GuardedClasses(CallPart):
    """Classes of the user's of which it is guarded that they stay as they are, and what they inherit from."""

    classes: set[type] = field(default_factory=set)
    bases: set[type] = field(default_factory=set)


def require_class(trace: Trace, cls: type) -> None:
    """A class, and what it is made of, as far as the user has written it, is what it is now."""
    for kind in (*type.mro(cls), *type.mro(type(cls))[:-2]):
        if kind not in trace.call[_GuardedClasses].classes and is_users_class(kind):
            trace.call[_GuardedClasses].classes.add(kind)
            host = trace.root.host
            host.require_held(host.hold(kind, kind.__qualname__), Members(kind))


def require_bases(trace: Trace, cls: type) -> None:
    """A class of the user's inherits from those it does now: `A.__bases__ = (B,)` may come between calls.

    Python refuses that where `object` is the only one.
    """
    bases = trace.call[_GuardedClasses].bases
    if cls in bases or not is_users_class(cls) or all(kind.__bases__ == (object,) for kind in cls.__mro__[:-1]):
        return
    bases.add(cls)
    host, name = trace.root.host, cls.__qualname__
    host.require_same(host.compute(getattr, (host.hold(cls, name), HostConst("__mro__")), f"{name}.__mro__"), cls.__mro__)


def require_registered(trace: Trace, cls: type, asked: Any) -> None:
    """A class is a subclass of those asked for, or is none, for good; refused where `B.register(A)` may come between calls.

    Args:
        asked: as `issubclass` takes it: classes, tuples and unions of them.
    """
    require_bases(trace, cls)
    for abstract in classes_in(asked):
        if not isinstance(abstract, ABCMeta):
            continue
        if any("__subclasshook__" in vars(kind) and is_users_class(kind) for kind in abstract.__mro__):
            what = (
                f"{abstract.__qualname__}.__subclasshook__ is called by code that is not converted, and what it reads may change"
            )
            unsupported(what, "Ask it outside of the jitted function.", Cause.OBJECT)
        if abstract not in cls.__mro__ and (is_users_class(cls) or is_users_class(abstract)):
            what = f"whether a {cls.__qualname__} is a {abstract.__qualname__}, which it does not inherit from, may change"
            unsupported(what, "Ask it outside of the jitted function.", Cause.OBJECT)


def classes_in(asked: Any) -> Iterator[Any]:
    """What `isinstance` and `issubclass` are asked for, one by one."""
    if isinstance(asked, tuple | UnionType):
        for one in asked if isinstance(asked, tuple) else asked.__args__:
            yield from classes_in(one)
    else:
        yield asked
