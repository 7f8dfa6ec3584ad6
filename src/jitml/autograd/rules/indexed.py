"""Derivatives of gather and scatter, which are each other's transposes."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.core.jvp import Tangent, jvp, zeros_like
from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, PartialCotangent, transpose, zeros
from jitml.autograd.rules.index_maps import recorded_size
from jitml.ir import ops
from jitml.ir.dims import as_size, syms_in
from jitml.ir.graph import GraphBuilder, Value
from jitml.ir.op import recording
from jitml.ir.types import I64, Aval


@transpose.rule(ops.gather)
def gather_transpose(ct: Value, x: Operand, *indices: Operand, axis: int) -> tuple[Cotangent, ...]:
    def into(total: Value) -> Value:
        return ops.scatter(total, ct, *indices, axis=axis, combine="add")

    return PartialCotangent(into, lambda: into(zeros(Aval(x.shape, ct.dtype)))), *(None for _ in indices)


@jvp.rule(ops.scatter)
def scatter_jvp(out: Value, primals: Sequence[Value], tangents: Sequence[Tangent], *, axis: int, combine: str) -> Tangent:
    x, v, *indices = primals
    dx, dv = tangents[0], tangents[1]
    if combine == "add" and dv is None:
        return dx
    dx = dx if dx is not None else zeros_like(x)
    dv = dv if dv is not None else zeros_like(v)
    if combine in ("add", "set"):
        return ops.scatter(dx, dv, *indices, axis=axis, combine=combine)
    if combine == "mul":
        return _product_moved(x, v, dx, dv, indices, axis)
    # min and max: all that equal the result share its tangent equally.
    one, nothing = ops.full(value=1.0, shape=out.shape, dtype=out.dtype), zeros_like(out)
    one_v, nothing_v = ops.full(value=1.0, shape=v.shape, dtype=v.dtype), zeros_like(v)
    x_wins, v_wins = ops.eq(x, out), ops.eq(v, ops.gather(out, *indices, axis=axis))

    def collected(of_x: Value, of_v: Value) -> Value:
        chosen = ops.select(x_wins, of_x, nothing), ops.select(v_wins, of_v, nothing_v)
        return ops.scatter(*chosen, *indices, axis=axis, combine="add")

    return ops.div(collected(dx, dv), collected(one, one_v))


def _product_moved(x: Value, v: Value, dx: Value, dv: Value, indices: Sequence[Value], axis: int) -> Value:
    """The change of x multiplied by each factor in turn: right where some of them are zero, too."""
    b, count = GraphBuilder(), indices[0].size
    lines = (*x.shape[:axis], count, *x.shape[axis + len(indices) :])
    factors = [ops.reshape(u, shape=lines) for u in (v, dv)]
    places = [ops.reshape(place, shape=(count,)) for place in indices]
    operands = (x, dx, *factors, *places)
    syms = list(dict.fromkeys(syms_in(tuple(u.shape for u in operands))))
    step, total, moved, by, d_by, *at = (b.add_input(aval) for aval in (Aval((), I64), *(u.aval for u in operands)))
    with recording(b):
        for sym in syms:
            ops.bind(b.add_input(Aval((), I64)), sym=sym)
        here = [ops.gather(place, step, axis=0) for place in at]
        factor, d_factor = (ops.gather(u, step, axis=axis) for u in (by, d_by))
        before, d_before = (ops.gather(u, *here, axis=axis) for u in (total, moved))
        after = ops.scatter(total, before * factor, *here, axis=axis, combine="set")
        d_after = ops.scatter(moved, d_before * factor + before * d_factor, *here, axis=axis, combine="set")
    sizes = (recorded_size(as_size(sym)) for sym in syms)
    _, result = ops.loop(recorded_size(count), *operands, *sizes, body=b.build([after, d_after]), carried=2)
    changed: Value = result
    return changed


@transpose.rule(ops.scatter)
def scatter_transpose(ct: Value, x: Operand, v: Operand, *indices: Value, axis: int, combine: str) -> tuple[Cotangent, ...]:
    ct_x: Cotangent = None
    ct_v: Cotangent = None
    if isinstance(x, LinearPlace):
        hidden = zeros(Aval(v.shape, ct.dtype))
        ct_x = ct if combine == "add" else ops.scatter(ct, hidden, *indices, axis=axis, combine="set")
    if isinstance(v, LinearPlace):
        ct_v = ops.gather(ct, *indices, axis=axis)
        if combine == "set" and indices[0].capacity > 1:
            last = _is_last(x.shape[axis : axis + len(indices)], indices)
            placed = tuple(range(axis, axis + last.ndim))
            ct_v = ops.select(ops.broadcast(last, shape=v.shape, axes=placed), ct_v, zeros(Aval(v.shape, ct.dtype)))
    return ct_x, ct_v, *(None for _ in indices)


def _is_last(shape: tuple[int, ...], indices: Sequence[Value]) -> Value:
    """Which writes of a `set` are the last to their place: those that read back their own number."""
    where = indices[0].shape
    number = ops.reshape(ops.iota(shape=(indices[0].size,), axis=0, dtype=I64), shape=where)
    board = ops.full(value=-1, shape=shape, dtype=I64)
    written = ops.scatter(board, number, *indices, axis=0, combine="set")
    return ops.eq(ops.gather(written, *indices, axis=0), number)
