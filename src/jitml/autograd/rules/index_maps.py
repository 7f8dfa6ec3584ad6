"""Transposes of the index maps: each is another index map, or a sum where elements were repeated."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.core.jvp import not_differentiable
from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, PartialCotangent, cleared, transpose, zeros
from jitml.ir import ops
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import GraphBuilder, Value
from jitml.ir.op import active_recorder
from jitml.ir.types import I64, Aval

Ints = tuple[int, ...]

# Below this share of an array a slice's cotangent is added where it lies; above, zeros around it fuse into one sum.
SMALL_PART = 0.25

not_differentiable(ops.full, ops.empty, ops.array, ops.iota)


@transpose.rule(ops.broadcast)
def broadcast_transpose(ct: Value, x: Operand, *, shape: Ints, axes: Ints) -> tuple[Cotangent, ...]:
    sizes = dict(zip(axes, x.shape))
    repeated = tuple(a for a, n in enumerate(shape) if n != 1 and sizes.get(a, 1) == 1)
    total = ops.reduce_sum(ct, axes=repeated) if repeated else ct
    return (ops.reshape(total, shape=x.shape) if total.shape != x.shape else total,)


@transpose.rule(ops.transpose)
def transpose_transpose(ct: Value, x: Operand, *, perm: Ints) -> tuple[Cotangent, ...]:
    return (ops.transpose(ct, perm=tuple(perm.index(a) for a in range(len(perm)))),)


@transpose.rule(ops.reshape)
def reshape_transpose(ct: Value, x: Operand, *, shape: Ints) -> tuple[Cotangent, ...]:
    return (ops.reshape(ct, shape=x.shape),)


@transpose.rule(ops.flip)
def flip_transpose(ct: Value, x: Operand, *, axes: Ints) -> tuple[Cotangent, ...]:
    return (ops.flip(ct, axes=axes),)


@transpose.rule(ops.slice)
def slice_transpose(ct: Value, x: Operand, *, start: Ints, stop: Ints, step: Ints) -> tuple[Cotangent, ...]:
    def into(total: Value) -> Value:
        before = cleared(total, ops.update_slice, (), ct.aval, start=start, step=step)
        if before is not None:
            return ops.update_slice(before, ct, start=start, step=step)
        if ct.aval.capacity >= SMALL_PART * x.aval.capacity:
            return ops.add(total, alone())
        return ops.update_slice(total, ops.add(part_of(total, start, ct.shape, step), ct), start=start, step=step)

    def alone() -> Value:
        axes = list(zip(start, ct.shape, x.shape, step))
        if any(isinstance(n, Dim) for a, m, size, _ in axes if m != size for n in (a, m, size)):
            return ops.update_slice(zeros(Aval(x.shape, ct.dtype)), ct, start=start, step=step)
        # A slice of no elements is padded from the front alone.
        low = tuple(0 if m == n else a if m else n for a, m, n, _ in axes)
        high = tuple(n - (a + (m - 1) * s + 1) if m != n and m else 0 for a, m, n, s in axes)
        return ops.pad(ct, zeros(Aval((), ct.dtype)), low=low, high=high, interior=tuple(s - 1 for s in step))

    is_block = x.aval.is_static and ct.aval.is_static and all(s == 1 for s in step) and ct.aval.capacity > 0
    return (PartialCotangent(into, alone, (ct, start) if is_block else None),)


@transpose.rule(ops.pad)
def pad_transpose(ct: Value, x: Operand, value: Operand, *, low: Ints, high: Ints, interior: Ints) -> tuple[Cotangent, ...]:
    step = tuple(i + 1 for i in interior)
    ct_x = part_of(ct, low, x.shape, step) if isinstance(x, LinearPlace) else None
    if not isinstance(value, LinearPlace):
        return ct_x, None
    border = ops.update_slice(ct, zeros(Aval(x.shape, ct.dtype)), start=low, step=step)
    return ct_x, ops.reduce_sum(border, axes=tuple(range(ct.ndim)))


@transpose.rule(ops.concat)
def concat_transpose(ct: Value, *xs: Operand, axis: int) -> tuple[Cotangent, ...]:
    cotangents: list[Cotangent] = []
    begin = 0
    for x in xs:
        start = tuple(begin if a == axis else 0 for a in range(ct.ndim))
        cotangents.append(part_of(ct, start, x.shape, (1,) * ct.ndim) if isinstance(x, LinearPlace) else None)
        begin += x.shape[axis]
    return tuple(cotangents)


@transpose.rule(ops.update_slice)
def update_slice_transpose(ct: Value, x: Operand, v: Operand, *, start: Ints, step: Ints) -> tuple[Cotangent, ...]:
    kept = ops.update_slice(ct, zeros(Aval(v.shape, ct.dtype)), start=start, step=step) if isinstance(x, LinearPlace) else None
    return kept, part_of(ct, start, v.shape, step) if isinstance(v, LinearPlace) else None


def part_of(ct: Value, start: Sequence[int], shape: Sequence[int], step: Sequence[int]) -> Value:
    """The slice of `ct` that begins at `start` and has this shape."""
    if any(isinstance(n, Dim) for n in (*start, *shape)):
        return ops.dynamic_slice(ct, *map(recorded_size, start), sizes=tuple(shape), step=tuple(step))
    stop = tuple(a + (n - 1) * s + 1 if _is_nonempty(n) else a for a, n, s in zip(start, shape, step))
    return ops.slice(ct, start=tuple(start), stop=stop, step=tuple(step))


def _is_nonempty(size: Size) -> bool:
    """Whether a slice has elements; one of unknown length has unit steps, so that the formulas hold for none, too."""
    return isinstance(size, Dim) or size > 0


def recorded_size(size: Size) -> Value:
    """A size as a value, of those that are bound where this is recorded."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    if not isinstance(size, Dim):
        number: Value = ops.full(value=size, shape=(), dtype=I64)
        return number
    bound = {node.params["sym"]: node.inputs[0] for node in b.nodes if node.op is ops.bind}
    value: Value = size.evaluate(bound)
    return value
