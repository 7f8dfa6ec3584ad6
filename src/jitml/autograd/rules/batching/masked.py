"""Batching of what masks pick that differ from row to row: computed for all elements, of which those picked count.

`x[mask]` has another length in each row. What is computed of it is computed at the places where the elements lay: elements that
are not picked are 1 where they come in, hold anything later on, and are left out where results come out: of a sum they are 0,
and an array that is written to keeps what it has. So no cotangent of theirs leaves either, whatever the slope at 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.autograd.rules.batching.dynamic import places
from jitml.autograd.rules.batching.indexed import scatter_each
from jitml.autograd.vmap import Masked, Masks, Operand, masked, refuse, row_of
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Node, Value
from jitml.ir.op import OPS, Op
from jitml.ir.types import BOOL, I64, DType, is_complex

Given = Operand | Masked


def _or_else(masks: Masks, x: Masked, axes: Sequence[int], value: Any) -> Operand:
    """x, and this number where it is not picked on these axes."""
    filled = x.value
    for axis in axes:
        size = x.shape[axis]
        if masks.is_open(size):
            row = row_of(x.value)
            mask = masks.op(ops.broadcast, masks.mask(size), shape=row.shape, axes=(axis,))
            filled = masks.op(ops.select, mask, filled, masks.op(ops.full, value=value, shape=row.shape, dtype=row.dtype))
    return filled


def _entering(masks: Masks, x: Operand, shape: Sequence[Size]) -> Masked:
    """Elements that are not picked are 1: most functions have a slope there."""
    found = Masked(x, tuple(shape))
    if row_of(x).dtype.kind not in "fc":
        return found
    return Masked(_or_else(masks, found, range(len(found.shape)), 1), found.shape)


def _plain(x: Given) -> Operand:
    return x.value if isinstance(x, Masked) else x


def _anywhere(masks: Masks, node: Node, *operands: Given) -> Masked | Operand:
    """The op itself, of all elements; sizes among its parameters are those of all."""
    params = {name: masks.whole(param) for name, param in node.params.items()}
    result = masks.op(node.op, *map(_plain, operands), **params)
    return masks.named(result, node.output.shape)


masked.rule(ops.full, ops.transpose, ops.empty, *(op for op in OPS.values() if op.is_pointwise))(_anywhere)


@masked.rule(ops.broadcast)
def _broadcast(masks: Masks, node: Node, x: Given) -> Masked | Operand:
    found = _anywhere(masks, node, x)
    makes = masks.makers.get(node.inputs[0])
    if not isinstance(found, Masked) or isinstance(x, Masked) or (makes is not None and makes.op is ops.full):
        return found
    return _entering(masks, found.value, found.shape)


@masked.rule(ops.reshape)
def _reshape(masks: Masks, node: Node, x: Given) -> Masked | Operand:
    before, after = ([n for n in v.shape if n != 1] for v in (node.inputs[0], node.output))
    if before != after:
        masks.refuse()
    return _anywhere(masks, node, x)


@masked.rule(ops.iota)
def _iota(masks: Masks, node: Node) -> Masked | Operand:
    axis, shape = node.params["axis"], node.output.shape
    if not masks.is_open(shape[axis]):
        return _anywhere(masks, node)
    ranks = _ranks(masks, shape[axis], node.params["dtype"])
    return masks.named(masks.op(ops.broadcast, ranks, shape=masks.whole(shape), axes=(axis,)), shape)


def _ranks(masks: Masks, size: Size, dtype: DType) -> Operand:
    """How many are picked before each element."""
    one = masks.op(ops.convert, masks.mask(size), dtype=dtype)
    total = masks.op(ops.cumsum, one, axis=0, reverse=False)
    return masks.op(ops.sub, total, one)


@masked.rule(ops.concat)
def _concat(masks: Masks, node: Node, *xs: Masked) -> Masked | Operand:
    if any(masks.is_open(v.shape[node.params["axis"]]) for v in node.inputs):
        masks.refuse()
    return _anywhere(masks, node, *xs)


@masked.rule(ops.compress)
def _compress(masks: Masks, node: Node, x: Given, mask: Given) -> Masked | Operand:
    size = node.params["size"]
    if not masks.is_open(size):  # another axis, of which all rows pick the same
        return masks.named(masks.op(ops.compress, _plain(x), _plain(mask), **node.params), node.output.shape)
    if masks.picks.get(size) is not node.inputs[1]:
        masks.refuse()
    return _entering(masks, _plain(x), node.output.shape)


@masked.rule(ops.resize)
def _resize(masks: Masks, node: Node, x: Given) -> Masked | Operand:
    """Of sizes that are equal, since one mask has picked both."""
    for n, m in zip(node.inputs[0].shape, node.params["shape"]):
        if n != m and not (masks.is_open(n) and masks.is_open(m) and masks.picks.get(n) is masks.picks.get(m)):
            masks.refuse()
    return masks.named(_plain(x), node.output.shape)


@masked.rule(ops.check)
def _check(masks: Masks, node: Node, x: Masked, *others: Operand) -> Masked | Operand:
    checked = masks.op(ops.check, x.value, *others, **node.params)
    return masks.named(checked, node.output.shape)


@masked.rule(ops.observe)
def _observe(masks: Masks, node: Node, x: Masked) -> tuple[()]:
    """Elements that are not picked raise what nobody has asked for; transforms report none."""
    return ()


# ---------------------------------------------------------------------------------------------------------- leaving


def _least(dtype: DType) -> Any:
    if is_complex(dtype):
        refuse("extremes of complex numbers that a mask picks, another number in each row")
    return False if dtype == BOOL else -np.inf if dtype.kind == "f" else np.iinfo(dtype.name).min


def _greatest(dtype: DType) -> Any:
    return True if dtype == BOOL else np.inf if dtype.kind == "f" else np.iinfo(dtype.name).max


def _always(value: Any) -> Callable[[DType], Any]:
    return lambda dtype: value


# What changes nothing.
_NEUTRAL: dict[Op, Callable[[DType], Any]] = {
    ops.reduce_sum: _always(0),
    ops.reduce_prod: _always(1),
    ops.reduce_max: _least,
    ops.reduce_min: _greatest,
    ops.reduce_all: _always(True),
    ops.reduce_any: _always(False),
    ops.cumsum: _always(0),
    ops.cumprod: _always(1),
    ops.cummax: _least,
    ops.cummin: _greatest,
}
_COMBINED = {"add": _always(0), "mul": _always(1), "max": _least, "min": _greatest}


@masked.rule(*_NEUTRAL)
def _reduce(masks: Masks, node: Node, x: Masked) -> Masked | Operand:
    axes = node.params["axes"] if "axes" in node.params else (node.params["axis"],)
    filled = _or_else(masks, x, axes, _NEUTRAL[node.op](node.inputs[0].dtype))
    return _anywhere(masks, node, Masked(filled, x.shape))


@masked.rule(ops.dot_general)
def _dot_general(masks: Masks, node: Node, x: Given, y: Given) -> Masked | Operand:
    pairs = zip((x, y), node.params["contract"], strict=True)
    return _anywhere(masks, node, *(_or_else(masks, z, axes, 0) if isinstance(z, Masked) else z for z, axes in pairs))


@masked.rule(ops.gather)
def _gather(masks: Masks, node: Node, x: Given, *indices: Given) -> Masked | Operand:
    axis = node.params["axis"]
    read = node.inputs[0].shape[axis : axis + len(indices)]
    if any(masks.is_open(n) or n == 0 for n in read):
        masks.refuse()
    found = masks.op(ops.gather, _plain(x), *(_places(masks, i, 0) for i in indices), axis=axis)
    return _entering(masks, found, node.output.shape)


def _places(masks: Masks, index: Given, elsewhere: int | Dim) -> Operand:
    """Indices, which are all `elsewhere` where they are not picked."""
    return _or_else(masks, index, range(len(index.shape)), elsewhere) if isinstance(index, Masked) else index


@masked.rule(ops.scatter)
def _scatter(masks: Masks, node: Node, x: Given, v: Given, *indices: Given) -> Masked | Operand:
    axis, combine = node.params["axis"], node.params["combine"]
    written, shape = node.inputs[0].shape[axis : axis + len(indices)], node.inputs[2].shape
    if not isinstance(v, Masked):
        masks.refuse()
    if combine != "set":
        neutral = _COMBINED[combine](node.output.dtype)
        v = Masked(_or_else(masks, v, range(axis, axis + len(shape)), neutral), v.shape)
    if combine in ("set", "add") and _is_own_place(masks, node.inputs[2:], written):
        # What has been picked comes back to where it was.
        into = _plain(x)
        if combine == "add":
            return masks.named(masks.op(ops.add, into, v.value), node.output.shape)
        mask = masks.op(ops.broadcast, masks.mask(shape[0]), shape=row_of(into).shape, axes=(axis,))
        return masks.named(masks.op(ops.select, mask, v.value, into), node.output.shape)
    if isinstance(x, Masked) or any(type(n) is not int or n == 0 for n in written):
        masks.refuse()
    if combine != "set":
        places = [_places(masks, i, 0) for i in indices]
        return scatter_each(masks.batch, x, v.value, tuple(places), axis, combine)
    places = [_places(masks, i, 0 if n else written[0]) for n, i in enumerate(indices)]
    return _scattered_apart(masks, x, v.value, places, axis)


def _is_own_place(masks: Masks, indices: Sequence[Value], written: Sequence[Size]) -> bool:
    """Whether indices say where what a mask picked lies in an array of this size."""
    picked = masks.makers.get(indices[0])
    if len(indices) > 1 or picked is None or picked.op is not ops.compress or not masks.is_open(picked.params["size"]):
        return False
    made = masks.makers.get(picked.inputs[0])
    return made is not None and made.op is ops.iota and made.output.shape == tuple(written)


def _scattered_apart(masks: Masks, x: Operand, v: Operand, indices: Sequence[Operand], axis: int) -> Operand:
    """What is not picked has been sent behind the end of the first axis that is written to, and is cut off there."""
    row = row_of(x)
    none = tuple(0 for _ in row.shape)
    one = tuple(int(a == axis) for a in range(row.ndim))
    zero: Value = ops.full(value=0, shape=(), dtype=row.dtype)
    longer = masks.op(ops.pad, x, zero, low=none, high=one, interior=none)
    filled = scatter_each(masks.batch, longer, v, tuple(indices), axis, "set")
    return masks.op(ops.slice, filled, start=none, stop=row.shape, step=tuple(1 for _ in none))


# ----------------------------------------------------------------------------------------------------------- windows


@masked.rule(ops.dynamic_slice)
def _dynamic_slice(masks: Masks, node: Node, x: Given, *starts: Operand) -> Masked | Operand:
    """The first elements of a window, as many as are picked: each at the place of one of those."""
    if isinstance(x, Masked):
        masks.refuse()
    step, shape = node.params["step"], node.output.shape
    moving = [a for a, (n, m, s) in enumerate(zip(node.inputs[0].shape, shape, step)) if (n, s) != (m, 1)]
    axes, sizes, indices = range(moving[0], moving[-1] + 1), masks.whole(shape), []
    for axis in axes:
        index = places(masks.batch, starts[axis], axis, axes, sizes, step[axis])
        if masks.is_open(shape[axis]):
            at, where = row_of(index).shape, (axis - axes.start,)
            ranks = masks.op(ops.broadcast, _ranks(masks, shape[axis], I64), shape=at, axes=where)
            along = masks.op(ops.mul, ranks, masks.op(ops.full, value=step[axis], shape=at, dtype=I64))
            first = masks.op(ops.broadcast, starts[axis], shape=at, axes=())
            index = _places(masks, Masked(masks.op(ops.add, first, along), tuple(shape[a] for a in axes)), 0)
        indices.append(index)
    return _entering(masks, masks.op(ops.gather, x, *indices, axis=axes.start), shape)


@masked.rule(ops.dynamic_update_slice)
def _dynamic_update_slice(masks: Masks, node: Node, x: Given, v: Given, *starts: Operand) -> Masked | Operand:
    """What has been picked, one behind the other from the beginning of an axis; beyond, the window keeps what it has."""
    shape, step = node.inputs[1].shape, node.params["step"]
    open_axes = [a for a, n in enumerate(shape) if masks.is_open(n)]
    if isinstance(x, Masked) or not isinstance(v, Masked) or len(open_axes) != 1:
        masks.refuse()
    (axis,) = open_axes
    sizes, room = masks.whole(shape), node.inputs[0].shape[axis]
    first = masks.makers.get(node.inputs[2 + axis])
    if first is None or first.op is not ops.full or first.params["value"] != 0:
        masks.refuse()
    if type(room) is not int or type(sizes[axis]) is not int or (sizes[axis] - 1) * step[axis] >= room:
        masks.refuse()
    mask = masks.op(ops.convert, masks.mask(shape[axis]), dtype=I64)
    count = masks.op(ops.broadcast, masks.op(ops.reduce_sum, mask, axes=(0,)), shape=sizes, axes=())
    filled = masks.op(ops.lt, masks.op(ops.iota, shape=sizes, axis=axis, dtype=I64), count)
    before = masks.op(ops.dynamic_slice, x, *starts, sizes=sizes, step=step)
    part = masks.op(ops.select, filled, _compacted(masks, v, axis), before)
    return masks.op(ops.dynamic_update_slice, x, part, *starts, step=step)


def _compacted(masks: Masks, v: Masked, axis: int) -> Operand:
    """What has been picked, one behind the other."""
    row, size = row_of(v.value), v.shape[axis]
    empty = masks.op(ops.full, value=0, shape=row.shape, dtype=row.dtype)
    place = _places(masks, Masked(_ranks(masks, size, I64), (size,)), row.shape[axis])
    return _scattered_apart(masks, empty, v.value, [place], axis)
