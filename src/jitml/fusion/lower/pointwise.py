"""Pointwise ops: the same function of the operands' elements at the same place."""

from __future__ import annotations

from collections.abc import Callable

from jitml.fusion.lower.points import Point, lowering
from jitml.fusion.lower.scalars import Scalar
from jitml.ir import ops
from jitml.ir.op import Op


@lowering.family("pointwise", "complex")
def _by_name(op: Op) -> Callable[[Point], Scalar]:
    return lower_pointwise


def lower_pointwise(p: Point) -> Scalar:
    args = tuple(p.read(k, p.index) for k in range(len(p.node.inputs)))
    return p.b.apply(p.node.op.name, args, p.node.output.dtype)


@lowering.rule(ops.convert)
def lower_convert(p: Point) -> Scalar:
    return p.b.convert(p.read(0, p.index), p.node.params["dtype"])


@lowering.rule(ops.stop_gradient)
def lower_identity(p: Point) -> Scalar:
    return p.read(0, p.index)
