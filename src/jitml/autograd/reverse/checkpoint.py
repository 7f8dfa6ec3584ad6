"""Checkpoint policies: what may a checkpointed function keep for its derivative?

The rest is computed again when the derivative needs it.

A policy is None or "nothing", "dots" (results of matrix products), names given by `checkpoint_name`, or a number of bytes, which
are spent where they save most work. "sqrt" is another matter (`segments.py`): loops keep every so many states.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.op import Op

# Operations for each element, about; what is not named takes one.
_WORK: dict[Op, int] = {
    **dict.fromkeys((ops.exp, ops.exp2, ops.expm1, ops.log, ops.log2, ops.log10, ops.log1p, ops.tanh, ops.logistic, ops.erf), 10),
    **dict.fromkeys((ops.sin, ops.cos, ops.tan, ops.sinh, ops.cosh, ops.arcsin, ops.arccos, ops.arctan, ops.arctan2), 15),
    **dict.fromkeys((ops.pow, ops.cbrt, ops.arcsinh, ops.arccosh, ops.arctanh, ops.hypot), 20),
    **dict.fromkeys((ops.div, ops.sqrt, ops.floor_divide, ops.remainder, ops.fmod), 4),
    **dict.fromkeys((ops.sort, ops.argsort), 30),
}
_MOST_CANDIDATES = 128


def kept_nodes(policy: Any, nodes: Sequence[Node], needed: Collection[Value]) -> list[Node]:
    """The nodes whose results are kept.

    Args:
        nodes: of the function, in order.
        needed: what its derivative reads.
    """
    if policy in (None, "nothing"):
        return []
    if policy == "dots":
        return [node for node in nodes if node.op is ops.dot_general]
    if isinstance(policy, int):
        return _within_budget(policy, nodes, needed)
    return [node for node in nodes if node.op is ops.keep and node.params["name"] in policy]


def work(node: Node) -> int:
    """About how many operations a node takes. Of sizes that are not known, the largest counts."""
    if node.op is ops.dot_general:
        x, axes = node.inputs[0], node.params["contract"][0]
        depth = 1
        for axis in axes:
            depth *= x.aval.bounds[axis]
        return 2 * node.output.capacity * depth
    if node.op.family == "index_maps":
        return 0
    elements = max((v.capacity for v in (*node.inputs, *node.outputs)), default=0)
    if node.bodies:
        # How often a region runs is not known: dear enough to be kept before anything else.
        return 1000 * sum(work(inner) for body in node.bodies.values() for inner in body.nodes)
    return _WORK.get(node.op, 1) * elements


def _within_budget(budget: int, nodes: Sequence[Node], needed: Collection[Value]) -> list[Node]:
    """Greedily, what saves most work per byte."""
    makers = {v: node for node in nodes for v in node.outputs}
    candidates = sorted((node for node in nodes if 0 < _bytes(node) <= budget), key=work, reverse=True)[:_MOST_CANDIDATES]
    kept: list[Node] = []
    left = budget
    while True:
        total = work_behind(needed, makers, kept)
        gains = [
            ((total - work_behind(needed, makers, [*kept, node])) / _bytes(node), n)
            for n, node in enumerate(candidates)
            if node not in kept and _bytes(node) <= left
        ]
        gain, best = max(gains, default=(0.0, 0))
        if gain <= 0:
            return kept
        kept.append(candidates[best])
        left -= _bytes(candidates[best])


def _bytes(node: Node) -> int:
    return sum(v.aval.nbytes for v in node.outputs)


def work_behind(needed: Collection[Value], makers: dict[Value, Node], kept: Collection[Node]) -> int:
    """What it takes to compute some values from the function's arguments and from what is kept."""
    found: set[Node] = set()
    waiting = list(needed)
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and node not in found and node not in kept:
            found.add(node)
            waiting += node.inputs
    return sum(map(work, found))
