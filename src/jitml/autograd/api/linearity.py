"""Is a user's jvp rule linear in its tangents?  As far as can be seen: it must make zeros of zeros.

Forward mode would follow a rule that adds something to its tangent, reverse mode would transpose the linear part alone, and the
two would disagree without a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value

# Where every operand goes into the result as it is (of a select, all but the first); of others one that is zero is enough.
_SUMS = {ops.add, ops.sub, ops.complex, ops.concat, ops.pad, ops.update_slice, ops.dynamic_update_slice}


def require_no_offset(name: str, graph: Graph, tangents: Sequence[int], results: int) -> None:
    """Refuse a rule that adds to a tangent what does not vanish with it.

    Args:
        graph: the rule's; its last outputs, as many as `results`, are tangents.
        tangents: positions of the inputs that are tangents.

    Raises:
        DerivativeError: a tangent would not be zero where those given are; names the line that adds.
    """
    zeros = {graph.inputs[n] for n in tangents}
    made_by: dict[Value, Node] = {}
    for node in graph.nodes:
        made_by |= dict.fromkeys(node.outputs, node)
        if _vanishes(node, zeros):
            zeros |= set(node.outputs)
    for value in graph.outputs[len(graph.outputs) - results :]:
        if value not in zeros:
            raise DerivativeError(
                f"the jvp rule of {name} returns a tangent that is not zero where those given are; it has to be linear in them",
                source=made_by[value].source if value in made_by else None,
                remedy="What does not depend on the tangents belongs in the result, not in its tangent.",
            )


def _vanishes(node: Node, zeros: set[Value]) -> bool:
    """Whether a node's results are zero, or may be, where those operands are."""
    if node.op is ops.full or node.op is ops.array:
        return not np.any(node.params["value"])
    if node.op is ops.select:
        return zeros.issuperset(node.inputs[1:])
    if node.op in _SUMS:
        return zeros.issuperset(v for v in node.inputs if v.dtype.kind in "fc")
    return not zeros.isdisjoint(node.inputs) or bool(node.graphs) or node.op is ops.host_call
