"""Sets: what of sets?

Members are known while tracing, for hashing one guards it; a set from outside is changed on a copy, one that is
returned is made at each call of what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree

from jitml.trace.environment import equality_guards
from jitml.trace.record.pytree import NAMESPACE


class MadeSet:
    """A set or frozenset, taken apart like any other container."""

    def __init__(self, kind: Callable[[Any], Any], members: Sequence[Any]) -> None:
        self.kind = kind
        self.members = (*members,)


def _taken_apart(made: MadeSet) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    return made.members, made.kind


def copied(x: set[Any]) -> set[Any] | None:
    """A copy that goes through its members in the same order, now and when it gets more; None if none is found."""
    one_by_one = set[Any]()
    for member in x:
        one_by_one.add(member)
    for made in (one_by_one, set(x)):
        if made.__sizeof__() == x.__sizeof__() and all(a is b for a, b in zip(made, x)):
            return made
    return None


def form(x: set[Any]) -> tuple[Any, ...]:
    """What equal sets that go through their members in the same order may differ in: these, and room, on which order depends."""
    return (*equality_guards.form(x), x.__sizeof__())


class SetMembers:
    """A set loses members and gets others."""

    def __init__(self, gone: tuple[Any, ...]) -> None:
        self.gone = gone

    def __call__(self, target: Any, values: Sequence[Any]) -> None:
        set.difference_update(target, self.gone)
        set.update(target, values)


def difference(before: tuple[Any, ...], after: set[Any], plain: Callable[[Any], Any]) -> tuple[SetMembers, list[Any]] | None:
    """What makes the caller's set like the copy, and the new members; None if nothing does."""
    known, now = {id(x) for x in before}, {id(x) for x in after}
    gone = tuple(x for x in before if id(x) not in now)
    new = [plain(x) for x in after if id(x) not in known]
    return (SetMembers(gone), new) if gone or new else None


_REGISTER: Any = optree.register_pytree_node  # whose stubs ask for a collection
_REGISTER(MadeSet, _taken_apart, lambda kind, members: kind(members), namespace=NAMESPACE)

__all__ = ["MadeSet", "SetMembers", "copied", "difference", "form"]
