"""np.linalg: systems, inverses, determinants, eigenvalues, singular values, and what is composed of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import F64, I64, DType, is_complex, is_inexact
from jitml.numpy.arrays.reshaping import moveaxis, reshaped, swapaxes
from jitml.numpy.linear_algebra.products import matmul
from jitml.numpy.reductions.reductions import extreme_size, reduce_values
from jitml.numpy.support.arguments import (
    as_array,
    as_int,
    astype,
    axes_of,
    broadcast_value,
    common_shape,
    full,
    not_compiled,
    reshape_value,
    result_of,
    value_of,
)
from jitml.numpy.support.memory_order import beside_each_other
from jitml.numpy.support.versions import conditions_are_complex
from jitml.numpy.ufuncs.loops import conjugate
from jitml.trace.record.concrete_evaluation import examples_of
from jitml.trace.symbolic.broadcasting import never_equal, require_sizes
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, is_traced, read
from jitml.trace.values.registry import call, implements

LinAlgError = np.linalg.LinAlgError


def common_float(*xs: Value) -> DType:
    """The dtype that LAPACK computes in: single precision only if all operands have it.

    Raises:
        TypeError: float16, in NumPy's words.
    """
    if any(x.dtype == np.float16 for x in xs):
        raise TypeError("array type float16 is unsupported in linalg")
    return np.result_type(*(x.dtype if is_inexact(x.dtype) else F64 for x in xs))


_NOT_SQUARE = "Last 2 dimensions of the array must be square"


def matrix_of(a: Any, *, square: bool = False) -> Value:
    """A stack of matrices in a dtype of LAPACK's.

    Raises:
        LinAlgError: fewer than two axes, or matrices that are not square.
    """
    x = value_of(a)
    if x.ndim < 2:
        raise LinAlgError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and x.shape[-1] != x.shape[-2]:
        if never_equal(x.shape[-1], x.shape[-2]):
            raise LinAlgError(_NOT_SQUARE)
        n = x.shape[-2] if type(x.shape[-2]) is int else x.shape[-1]
        x = require_sizes(x, (*x.shape[:-2], n, n), _NOT_SQUARE, error=LinAlgError.__name__)
    return astype(x, common_float(x))


@cache
def _result_type(name: str) -> type[Any]:
    """The named tuple that a function of np.linalg returns."""
    return type(getattr(np.linalg, name)(np.eye(1)))


def _epsilon(dtype: DType) -> float:
    return float(np.finfo(dtype.name).eps)


def _adjoint(x: Value) -> Value:
    flipped: Value = ops.transpose(conjugate(x), perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return flipped


def identity_like(a: Value) -> Value:
    rows, columns = (ops.iota(shape=a.shape, axis=a.ndim - k, dtype=I64) for k in (2, 1))
    return astype(ops.eq(rows, columns), a.dtype)


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> TracedArray:
    x = matrix_of(a, square=True)
    return fresh(_adjoint(ops.cholesky(_adjoint(x)))) if upper else fresh(ops.cholesky(x))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> TracedArray:
    x, y = matrix_of(a, square=True), value_of(b)
    dtype = common_float(x, y)
    is_vector = y.ndim == 1
    y = reshape_value(astype(y, dtype), (*y.shape, 1)) if is_vector else astype(y, dtype)
    if y.ndim < 2 or never_equal(y.shape[-2], x.shape[-1]):
        raise ValueError(f"solve: a right side of the shape {value_of(b).shape} does not fit {x.shape}")
    y = require_sizes(y, (*y.shape[:-2], x.shape[-1], y.shape[-1]))
    stack = common_shape("solve", x.shape[:-2], y.shape[:-2])
    x, y = (broadcast_value(v, (*stack, *v.shape[-2:])) for v in (astype(x, dtype), y))
    result = ops.solve(x, y)
    return fresh(reshape_value(result, result.shape[:-1]) if is_vector else result)


@implements(np.linalg.inv)
def inv(a: Any) -> TracedArray:
    """LAPACK solves for the identity, and so does NumPy."""
    x = matrix_of(a, square=True)
    return fresh(ops.solve(x, identity_like(x)))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    sign, size = ops.slogdet(matrix_of(a, square=True))
    return _result_type("slogdet")(result_of(sign), result_of(size))


@implements(np.linalg.det)
def det(a: Any) -> Any:
    return result_of(ops.det(matrix_of(a, square=True)))


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    w, v = ops.eigh(matrix_of(a, square=True), lower=_is_lower(UPLO))
    return _result_type("eigh")(fresh(w), fresh(v))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> TracedArray:
    return fresh(ops.eigvalsh(matrix_of(a, square=True), lower=_is_lower(UPLO)))


def _is_lower(which: str) -> bool:
    if which.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return which.upper() == "L"


def _eig(a: Any) -> tuple[Value, Value]:
    """Of a real matrix the numbers decide whether the results are real: those of today, until others come."""
    x = matrix_of(a, square=True)
    if is_complex(x.dtype):
        return ops.eig(x, real=False)
    (example,) = examples_of([x])
    if not np.isfinite(example).all():
        raise LinAlgError("Array must not contain infs or NaNs")
    return ops.eig(x, real=bool(np.isrealobj(np.linalg.eigvals(example))))


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    return _result_type("eig")(*map(_among_complex, _eig(a)))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> TracedArray:
    return _among_complex(_eig(a)[0])


def _among_complex(x: Value) -> TracedArray:
    """As NumPy has it, which finds complex numbers and returns their real parts where all are real."""
    return fresh(x) if is_complex(x.dtype) else beside_each_other([x, full(x.shape, 0.0, x.dtype)])[0]


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        return _hermitian_svd(a) if compute_uv else _hermitian_svdvals(a)
    x = matrix_of(a)
    if not compute_uv:
        return fresh(ops.svdvals(x))
    return _result_type("svd")(*map(fresh, ops.svd(x, full=bool(full_matrices))))


def _hermitian_svd(a: Any) -> Any:
    """From the eigenvalues by size; their signs go to the right vectors."""
    w, v = eigh(a)
    order = call(np.flip, call(np.argsort, call(np.abs, w)), -1)
    w = call(np.take_along_axis, w, order, -1)
    v = call(np.take_along_axis, v, order[..., None, :], -1)
    turned = fresh(conjugate(read(v * call(np.sign, w)[..., None, :])))
    return _result_type("svd")(v, call(np.abs, w), swapaxes(turned, -1, -2))


def _hermitian_svdvals(a: Any) -> Any:
    return call(np.flip, call(np.sort, call(np.abs, eigvalsh(a))), -1)


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> TracedArray:
    return fresh(ops.svdvals(matrix_of(x)))


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        not_compiled("linalg.qr", f"with mode={mode!r}", "The modes reduced, complete and r are.")
    q, r = ops.qr(matrix_of(a), complete=mode == "complete")
    return fresh(r) if mode == "r" else _result_type("qr")(fresh(q), fresh(r))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    x, y = value_of(a), value_of(b)
    is_vector = y.ndim == 1
    y = reshape_value(y, (*y.shape, 1)) if is_vector else y
    for v in (x, y):
        if v.ndim != 2:
            raise LinAlgError(f"{v.ndim}-dimensional array given. Array must be two-dimensional")
    if never_equal(x.shape[0], y.shape[0]):
        raise LinAlgError("Incompatible dimensions")
    y = require_sizes(y, (x.shape[0], y.shape[1]), "Incompatible dimensions", error=LinAlgError.__name__)
    dtype = common_float(x, y)
    cutoff = _epsilon(dtype) * max(x.shape) if rcond is None else float(rcond)
    found, residuals, rank, s = ops.lstsq(astype(x, dtype), astype(y, dtype), rcond=cutoff)
    found = reshape_value(found, found.shape[:1]) if is_vector else found
    return fresh(found), fresh(residuals), result_of(rank), fresh(s)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> TracedArray:
    """By the singular values above a cutoff."""
    x = matrix_of(a)
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    if rcond is None:
        rcond = _epsilon(x.dtype) * max(x.shape[-2:])
    if isinstance(rcond, TracedNumber) and rcond.slot is not None and not hermitian:
        rcond = rcond.known()  # cutoffs hardly change between calls, and vectors have no derivative where values are equal
    if isinstance(rcond, (int, float)) and not is_traced(rcond) and not hermitian:
        return fresh(ops.pinv(x, rcond=float(rcond)))
    u, s, vt = map(read, svd(fresh(conjugate(x)), full_matrices=False, hermitian=hermitian))
    largest = ops.reduce_max(s, axes=(s.ndim - 1,))
    cutoff = broadcast_value(value_of(rcond, s.dtype), largest.shape) * largest
    kept = ops.gt(s, ops.broadcast(cutoff, shape=s.shape, axes=tuple(range(s.ndim - 1))))
    one = full(s.shape, 1.0, s.dtype)
    inverse = ops.select(kept, ops.div(one, ops.select(kept, s, one)), full(s.shape, 0.0, s.dtype))
    columns = ops.broadcast(astype(inverse, x.dtype), shape=(*s.shape, x.shape[-2]), axes=tuple(range(s.ndim)))
    return matmul(swapaxes(fresh(vt), -1, -2), fresh(columns * read(swapaxes(fresh(u), -1, -2))))


def _singular_values(x: Value, axes: Sequence[int]) -> Value:
    """Of the matrices that two axes are, for each place of the others."""
    return ops.svdvals(read(moveaxis(fresh(x), tuple(axes), (-2, -1))))


def spectral_norm(x: Value, ord: Any, axes: Sequence[int]) -> Value:
    """The largest singular value, the smallest (-2), or their sum ("nuc")."""
    x = astype(x, common_float(x))
    s = _singular_values(x, axes)
    axes = (s.ndim - 1,)
    return reduce_values(ops.reduce_sum, s, axes) if ord == "nuc" else extreme_size(s, axes, greatest=ord > 0)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The ratio of singular values, or the product of the norms of a matrix and its inverse."""
    value = value_of(x)
    if prod(value.shape) == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = ops.svdvals(matrix_of(x))
        last = s.ndim - 1
        first, final = (reduce_values(op, s, (last,)) for op in (ops.reduce_max, ops.reduce_min))
        ratio = ops.div(final, first) if p == -2 else ops.div(first, final)
    else:
        a = matrix_of(x, square=True)
        norm = np.linalg.norm
        ratio = value_of(call(norm, fresh(a), ord=p, axis=(-2, -1))) * value_of(call(norm, inv(fresh(a)), ord=p, axis=(-2, -1)))
    # nan, unless it comes from the matrix, means an infinite condition.
    axes = (value.ndim - 2, value.ndim - 1)
    known = ops.bit_not(reduce_values(ops.reduce_any, ops.isnan(value), axes)) if is_inexact(value.dtype) else None
    lost = ops.isnan(ratio) if known is None else ops.bit_and(ops.isnan(ratio), known)
    ratio = ops.select(lost, full(ratio.shape, float("inf"), ratio.dtype), ratio)
    is_complex_too = conditions_are_complex() and p not in (None, 2, -2) and is_complex(value.dtype)
    return result_of(astype(ratio, value.dtype) if is_complex_too else ratio)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above a tolerance."""
    x = value_of(A)
    if x.ndim < 2:
        nonzero = reduce_values(ops.reduce_any, ops.ne(x, 0), tuple(range(x.ndim)))
        return call(int, result_of(nonzero))
    x = matrix_of(A)
    s = ops.abs(ops.eigvalsh(x, lower=True)) if hermitian else ops.svdvals(x)
    last = s.ndim - 1
    if tol is None:
        relative = max(x.shape[-2:]) * _epsilon(s.dtype) if rtol is None else rtol
        largest = reduce_values(ops.reduce_max, s, (last,))
        least = broadcast_value(value_of(relative, s.dtype), largest.shape) * largest
    else:
        least = broadcast_value(value_of(tol, s.dtype), s.shape[:-1])
    above = ops.gt(s, ops.broadcast(least, shape=s.shape, axes=tuple(range(last))))
    return result_of(reduce_values(ops.reduce_sum, astype(above, I64), (last,)))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> TracedArray:
    x, y = as_array(a), as_array(b)
    if axes is not None:
        kept = [k for k in range(x.ndim) if k not in axes_of(axes, x.ndim)]
        x = fresh(ops.transpose(read(x), perm=(*kept, *(as_int(k) % x.ndim for k in axes))))
    shape = x.sizes[y.ndim :]
    rows = prod(x.sizes[: y.ndim])
    if prod(shape) ** 2 != prod(x.sizes):
        raise LinAlgError(
            "Input arrays must satisfy the requirement             prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return reshaped(solve(reshaped(x, (rows, prod(shape))), reshaped(y, (rows,))), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: Any = 2) -> TracedArray:
    x, count = as_array(a), as_int(ind)
    if count <= 0:
        raise ValueError("Invalid ind argument.")
    inverse = x.sizes[count:] + x.sizes[:count]
    return reshaped(inv(reshaped(x, (prod(x.sizes[:count]), prod(x.sizes[count:])))), inverse)
