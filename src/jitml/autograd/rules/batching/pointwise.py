"""Batching of the pointwise ops: the op itself, its operands' rows side by side."""

from __future__ import annotations

from typing import Any

from jitml.autograd.core.batch import Batch, Batched, Operand, vmap
from jitml.ir.op import OPS, Op


def _register(op: Op) -> None:
    @vmap.rule(op)
    def rows(batch: Batch, *operands: Operand, **params: Any) -> Operand:
        values, axis = batch.aligned(operands)
        return Batched(op(*values, **params), axis)


for _op in list(OPS.values()):
    if _op.is_pointwise:
        _register(_op)
