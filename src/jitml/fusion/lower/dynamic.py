"""Windows at places that are known at run time: index maps whose offset is a variable."""

from __future__ import annotations

from collections.abc import Callable

from jitml.fusion.lower.points import Index, Point, lowering, targets
from jitml.fusion.lower.scalars import Scalar
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.kernels.ir import Expr, add, mul


@lowering.rule(ops.dynamic_slice)
def lower_dynamic_slice(p: Point) -> Scalar:
    return p.read(0, tuple(add(mul(i, s), p.place(k)) for k, (i, s) in enumerate(zip(p.index, p.node.params["step"]), 1)))


@targets.rule(ops.dynamic_update_slice)
def dynamic_update_slice_target(node: Node, index: Index, place: Callable[[Value], Expr]) -> Index:
    places = map(place, node.inputs[2:])
    return tuple(add(mul(i, s), a) for i, s, a in zip(index, node.params["step"], places, strict=True))
