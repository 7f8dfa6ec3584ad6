"""Derivatives of factorizations, on the last two axes of stacks of matrices.

Of a Hermitian matrix only the half that is read counts. Eigenvectors and singular vectors keep their phase to first order; where
two eigenvalues or singular values are equal, those of vectors are not finite. The columns that make a basis of `svd` or `qr`
whole stand for the space they span, and turn no further than it does. `lstsq` and `pinv` follow Golub and Pereyra (1973), for
matrices whose rank does not change; where a cutoff leaves out more than roundings, what is kept turns with what is not. Sources:
Giles, "An extended collection of matrix derivative results" (2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from jitml.autograd.core.jvp import Tangent, jvp, jvp_of_many, zeros_like
from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, transpose
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.types import I64, DType, is_complex

Tangents = Sequence[Tangent]
Results = tuple[Sequence[Value], Sequence[Tangent]]


def matmul(*factors: Value) -> Value:
    """The product of stacks of matrices, from the left."""
    return reduce(_matmul, factors)


def _matmul(x: Value, y: Value) -> Value:
    stack = tuple(range(x.ndim - 2))
    product: Value = ops.dot_general(x, y, batch=(stack, stack), contract=((x.ndim - 1,), (y.ndim - 2,)))
    return product


def transposed(x: Value) -> Value:
    flipped: Value = ops.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return flipped


def conj(x: Value) -> Value:
    made: Value = ops.conj(x) if is_complex(x.dtype) else x
    return made


def adjoint(x: Value) -> Value:
    return conj(transposed(x))


def real(x: Value) -> Value:
    made: Value = ops.real(x) if is_complex(x.dtype) else x
    return made


def astype(x: Value, dtype: DType) -> Value:
    made: Value = x if x.dtype == dtype else ops.convert(x, dtype=dtype)
    return made


def _where(x: Value, compare: Callable[[Value, Value], Any]) -> Value:
    """A mask of places by (row, column)."""
    rows, columns = (ops.iota(shape=x.shape, axis=x.ndim - k, dtype=I64) for k in (2, 1))
    mask: Value = compare(rows, columns)
    return mask


def only(x: Value, compare: Callable[[Value, Value], Any]) -> Value:
    """x at the places where the comparison of row and column holds, else zero."""
    kept: Value = ops.select(_where(x, compare), x, zeros_like(x))
    return kept


def diagonal(x: Value) -> Value:
    line: Value = ops.reduce_sum(only(x, ops.eq), axes=(x.ndim - 1,))
    return line


def trace(x: Value) -> Value:
    total: Value = ops.reduce_sum(only(x, ops.eq), axes=(x.ndim - 2, x.ndim - 1))
    return total


def as_columns(s: Value, like: Value) -> Value:
    """One number for each column of a matrix."""
    stack = tuple(range(like.ndim - 2))
    wide: Value = ops.broadcast(astype(s, like.dtype), shape=like.shape, axes=(*stack, like.ndim - 1))
    return wide


def as_rows(s: Value, like: Value) -> Value:
    stack = tuple(range(like.ndim - 2))
    wide: Value = ops.broadcast(astype(s, like.dtype), shape=like.shape, axes=(*stack, like.ndim - 2))
    return wide


def from_half(dx: Value, *, lower: bool) -> Value:
    """The Hermitian matrix that LAPACK sees: one half, and of the diagonal the real parts."""
    half = only(dx, ops.gt if lower else ops.lt)
    middle = only(dx, ops.eq)
    return half + adjoint(half) + astype(real(middle), dx.dtype)


# ------------------------------------------------------------------------------------------------ linear systems


@jvp.rule(ops.solve, ops.solve_again)
def solve_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (a, _), (da, db) = primals, tangents
    moved = db if da is None else -matmul(da, out) if db is None else db - matmul(da, out)
    result: Value = ops.solve_again(a, moved)
    return result


@transpose.rule(ops.solve_again)
def solve_transpose(ct: Value, a: Operand, b: Operand) -> tuple[Cotangent, ...]:
    assert not isinstance(a, LinearPlace), "a solution is not linear in the matrix"
    return None, ops.solve_again(transposed(a), ct)


@jvp.rule(ops.cholesky)
def cholesky_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (da,) = tangents
    assert da is not None
    inner = adjoint(ops.solve_again(out, adjoint(ops.solve_again(out, from_half(da, lower=True)))))
    return matmul(out, only(inner, ops.gt) + only(inner, ops.eq) * 0.5)


@jvp.rule(ops.det)
def det_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (a,), (da,) = primals, tangents
    moved: Value = ops.reduce_sum(ops.cofactors(a) * da, axes=(a.ndim - 2, a.ndim - 1))
    return moved


@jvp.rule(ops.cofactors)
def cofactors_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (a,), (da,) = primals, tangents
    assert da is not None
    moved = ops.solve_again(a, da)
    stack = tuple(range(a.ndim - 2))
    return out * ops.broadcast(trace(moved), shape=a.shape, axes=stack) - matmul(out, transposed(moved))


@jvp_of_many.rule(ops.slogdet)
def slogdet_jvp(node: Node, tangents: Tangents) -> Results:
    (a,), (da,) = node.inputs, tangents
    sign, size = ops.slogdet(a)
    assert da is not None
    moved = trace(ops.solve_again(a, da))
    if not is_complex(a.dtype):
        return (sign, size), (None, moved)
    turn = ops.imag(moved)
    return (sign, size), (sign * ops.complex(zeros_like(turn), turn), ops.real(moved))


# --------------------------------------------------------------------------------------------------- eigenvalues


def _one_over_differences(w: Value, like: Value) -> Value:
    """1 / (w[j] - w[i]) off the diagonal, there 0."""
    gaps = as_columns(w, like) - as_rows(w, like)
    one = ops.full(value=1.0, shape=gaps.shape, dtype=gaps.dtype)
    on_diagonal = _where(gaps, ops.eq)
    inverse: Value = ops.select(on_diagonal, zeros_like(gaps), one / ops.select(on_diagonal, one, gaps))
    return inverse


@jvp_of_many.rule(ops.eigh)
def eigh_jvp(node: Node, tangents: Tangents) -> Results:
    (a,), (da,) = node.inputs, tangents
    w, v = ops.eigh(a, **node.params)
    assert da is not None
    inner = matmul(adjoint(v), from_half(da, **node.params), v)
    return (w, v), (real(diagonal(inner)), matmul(v, _one_over_differences(w, inner) * inner))


@jvp.rule(ops.eigvalsh)
def eigvalsh_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, lower: bool) -> Tangent:
    (a,), (da,) = primals, tangents
    assert da is not None
    _, v = ops.eigh(a, lower=lower)
    return real(diagonal(matmul(adjoint(v), from_half(da, lower=lower), v)))


@jvp_of_many.rule(ops.eig)
def eig_jvp(node: Node, tangents: Tangents) -> Results:
    """Vectors have length 1, and their largest element is real."""
    (a,), (da,) = node.inputs, tangents
    w, v = ops.eig(a, **node.params)
    assert da is not None
    inner = ops.solve_again(v, matmul(astype(da, v.dtype), v))
    dv = matmul(v, _one_over_differences(w, inner) * inner)
    rows = v.ndim - 2
    along = astype(real(ops.reduce_sum(conj(v) * dv, axes=(rows,))), v.dtype)
    if is_complex(v.dtype):
        largest = ops.argmax(ops.abs(v), axis=rows)
        places = ops.broadcast(largest, shape=v.shape, axes=(*range(rows), rows + 1))
        at = ops.eq(ops.iota(shape=v.shape, axis=rows, dtype=I64), places)
        one = ops.full(value=1.0, shape=v.shape, dtype=v.dtype)
        ratio = ops.reduce_sum(ops.select(at, dv / ops.select(at, v, one), zeros_like(v)), axes=(rows,))
        along = ops.complex(ops.real(along), ops.imag(ratio))
    return (w, v), (diagonal(inner), dv - v * as_columns(along, v))


# ----------------------------------------------------------------------------------------------- singular values


@jvp_of_many.rule(ops.svd)
def svd_jvp(node: Node, tangents: Tangents) -> Results:
    (a,), (da,) = node.inputs, tangents
    rows, columns = a.shape[-2:]
    results = ops.svd(a, **node.params)
    s, k = results[1], min(rows, columns)
    u, vh = _columns(results[0], k), adjoint(_columns(adjoint(results[2]), k))
    assert da is not None
    inner = matmul(adjoint(u), da, adjoint(vh))
    left, right = inner * as_columns(s, inner), inner * as_rows(s, inner)
    apart = _one_over_differences(s * s, inner)
    turn = only(inner - adjoint(inner), ops.eq) * 0.5 / as_columns(s, inner) if is_complex(a.dtype) else None
    around = apart * (left + adjoint(left))
    du = matmul(u, around if turn is None else around + turn)
    dv = matmul(adjoint(vh), apart * (right + adjoint(right)))
    if rows > columns:
        du = du + _outside(u, matmul(da, adjoint(vh))) / as_columns(s, u)
    if columns > rows:
        dv = dv + _outside(adjoint(vh), matmul(adjoint(da), u)) / as_columns(s, dv)
    du, dv = _completed(du, u, results[0]), _completed(dv, adjoint(vh), adjoint(results[2]))
    return results, (du, real(diagonal(inner)), adjoint(dv))


def _completed(dq: Value, q: Value, whole: Value) -> Value:
    """The change of a whole basis whose first columns q change by dq: the others follow no further than they must."""
    k, n = q.shape[-1], whole.shape[-1]
    if k == n:
        return dq
    rest: Value = ops.slice(whole, start=(0,) * (whole.ndim - 1) + (k,), stop=whole.shape, step=(1,) * whole.ndim)
    moved: Value = ops.concat(dq, -matmul(q, matmul(adjoint(dq), rest)), axis=whole.ndim - 1)
    return moved


def _outside(q: Value, x: Value) -> Value:
    """The part of x's columns that is orthogonal to those of q."""
    return x - matmul(q, matmul(adjoint(q), x))


@jvp.rule(ops.svdvals)
def svdvals_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (a,), (da,) = primals, tangents
    assert da is not None
    u, _, vh = ops.svd(a, full=False)
    return real(diagonal(matmul(adjoint(u), da, adjoint(vh))))


@jvp_of_many.rule(ops.qr)
def qr_jvp(node: Node, tangents: Tangents) -> Results:
    (a,), (da,) = node.inputs, tangents
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    whole, r = ops.qr(a, **node.params)
    q, upper = _columns(whole, k), adjoint(_columns(adjoint(r), k))
    assert da is not None
    first, dfirst = _columns(upper, k), _columns(da, k)
    moved = transposed(ops.solve_again(transposed(first), transposed(dfirst)))
    inner = matmul(adjoint(q), moved)
    below = only(inner, ops.gt)
    turn = below - adjoint(below)
    if is_complex(a.dtype):
        turn = turn + only(inner - astype(ops.real(inner), inner.dtype), ops.eq)
    dq = matmul(q, turn - inner) + moved
    dr = matmul(adjoint(dq), a) + matmul(adjoint(q), da) if columns > rows else matmul(inner - turn, upper)
    if r.shape[-2] > k:
        zero = ops.full(value=0.0, shape=(), dtype=dr.dtype)
        none, high = (0,) * r.ndim, (*(0,) * (r.ndim - 2), r.shape[-2] - k, 0)
        dr = ops.pad(dr, zero, low=none, high=high, interior=none)
    return (whole, r), (_completed(dq, q, whole), dr)


def _columns(x: Value, k: int) -> Value:
    part: Value = ops.slice(x, start=(0,) * x.ndim, stop=(*x.shape[:-1], k), step=(1,) * x.ndim)
    return part


# ------------------------------------------------------------------------------------------- generalised inverses


def _pseudoinverse_moved(inverse: Value, a: Value, da: Value, b: Value) -> Value:
    """The change of `inverse @ b` with a, of which nothing has been left out."""
    x = matmul(inverse, b)
    rest = b - matmul(a, x)
    along = matmul(inverse, matmul(adjoint(inverse), matmul(adjoint(da), rest)))
    across = matmul(adjoint(da), matmul(adjoint(inverse), x))
    return along - matmul(inverse, matmul(da, x)) + across - matmul(inverse, matmul(a, across))


def _truncated_moved(inverse: Value, a: Value, da: Value, b: Value, rcond: float) -> Value:
    """The change of `inverse @ b` with a, whose singular values up to `rcond` times the largest are left out.

    With a = u1 s1 v1^H + e, where e = u2 s2 v2^H is left out, the parts of the change between the two spaces are
        y = v2 (...) u1^H,  y = e^H e y p^H p + (q^H da^H + e^H da p) p^H p,   p the inverse, q = 1 - a p or 1 - p a
        z = v1 (...) u2^H,  z = p p^H z e e^H + p p^H (da^H q + p da e^H)
    which for e = 0 are those of Golub and Pereyra. Both are written as equations of the smaller side of a: y = y1 p and
    z = c + p p^H z1 e^H.
    """
    is_wide = a.shape[-1] > a.shape[-2]
    e = _left_out(inverse, a, rcond)
    if is_wide:  # a^H is tall, and the change of its inverse is the adjoint of what is asked for
        inverse, a, da, e = map(adjoint, (inverse, a, da, e))
    p, ph, ah, eh, dah = inverse, adjoint(inverse), adjoint(a), adjoint(e), adjoint(da)
    gram, kept = matmul(p, ph), matmul(eh, e)
    moved = matmul(dah, ph)
    y1 = ops.stein(kept, gram, moved - matmul(p, matmul(a, moved)) + matmul(eh, matmul(da, gram)))
    z1 = ops.stein(gram, kept, matmul(gram, matmul(dah, e) + matmul(p, matmul(da, kept))))
    if is_wide:
        x, along = matmul(ph, b), matmul(gram, b)
        z = matmul(da, along) + matmul(e, matmul(dah, matmul(ph, along)))
        z = z - matmul(ph, matmul(ah, matmul(da, along))) + matmul(e, matmul(adjoint(z1), along))
        return matmul(ph, matmul(adjoint(y1), b)) + z - matmul(ph, matmul(dah, x))
    x, beside = matmul(p, b), matmul(eh, b)
    z = matmul(dah, b - matmul(a, x)) + matmul(p, matmul(da, beside)) + matmul(z1, beside)
    return matmul(y1, x) + matmul(gram, z) - matmul(p, matmul(da, x))


def _left_out(inverse: Value, a: Value, rcond: float) -> Value:
    """What a truncated inverse knows nothing of: by singular values, which is accurate, with the derivatives of a - a a^+ a."""
    u, s, vh = ops.svd(ops.stop_gradient(a), full=False)
    largest = ops.broadcast(ops.reduce_max(s, axes=(s.ndim - 1,)), shape=s.shape, axes=tuple(range(s.ndim - 1)))
    s = ops.select(ops.gt(s, largest * rcond), zeros_like(s), s)
    value = matmul(u * as_columns(s, u), vh)
    rest = a - matmul(a, matmul(inverse, a))
    exact: Value = value + (rest - ops.stop_gradient(rest))
    return exact


def _inverse_moved(inverse: Value, a: Value, da: Value, b: Value, rcond: float) -> Value:
    """Up to a cutoff of some roundings, what is left out is taken for roundings: the rank is constant."""
    size = max(a.shape[-2:])
    if rcond <= _ROUNDINGS * float(np.finfo(a.dtype.name).eps) * size or not min(a.shape[-2:]):
        return _pseudoinverse_moved(inverse, a, da, b)
    return _truncated_moved(inverse, a, da, b, rcond)


_ROUNDINGS = 16


@jvp.rule(ops.stein)
def stein_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (a, b, _), (da, db, moved) = primals, tangents
    if da is not None:
        change = matmul(da, out, b)
        moved = change if moved is None else moved + change
    if db is not None:
        change = matmul(a, out, db)
        moved = change if moved is None else moved + change
    result: Value = ops.stein(a, b, moved)
    return result


@transpose.rule(ops.stein)
def stein_transpose(ct: Value, a: Operand, b: Operand, c: Operand) -> tuple[Cotangent, ...]:
    assert not isinstance(a, LinearPlace) and not isinstance(b, LinearPlace), "linear in the last operand alone"
    return None, None, ops.stein(transposed(a), transposed(b), ct)


@jvp.rule(ops.pinv)
def pinv_jvp(out: Value, primals: Sequence[Value], tangents: Tangents, *, rcond: float) -> Tangent:
    (a,), (da,) = primals, tangents
    assert da is not None
    shape = (*a.shape[:-1], a.shape[-2])
    rows, columns = (ops.iota(shape=shape, axis=a.ndim - k, dtype=I64) for k in (2, 1))
    return _inverse_moved(out, a, da, ops.convert(ops.eq(rows, columns), dtype=a.dtype), rcond)


@jvp_of_many.rule(ops.lstsq)
def lstsq_jvp(node: Node, tangents: Tangents) -> Results:
    (a, b), (da, db) = node.inputs, tangents
    x, residuals, rank, s = ops.lstsq(a, b, **node.params)
    inverse = ops.pinv(a, **node.params)
    dx = None if db is None else matmul(inverse, db)
    ds: Tangent = None
    moved = db
    if da is not None:
        change = _inverse_moved(inverse, a, da, b, node.params["rcond"])
        dx = change if dx is None else dx + change
        u, _, vh = ops.svd(a, full=False)
        ds = real(diagonal(matmul(adjoint(u), da, adjoint(vh))))
        moved = -matmul(da, x) if db is None else db - matmul(da, x)
    dresiduals: Tangent = None
    if residuals.shape[-1]:
        assert moved is not None
        rest = b - matmul(a, x)
        dresiduals = real(ops.reduce_sum(conj(rest) * moved, axes=(b.ndim - 2,))) * 2.0
    return (x, residuals, rank, s), (dx, dresiduals, None, ds)
