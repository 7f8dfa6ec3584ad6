"""Is a class of the user's what it was?  `require_class`: its functions and descriptors, compared at each call, in one check.

Python asks special methods by itself, libraries call others: `A.__call__ = f`, or a method that a class did not have, is seen
whoever would have called it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from jitml.trace.context import Trace, is_users_class


class Members:
    """The functions and descriptors of a class, and how much stands in it."""

    __slots__ = ("count", "get", "length", "members")

    def __init__(self, cls: type) -> None:
        space = vars(cls)
        names = [name for name, member in space.items() if hasattr(type(member), "__get__")]
        self.count, self.length = _count(space), len(space)
        self.get: Callable[[Any], Any] = itemgetter(*names, *names[:1]) if names else _nothing
        self.members = self.get(space)

    def are_in(self, cls: type) -> bool:
        space = cls.__dict__
        is_as_long = len(space) == self.length or _count(space) == self.count
        return is_as_long and bool(self.get(space) == self.members)


def _count(space: Mapping[str, Any]) -> int:
    """How much stands in a class but for what Python keeps there by itself."""
    return len(space) - ("__slotnames__" in space) - ("__annotations_cache__" in space)


def _nothing(_: Any) -> tuple[()]:
    return ()


def require_class(trace: Trace, cls: type) -> None:
    """A class, and what it is made of, as far as the user has written it, is what it is now."""
    for kind in (*type.mro(cls), *type.mro(type(cls))[:-2]):
        if kind not in trace.root.classes and is_users_class(kind):
            trace.root.classes.add(kind)
            host = trace.root.host
            host.require_held(host.hold(kind, kind.__qualname__), Members(kind))
