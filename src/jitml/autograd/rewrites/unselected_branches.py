"""Branches not selected: where may 0 times an infinite slope be NaN?

Behind an `np.where`, whose branch that is not chosen gets a cotangent of 0.

`jitml.explain` tells of the places. A denominator that a `where` keeps away from zero, or that cannot be zero, is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitml.errors import Source
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value

_HANDED_ON = (ops.neg, ops.convert, ops.broadcast, ops.reshape, ops.transpose, ops.reduce_sum)
_NEVER_ZERO = (ops.exp, ops.exp2, ops.cosh, ops.select, ops.full)


def unselected(graph: Graph) -> Iterator[tuple[Source, Source]]:
    """Places in a derivative where a branch that is not chosen may give NaN: that of the `np.where`, and that of the slope."""
    makers = graph.producers()
    found: dict[tuple[Source, Source], None] = {}
    for node in graph.nodes:
        for body in node.bodies.values():
            found.update(dict.fromkeys(unselected(body)))
        if node.op not in (ops.mul, ops.div) or node.source is None:
            continue
        for x, other in (node.inputs, node.inputs[::-1]) if node.op is ops.mul else (node.inputs,):
            choice = _choice(x, makers)
            if choice is None or choice.source is None:
                continue
            is_infinite = _may_be_zero if node.op is ops.div else _may_be_infinite
            if is_infinite(other, makers):
                found[choice.source, node.source] = None
    yield from found


def _choice(x: Value, makers: dict[Value, Node]) -> Node | None:
    """The select that gives a cotangent to one of its branches, and zero to the other."""
    node = makers.get(x)
    while node is not None and (node.op in _HANDED_ON or (node.op is ops.mul and _is_number(node.inputs[1], makers))):
        node = makers.get(node.inputs[0])
    if node is None or node.op is not ops.select:
        return None
    return node if sum(_is_number(v, makers, 0.0) for v in node.inputs[1:]) == 1 else None


def _is_number(x: Value, makers: dict[Value, Node], number: float | None = None) -> bool:
    node = makers.get(x)
    while node is not None and node.op is ops.broadcast:
        node = makers.get(node.inputs[0])
    return node is not None and node.op is ops.full and number in (None, node.params["value"])


def _may_be_zero(x: Value, makers: dict[Value, Node]) -> bool:
    node = makers.get(x)
    while node is not None and node.op in (*_HANDED_ON, ops.sqrt, ops.abs):
        node = makers.get(node.inputs[0])
    return node is None or node.op not in _NEVER_ZERO


def _may_be_infinite(x: Value, makers: dict[Value, Node]) -> bool:
    node = makers.get(x)
    while node is not None and node.op in _HANDED_ON:
        node = makers.get(node.inputs[0])
    if node is None or node.op not in (ops.div, ops.pow):
        return False
    return node.op is ops.pow or _may_be_zero(node.inputs[1], makers)
