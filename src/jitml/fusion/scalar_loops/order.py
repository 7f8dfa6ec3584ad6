"""Ordering of updates in place: in which order do a body's nodes run if arrays are updated where they lie?

Every read of the old contents first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from jitml.errors import UnsupportedError
from jitml.fusion.grouping.regions import UPDATES
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value

RENAMES = (ops.check, ops.resize)  # the first operand itself


class NotRolled(UnsupportedError):
    """A region that cannot be one kernel of plain loops; the message says what stands in the way."""


def is_single(value: Value) -> bool:
    """Whether a value has one element, and so is held as a number."""
    return all(type(n) is int and n == 1 for n in value.shape)


def continued(node: Node) -> dict[Value, Value]:
    """Of each result that is an operand with some elements changed: that operand. Numbers do not count."""
    if node.op in UPDATES:
        pairs = [(node.output, node.inputs[0])]
    elif node.op in (ops.loop, ops.while_):
        pairs = list(zip(node.outputs, node.inputs[node.op is ops.loop :]))
    elif node.op is ops.cond:
        arrays = [(j, out) for j, out in enumerate(node.outputs) if not is_single(out)]
        pairs = [(out, node.inputs[1 + p]) for j, out in arrays if (p := _common_origin(node, j)) is not None]
    else:
        pairs = []
    return {out: x for out, x in pairs if not is_single(out)}


def _common_origin(node: Node, j: int) -> int | None:
    """The captured operand that result j of a `cond` is an update of in both branches."""
    then, orelse = node.params["then"], node.params["orelse"]
    first, second = origin(then, then.outputs[j]), origin(orelse, orelse.outputs[j])
    return first if first == second else None


def origin(graph: Graph, value: Value) -> int | None:
    """The input, by position, that a value of the graph is an update of."""
    makers = graph.producers()
    while (maker := makers.get(value)) is not None:
        before = maker.inputs[0] if maker.op in RENAMES else continued(maker).get(value)
        if before is None:
            return None
        value = before
    return graph.inputs.index(value)


def in_order(graph: Graph) -> tuple[Node, ...]:
    """The nodes, moved only as far as it takes; as they are where a reader of the old contents needs the update itself."""
    before = _reads_before_updates(graph)
    place = {node: k for k, node in enumerate(graph.nodes)}
    if all(place[reader] < place[node] for node, readers in before.items() for reader in readers):
        return graph.nodes
    makers = graph.producers()
    waits = {node: {makers[v] for v in node.inputs if v in makers} | before.get(node, set()) for node in graph.nodes}
    followers: dict[Node, list[Node]] = {node: [] for node in graph.nodes}
    for node, needed in waits.items():
        for other in needed:
            followers[other].append(node)
    ready = [place[node] for node, needed in waits.items() if not needed]
    ordered: list[Node] = []
    while ready:
        node = graph.nodes[heapq.heappop(ready)]
        ordered.append(node)
        for follower in followers[node]:
            waits[follower].discard(node)
            if not waits[follower]:
                heapq.heappush(ready, place[follower])
    return tuple(ordered) if len(ordered) == len(graph.nodes) else graph.nodes


def _reads_before_updates(graph: Graph) -> dict[Node, set[Node]]:
    """For each node that updates an array, the nodes that read the array as it was."""
    users = graph.users()
    before: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        for old in continued(node).values():
            before.setdefault(node, set()).update(_readers(users, (old,)) - {node})
    return before


def _readers(users: dict[Value, list[Node]], values: Iterable[Value]) -> set[Node]:
    found: set[Node] = set()
    for value in values:
        for node in users[value]:
            found.add(node)
            if node.op in RENAMES and node.inputs[0] is value:
                found |= _readers(users, node.outputs)
    return found
