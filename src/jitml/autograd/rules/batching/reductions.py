"""Batching of reductions, cumulative scans and sorts: along the same axes of each row."""

from __future__ import annotations

from typing import Any

from jitml.autograd.core.batch import Batch, Batched, Ints, Operand, shifted, vmap
from jitml.ir import ops
from jitml.ir.op import Op

_OVER_AXES = (ops.reduce_sum, ops.reduce_prod, ops.reduce_max, ops.reduce_min, ops.reduce_all, ops.reduce_any)
_OVER_AXIS = (ops.argmax, ops.argmin)
_ALONG_AXIS = (ops.cumsum, ops.cumprod, ops.cummax, ops.cummin, ops.sort, ops.argsort)


def _over_axes(op: Op) -> None:
    @vmap.rule(op)
    def rows(batch: Batch, x: Batched, *, axes: Ints) -> Operand:
        return Batched(op(x.value, axes=shifted(axes, x.axis)), x.axis - sum(a < x.axis for a in axes))


def _over_axis(op: Op) -> None:
    @vmap.rule(op)
    def rows(batch: Batch, x: Batched, *, axis: int) -> Operand:
        return Batched(op(x.value, axis=axis + (x.axis <= axis)), x.axis - (axis < x.axis))


def _along_axis(op: Op) -> None:
    @vmap.rule(op)
    def rows(batch: Batch, x: Batched, *, axis: int, **params: Any) -> Operand:
        return Batched(op(x.value, axis=axis + (x.axis <= axis), **params), x.axis)


for _register, _ops in ((_over_axes, _OVER_AXES), (_over_axis, _OVER_AXIS), (_along_axis, _ALONG_AXIS)):
    for _op in _ops:
        _register(_op)
