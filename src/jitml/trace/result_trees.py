"""Result containers: of which containers do results consist?

The caller's own, new ones, and those that are in several places but are one object.

`settled` puts in what is known only in the end, `apart` cuts out what is there more than once: a list that is returned and kept
as well is made once, in front of all that holds it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter, deque
from typing import Any

from jitml.trace.effects.attribute_stores import is_open
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.escape_analysis import require_untraced_rest
from jitml.trace.record.pytree import children, is_record, unflatten
from jitml.trace.record.recording import Trace, is_users_class, unsupported
from jitml.trace.results import Itself
from jitml.trace.traced import Repeated
from jitml.trace.values.boxing import TracedArray, is_traced
from jitml.trace.values.container_identity import require_certain
from jitml.trace.values.text import TracedText, plain_key

_LARGE = 64  # places in a tuple that is in several places: it is made once
_UNFINISHED = object()  # what becomes of an object is not known before its parts are


class Settled(dict[int, tuple[Any, Any]]):
    """What parts of results have become, by id; `stands`: which parts there are, by the ids of all that they may be."""

    def __init__(self) -> None:
        super().__init__()
        self.stands: dict[int, Any] = {}


def settled(trace: Trace, x: Any, known: Settled | None = None) -> Any:
    """A result with what is known of it put in: the caller's own containers, and what keys of dicts are."""
    known = Settled() if known is None else known
    if id(x) in trace.copies.watched:
        return Itself(trace.copies.watched[id(x)].find())
    if id(x) in trace.outside.places and is_record(x):
        return Itself(trace.outside.places[id(x)])
    require_certain(trace.copies.watched.keys() | trace.outside.places.keys(), known.stands, x)
    if id(x) not in known:
        known[id(x)] = x, _UNFINISHED  # x, so that nothing else gets its id
        known[id(x)] = x, _settled(trace, x, known)
    elif known[id(x)][1] is _UNFINISHED:
        unsupported("the function returns, or keeps, an object that holds itself", "Return what is in it.")
    return known[id(x)][1]


def require_rows_apart(result: Any) -> None:
    """Refuse lists that loops have filled with an item of theirs beside them: it would not be one object."""
    stacks = dict[int, TracedList]()
    leaves = set[int]()
    waiting, seen = [result], dict[int, Any]()
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        if type(x) is TracedList:
            stacks[id(x)] = x
            waiting += [*x.head, *x.tail]
        elif type(x) is TracedArray:
            leaves |= {id(x), *(id(case.origin.array()) for case in x.storage.cases)}
        elif not is_traced(x):
            waiting += children(x)[0]
    for x in stacks.values():
        if any(id(row) in leaves for row in x.given.values()):
            x.change()


def _settled(trace: Trace, x: Any, known: Settled) -> Any:
    if is_open(x):  # an attribute's of an object that the function has made
        if any(kind.form == "array" for kind in getattr(x.tail, "kinds", ())):
            x.close()  # who else has the arrays is asked of lists
        return settled(trace, x.tail, known)
    if isinstance(x, dict) and type(x).__module__ in ("builtins", "collections"):
        items = [(_key(trace, key), settled(trace, item, known)) for key, item in x.items()]
        if all(key is before for (key, _), before in zip(items, x)) and all(a is b for (_, a), b in zip(items, x.values())):
            return x
        made = copy.copy(x)
        made.clear()
        made.update(items)
        return made
    parts, spec = children(x)
    if not parts and spec.is_leaf():
        return x
    items = [settled(trace, part, known) for part in parts]
    if parts:
        require_untraced_rest(x, "the function returns, or keeps,")
    made = x if all(a is b for a, b in zip(items, parts)) else unflatten(spec, items)
    if dataclasses.is_dataclass(x) and not isinstance(x, type) and (other := _others(x)):
        message = f"the function returns, or keeps, a {type(x).__qualname__} with an attribute that is no field: {other[0]}"
        unsupported(message, "Make it a field, or make the object outside of the jitted function.")
    return made


def _key(trace: Trace, key: Any) -> Any:
    """The same, if it is no object of the function's own, which would be another one in each call."""
    key = plain_key(key)
    if id(key) in trace.outside.own and is_users_class(type(key)):
        unsupported(
            f"a {type(key).__qualname__} that the function has made is a key, or in a set, that is returned or kept",
            "Make it outside of the jitted function, or take a number or text as the key.",
        )
    return key


def apart(tree: Any) -> tuple[Any, list[Any]]:
    """A tree with leaves `Repeated` in place of the objects that are in it more than once, and those objects.

    Each of them may hold ones before it.
    """
    cutting = _Cutting()
    cutting.count(tree)
    return cutting.replaced(tree), cutting.repeated


class _Cutting:
    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.alive: list[Any] = []  # so that nothing else gets their ids
        self.places: dict[int, Repeated] = {}
        self.repeated: list[Any] = []
        self.sizes: dict[int, int] = {}  # how many places there are in an object, counted as often as they are reached

    def count(self, x: Any) -> int:
        """How often each object is there that a program can tell from its like, or that is a large tuple; gives its size."""
        parts = self._parts(x)[0]
        is_object = type(x) is TracedList or (parts and not isinstance(x, tuple)) or _is_empty(x)
        if is_object or self.sizes.get(id(x), 0) > _LARGE:
            self.counts[id(x)] += 1
            if self.counts[id(x)] > 1 or not is_object:
                return self.sizes.get(id(x), 1)
        size = 1 + sum(map(self.count, parts))
        if parts:
            self.sizes[id(x)] = size
            self.counts[id(x)] += size > _LARGE and not is_object
        return size

    def _parts(self, x: Any) -> tuple[list[Any], Any]:
        """What is looked through; not what takes its values for known if they are not traced."""
        parts, spec = ([], None) if type(x) in (TracedText, TracedList) else children(x)
        self.alive += parts
        return parts, spec

    def replaced(self, x: Any) -> Any:
        if id(x) in self.places:
            return self.places[id(x)]
        parts, spec = self._parts(x)
        items = [self.replaced(part) for part in parts]
        made = x
        if any(a is not b for a, b in zip(items, parts)):
            made = unflatten(spec, items)
        if self.counts[id(x)] < 2:
            return made
        self.repeated.append(made)
        self.places[id(x)] = Repeated(len(self.repeated) - 1)
        return self.places[id(x)]


def _is_empty(x: Any) -> bool:
    """Whether it is a container that may be filled later."""
    return isinstance(x, (list, dict, deque)) and not x


def _others(x: Any) -> list[str]:
    """Attributes of a dataclass that are no fields of it."""
    names = {field.name for field in dataclasses.fields(x)}
    return [name for name in getattr(x, "__dict__", {}) if name not in names]


__all__ = ["apart", "settled"]
