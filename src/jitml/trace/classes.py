"""Is a class of the user's what it was?  `require_class`: its functions and descriptors, compared at each call, in one check.

Python asks special methods by itself, libraries call others: `A.__call__ = f`, or a method that a class did not have, is seen
whoever would have called it.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, NoneType
from typing import Any

from jitml.trace.context import Trace, is_users_class

# What is compared by identity, or soon, and without a word of the user's code.
_COMPARED_AT_ONCE = (
    FunctionType, property, staticmethod, classmethod, GetSetDescriptorType, MemberDescriptorType,
    NoneType, bool, int, float, str,
)  # fmt: skip


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
        self.seen = space if all(type(x) in _COMPARED_AT_ONCE for x in space.values()) else {}


def _members(space: Mapping[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in space.items() if hasattr(type(member), "__get__")}


def _count(space: Mapping[str, Any]) -> int:
    """How much stands in a class but for what Python keeps there by itself."""
    return len(space) - ("__slotnames__" in space) - ("__annotations_cache__" in space)


def require_class(trace: Trace, cls: type) -> None:
    """A class, and what it is made of, as far as the user has written it, is what it is now."""
    for kind in (*type.mro(cls), *type.mro(type(cls))[:-2]):
        if kind not in trace.root.classes and is_users_class(kind):
            trace.root.classes.add(kind)
            host = trace.root.host
            host.require_held(host.hold(kind, kind.__qualname__), Members(kind))
