"""Derivatives of reductions, cumulative scans and sorts.

Conventions: equal extremes of `reduce_max` and `reduce_min` share the tangent equally; `cummax` and `cummin` follow the
latest of equal extremes. Products are differentiated without dividing by their factors, so zeros do no harm, to any
order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitml.autograd.core.jvp import Tangent, jvp, not_differentiable, zeros_like
from jitml.autograd.core.transpose import Cotangent, Operand, transpose
from jitml.autograd.rules.index_maps import part_of
from jitml.ir import ops
from jitml.ir.dims import Dim, bound
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import I64

Ints = tuple[int, ...]
Tangents = Sequence[Tangent]

not_differentiable(ops.reduce_all, ops.reduce_any, ops.argmax, ops.argmin, ops.argsort)


@transpose.rule(ops.reduce_sum)
def reduce_sum_transpose(ct: Value, x: Operand, *, axes: Ints) -> tuple[Cotangent, ...]:
    return (_repeated(ct, x.shape, axes),)


def _repeated(reduced: Value, shape: Ints, axes: Ints) -> Value:
    """A reduction's result beside each element it was made of."""
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    return ops.broadcast(reduced, shape=shape, axes=kept)


def _extreme_jvp(loses: Op, out: Value, x: Value, dx: Tangent, axes: Ints) -> Tangent:
    # Beside NaN no element loses and the tangent is NaN: cotangents of 0 would hide it.
    wins = ops.bit_not(loses(x, _repeated(out, x.shape, axes)))
    ties = ops.reduce_sum(ops.convert(wins, dtype=x.dtype), axes=axes)
    ties = ops.select(ops.isnan(out), ops.full(value=math.nan, shape=out.shape, dtype=out.dtype), ties)
    return ops.div(ops.reduce_sum(ops.select(wins, dx, zeros_like(x)), axes=axes), ties)


@jvp.rule(ops.reduce_max)
def reduce_max_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, axes: Ints) -> Tangent:
    return _extreme_jvp(ops.lt, out, primals[0], tangents[0], axes)


@jvp.rule(ops.reduce_min)
def reduce_min_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, axes: Ints) -> Tangent:
    return _extreme_jvp(ops.gt, out, primals[0], tangents[0], axes)


@jvp.rule(ops.reduce_prod)
def reduce_prod_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, axes: Ints) -> Tangent:
    """Each tangent times the product of all the other factors: those before it times those after it."""
    (x,), (dx,) = primals, tangents
    if x.size == 0 or dx is None:
        return None
    x, dx = _flattened(x, axes), _flattened(dx, axes)
    axis = x.ndim - 1
    before = ops.cumprod(_shifted(x, 1, axis, fill=1.0), axis=axis, reverse=False)
    after = ops.cumprod(_shifted(x, -1, axis, fill=1.0), axis=axis, reverse=True)
    return ops.reduce_sum(dx * (before * after), axes=(axis,))


def _flattened(x: Value, axes: Ints) -> Value:
    """The given axes as one, the last."""
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    perm = kept + axes
    if perm != tuple(range(x.ndim)):
        x = ops.transpose(x, perm=perm)
    shape = x.shape[: len(kept)]
    length = 1
    for n in x.shape[len(kept) :]:
        length *= n
    return x if len(axes) == 1 else ops.reshape(x, shape=(*shape, length))


def _shifted(x: Value, by: int, axis: int, fill: float) -> Value:
    """x moved along an axis, away from the start if `by` is positive; `fill` comes in."""
    n = x.shape[axis]
    if isinstance(n, Dim):  # which may be less than `by`
        new = ops.full(value=fill, shape=tuple(abs(by) if a == axis else m for a, m in enumerate(x.shape)), dtype=x.dtype)
        start = tuple(-by if a == axis and by < 0 else 0 for a in range(x.ndim))
        longer = ops.concat(*((new, x) if by > 0 else (x, new)), axis=axis)
        return part_of(longer, start, x.shape, (1,) * x.ndim)
    kept = n - min(abs(by), n)
    start = tuple(n - kept if a == axis and by < 0 else 0 for a in range(x.ndim))
    stop = tuple(kept if a == axis and by > 0 else m for a, m in enumerate(x.shape))
    rest = ops.slice(x, start=start, stop=stop, step=(1,) * x.ndim)
    low = tuple(n - kept if a == axis and by > 0 else 0 for a in range(x.ndim))
    high = tuple(n - kept if a == axis and by < 0 else 0 for a in range(x.ndim))
    number = ops.full(value=fill, shape=(), dtype=x.dtype)
    return ops.pad(rest, number, low=low, high=high, interior=(0,) * x.ndim)


@transpose.rule(ops.cumsum)
def cumsum_transpose(ct: Value, x: Operand, *, axis: int, reverse: bool) -> tuple[Cotangent, ...]:
    return (ops.cumsum(ct, axis=axis, reverse=not reverse),)


@jvp.rule(ops.cumprod)
def cumprod_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, axis: int, reverse: bool) -> Tangent:
    """The scan of products of dual numbers by doubling (Hillis and Steele 1986): log2(n) steps, no division; n may be a limit."""
    (x,), (dx,) = primals, tangents
    if dx is None:
        return None
    distance = 1
    while distance < bound(x.shape[axis]):
        by = -distance if reverse else distance
        x_before, dx_before = _shifted(x, by, axis, fill=1.0), _shifted(dx, by, axis, fill=0.0)
        x, dx = x * x_before, dx * x_before + dx_before * x
        distance *= 2
    return dx


@jvp.rule(ops.cummax, ops.cummin)
def cummax_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, axis: int, reverse: bool) -> Tangent:
    (x,), (dx,) = primals, tangents
    position = ops.iota(shape=x.shape, axis=axis, dtype=I64)
    # NaN equals nothing; everything after it is NaN whatever its tangent.
    first = x.shape[axis] - 1 if reverse else 0
    record = ops.select(ops.eq(x, out), position, ops.full(value=first, shape=x.shape, dtype=I64))
    latest = (ops.cummin if reverse else ops.cummax)(record, axis=axis, reverse=reverse)
    return _taken_along(dx, latest, axis)


@jvp.rule(ops.sort)
def sort_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, axis: int, kind: str) -> Tangent:
    (x,), (dx,) = primals, tangents
    return _taken_along(dx, ops.argsort(x, axis=axis, kind="stable"), axis)


def _taken_along(dx: Tangent, index: Value, axis: int) -> Value:
    """`np.take_along_axis`: the index array names places on one axis, the others stay."""
    places = [index if a == axis else ops.iota(shape=index.shape, axis=a, dtype=I64) for a in range(index.ndim)]
    return ops.gather(dx, *places, axis=0)
