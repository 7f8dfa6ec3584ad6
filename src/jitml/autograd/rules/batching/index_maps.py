"""Batching of the index maps: one more axis, that stays whole."""

from __future__ import annotations

from math import prod

from jitml.autograd.core.batch import Batch, Batched, Ints, Operand, inserted, shifted, vmap
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.ops.index_maps import slice_length
from jitml.ir.types import BOOL, I64


@vmap.rule(ops.broadcast)
def broadcast_rows(batch: Batch, x: Batched, *, shape: Ints, axes: Ints) -> Operand:
    # The rows go before the axis that follows them, so that the order of axes stays.
    place = axes[x.axis] if x.axis < len(axes) else axes[-1] + 1 if axes else 0
    kept = shifted(axes, place)
    return Batched(
        ops.broadcast(x.value, shape=inserted(shape, place, batch.size), axes=inserted(kept, x.axis, place)),
        place,
    )


@vmap.rule(ops.transpose)
def transpose_rows(batch: Batch, x: Batched, *, perm: Ints) -> Operand:
    return Batched(ops.transpose(x.value, perm=inserted(shifted(perm, x.axis), x.axis, x.axis)), x.axis)


@vmap.rule(ops.reshape)
def reshape_rows(batch: Batch, x: Batched, *, shape: Ints) -> Operand:
    before = prod(x.row.shape[: x.axis])
    for axis in range(len(shape) + 1):
        if prod(shape[:axis]) == before and prod(shape[axis:]) == prod(x.row.shape[x.axis :]):
            return Batched(ops.reshape(x.value, shape=inserted(shape, axis, batch.size)), axis)
    return Batched(ops.reshape(batch.front(x), shape=(batch.size, *shape)), 0)


@vmap.rule(ops.slice)
def slice_rows(batch: Batch, x: Batched, *, start: Ints, stop: Ints, step: Ints) -> Operand:
    d = x.axis
    if not isinstance(batch.size, int):  # a slice says where it stops, a window how large it is
        sizes = inserted([slice_length(*ends) for ends in zip(start, stop, step)], d, batch.size)
        places = map(_number, inserted(start, d, 0))
        return Batched(ops.dynamic_slice(x.value, *places, sizes=sizes, step=inserted(step, d, 1)), d)
    return Batched(
        ops.slice(x.value, start=inserted(start, d, 0), stop=inserted(stop, d, batch.size), step=inserted(step, d, 1)), d
    )


@vmap.rule(ops.flip)
def flip_rows(batch: Batch, x: Batched, *, axes: Ints) -> Operand:
    return Batched(ops.flip(x.value, axes=shifted(axes, x.axis)), x.axis)


@vmap.rule(ops.pad)
def pad_rows(batch: Batch, x: Operand, value: Operand, *, low: Ints, high: Ints, interior: Ints) -> Operand:
    if isinstance(x, Batched) and not isinstance(value, Batched):
        d = x.axis
        wide = {"low": inserted(low, d, 0), "high": inserted(high, d, 0), "interior": inserted(interior, d, 0)}
        return Batched(ops.pad(x.value, value, **wide), d)
    # A border for each row: chosen where the padding of `true` has put none.
    assert isinstance(value, Batched)
    inner = x.row.shape if isinstance(x, Batched) else x.shape
    no, yes = _bool(False, ()), _bool(True, inner)
    inside = ops.pad(yes, no, low=low, high=high, interior=interior)
    nothing = ops.full(value=0, shape=(), dtype=value.value.dtype)
    padded = ops.pad(batch.front(x), nothing, low=(0, *low), high=(0, *high), interior=(0, *interior))
    border = ops.broadcast(value.value, shape=padded.shape, axes=(0,))
    return Batched(ops.select(batch.front(inside), padded, border), 0)


def _bool(value: bool, shape: Ints) -> Value:
    found: Value = ops.full(value=value, shape=shape, dtype=BOOL)
    return found


@vmap.rule(ops.concat)
def concat_rows(batch: Batch, *xs: Operand, axis: int) -> Operand:
    values, d = batch.aligned(xs)
    return Batched(ops.concat(*values, axis=axis + (d <= axis)), d)


@vmap.rule(ops.update_slice)
def update_slice_rows(batch: Batch, x: Operand, v: Operand, *, start: Ints, step: Ints) -> Operand:
    (target, part), d = batch.aligned((x, v))
    if not isinstance(batch.size, int):
        places = map(_number, inserted(start, d, 0))
        return Batched(ops.dynamic_update_slice(target, part, *places, step=inserted(step, d, 1)), d)
    return Batched(ops.update_slice(target, part, start=inserted(start, d, 0), step=inserted(step, d, 1)), d)


def _number(n: int) -> Value:
    number: Value = ops.full(value=n, shape=(), dtype=I64)
    return number
