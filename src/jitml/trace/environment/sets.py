"""Sets from outside: how do sets come in, taken apart, and in which order do they go through their members?

Members are known while tracing, for hashing one guards it. One that is returned is made at each call of what it holds; those from
outside are not changed.
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


def form(x: set[Any]) -> tuple[Any, ...]:
    """What equal sets that go through their members in the same order may differ in: these, and room, on which order depends."""
    return (*equality_guards.form(x), x.__sizeof__())


_REGISTER: Any = optree.register_pytree_node  # whose stubs ask for a collection
_REGISTER(MadeSet, _taken_apart, lambda kind, members: kind(members), namespace=NAMESPACE)

__all__ = ["MadeSet", "form"]
