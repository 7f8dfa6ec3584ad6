"""What if a list from outside only grows, call by call?  `OpenList`: it is appended to, and nothing is assumed of what is in it.

A list is seen so in the second attempt at tracing, when the first has shown that the function appends to it; what else
the function does with it, but to ask for its length and for single items, brings back the copy, with all that is guarded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from jitml.trace.context import Trace
from jitml.trace.decisions import decisions
from jitml.trace.host import Slot
from jitml.trace.numbers import TracedNumber, combine

Item = Callable[[Any], Any]


class OpenList:
    """Stands for a list of any length. `isinstance(xs, list)` holds.

    Args:
        item: the item of the list at an index, as the function shall see it.
    """

    def __init__(self, trace: Trace, slot: Slot, name: str, value: list[Any], item: Item) -> None:
        self.trace = trace
        self.slot = slot
        self.name = name
        self.value = value
        self.item = item
        self.tail: list[Any] = []
        trace.host.require_type(slot, list)

    @property  # type: ignore[misc]  # as TracedNumber.__class__
    def __class__(self) -> type:
        return list

    def append(self, item: Any) -> None:
        self.tail.append(item)

    def extend(self, items: Iterable[Any]) -> None:
        self.tail.extend(items)

    def length(self) -> Any:
        """A number that may be another one in each call."""
        length = self.trace.host.compute(len, (self.slot,), f"len({self.name})")
        return combine(operator.add, TracedNumber(self.trace, length, len(self.value)), len(self.tail))

    def __len__(self) -> int:
        return operator.index(self.length())

    def __bool__(self) -> bool:
        return bool(self.tail) or bool(self.length())

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int or (self.tail and index >= 0):
            self._close()
        return self.tail[index] if -index <= len(self.tail) and index < 0 else self.item(index + len(self.tail) * (index < 0))

    def _close(self, *_: Any) -> NoReturn:
        """Trace anew, with a copy of all that is in it."""
        decisions().closed.add(self.name)
        decisions().again()

    __iter__ = __contains__ = __reversed__ = __setitem__ = __delitem__ = _close
    __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = _close
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = __copy__ = __deepcopy__ = _close
    __hash__ = None  # type: ignore[assignment]  # as lists

    def __getattr__(self, name: str) -> Any:
        if hasattr(list, name):
            self._close()
        raise AttributeError(f"'list' object has no attribute {name!r}")
