"""Batching of the pointwise ops: the op itself, its operands' rows side by side."""

from __future__ import annotations

from typing import Any

from jitml.autograd.core.batch import Batch, Batched, Operand, VmapRule, vmap
from jitml.ir.op import Op


@vmap.family("pointwise", "complex")
def _itself(op: Op) -> VmapRule:
    def rows(batch: Batch, *operands: Operand, **params: Any) -> Operand:
        values, axis = batch.aligned(operands)
        return Batched(op(*values, **params), axis)

    return rows
