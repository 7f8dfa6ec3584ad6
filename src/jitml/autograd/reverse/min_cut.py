"""The cheapest set of values from which others can be computed: a minimum vertex cut, by augmenting paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from math import inf
from typing import TypeAlias, TypeVar

V = TypeVar("V", bound=Hashable)
Flow: TypeAlias = dict[Hashable, dict[Hashable, float]]  # what an edge can still take


def minimum_cut(wanted: Sequence[V], operands: Callable[[V], Sequence[V] | None], cost: Callable[[V], float]) -> list[V]:
    """The values to hold, of least total cost, so that every path from a source to one of `wanted` has one of them.

    Of several such sets the one nearest to `wanted`. Edmonds and Karp's method; each augmentation exhausts a value.

    Args:
        operands: what a value is computed from; None for a source, which can only be held.

    >>> minimum_cut(["e"], lambda v: {"e": ["a", "b"], "a": ["c"], "b": ["c"]}.get(v), lambda v: 1 if v in "ce" else 5)
    ['e']
    >>> minimum_cut(["d", "e"], lambda v: {"d": ["c"], "e": ["c"]}.get(v), lambda v: 1)
    ['c']
    """
    # Vertices: (v, 0) where a value comes in, (v, 1) where it goes out; `source` before, `sink` behind all.
    source, sink = ("source",), ("sink",)
    left: Flow = {source: {}, sink: {}}

    def edge(a: Hashable, b: Hashable, capacity: float) -> None:
        left.setdefault(a, {})[b] = capacity
        left.setdefault(b, {}).setdefault(a, 0)

    order: list[V] = []
    waiting = list(wanted)
    while waiting:
        v = waiting.pop()
        if (v, 0) in left:
            continue
        order.append(v)
        edge((v, 0), (v, 1), cost(v))
        before = operands(v)
        if before is None:
            edge(source, (v, 0), inf)
        for u in before or ():
            edge((u, 1), (v, 0), inf)
            waiting.append(u)
    for v in wanted:
        edge((v, 1), sink, inf)
    while (path := _shortest_path(left, source, sink)) is not None:
        room = min(left[a][b] for a, b in path)
        for a, b in path:
            left[a][b] -= room
            left[b][a] += room
    behind = _reaching(left, sink)
    return [v for v in order if (v, 1) in behind and (v, 0) not in behind]


def _shortest_path(left: Flow, source: Hashable, sink: Hashable) -> list[tuple[Hashable, Hashable]] | None:
    came: dict[Hashable, Hashable] = {source: source}
    waiting = deque([source])
    while waiting and sink not in came:
        a = waiting.popleft()
        for b, capacity in left[a].items():
            if capacity > 0 and b not in came:
                came[b] = a
                waiting.append(b)
    if sink not in came:
        return None
    path = []
    b = sink
    while b != source:
        path.append((came[b], b))
        b = came[b]
    return path


def _reaching(left: Flow, sink: Hashable) -> set[Hashable]:
    """What can still send flow to the sink."""
    found = {sink}
    waiting = [sink]
    while waiting:
        b = waiting.pop()
        for a in left[b]:
            if left[a][b] > 0 and a not in found:
                found.add(a)
                waiting.append(a)
    return found
