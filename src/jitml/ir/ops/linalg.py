"""Linear algebra on the last two axes of stacks of matrices, as np.linalg does it: LAPACK's routines.

cholesky   (a) -> l                    a = l l^H, of the lower half of a
solve      (a, b) -> x                 a x = b; b is a matrix, the stacks are of one shape
solve_again, where `solve` or a factorization of a has gone well
slogdet    (a) -> sign, log |det a|
det        (a) -> its determinant
cofactors  (a) -> the slopes of the determinant by each element: det(a) inv(a)^T, and finite where there is no inverse
eigh       (a) {lower} -> w, v         of a Hermitian matrix, given by its lower or upper half
eigvalsh   (a) {lower} -> w
eig        (a) {real} -> w, v          `real`: all results are real, which the numbers decide
svd        (a) {full} -> u, s, v^H
svdvals    (a) -> s
qr         (a) {complete} -> q, r
pinv       (a) {rcond} -> a^+          of the singular values above `rcond` times the largest
lstsq      (a, b) {rcond} -> x, sums of squared residuals, rank, singular values
stein      (a, b, c) -> x              x = a x b + c; eigenvalues of a times those of b are below 1 in size
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from jitml.errors import DTypeError, ShapeError, UnsupportedError
from jitml.ir.op import Op
from jitml.ir.ops.complex import whole_dtype
from jitml.ir.types import F32, F64, I32, Aval, is_complex, part_dtype


def _require(name: str, a: Aval, *, square: bool) -> None:
    if part_dtype(a.dtype) not in (F32, F64):
        raise DTypeError(f"{name} is not defined for {a}")
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise ShapeError(f"{name}: {a} is no stack of {'square ' if square else ''}matrices")
    # How many matrices there are may be known only to the running program, by one size; it hands real ones over as they lie.
    if not a.is_static and (a.ndim == 2 or is_complex(a.dtype) or not a.with_shape(a.shape[1:]).is_static):
        raise UnsupportedError(f"{name} of {a}, whose size only the running program knows")


def _real(a: Aval, shape: tuple[int, ...]) -> Aval:
    return Aval(shape, part_dtype(a.dtype))


def _square_op(name: str, aval: Callable[..., Any], evaluate: Callable[..., Any], *, may_fail: bool = True) -> Op:
    def checked(a: Aval, **params: Any) -> Any:
        _require(name, a, square=True)
        return aval(a, **params)

    return Op(name, "linalg", checked, evaluate, has_effect=may_fail)


cholesky = _square_op("cholesky", lambda a: a, np.linalg.cholesky)
slogdet = _square_op(
    "slogdet",
    lambda a: (a.with_shape(a.shape[:-2]), _real(a, a.shape[:-2])),
    lambda a: tuple(np.linalg.slogdet(a)),
    may_fail=False,
)


def _cofactors(a: Any) -> Any:
    """Where there is no inverse, or no float for the determinant, by singular values: of a diagonal, products of the others."""
    size = np.linalg.det(a)
    by_values = ((size == 0) | ~np.isfinite(size)) & np.isfinite(a).all(axis=(-2, -1))
    regular = np.where(by_values[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)
    result = np.asarray(size)[..., None, None] * np.swapaxes(np.linalg.inv(regular), -1, -2)
    if by_values.any():
        u, s, vh = np.linalg.svd(a[by_values])
        others = np.prod(np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]), axis=-1)
        phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
        result[by_values] = phase * ((np.conj(u) * others[..., None, :].astype(a.dtype)) @ np.conj(vh))
    return result


det = _square_op("det", lambda a: a.with_shape(a.shape[:-2]), np.linalg.det, may_fail=False)
cofactors = _square_op("cofactors", lambda a: a, _cofactors, may_fail=False)


def _half(lower: bool) -> Literal["L", "U"]:
    return "L" if lower else "U"


eigh = _square_op(
    "eigh", lambda a, *, lower: (_real(a, a.shape[:-1]), a), lambda a, *, lower: tuple(np.linalg.eigh(a, _half(lower)))
)
eigvalsh = _square_op(
    "eigvalsh", lambda a, *, lower: _real(a, a.shape[:-1]), lambda a, *, lower: np.linalg.eigvalsh(a, _half(lower))
)


def _eig_aval(a: Aval, *, real: bool) -> tuple[Aval, Aval]:
    dtype = part_dtype(a.dtype) if real else a.dtype if is_complex(a.dtype) else whole_dtype(a.dtype)
    return Aval(a.shape[:-1], dtype), Aval(a.shape, dtype)


def _evaluate_eig(a: Any, *, real: bool) -> tuple[Any, Any]:
    w, v = np.linalg.eig(a)
    if np.isrealobj(w) != real:
        raise ValueError(f"the eigenvalues are {'not all' if real else 'all'} real")
    return w, v


eig = _square_op("eig", _eig_aval, _evaluate_eig)


def _solve_aval(a: Aval, b: Aval) -> Aval:
    _require("solve", a, square=True)
    if b.dtype != a.dtype or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"solve: {b} is no right side for {a}")
    return b


solve = Op("solve", "linalg", _solve_aval, np.linalg.solve, has_effect=True)
# With a matrix that has been factorized before, as in derivatives: nothing new is raised, so that it need not run for nobody.
solve_again = Op("solve_again", "linalg", _solve_aval, np.linalg.solve)


def _svd_aval(a: Aval, *, full: bool) -> tuple[Aval, Aval, Aval]:
    _require("svd", a, square=False)
    *stack, m, n = a.shape
    k = min(m, n)
    return a.with_shape((*stack, m, m if full else k)), _real(a, (*stack, k)), a.with_shape((*stack, n if full else k, n))


def _svdvals_aval(a: Aval) -> Aval:
    _require("svdvals", a, square=False)
    return _real(a, (*a.shape[:-2], min(a.shape[-2:])))


svd = Op("svd", "linalg", _svd_aval, lambda a, *, full: tuple(np.linalg.svd(a, full_matrices=full)), has_effect=True)
svdvals = Op("svdvals", "linalg", _svdvals_aval, lambda a: np.linalg.svd(a, compute_uv=False), has_effect=True)


def _qr_aval(a: Aval, *, complete: bool) -> tuple[Aval, Aval]:
    _require("qr", a, square=False)
    *stack, m, n = a.shape
    k = m if complete else min(m, n)
    return a.with_shape((*stack, m, k)), a.with_shape((*stack, k, n))


qr = Op("qr", "linalg", _qr_aval, lambda a, *, complete: tuple(np.linalg.qr(a, "complete" if complete else "reduced")))


def _pinv_aval(a: Aval, *, rcond: float) -> Aval:
    _require("pinv", a, square=False)
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))


pinv = Op("pinv", "linalg", _pinv_aval, lambda a, *, rcond: np.linalg.pinv(a, rcond), has_effect=True)


def _lstsq_aval(a: Aval, b: Aval, *, rcond: float) -> tuple[Aval, Aval, Aval, Aval]:
    _require("lstsq", a, square=False)
    if b.dtype != a.dtype or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"lstsq: {b} is no right side for {a}")
    (*stack, m, n), k = a.shape, b.shape[-1]
    found, residuals = b.with_shape((*stack, n, k)), _real(a, (*stack, k if m > n else 0))
    return found, residuals, Aval(tuple(stack), I32), _real(a, (*stack, min(m, n)))


def _evaluate_lstsq(a: Any, b: Any, *, rcond: float) -> tuple[Any, ...]:
    """NumPy takes one matrix only."""
    if np.ndim(a) > 2:
        parts = zip(*(_evaluate_lstsq(x, y, rcond=rcond) for x, y in zip(a, b, strict=True)))
        return tuple(map(np.stack, parts))
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    if a.shape[0] > a.shape[1] and rank < a.shape[1]:
        raise ValueError("the columns are dependent, so that there are no residuals")
    return x, residuals, np.int32(rank), s


lstsq = Op("lstsq", "linalg", _lstsq_aval, _evaluate_lstsq, has_effect=True)


def _stein_aval(a: Aval, b: Aval, c: Aval) -> Aval:
    _require("stein", a, square=True)
    _require("stein", b, square=True)
    if not a.dtype == b.dtype == c.dtype or (*a.shape[:-1], b.shape[-1]) != c.shape or b.shape[:-2] != a.shape[:-2]:
        raise ShapeError(f"stein: {c} does not fit {a} and {b}")
    return c


def _evaluate_stein(a: Any, b: Any, c: Any) -> Any:
    """The series c + a c b + a² c b² + ..., twice as many terms at each step (Smith 1968)."""
    x = np.array(c)
    with np.errstate(all="ignore"):
        for _ in range(_DOUBLINGS):
            more = a @ x @ b
            if not np.any(abs(more) > np.finfo(x.dtype).eps / 8 * abs(x).max(axis=(-2, -1), keepdims=True, initial=0)):
                break
            x, a, b = x + more, a @ a, b @ b
    return x


# So many that eigenvalues which round to less than 1 have vanished.
_DOUBLINGS = 60

# Linear in c. For derivatives of what is made of some of a matrix's singular vectors: its own is one more equation of the kind,
# and no difference of two singular values stands in a denominator where both belong to the same part.
stein = Op("stein", "linalg", _stein_aval, _evaluate_stein)
