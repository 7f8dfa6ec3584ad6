"""Batching of gather and scatter: where indices differ from row to row, the row's number is one more index."""

from __future__ import annotations

from jitml.autograd.core.batch import Batch, Batched, Operand, vmap
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import I64


@vmap.rule(ops.gather)
def gather_rows(batch: Batch, x: Operand, *indices: Operand, axis: int) -> Operand:
    if any(isinstance(i, Batched) for i in indices):
        return gather_each(batch, x, indices, axis)
    assert isinstance(x, Batched)
    k = len(indices)
    d = x.axis if not axis < x.axis < axis + k else 0
    value = batch.at(x, d)
    (shape,) = {i.shape for i in indices if isinstance(i, Value)}
    return Batched(ops.gather(value, *indices, axis=axis + (d <= axis)), d if d <= axis else d - k + len(shape))


def gather_each(batch: Batch, x: Operand, indices: tuple[Operand, ...], axis: int) -> Batched:
    """Each row indexed by its own indices; the result's rows lie along `axis`."""
    places = [batch.front(batch.within(i)) for i in indices]
    if isinstance(x, Batched):
        return Batched(ops.gather(batch.at(x, axis), _row_numbers(places[0]), *places, axis=axis), axis)
    return Batched(ops.gather(x, *places, axis=axis), axis)


@vmap.rule(ops.scatter)
def scatter_rows(batch: Batch, x: Operand, v: Operand, *indices: Operand, axis: int, combine: str) -> Operand:
    if any(isinstance(i, Batched) for i in indices):
        return scatter_each(batch, x, v, indices, axis, combine)
    return Batched(ops.scatter(batch.front(x), batch.front(v), *indices, axis=axis + 1, combine=combine), 0)


def scatter_each(batch: Batch, x: Operand, v: Operand, indices: tuple[Operand, ...], axis: int, combine: str) -> Batched:
    """Each row written at its own indices; the result's rows lie along `axis`."""
    places = [batch.front(batch.within(i)) for i in indices]
    into, parts = batch.at(x, axis), batch.at(v, axis)
    return Batched(ops.scatter(into, parts, _row_numbers(places[0]), *places, axis=axis, combine=combine), axis)


def _row_numbers(places: Value) -> Value:
    numbers: Value = ops.iota(shape=places.shape, axis=0, dtype=I64)
    return numbers
