"""Cheap nodes: which nodes are cheaper to run again than to save the results of?"""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.ir.types import is_inexact

_LIGHT = frozenset({
    ops.add, ops.sub, ops.mul, ops.neg, ops.abs, ops.sign, ops.copysign, ops.maximum, ops.minimum, ops.select, ops.convert,
    ops.lt, ops.le, ops.gt, ops.ge, ops.eq, ops.ne, ops.bit_and, ops.bit_or, ops.bit_xor, ops.bit_not,
    ops.isnan, ops.isinf, ops.isfinite, ops.floor, ops.ceil, ops.trunc, ops.rint, ops.stop_gradient,
    ops.dynamic_slice, ops.gather, ops.resize, ops.check,
})  # fmt: skip
_COPIES = frozenset({ops.update_slice, ops.concat})  # index maps that are more than a way to read


def is_light(node: Node) -> bool:
    """Whether repeating a node costs less than reading its result, or has been asked for."""
    if node.bodies:
        return bool(node.params.get("repeat"))
    if node.op.is_pointwise and not node.output.ndim and not is_inexact(node.output.dtype):
        return True  # places and conditions
    return node.op in _LIGHT or (node.op.family == "index_maps" and node.op not in _COPIES)
