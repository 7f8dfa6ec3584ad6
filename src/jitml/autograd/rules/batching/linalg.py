"""Batching of factorizations, which take stacks of matrices anyway. Rows that do not count are made harmless: identities."""

from __future__ import annotations

from typing import Any

from jitml.autograd.core.batch import Batch, Batched, Operand, vmap
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import OPS, Op
from jitml.ir.types import I64, Aval


def _identity(aval: Aval) -> Value:
    rows, columns = (ops.iota(shape=aval.shape, axis=aval.ndim - k, dtype=I64) for k in (2, 1))
    made: Value = ops.convert(ops.eq(rows, columns), dtype=aval.dtype)
    return made


def _register(op: Op) -> None:
    @vmap.rule(op)
    def rows(batch: Batch, a: Operand, *others: Operand, **params: Any) -> Operand | tuple[Operand, ...]:
        if batch.active is not None and isinstance(a, Batched):
            a = batch.choose(batch.active, a, _identity(a.row))
        results = op(batch.front(a), *map(batch.front, others), **params)
        if isinstance(results, tuple):
            return tuple(Batched(x, 0) for x in results)
        return Batched(results, 0)


for _op in list(OPS.values()):
    if _op.family == "linalg":
        _register(_op)
