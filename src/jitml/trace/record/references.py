"""References from outside: what is in a container, in attributes and in a cell.  How they are looked at, and put back.

`put` has all as it was. `remove_left` takes out what a refused trace has left: nobody else has put that there, nor can use it.
Other references stay as they are, for another thread may have changed them meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import CellType, MemberDescriptorType
from typing import Any, Protocol

from jitml.records import dataclass
from jitml.trace.record.container_contents import contents, refill

MISSING = object()
IsLeft = Callable[[Any], bool]  # whether a trace has left this


class References(Protocol):
    """References that may be other ones later."""

    def look(self) -> tuple[Any, ...]:
        """What is there, to be compared item by item."""
        ...

    def put(self, before: tuple[Any, ...]) -> None:
        """Have there what has been seen."""
        ...

    def remove_left(self, before: tuple[Any, ...], is_left: IsLeft) -> None:
        """Take out what a trace has left since `before` was seen."""
        ...


@dataclass(frozen=True)
class Items:
    """What is in a container."""

    container: Any

    def look(self) -> tuple[Any, ...]:
        return contents(self.container)

    def put(self, before: tuple[Any, ...]) -> None:
        refill(self.container, before)

    def remove_left(self, before: tuple[Any, ...], is_left: IsLeft) -> None:
        after = self.look()
        is_dict = isinstance(self.container, dict)
        wanted = _entries_without(before, after, is_left) if is_dict else _items_without(before, after, is_left)
        if len(wanted) != len(after) or any(a is not b for a, b in zip(wanted, after)):
            self.put(wanted)


@dataclass(frozen=True)
class Attributes:
    """Attributes of an object, a class or a module, or globals.

    Args:
        owner: what has them.
        namespace: where it keeps them.
        names, members: those that are kept there, and those that stand in slots.
    """

    owner: Any
    namespace: Mapping[str, Any]
    names: tuple[str, ...]
    members: tuple[MemberDescriptorType, ...] = ()

    def look(self) -> tuple[Any, ...]:
        named = (self.namespace.get(name, MISSING) for name in self.names)
        return (*named, *(_held(member, self.owner) for member in self.members))

    def put(self, before: tuple[Any, ...]) -> None:
        self.remove_left(before, lambda _: True)

    def remove_left(self, before: tuple[Any, ...], is_left: IsLeft) -> None:
        keys: tuple[str | MemberDescriptorType, ...] = (*self.names, *self.members)
        for key, was, now in zip(keys, before, self.look()):
            if now is not was and is_left(now):
                self._put(key, was)

    def _put(self, key: str | MemberDescriptorType, value: Any) -> None:
        """Without properties and special methods of the user's, which would see it."""
        is_gone = value is MISSING
        if isinstance(key, MemberDescriptorType):
            key.__delete__(self.owner) if is_gone else key.__set__(self.owner, value)
        elif isinstance(self.owner, type):
            type.__delattr__(self.owner, key) if is_gone else type.__setattr__(self.owner, key, value)
        else:
            space: Any = self.namespace
            dict.pop(space, key, None) if is_gone else dict.__setitem__(space, key, value)


@dataclass(frozen=True)
class Content:
    """What a closure's cell holds."""

    cell: CellType

    def look(self) -> tuple[Any, ...]:
        try:
            return (self.cell.cell_contents,)
        except ValueError:
            return (MISSING,)

    def put(self, before: tuple[Any, ...]) -> None:
        if before[0] is MISSING:
            del self.cell.cell_contents
        else:
            self.cell.cell_contents = before[0]

    def remove_left(self, before: tuple[Any, ...], is_left: IsLeft) -> None:
        (was,), (now,) = before, self.look()
        if now is not was and is_left(now):
            self.put(before)


def _items_without(before: tuple[Any, ...], after: tuple[Any, ...], is_left: IsLeft) -> tuple[Any, ...]:
    """The items but those that are left; those from before if one of them has made room for such a one."""
    known = Counter(map(id, before))
    kept = tuple(item for item in after if id(item) in known or not is_left(item))
    return kept if len(kept) == len(after) or known <= Counter(map(id, kept)) else before


def _entries_without(before: tuple[Any, ...], after: tuple[Any, ...], is_left: IsLeft) -> tuple[Any, ...]:
    """The same of a dict's keys, and behind them the values: a key from before has its value again."""
    half, count = len(before) // 2, len(after) // 2
    values = dict(zip(map(id, before[:half]), before[half:]))
    kept: list[tuple[Any, Any]] = []
    for key, value in zip(after[:count], after[count:]):
        was = values.get(id(key), MISSING)
        if value is was or not (is_left(key) or is_left(value)):
            kept.append((key, value))
        elif was is not MISSING:
            kept.append((key, was))
    return (*(key for key, _ in kept), *(value for _, value in kept))


def _held(member: Any, owner: Any) -> Any:
    try:
        return member.__get__(owner)
    except AttributeError:
        return MISSING


__all__ = ["MISSING", "Attributes", "Content", "Items", "References"]
