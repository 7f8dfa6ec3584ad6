"""Regions: what they carry and capture is handed in and out by parts."""

from __future__ import annotations

from jitml.fusion.complex.split import Complex, Part, parts_of, split, splitting
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.types import is_complex


@splitting.rule(ops.loop, ops.while_, ops.cond)
def split_region(node: Node, *operands: Part) -> list[Part]:
    params = {**node.params, **{name: split(body) for name, body in node.bodies.items()}}
    if "carried" in params:
        first = 1 if node.op is ops.loop else 0  # the number of iterations
        params["carried"] = sum(len(parts_of(x)) for x in operands[first : first + params["carried"]])
    results = iter(node.op(*(part for x in operands for part in parts_of(x)), **params))
    return [_taken(next(results), next(results)) if is_complex(v.dtype) else next(results) for v in node.outputs]


def _taken(re: Value, im: Value) -> Complex:
    return Complex(re, im)


@splitting.rule(ops.observe)
def split_observe(node: Node, x: Part) -> list[Part]:
    for part in parts_of(x):
        ops.observe(part)
    return []
