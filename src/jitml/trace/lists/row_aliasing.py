"""Aliasing of containers in lists that loops fill: which lists, dicts and objects have been copied into the rows of a `Stack`?

Rows hold what was in an item when it was appended, and each reading of an item makes a new container. That is right until one of
them is changed, compared by `is`, or handed to the caller beside another one of the same item. Then plain Python runs the loop
that has filled the list while the function is traced, so that items are the objects that they are in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from jitml.trace.record.pytree import children
from jitml.trace.record.recording import active_trace, current_trace
from jitml.trace.speculation.modes import Decider, OpenRegions, Site
from jitml.trace.values.container_identity import Unsettled, UnsettledContainers, find, refuse_shared


def changeable(x: Any) -> list[Any]:
    """All that can be changed in an item, as often as it is there: each container but tuples and slices, outermost first."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [x]
    while waiting:
        part = waiting.pop()
        inside, spec = children(part)
        if part is None or spec.is_leaf():
            continue
        if not isinstance(part, (tuple, slice)):
            found.append(part)
        if id(part) not in seen:
            seen.add(id(part))
            waiting += reversed(inside)
    return found


def mark_copied(item: Any, decider: Decider) -> None:
    """An item has been copied into rows: it may not be changed any more."""
    _mark(item, decider, None)


def mark_row(row: Any, decider: Decider, source: tuple[Any, Any]) -> None:
    """An item has been made from a row; `source` is the list, and which of its items it is."""
    _mark(row, decider, source)


def _mark(x: Any, decider: Decider, source: tuple[Any, Any] | None) -> None:
    known = active_trace().root.local[UnsettledContainers]
    for part in changeable(x):
        known[id(part)] = Unsettled(part, decider, source=source or (None, None))


def has_twice(items: Sequence[Any]) -> bool:
    """Whether one container is in several places."""
    parts = [id(part) for item in items for part in changeable(item)]
    return len(parts) > len(set(parts))


def require_new(item: Any, decider: Decider, known: dict[int, Any], before: Collection[int]) -> None:
    """Refuse to copy what another iteration, or another place in the list, holds as well.

    Args:
        known: what this pass over the body has copied, by id; the item joins it.
        before: ids of what an earlier pass has copied, which is still alive: an iteration makes its items anew.
    """
    parts = changeable(item)
    if not parts:
        return
    outer = {key for region in active_trace().call[OpenRegions] for key in find(region.held_before())}
    for part in parts:
        if id(part) in known or id(part) in before or id(part) in outer or _is_item_of(part, decider):
            refuse_shared(part, decider)
        known[id(part)] = part


def _is_item_of(part: Any, decider: Decider) -> bool:
    """Whether a container has been read from the very list."""
    found = active_trace().root.local[UnsettledContainers].get(id(part))
    return found is not None and found.source is not None and found.decider.site == decider.site


def require_apart(results: Any, within: Callable[[Any], Sequence[Any]]) -> None:
    """Refuse results with an item of a list beside that list, or beside another reading of it: they would not be one object.

    Args:
        within: what an object of the function's own holds.
    """
    trace = current_trace()
    if trace is None:
        return
    found: dict[int, Unsettled] = {}
    inside: list[tuple[Any, Site]] = []  # what lists hold beside their rows, as often as it is there
    sites = set()
    seen: set[int] = set()
    waiting = [results]
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        known = trace.root.local[UnsettledContainers].get(id(x))
        if known is not None and known.source is not None:
            found[id(x)] = known
        elif getattr(type(x), "columns", None) is not None:
            sites.add(x.site)
            inside += [(part, x.site) for item in (*x.head, *x.tail) for part in changeable(item)]
        else:
            waiting += children(x)[0] or within(x)
    _require_once(inside, seen)
    known_of = (trace.root.local[UnsettledContainers].get(id(part)) for part, _ in inside)
    found |= {id(known.container): known for known in known_of if known is not None and known.source is not None}
    items = [*found.values()]
    for n, one in enumerate(items):
        if one.decider.site in sites or any(_may_be_one(one, other) for other in items[:n]):
            refuse_shared(one.container, one.decider)


def _require_once(inside: Sequence[tuple[Any, Site]], seen: Collection[int]) -> None:
    counts = Counter(id(part) for part, _ in inside)
    for part, site in inside:
        if counts[id(part)] > 1 or id(part) in seen:
            refuse_shared(part, Decider(site))


def _may_be_one(one: Unsettled, other: Unsettled) -> bool:
    if one.decider.site != other.decider.site:
        return False
    assert one.source is not None and other.source is not None
    (a, i), (b, j) = one.source, other.source
    return a is None or a is not b or type(i) is not int or type(j) is not int or min(i, j) < 0 or i == j


__all__ = ["changeable", "has_twice", "mark_copied", "mark_row", "require_apart", "require_new"]
