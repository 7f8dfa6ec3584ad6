"""Batching of `dot_general`: rows of both operands are one more batch axis, rows of one are one more free axis."""

from __future__ import annotations

from jitml.autograd.core.batch import Batch, Batched, Ints, Operand, shifted, vmap
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.ops.contraction import free_axes

Pair = tuple[Ints, Ints]


def _are_units(rows: Batch, x: Operand) -> bool:
    return isinstance(x, Batched) and x.value is rows.units


def _columns(x: Value, contracted: Ints) -> Batched:
    """The products of x with all unit vectors: its slices along that axis."""
    others = free_axes(x.ndim, (), contracted)
    return Batched(ops.transpose(x, perm=(*others, *contracted)), len(others))


@vmap.rule(ops.dot_general)
def dot_general_rows(rows: Batch, x: Operand, y: Operand, *, batch: Pair, contract: Pair) -> Operand:
    (xb, yb), (xc, yc) = batch, contract
    if isinstance(x, Value) and _are_units(rows, y) and len(yc) == 1:
        return _columns(x, xc)
    if isinstance(y, Value) and _are_units(rows, x) and len(xc) == 1:
        return _columns(y, yc)
    if isinstance(x, Batched) and isinstance(y, Batched):
        pairs = ((x.axis, *shifted(xb, x.axis)), (y.axis, *shifted(yb, y.axis)))
        contracted = (shifted(xc, x.axis), shifted(yc, y.axis))
        return Batched(ops.dot_general(x.value, y.value, batch=pairs, contract=contracted), 0)
    if isinstance(x, Batched):
        xb, xc = shifted(xb, x.axis), shifted(xc, x.axis)
        place = len(xb) + free_axes(x.value.ndim, xb, xc).index(x.axis)
        return Batched(ops.dot_general(x.value, y, batch=(xb, yb), contract=(xc, yc)), place)
    assert isinstance(y, Batched) and isinstance(x, Value)
    yb, yc = shifted(yb, y.axis), shifted(yc, y.axis)
    x_free = free_axes(x.ndim, xb, xc)
    place = len(xb) + len(x_free) + free_axes(y.value.ndim, yb, yc).index(y.axis)
    return Batched(ops.dot_general(x, y.value, batch=(xb, yb), contract=(xc, yc)), place)
