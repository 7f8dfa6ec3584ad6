"""Errors that are heard: whose errors may somebody hear of, and what does a pass owe to values that it does away with?"""

from __future__ import annotations

from collections.abc import Iterator

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import heard_of, is_harmless, is_heard
from jitml.ir.graph import Node, Value
from jitml.ir.rewrite import Producers


def may_warn(node: Node, producers: Producers) -> bool:
    """Whether NumPy may warn of some element of a node's result, or of an index."""
    return is_heard(node) and (not heard_of(node) or not is_harmless(node, producers))


def let_go(x: Value, producers: Producers) -> None:
    """Say that a pass does without a value that was needed: errors that come up on the way to it are observed."""
    for value in to_be_heard(x, producers):
        ops.observe(value)


def to_be_heard(x: Value, producers: Producers) -> Iterator[Value]:
    """The last values on the way to one whose errors somebody may hear of."""
    seen: set[Value] = set()
    left = [x]
    while left:
        value = left.pop()
        node = producers.get(value)
        if node is None or value in seen:
            continue
        seen.add(value)
        if may_warn(node, producers):
            yield value
        else:
            left += node.inputs
