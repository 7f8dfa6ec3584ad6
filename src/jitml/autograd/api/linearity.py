"""Linearity check of custom rules: is a user's jvp rule linear in its tangents?

As far as can be seen: it must make zeros of zeros.

Forward mode would follow a rule that adds something to its tangent, reverse mode would transpose the linear part alone, and the
two would disagree without a word. What is added in a loop or a branch, or by a variable from outside, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import is_inexact

# Operands that go into the result as they are: all or the first two; of a select, both but the condition.
_SUMS = {ops.add, ops.sub, ops.complex, ops.concat}
_OF_TWO = {ops.pad, ops.update_slice, ops.dynamic_update_slice, ops.scatter}
# Of zeros they make zeros, wherever those come from; others may make anything of them (cos, hypot, a comparison).
_OF_ZEROS = {ops.neg, ops.abs, ops.convert, ops.real, ops.imag, ops.conj, ops.cumsum, ops.reduce_sum, ops.sqrt, ops.sin, ops.tan}
_PRODUCTS = {ops.mul, ops.dot_general}


def require_no_offset(name: str, graph: Graph, leaves: int, tangents: Sequence[int], results: int) -> None:
    """Refuse a rule that is seen to add to a tangent what does not vanish with it.

    Args:
        graph: the rule's; its last outputs, as many as `results`, are tangents.
        leaves: its first inputs, as many, are arguments and tangents; others are variables from outside.
        tangents: positions of the inputs that are tangents.

    Raises:
        DerivativeError: a tangent would not be zero where those given are; names the line that adds.
    """
    moving = {graph.inputs[n] for n in tangents}
    zeros = moving | set(graph.inputs[leaves:])  # which may be
    made_by: dict[Value, Node] = {}
    for node in graph.nodes:
        made_by |= dict.fromkeys(node.outputs, node)
        moves = not moving.isdisjoint(node.inputs)
        if moves:
            moving |= set(node.outputs)
        zeros |= {v for v in node.outputs if v.capacity == 0 or _vanishes(node, zeros, moves)}
    for value in graph.outputs[len(graph.outputs) - results :]:
        if value not in zeros:
            raise DerivativeError(
                f"the jvp rule of {name} returns a tangent that is not zero where those given are; it has to be linear in them",
                source=made_by[value].source if value in made_by else None,
                remedy="What does not depend on the tangents belongs in the result, not in its tangent.",
            )


def _vanishes(node: Node, zeros: set[Value], moves: bool) -> bool:
    """Whether a node makes zeros of operands that are zero, or at least something that reverse mode has its own word about.

    Args:
        moves: whether tangents go into it.
    """
    op, inputs = node.op, node.inputs
    if op in (ops.full, ops.array):  # a nan marks what is not there
        value = np.asarray(node.params["value"])
        return bool(np.all((value == 0) | (value != value)))
    if op in _SUMS:
        return zeros.issuperset(inputs) or (op is ops.sub and inputs[0] is inputs[1])
    if op is ops.select:
        return zeros.issuperset(inputs[1:])
    if op in _OF_TWO:
        return zeros.issuperset(inputs[:2])
    if op in _PRODUCTS:
        return not zeros.isdisjoint(inputs)
    if op is ops.empty:  # to be written
        return True
    if op is ops.div and not moves:
        return inputs[0] in zeros
    if op in _OF_ZEROS or op.family in ("index_maps", "dynamic"):
        return inputs[:1] != () and inputs[0] in zeros
    return moves and any(is_inexact(v.dtype) for v in node.outputs)
