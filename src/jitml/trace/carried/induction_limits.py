"""Limits of induction variables: how far do the ints come that a loop only counts with (`induction.py`)?

Such a name holds a size in the body, which begins at what it was before the loop and only grows (or shrinks): an index is then
known to be in range as far as the test of a `while` says so, as with the index of a `for`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import bound, limits
from jitml.ir.graph import Node, Value
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.sizes import span, value_of_size
from jitml.trace.values.numbers import of_size, size_of

_FURTHEST = 1 << 62
_BOUNDLESS = 1 << 40  # elements, or numbers up to which no loop counts


def counted(start: Value, entry: Any, direction: int, furthest: int | None) -> Any:
    """What a counter holds as an iteration begins, `entry` as the loop does; None if that is no size.

    Args:
        furthest: where iterations leave it at most, if that is known.

    Both limits are computed, so that layers below, which do not see how the name counts, know them as well: what is computed of
    the counter then does not wrap around.
    """
    size = size_of(entry)
    if size is None:
        return None
    if furthest is None:
        furthest = direction * _FURTHEST
    low, high = (size, max(limits(size)[1], furthest)) if direction > 0 else (min(limits(size)[0], furthest), size)
    kept = ops.minimum(ops.maximum(start, value_of_size(low)), value_of_size(high))
    return of_size(active_trace().bind(kept, low, high, "i"))


def furthest(end: Any, direction: int) -> int | None:
    """Where an iteration leaves a counter at most, as far as the loop's test says it. Call it in the body, at its end."""
    size = size_of(end)
    if size is None:
        return None
    most: int = span(size)[1 if direction > 0 else 0]
    return most if abs(most) < _BOUNDLESS else None


def ask_for_limits(nodes: Sequence[Node]) -> bool:
    """Whether there are arrays so large as no memory is: as long as a counter whose limit is not known."""
    shapes = (v.shape for node in nodes for v in node.outputs)
    if any(bound(n) >= _BOUNDLESS for shape in shapes for n in shape):
        return True
    return any(ask_for_limits(body.nodes) for node in nodes for body in node.bodies.values())


__all__ = ["ask_for_limits", "counted", "furthest"]
