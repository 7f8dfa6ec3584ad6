"""Cost model: should nodes run together?  What recomputing costs against what memory costs.

The unit of work is one simple vector operation on one element, so that `Cost.flops` turns it into time. The model
need only rank choices; its numbers are throughputs of f64 vector code.
"""

from __future__ import annotations

from collections.abc import Mapping

from jitml.ir.graph import Graph, Node, Value
from jitml.kernels.target import Cost

MOST_WORK = 1e6


def work(node: Node, cost: Cost) -> float:
    """Work of one element of a node's result, its operands given."""
    if node.op.name == "slice" and node.output.ndim:
        whole, part = node.inputs[0].aval.bounds[-1], node.output.aval.bounds[-1]
        strided = node.params["step"][-1] > 1 or (part == 1 < whole and node.output.capacity > 1)
        return cost.strided if strided else 0.0
    if not node.op.is_pointwise:
        return {"gather": cost.strided, "pad": 1.0, "concat": 1.0}.get(node.op.name, 0.0)
    return cost.work_of(node.op.name)


def work_from_memory(graph: Graph, is_point: Mapping[Value, bool], cost: Cost) -> dict[Value, float]:
    """Work of one element of each value if everything up to inputs and reductions is recomputed for it.

    A value used twice counts twice, so this is a bound from above; it is capped.
    """
    total: dict[Value, float] = {}
    for node in graph.nodes:
        for out in node.outputs:
            if is_point[out]:
                inner = sum(total.get(v, 0.0) for v in node.inputs if is_point.get(v, False))
                total[out] = min(MOST_WORK, work(node, cost) + inner)
    return total


def recompute_pays(value: Value, element_work: float, evaluations: float, cost: Cost) -> bool:
    """Whether `evaluations` (over all uses) beat computing the value once, writing it and reading it back."""
    if element_work <= cost.hidden and evaluations <= 4 * max(1, value.capacity):
        return True
    return cost.pays_to_recompute(max(0.0, evaluations - value.capacity) * element_work, value.aval.nbytes)
