"""Append-only lists from outside: what if a list from outside only grows, call by call?

`OpenList`: it is appended to, and nothing is assumed of what is in it.

A list is seen so in the second attempt at tracing, when the first has shown that the function appends to it; what else
the function does with it, but to ask for its length and for single items, brings back the copy, with all that is guarded.

An argument, of which all is known, is seen so where a loop appends to it: what loops add is carried in `tail`, as the items of a
list are that only one name holds (`lists.py`), and everyone who has the object sees it. So is a list of the function's own that
nothing but an attribute holds (`self.losses = []`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from jitml.trace.carried.list_buffers import Growing, Probe
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.guards import Slot
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, unsupported, user_source
from jitml.trace.speculation.modes import OpenRegions, decisions
from jitml.trace.values.numbers import TracedNumber, combine

Item = Callable[[Any], Any]


@Sequence.register  # for `match`
class OpenList:
    """Stands for a list of any length. `isinstance(xs, list)` holds.

    Args:
        slot: what the host program calls it; None for an argument, which has as many items in each call.
        item: the item of the list at an index, as the function shall see it.
        own: of a list that the function has made, what is in it.
    """

    __slots__ = ("done", "is_own", "item", "name", "slot", "tail", "trace", "value")

    def __init__(
        self, trace: Trace, slot: Slot | None, name: str, value: list[Any], item: Item, own: list[Any] | None = None
    ) -> None:
        self.trace = trace
        self.slot = slot
        self.name = name
        self.value = value
        self.item = item
        self.done: list[TracedList] = []  # what loops have added
        self.is_own = own is not None
        self.tail: Any = own or []  # what has been added since; in a loop that appends a Probe or a Growing, after it a Stack
        if slot is not None:
            trace.host.require_type(slot, list)

    @property  # type: ignore[misc]  # as TracedNumber.__class__
    def __class__(self) -> type:
        return list

    @property
    def parts(self) -> list[Any]:
        """All that has been added."""
        return [*self.done, self.tail]

    def _show_regions(self) -> None:
        """All regions that are open learn that something is about to be appended, the outermost first."""
        trace = active_trace()
        regions, bodies = trace.call[OpenRegions], []
        while trace.is_body and trace.parent is not None:
            bodies.append(trace)
            trace = trace.parent
        if bodies and (bodies[::-1] != [region.trace for region in regions] or not regions[0].may_append):
            undecided(self)
        for region in regions if bodies else ():
            region.append_to(self)

    def begin(self) -> Any:
        """What a loop that is about to append begins with."""
        if type(self.tail) is TracedList and self.is_own:
            return self.tail if type(self.tail.rows) is int else self.close()
        if type(self.tail) is TracedList:
            self.done.append(self.tail)
            self.tail = []
        return [*self.tail] if type(self.tail) is list else self.tail

    def append(self, item: Any) -> None:
        self._show_regions()
        if type(self.tail) is Probe:
            self.tail = self.tail.push(item, 0)
        elif type(self.tail) is Growing:
            self.tail = self.tail.push(item)
        else:
            self.tail.append(item)

    def extend(self, items: Iterable[Any]) -> None:
        for item in list(items):  # which may be these
            self.append(item)

    def __iadd__(self, items: Any) -> OpenList:  # type: ignore[misc]  # `+` never comes back
        if type(items) not in (list, tuple):
            self.close()
        self.extend(items)
        return self

    def length(self) -> Any:
        """A number that may be another one in each call."""
        added = sum(len(part) if type(part) is list else part.length() for part in self.parts)
        if self.slot is None:
            return len(self.value) + added
        length = self.trace.host.compute(len, (self.slot,), f"len({self.name})")
        return combine(operator.add, TracedNumber(self.trace, length, len(self.value)), added)

    def __len__(self) -> int:
        return operator.index(self.length())

    def __bool__(self) -> bool:
        return (type(self.tail) is list and bool(self.tail)) or bool(self.length())

    def __getitem__(self, index: Any) -> Any:
        if self.slot is None and not self.value and not self.done:
            return self.tail[index]
        if self.slot is None and type(index) is int and 0 <= index < len(self.value):
            return self.item(index)
        if type(index) is not int or type(self.tail) is not list or self.done or (self.tail and index >= 0):
            self.close()
        if -index <= len(self.tail) and index < 0:
            return self.tail[index]
        place = index + len(self.tail) * (index < 0)
        if self.slot is not None and not -len(self.value) <= place < len(self.value):
            self.close()  # it raises for as long as the list is no longer, and somebody may handle that
        return self.item(place)

    def close(self, *_: Any) -> NoReturn:
        """Trace anew, with a copy of all that is in it, and of the rows beside it: one trace more for each would take minutes."""
        home, known = self.name.rpartition("[")[0], self.trace.copies.watched.values()
        rows = {x.name for x in known if type(x.copy) is OpenList and home and x.name.rpartition("[")[0] == home}
        decisions().closed.update({self.name, *rows})
        decisions().again()

    __iter__ = __contains__ = __reversed__ = __setitem__ = __delitem__ = close
    __add__ = __radd__ = __mul__ = __rmul__ = __imul__ = close
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __repr__ = __array__ = __copy__ = __deepcopy__ = close
    __hash__ = None  # type: ignore[assignment]  # as lists

    def __getattr__(self, name: str) -> Any:
        if hasattr(list, name):
            self.close()
        raise AttributeError(f"'list' object has no attribute {name!r}")


class ListsAlone(dict[int, tuple[object, str]], CallPart):
    """Lists that the function has made for attributes, by id, and what they are called."""


def only(items: list[Any], attribute: str) -> Any:
    """A list that has just been made, and is about to be an attribute; open, if loops are known to append to it."""
    trace = active_trace()
    if trace is not trace.root or trace.call[OpenRegions]:
        return items
    source, known = user_source(), decisions()
    name = f"{attribute} of line {source.line if source is not None else 0}"
    if name in known.moving and name not in known.closed:
        return OpenList(trace, None, name, [], items.__getitem__, items)
    trace.call[ListsAlone][id(items)] = items, name
    return items


def undecided(obj: Any) -> NoReturn:
    """An object of Python's would be changed once, while tracing, but only the program knows whether, or how often."""
    unsupported(
        f"a {obj.__class__.__name__} is changed under a condition, or in a loop, that only the compiled program decides",
        "Use an array, and write into it.",
    )
