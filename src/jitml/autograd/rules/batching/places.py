"""Batching of what has another size in each row: ops that ask where elements lie. They are computed of packed arrays.

Windows, joins and turns become a gather along one axis after the other, by places that follow from the counts. Indices are
checked against the count, in NumPy's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitml.autograd.batching.ragged import Given, Ragged, RaggedRows, ragged
from jitml.autograd.core.batch import Operand, as_value, row_of
from jitml.autograd.rules.batching.ragged import COMBINED, compute_all
from jitml.ir import ops
from jitml.ir.dims import Size
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, I64

Sizes = Sequence[Size]


def _nothing(rows: RaggedRows, node: Node) -> Given:
    """Of an axis without room there is nothing that counts."""
    made = as_value(ops.full(value=0, shape=rows.whole(node.output.shape), dtype=node.output.dtype))
    return rows.uniform(made, node.output.shape)


def _is_zero(rows: RaggedRows, start: Value) -> bool:
    maker = rows.makers.get(start)
    return maker is not None and maker.op is ops.full and maker.params["value"] == 0


# ----------------------------------------------------------------------------------------------------------- reading


def _with_room(
    rows: RaggedRows, node: Node, starts: Sequence[Operand], room: Sizes, sizes: Sizes, step: Sequence[int]
) -> list[Operand]:
    """Starts of windows of known sizes, which count in no row that has not so many: what is below knows room alone."""
    found = list(starts)
    for axis, (n, size) in enumerate(zip(room, sizes)):
        if rows.is_open(node.inputs[0].shape[axis]) and isinstance(starts[axis], Value) and n != size:
            last = rows.count(n - 1 - (size - 1) * step[axis])
            found[axis] = rows.op(ops.minimum, starts[axis], last)
    return found


def _read(rows: RaggedRows, node: Node, x: Given, starts: Sequence[Operand], fixed: Sequence[bool], step: Sequence[int]) -> Given:
    """A window of x. `fixed`: it starts with the axis."""
    value, shape = rows.packed(x), node.output.shape
    room = row_of(value).shape
    opens = [rows.is_open(n) for n in shape]
    sizes = tuple(m if is_open else n for m, n, is_open in zip(room, shape, opens))
    if any(type(n) is int and type(m) is int and n > m for n, m in zip(sizes, room)):
        return _nothing(rows, node)
    if sizes != room:
        first = [rows.number(0) if is_open else start for start, is_open in zip(starts, opens)]
        steps = tuple(1 if is_open else s for s, is_open in zip(step, opens))
        value = rows.op(ops.dynamic_slice, value, *_with_room(rows, node, first, room, sizes, steps), sizes=sizes, step=steps)
    for axis, size in enumerate(shape):
        if not opens[axis]:
            continue
        if fixed[axis] and step[axis] == 1:
            value = rows.roomed(value, axis, rows.whole(size))
            continue
        index = rows.along(rows.whole(size))
        at = row_of(index).shape
        index = rows.op(ops.mul, index, rows.spread(rows.number(step[axis]), at)) if step[axis] != 1 else index
        index = rows.op(ops.add, index, rows.spread(starts[axis], at))
        value = rows.take(value, rows.filled(index, (size,), 0, True), axis)
    return rows.named(rows.one_elsewhere(value, shape, True), shape, True)


@ragged.rule(ops.dynamic_slice)
def _dynamic_slice(rows: RaggedRows, node: Node, x: Given, *starts: Operand) -> Given:
    fixed = [_is_zero(rows, start) for start in node.inputs[1:]]
    return _read(rows, node, x, starts, fixed, node.params["step"])


@ragged.rule(ops.slice)
def _slice(rows: RaggedRows, node: Node, x: Given) -> Given:
    start = node.params["start"]
    return _read(rows, node, x, list(map(rows.count, start)), [type(n) is int and n == 0 for n in start], node.params["step"])


@ragged.rule(ops.flip)
def _flip(rows: RaggedRows, node: Node, x: Ragged) -> Given:
    opens = [axis for axis in node.params["axes"] if rows.is_open(x.shape[axis])]
    if not opens:
        return compute_all(rows, node, x)
    value = rows.packed(x)
    others = tuple(axis for axis in node.params["axes"] if axis not in opens)
    value = rows.op(ops.flip, value, axes=others) if others else value
    for axis in opens:
        index = rows.along(rows.whole(x.shape[axis]))
        index = rows.op(ops.sub, rows.spread(rows.count(x.shape[axis] - 1), row_of(index).shape), index)
        value = rows.take(value, rows.filled(index, (x.shape[axis],), 0, True), axis)
    return rows.named(rows.one_elsewhere(value, x.shape, True), x.shape, True)


@ragged.rule(ops.reshape)
def _reshape(rows: RaggedRows, node: Node, x: Given) -> Given:
    before, after = node.inputs[0].shape, node.output.shape
    if [n for n in before if n != 1] == [n for n in after if n != 1]:
        return compute_all(rows, node, x)
    value, room = rows.packed(x), rows.whole(after)
    if not rows.any_open((*before[1:], *after[1:])) and prod(room) == row_of(value).size:
        return rows.named(rows.op(ops.reshape, value, shape=room), after, True)  # what counts lies in front in both
    if row_of(value).size == 0:
        return _nothing(rows, node)
    # Where each element lies in the order that both shapes have, and from there where it was.
    counting = rows.filled(as_value(ops.full(value=1, shape=room, dtype=I64)), after, 0, True)
    place: Operand = as_value(ops.full(value=0, shape=room, dtype=I64))
    for axis, size in enumerate(after):
        along = as_value(ops.iota(shape=room, axis=axis, dtype=I64))
        place = rows.op(ops.add, rows.op(ops.mul, place, rows.spread(rows.count(size), room)), along)
    place = rows.op(ops.mul, place, counting)
    indices: list[Operand] = []
    for size in reversed(before):
        n = rows.spread(rows.op(ops.maximum, rows.count(size), rows.number(1)), room)
        indices.insert(0, rows.op(ops.remainder, place, n))
        place = rows.op(ops.floor_divide, place, n)
    return rows.named(rows.one_elsewhere(rows.op(ops.gather, value, *indices, axis=0), after, True), after, True)


@ragged.rule(ops.concat)
def _concat(rows: RaggedRows, node: Node, *xs: Given) -> Given:
    axis, shape = node.params["axis"], node.output.shape
    if not rows.is_open(shape[axis]):
        return compute_all(rows, node, *xs)
    values = [rows.packed(x) for x in xs]
    room = rows.whole(shape[axis])
    index = place = rows.along(room)
    begins: Size = 0
    lies: Size = 0
    for v, value in zip(node.inputs[:-1], values):
        begins, lies = begins + v.shape[axis], lies + row_of(value).shape[axis]
        first = rows.spread(rows.count(begins), (room,))
        moved = rows.op(ops.add, index, rows.op(ops.sub, rows.spread(rows.count(lies), (room,)), first))
        place = rows.op(ops.select, rows.op(ops.ge, index, first), moved, place)
    joined = rows.op(ops.concat, *values, axis=axis)
    found = rows.take(joined, rows.filled(place, (shape[axis],), 0, True), axis)
    return rows.named(rows.one_elsewhere(found, shape, True), shape, True)


@ragged.rule(ops.pad)
def _pad(rows: RaggedRows, node: Node, x: Given, border: Operand) -> Given:
    shape, before = node.output.shape, node.inputs[0].shape
    low, high, interior = (node.params[name] for name in ("low", "high", "interior"))
    if rows.any_open((*low, *interior)):
        rows.refuse()
    value = rows.packed(x)
    around = rows.spread(border, row_of(value).shape)
    for axis, size in enumerate(before):
        if rows.is_open(size):  # the border begins where the count says
            counting = rows.spread(rows.counting(size, True), row_of(value).shape, (axis,))
            value = rows.op(ops.select, counting, value, around)
    value = rows.op(ops.pad, value, border, low=low, high=rows.whole(high), interior=interior)
    for axis, size in enumerate(shape):
        value = rows.roomed(value, axis, rows.whole(size))
    return rows.named(rows.one_elsewhere(value, shape, True), shape, True)


@ragged.rule(ops.resize)
def _resize(rows: RaggedRows, node: Node, x: Given) -> Given:
    """Of sizes that are equal: placed, where one mask has picked both."""
    before, after = node.inputs[0].shape, node.output.shape
    alike = all(n == m or (rows.is_open(n) and rows.picks.get(n) is rows.picks.get(m, x)) for n, m in zip(before, after))
    if alike and not rows.common_form(x, shape=after):
        return rows.named(rows.form(x, False), after, False)
    value = rows.packed(x)
    for axis, size in enumerate(after):
        value = rows.roomed(value, axis, rows.whole(size))
    return rows.named(value, after, True)


@ragged.rule(ops.compress)
def _compress(rows: RaggedRows, node: Node, x: Given, mask: Given) -> Given:
    axis, size, shape = node.params["axis"], node.params["size"], node.output.shape
    if rows.picks.get(size) is node.inputs[1] and rows.mask(size) is not None and not rows.common_form(x):
        value = rows.one_elsewhere(rows.form(x, False), shape, False)
        return rows.named(value, shape, False)
    picked = rows.filled(rows.packed(mask), node.inputs[1].shape, False, True)
    order = rows.order(picked)
    index = rows.filled(rows.roomed(order, 0, rows.whole(size)), (size,), 0, True)
    return rows.named(rows.one_elsewhere(rows.take(rows.packed(x), index, axis), shape, True), shape, True)


# ----------------------------------------------------------------------------------------------------------- writing


def _write(rows: RaggedRows, node: Node, x: Given, v: Given, starts: Sequence[Operand], whole: Sequence[bool]) -> Given:
    """x with a window replaced. `whole`: along that axis it is all of x."""
    value, part, step = rows.packed(x), rows.packed(v), node.params["step"]
    room, shape = row_of(value).shape, node.inputs[1].shape
    if not rows.any_open(shape):
        if any(type(n) is int and type(m) is int and n > m for n, m in zip(shape, room)):
            return x  # where there is no room
        found = rows.op(ops.dynamic_update_slice, value, part, *_with_room(rows, node, starts, room, shape, step), step=step)
        return rows.named(found, node.output.shape, True)
    inside: Operand | None = None
    for axis, size in enumerate(shape):
        if whole[axis]:
            continue
        at = (room[axis],)
        index = rows.op(ops.sub, rows.along(room[axis]), rows.spread(starts[axis], at))
        hit = rows.op(ops.ge, index, rows.spread(rows.number(0), at))
        if step[axis] != 1:
            steps = rows.spread(rows.number(step[axis]), at)
            hit = rows.op(
                ops.bit_and, hit, rows.op(ops.eq, rows.op(ops.remainder, index, steps), rows.spread(rows.number(0), at))
            )
            index = rows.op(ops.floor_divide, index, steps)
        hit = rows.op(ops.bit_and, hit, rows.op(ops.lt, index, rows.spread(rows.count(size), at)))
        part = rows.take(part, rows.op(ops.select, hit, index, rows.spread(rows.number(0), at)), axis)
        hit = rows.spread(hit, room, (axis,))
        inside = hit if inside is None else rows.op(ops.bit_and, inside, hit)
    found = part if inside is None else rows.op(ops.select, inside, part, value)
    if rows.batch.active is not None:  # rows that do not count keep what they have
        found = rows.batch.choose(rows.batch.active, found, value)
    return rows.named(found, node.output.shape, True)


@ragged.rule(ops.dynamic_update_slice)
def _dynamic_update_slice(rows: RaggedRows, node: Node, x: Given, v: Given, *starts: Operand) -> Given:
    pairs = zip(node.inputs[0].shape, node.inputs[1].shape, node.inputs[2:])
    return _write(rows, node, x, v, starts, [n == m and _is_zero(rows, start) for n, m, start in pairs])


@ragged.rule(ops.update_slice)
def _update_slice(rows: RaggedRows, node: Node, x: Given, v: Given) -> Given:
    start = node.params["start"]
    pairs = zip(node.inputs[0].shape, node.inputs[1].shape, start)
    return _write(rows, node, x, v, list(map(rows.count, start)), [n == m and type(a) is int and a == 0 for n, m, a in pairs])


# ----------------------------------------------------------------------------------------------------------- indices


def _inside(rows: RaggedRows, index: Given, shape: Sizes, axis: int, size: Size, packed: bool) -> Operand:
    """Indices of an axis whose size differs, negative ones counted from its beginning; NumPy's error for one outside."""
    given = rows.filled(rows.form(index, packed), shape, 0, packed)
    given = given if row_of(given).dtype == I64 else rows.op(ops.convert, given, dtype=I64)
    room = row_of(given).shape
    if prod(room) == 0:
        return given
    count, zero = rows.spread(rows.count(size), room), rows.spread(rows.number(0), room)
    place = rows.op(ops.select, rows.op(ops.lt, given, zero), rows.op(ops.add, given, count), given)
    ok = rows.op(ops.bit_and, rows.op(ops.ge, place, zero), rows.op(ops.lt, place, count))
    ok = rows.filled(ok, shape, True, packed)
    flat = rows.op(ops.reshape, ok, shape=(prod(room),))
    first = rows.op(ops.gather, rows.op(ops.reshape, given, shape=(prod(room),)), rows.op(ops.argmin, flat, axis=0), axis=0)
    message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
    all_ok = rows.op(ops.reduce_all, flat, axes=(0,))
    checked = rows.op(ops.check, place, all_ok, first, rows.count(size), error="IndexError", message=message)
    return rows.filled(checked, shape, 0, packed)


def _indices(rows: RaggedRows, node: Node, indices: Sequence[Given], packed: bool) -> list[Operand]:
    """Indices, which are 0 where they do not count."""
    axis, found = node.params["axis"], []
    for n, index in enumerate(indices):
        size, shape = node.inputs[0].shape[axis + n], node.inputs[-len(indices)].shape
        if rows.is_open(size):
            found.append(_inside(rows, index, shape, axis + n, size, packed))
        else:
            found.append(rows.filled(rows.form(index, packed), shape, 0, packed))
    return found


def _has_room(rows: RaggedRows, sizes: Sizes) -> bool:
    return not any(type(n) is int and n == 0 for n in rows.whole(tuple(sizes)))


@ragged.rule(ops.gather)
def _gather(rows: RaggedRows, node: Node, x: Given, *indices: Given) -> Given:
    axis, shape = node.params["axis"], node.output.shape
    read = node.inputs[0].shape[axis : axis + len(indices)]
    packed = rows.any_open(read) or rows.common_form(x, *indices, shape=shape)
    places = _indices(rows, node, indices, packed)
    if not _has_room(rows, read):
        return _nothing(rows, node)
    found = rows.op(ops.gather, rows.form(x, packed), *places, axis=axis)
    return rows.named(rows.one_elsewhere(found, shape, packed), shape, packed)


@ragged.rule(ops.scatter)
def _scatter(rows: RaggedRows, node: Node, x: Given, v: Given, *indices: Given) -> Given:
    axis, combine = node.params["axis"], node.params["combine"]
    written, shape = node.inputs[0].shape[axis : axis + len(indices)], node.inputs[2].shape
    if combine in ("set", "add") and _is_own_place(rows, node.inputs[2:], written) and not rows.common_form(x, v):
        return _back(rows, node, x, v)
    packed = rows.any_open(written) or rows.common_form(x, v, *indices)
    if not _has_room(rows, written):
        return x
    value, part = rows.form(x, packed), rows.form(v, packed)
    places = _indices(rows, node, indices, packed)
    over = [a for a, n in enumerate(node.inputs[1].shape) if axis <= a < axis + len(shape) and rows.is_open(n)]
    if combine != "set":
        part = rows.filled(part, node.inputs[1].shape, COMBINED[combine](node.output.dtype), packed, over)
    elif over:  # what does not count is sent behind the end of the first axis that is written to
        room = row_of(value).shape[axis]
        counting = rows.filled(
            rows.spread(as_value(ops.full(value=True, shape=(), dtype=BOOL)), row_of(places[0]).shape), shape, False, packed
        )
        first = places[0] if row_of(places[0]).dtype == I64 else rows.op(ops.convert, places[0], dtype=I64)
        places[0] = rows.op(ops.select, counting, first, rows.spread(rows.count(room), row_of(first).shape))
        found = rows.op(ops.scatter, _one_longer(rows, value, axis), part, *places, axis=axis, combine=combine)
        return rows.named(rows.window(found, axis, room), node.output.shape, packed)
    return rows.named(rows.op(ops.scatter, value, part, *places, axis=axis, combine=combine), node.output.shape, packed)


def _one_longer(rows: RaggedRows, x: Operand, axis: int) -> Operand:
    row = row_of(x)
    none, one = (0,) * row.ndim, tuple(int(a == axis) for a in range(row.ndim))
    return rows.op(ops.pad, x, as_value(ops.full(value=0, shape=(), dtype=row.dtype)), low=none, high=one, interior=none)


def _is_own_place(rows: RaggedRows, indices: Sequence[Value], written: Sizes) -> bool:
    """Whether indices say where what a mask picked lies in an array of this size."""
    picked = rows.makers.get(indices[0])
    if len(indices) > 1 or picked is None or picked.op is not ops.compress or not rows.is_open(picked.params["size"]):
        return False
    made = rows.makers.get(picked.inputs[0])
    return made is not None and made.op is ops.iota and made.output.shape == tuple(written)


def _back(rows: RaggedRows, node: Node, x: Given, v: Given) -> Given:
    """What has been picked comes back to where it was."""
    axis, shape = node.params["axis"], node.inputs[2].shape
    into, part = rows.form(x, False), rows.form(v, False)
    if node.params["combine"] == "add":
        part = rows.filled(part, node.inputs[1].shape, 0, False, (axis,))
        return rows.named(rows.op(ops.add, into, part), node.output.shape, False)
    mask = rows.spread(rows.counting(shape[0], False), row_of(into).shape, (axis,))
    return rows.named(rows.op(ops.select, mask, part, into), node.output.shape, False)
