"""Batching of windows at places that are values: where those differ from row to row, a window becomes a gather."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.core.batch import Batch, Batched, Ints, Operand, inserted, refuse, row_of, vmap
from jitml.autograd.rules.batching.indexed import gather_each, scatter_each
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import I64


@vmap.rule(ops.dynamic_slice)
def dynamic_slice_rows(batch: Batch, x: Operand, *starts: Operand, sizes: Ints, step: Ints) -> Operand:
    moving = [a for a, start in enumerate(starts) if isinstance(start, Batched)]
    if not moving:
        assert isinstance(x, Batched)
        return _same_window(batch, x, starts, sizes, step)
    # First what is the same for all rows, then a gather over the axes from the first to the last of the others.
    row = row_of(x)
    whole = [_is_whole(n, size, s) for n, size, s in zip(row.shape, sizes, step)]
    kept = [n if a in moving else size for a, (n, size) in enumerate(zip(row.shape, sizes))]
    if not all(whole[a] for a in range(row.ndim) if a not in moving):
        firsts = [_zero() if a in moving else start for a, start in enumerate(starts)]
        steps = tuple(1 if a in moving else s for a, s in enumerate(step))
        x = _same_window(batch, x, firsts, tuple(kept), steps)
    axes = range(moving[0], moving[-1] + 1)
    indices = [places(batch, starts[a] if a in moving else _zero(), a, axes, sizes, step[a] if a in moving else 1) for a in axes]
    return gather_each(batch, x, tuple(indices), moving[0])


@vmap.rule(ops.dynamic_update_slice)
def dynamic_update_slice_rows(batch: Batch, x: Operand, v: Operand, *starts: Operand, step: Ints) -> Operand:
    row, sizes = row_of(x), row_of(v).shape
    if batch.active is not None:  # rows that do not count keep what they have
        v = batch.choose(batch.active, v, _window(batch, x, starts, sizes, step))
    if not any(isinstance(start, Batched) for start in starts):
        return Batched(ops.dynamic_update_slice(batch.front(x), batch.front(v), _zero(), *starts, step=(1, *step)), 0)
    moving = [a for a, start in enumerate(starts) if isinstance(start, Batched) or not _is_whole(row.shape[a], sizes[a], step[a])]
    axes = range(moving[0], moving[-1] + 1)
    indices = [places(batch, starts[a], a, axes, sizes, step[a]) for a in axes]
    return scatter_each(batch, x, v, tuple(indices), moving[0], "set")


def _window(batch: Batch, x: Operand, starts: Sequence[Operand], sizes: Ints, step: Ints) -> Operand:
    """The window itself, where x or its place may differ from row to row."""
    if isinstance(x, Batched) or any(isinstance(start, Batched) for start in starts):
        found = dynamic_slice_rows(batch, x, *starts, sizes=sizes, step=step)
        assert not isinstance(found, tuple)
        return found
    return _same_window(batch, x, starts, sizes, step)


def _same_window(batch: Batch, x: Operand, starts: Sequence[Operand], sizes: Ints, step: Ints) -> Operand:
    if not isinstance(x, Batched):
        window: Value = ops.dynamic_slice(x, *starts, sizes=sizes, step=step)
        return window
    d = x.axis
    at = inserted(starts, d, _zero())
    return Batched(ops.dynamic_slice(x.value, *at, sizes=inserted(sizes, d, batch.size), step=inserted(step, d, 1)), d)


def _is_whole(n: int, size: int, step: int) -> bool:
    return n == size and step == 1


def _zero() -> Value:
    zero: Value = ops.full(value=0, shape=(), dtype=I64)
    return zero


def places(batch: Batch, start: Operand, axis: int, axes: range, sizes: Ints, step: int) -> Operand:
    """The indices on one axis of a window over several: start, start + step, ..., in the shape of the window."""
    shape = tuple(sizes[a] for a in axes)
    numbers = ops.iota(shape=shape, axis=axis - axes.start, dtype=I64)
    along = numbers if step == 1 else ops.mul(numbers, ops.full(value=step, shape=shape, dtype=I64))
    start = batch.within(start)
    if not isinstance(start, Batched):
        return _sum(along, ops.broadcast(start, shape=shape, axes=()))
    wide = (batch.size, *shape)
    return Batched(_sum(ops.broadcast(start.value, shape=wide, axes=(0,)), batch.front(along)), 0)


def _sum(x: Value, y: Value) -> Value:
    total: Value = ops.add(x, y)
    return total


@vmap.rule(ops.compress)
def compress_rows(batch: Batch, x: Operand, mask: Operand, *, axis: int, size: int) -> Operand:
    if isinstance(mask, Batched) or not isinstance(x, Batched):
        refuse(
            "a mask that differs from row to row picks a different number of elements in each",
            "Keep the array's shape: np.where(mask, x, 0).",
        )
    return Batched(ops.compress(x.value, mask, axis=axis + (x.axis <= axis), size=size), x.axis)


@vmap.rule(ops.resize)
def resize_rows(batch: Batch, x: Batched, *, shape: Ints) -> Operand:
    return Batched(ops.resize(x.value, shape=inserted(shape, x.axis, batch.size)), x.axis)
