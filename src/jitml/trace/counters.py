"""Which ints does a loop only count with?  Those that its body binds by `i += 1` and the like, and by nothing else.

Such a name holds a size in the body, which begins at what it was before the loop and only grows (or shrinks): an index is then
known to be in range as far as the test of a `while` says so, as with the index of a `for`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from jitml.ir import ops
from jitml.ir.dims import bound, limits
from jitml.ir.graph import Node, Value
from jitml.trace.context import active_trace
from jitml.trace.escapes import within
from jitml.trace.numbers import of_size, size_of
from jitml.trace.sizes import span, value_of_size

Directions = tuple[tuple[str, int], ...]  # names, and 1 for those that grow, -1 for those that shrink

_FURTHEST = 1 << 62
_BOUNDLESS = 1 << 40  # elements, or numbers up to which no loop counts
_LARGEST_STEP = 1 << 20  # with which no loop gets so far in a life


def counters(body: Iterable[ast.AST], bound: Iterable[str], names: frozenset[str]) -> Directions:
    """Which of the names a body counts with; `bound`: how often it binds which name."""
    steps: dict[str, list[int]] = {}
    for node in within(body):
        found = _step(node)
        if found is not None:
            steps.setdefault(found[0], []).append(found[1])
    count = list(bound)
    counting = {name: all_of for name, all_of in steps.items() if name in names and count.count(name) == len(all_of)}
    signs = {name: {step > 0 for step in all_of} for name, all_of in counting.items()}
    return tuple((name, 1 if True in sign else -1) for name, sign in sorted(signs.items()) if len(sign) == 1)


def _step(node: ast.AST) -> tuple[str, int] | None:
    """`i += 1`, `i -= 1`, `i = i + 1`"""
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, value=ast.Constant(value=step)):
            pass
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.BinOp(left=ast.Name(id=other), op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=step)),
        ) if other == name:
            pass
        case _:
            return None
    if type(step) is not int or not 0 < abs(step) <= _LARGEST_STEP:
        return None
    return name, step if isinstance(op, ast.Add) else -step


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


__all__ = ["Directions", "ask_for_limits", "counted", "counters", "furthest"]
