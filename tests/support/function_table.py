"""Every function that has a derivative, at points where it is smooth: what `test_every_function.py` goes through.

A row is a function and its arguments; `f` or `c` say whether it is tried with real or with complex numbers, `fc` both. A name is
that of docs/supported.md; what follows a colon tells rows of one function apart.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

rng = np.random.default_rng(0)
# Vectors of any numbers, of positive ones, and of numbers below one; matrices; one that is well away from singular.
v = np.array([0.31, -1.27, 2.07, 0.83, -0.44])
p = np.array([0.37, 1.21, 2.11, 0.79, 0.52])
u = np.array([0.31, -0.27, 0.65, 0.83, -0.44])
m = rng.permutation(12).reshape(3, 4) * 0.37 - 2.1
w = rng.normal(size=(3, 4))
s = rng.normal(size=(3, 3)) + 3 * np.eye(3)
i3 = np.array([2, 0, 2])
apart = np.eye(3) * np.arange(3.0) + 0.3  # keeps eigenvalues apart

ROWS: dict[str, list[tuple[str, Callable[..., Any], tuple[Any, ...]]]] = {}


def words(text: str) -> list[str]:
    return text.split()


def is_here(name: str) -> bool:
    """Whether the installed NumPy has a function; other names are of no function of its."""
    found: Any = np
    for part in name.partition(":")[0].removeprefix("np.").split("."):
        found = getattr(found, part, None)
    return found is not None or not name.startswith("np.")


def row(names: str, kinds: str, function: Callable[..., Any], *args: Any) -> None:
    for name in filter(is_here, names.split()):
        ROWS.setdefault(name, []).append((kinds, function, args))


def herm(a: Any) -> Any:
    return a + np.conj(a.T)


def written(change: Callable[..., Any]) -> Callable[..., Any]:
    """A function that changes an array in place."""

    def program(x: Any, *rest: Any) -> Any:
        y = x * 1.0
        change(y, *rest)
        return y * y

    return program


# unary ufuncs
for n in words("exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh square negative positive conjugate absolute sign"):
    row("np." + n, "fc", getattr(np, n), v)
for n in words("fabs deg2rad rad2deg degrees radians cbrt floor ceil rint trunc"):
    row("np." + n, "f", getattr(np, n), v)
for n in words("sqrt log log2 log10 log1p reciprocal"):
    row("np." + n, "fc", getattr(np, n), p)
for n in words("arcsin arccos arctanh"):
    row("np." + n, "fc", getattr(np, n), u)
row("np.arccosh", "fc", np.arccosh, p + 1)
for n in words("add subtract multiply divide power"):
    row("np." + n, "fc", getattr(np, n), p, v)
row("np.power", "fc", lambda x: np.power(x, 3) + np.power(x, -2) + x**2.5 + x**0.5, p)
row("np.power", "fc", lambda x: 2.0**x + np.power(3, x), v)
row("np.float_power", "fc", np.float_power, p, v)
for n in words("arctan2 copysign fmax fmin fmod hypot logaddexp logaddexp2 maximum minimum remainder floor_divide heaviside"):
    row("np." + n, "f", getattr(np, n), p, v)
for n in words("fmax fmin maximum minimum"):
    row("np." + n, "fc", getattr(np, n), p, v)
row("np.divmod", "f", lambda x, y: np.divmod(x, y)[0] + np.divmod(x, y)[1] * x, p, v)
row("np.modf", "f", lambda x: np.modf(x)[0] * x + np.modf(x)[1] * x, v)
row("np.frexp", "f", lambda x: np.frexp(x)[0] * x, p)
row("np.ldexp", "f", lambda x: np.ldexp(x, 3) * x, p)
row("np.ldexp", "f", lambda x: np.ldexp(x, np.arange(5)) * x, p)
row("np.nextafter", "f", lambda x: np.nextafter(x, 3.0) * x, p)
row("np.spacing", "f", lambda x: np.spacing(x) + x * x, p)
row("np.i0", "f", np.i0, v)
row("np.sinc", "f", np.sinc, v)
# ufunc methods
row("np.add.accumulate", "fc", lambda x: np.add.accumulate(x, axis=1) ** 2, m)
row("np.add.reduce", "fc", lambda x: np.add.reduce(x, axis=1) ** 2, m)
row("np.subtract.reduce", "fc", lambda x: np.subtract.reduce(x, axis=1) ** 2, m)
row("np.divide.reduce", "fc", lambda x: np.divide.reduce(x, axis=1) ** 2, m)
row("np.subtract.accumulate", "fc", lambda x: np.subtract.accumulate(x, axis=1) ** 2, m)
row("np.logaddexp.reduce", "f", lambda x: np.logaddexp.reduce(x, axis=1) ** 2, m)
row("np.hypot.reduce", "f", lambda x: np.hypot.reduce(x, axis=1) ** 2, m)
row("np.multiply.accumulate", "fc", lambda x: np.multiply.accumulate(x, axis=1) ** 2, m)
row("np.multiply.reduce", "fc", lambda x: np.multiply.reduce(x, axis=1) ** 2, m)
row("np.maximum.accumulate", "f", lambda x: np.maximum.accumulate(x, axis=1) ** 2, m)
row("np.maximum.reduce", "f", lambda x: np.maximum.reduce(x, axis=1) ** 2, m)
row("np.minimum.accumulate", "f", lambda x: np.minimum.accumulate(x, axis=1) ** 2, m)
row("np.minimum.reduce", "f", lambda x: np.minimum.reduce(x, axis=1) ** 2, m)
row("np.add.reduceat", "fc", lambda x: np.add.reduceat(x, [0, 2, 3]) ** 2, v)
for n in words("add subtract multiply maximum minimum divide"):
    row(
        f"np.{n}.at",
        "fc" if n in ("add", "subtract", "multiply", "divide") else "f",
        written(lambda y, q, n=n: getattr(np, n).at(y, np.array([0, 2, 2]), q)),
        v,
        p[:3],
    )
for n in words("add subtract multiply divide power arctan2 maximum hypot logaddexp copysign"):
    row(f"np.{n}.outer", "fc" if n in words("add subtract multiply divide power") else "f", getattr(np, n).outer, p, v)
# complexes
row("ndarray.imag", "fc", lambda x: x.imag**2 * x, v)
row("ndarray.real", "fc", lambda x: x.real**2 * x, v)
row("np.imag", "fc", lambda x: np.imag(x) ** 2 * x, v)
row("np.real", "fc", lambda x: np.real(x) ** 2 * x, v)
row("np.angle", "c", np.angle, v)
row("np.sort_complex", "c", lambda x: np.sort_complex(x) ** 2, v)
row("np.nan_to_num", "fc", lambda x: np.nan_to_num(x) ** 2, v)
# reductions
row("np.sum", "fc", lambda x: np.sum(x, axis=0) ** 2 + np.sum(x), m)
row("np.prod", "fc", lambda x: np.prod(x, axis=0) ** 2, m)
row("np.cumprod", "fc", lambda x: np.cumprod(x, axis=0) ** 2, m)
row("np.cumsum", "fc", lambda x: np.cumsum(x, axis=0) ** 2, m)
row("np.cumulative_sum", "fc", lambda x: np.cumulative_sum(x, axis=0, include_initial=True) ** 2, m)
row("np.cumulative_prod", "fc", lambda x: np.cumulative_prod(x, axis=0) ** 2, m)
row("np.nancumprod", "fc", lambda x: np.nancumprod(x, axis=0) ** 2, m)
row("np.nancumsum", "fc", lambda x: np.nancumsum(x, axis=0) ** 2, m)
row("np.nansum", "fc", lambda x: np.nansum(x, axis=0) ** 2, m)
row("np.nanprod", "fc", lambda x: np.nanprod(x, axis=0) ** 2, m)
for n in words("max min amax amin nanmax nanmin ptp"):
    row("np." + n, "fc", lambda x, n=n: getattr(np, n)(x, axis=1) ** 2, m)
row("np.average", "fc", lambda x, y: np.average(x, axis=1, weights=np.abs(y)) ** 2, m, w)
row("np.corrcoef", "fc", np.corrcoef, m)
row("np.cov", "fc", lambda x: np.cov(x) + np.cov(x, rowvar=False)[:3, :3] + np.cov(x, aweights=[1.0, 2, 3, 4]), m)
for n in words("mean nanmean nanstd nanvar std var"):
    row("np." + n, "fc", lambda x, n=n: getattr(np, n)(x, axis=1) ** 2, m)
row("np.std", "fc", lambda x: np.std(x, ddof=1) + np.var(x, axis=0, ddof=2, keepdims=True), m)
row("np.median", "f", lambda x: np.median(x, axis=1) ** 2 + np.median(x), m)
row("np.nanmedian", "f", lambda x: np.nanmedian(x, axis=1) ** 2 + np.nanmedian(x), m)
row("np.percentile", "f", lambda x: np.percentile(x, [30, 65], axis=1) ** 2 + np.percentile(x, 12.0), m)
row("np.quantile", "f", lambda x, q: np.quantile(x, q, axis=1) ** 2, m, np.array([0.31, 0.62]))
row("np.nanpercentile", "f", lambda x: np.nanpercentile(x, [30, 65], axis=1) ** 2, m)
row("np.nanquantile", "f", lambda x: np.nanquantile(x, [0.30, 0.65], axis=1) ** 2, m)
for meth in words(
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear median_unbiased "
    "normal_unbiased lower higher midpoint nearest"
):
    row("np.quantile:" + meth, "f", lambda x, meth=meth: np.quantile(x, 0.37, axis=1, method=meth) ** 2, m)
# products
row("np.cross", "fc", lambda x, y: np.cross(x[:, :3], y[:, :3]), m, w)
row("np.linalg.cross", "fc", lambda x, y: np.linalg.cross(x[:, :3], y[:, :3]), m, w)
row("np.diag", "fc", lambda x: np.diag(np.diag(x) ** 2, 1), s)
row("np.diagflat", "fc", lambda x: np.diagflat(x**2), s)
row("np.diagonal", "fc", lambda x: np.diagonal(x, 1) ** 2, s)
row("np.linalg.diagonal", "fc", lambda x: np.linalg.diagonal(x) ** 2, s)
for n, l in {
    "np.dot": np.dot,
    "np.inner": lambda a, b: np.inner(a, b.T),
    "np.matmul": np.matmul,
    "np.linalg.matmul": np.linalg.matmul,
    "np.tensordot": lambda a, b: np.tensordot(a, b, 1),
    "np.linalg.tensordot": lambda a, b: np.linalg.tensordot(a, b, axes=1),
}.items():
    row(n, "fc", lambda x, y, l=l: l(x, y.T), m, w)
row("np.outer", "fc", np.outer, v, p)
row("np.linalg.outer", "fc", np.linalg.outer, v, p)
row("np.kron", "fc", np.kron, m[:2, :2], w[:2, :2])
row("np.vdot", "fc", np.vdot, m, w)
row("np.trace", "fc", lambda x: np.trace(x) ** 2, s)
row("np.linalg.trace", "fc", lambda x: np.linalg.trace(x) ** 2, s)
row("np.vecdot", "fc", np.vecdot, m, w)
row("np.linalg.vecdot", "fc", np.linalg.vecdot, m, w)
row("np.matvec", "fc", lambda x, y: np.matvec(x, y) ** 2, m, w[0])
row("np.vecmat", "fc", lambda x, y: np.vecmat(x, y) ** 2, w[0, :3], m)
row("np.einsum", "fc", lambda x, y: np.einsum("ij,kj->ik", x, y) + np.einsum("ii", x[:3, :3]) + np.einsum("ij,ij->i", x, y), m, w)
row("np.einsum", "fc", lambda x, y: np.einsum(x, [0, 1], y, [2, 1], [2, 0]), m, w)
row("np.linalg.multi_dot", "fc", lambda x, y: np.linalg.multi_dot([x, y.T, x]), m, w)
row("np.linalg.matrix_power", "fc", lambda x: np.linalg.matrix_power(x, 3) + np.linalg.matrix_power(x, -2), s)
for o in (None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
    row(f"np.linalg.norm:{o}", "fc", lambda x, o=o: np.linalg.norm(x, o), s)
    row(
        f"np.linalg.norm:{o}",
        "fc",
        lambda x, o=o: np.linalg.norm(np.stack([x, x * 2 + 1]), "fro" if o is None else o, axis=(1, 2)),
        s,
    )
    row(f"np.linalg.matrix_norm:{o}", "fc", lambda x, o=o: np.linalg.matrix_norm(x, ord="fro" if o is None else o), s)
    row(f"np.linalg.cond:{o}", "fc", lambda x, o=o: np.linalg.cond(x, o), s)
for o in (None, 2, 1, 0, -1, -2, 3, 2.5, np.inf, -np.inf):
    row(f"np.linalg.norm:vector-{o}", "fc", lambda x, o=o: np.linalg.norm(x, o, axis=1), m)
    row(f"np.linalg.vector_norm:{o}", "fc", lambda x, o=o: np.linalg.vector_norm(x, axis=1, ord=2 if o is None else o), m)
row("np.linalg.cholesky", "fc", lambda x: np.linalg.cholesky(herm(x) + 9 * np.eye(3)), s)
row("np.linalg.cholesky", "fc", lambda x: np.linalg.cholesky(herm(x) + 9 * np.eye(3), upper=True), s)
row("np.linalg.det", "fc", np.linalg.det, s)
row("np.linalg.eig", "fc", lambda x: np.linalg.eig(x)[0], herm(s) * np.arange(1, 4))
row("np.linalg.eig", "fc", lambda x: np.linalg.eig(x)[1], herm(s) * np.arange(1, 4))
row("np.linalg.eigvals", "fc", np.linalg.eigvals, s)
row("np.linalg.eigh", "fc", lambda x: np.linalg.eigh(herm(x))[0], s)
row("np.linalg.eigh", "fc", lambda x: np.abs(np.linalg.eigh(herm(x) * apart)[1]) ** 2, s)
row("np.linalg.eigvalsh", "fc", lambda x: np.linalg.eigvalsh(herm(x)), s)
row("np.linalg.inv", "fc", np.linalg.inv, s)
row("np.linalg.lstsq", "fc", lambda a, b: np.linalg.lstsq(a, b)[0], m.T, w.T)
row("np.linalg.lstsq", "fc", lambda a, b: np.linalg.lstsq(a, b)[1], m.T, w.T)
row("np.linalg.lstsq", "fc", lambda a, b: np.linalg.lstsq(a, b)[3], m.T, w.T)
row("np.linalg.lstsq", "fc", lambda a, b: np.linalg.lstsq(a, b, rcond=1e-8)[0], m, w[:, 0])
row("np.linalg.pinv", "fc", lambda a: np.linalg.pinv(a) + np.linalg.pinv(a.T).T + np.linalg.pinv(a, rcond=1e-9), m)
row("np.linalg.pinv", "fc", lambda a: np.linalg.pinv(herm(a), hermitian=True), s)
row("np.linalg.qr", "fc", lambda a: np.linalg.qr(a)[0], s)
row("np.linalg.qr", "fc", lambda a: np.linalg.qr(a)[1], s)
row("np.linalg.qr", "fc", lambda a: np.linalg.qr(a.T, mode="r"), m)
row("np.linalg.qr", "fc", lambda a: np.linalg.qr(a.T, mode="complete")[1], m)
row("np.linalg.qr", "fc", lambda a: np.abs(np.linalg.qr(a.T, mode="complete")[0]) ** 2, m)
row("np.linalg.qr", "fc", lambda a: np.linalg.qr(a, mode="complete")[0], m)
row("np.linalg.slogdet", "fc", lambda x: np.linalg.slogdet(x)[1] + np.linalg.slogdet(x)[0], s)
row("np.linalg.solve", "fc", np.linalg.solve, s, m)
row("np.linalg.svd", "fc", lambda a: np.linalg.svd(a, full_matrices=False)[1], m)
row("np.linalg.svd", "fc", lambda a: np.abs(np.linalg.svd(a, full_matrices=False)[0]) ** 2, m)
row("np.linalg.svd", "fc", lambda a: np.linalg.svd(a)[1], m)
row("np.linalg.svd", "fc", lambda a: np.linalg.svd(a, compute_uv=False), m)
row("np.linalg.svd", "fc", lambda a: np.abs(np.linalg.svd(a)[0]) ** 2, m)
row("np.linalg.svd", "fc", lambda a: np.abs(np.linalg.svd(a)[2]) ** 2, m)
row("np.linalg.svd", "fc", lambda a: np.abs(np.linalg.svd(a)[2][:3]) ** 2, m)
row("np.linalg.svd", "fc", lambda a: np.abs(np.linalg.svd(herm(a) * apart, hermitian=True)[0]) ** 2, s)
row("np.linalg.svdvals", "fc", np.linalg.svdvals, m)
row("np.linalg.matrix_rank", "fc", lambda a: np.linalg.matrix_rank(a) * a, m)
row("np.linalg.tensorinv", "fc", lambda x: np.linalg.tensorinv(x.reshape(3, 3, 1, 1)[:, :, 0, :].reshape(3, 3), ind=1), s)
row("np.linalg.tensorsolve", "fc", np.linalg.tensorsolve, s, w[:, 0])
# creation
row("np.array", "fc", lambda x: np.array([x, x * x]), v)
for n in words("asanyarray asarray ascontiguousarray asfortranarray copy require"):
    row("np." + n, "fc", lambda x, n=n: getattr(np, n)(x) ** 2, m)
row("np.astype", "fc", lambda x: np.astype(x, x.dtype) ** 2, m)
row("ndarray.astype", "fc", lambda x: x.astype(np.float32 if False else x.dtype) ** 2, m)
row("np.full", "fc", lambda x: np.full((2,), x.sum() ** 2, dtype=x.dtype), v)
row("np.full_like", "fc", lambda x: np.full_like(x, x.sum() ** 2), v)
row("np.linspace", "fc", lambda x: np.linspace(x[0], x[1], 5) ** 2, v)
row("np.arange", "f", lambda x: np.arange(x[0], x[0] + 2.5, 0.4 + x[1] * x[1]) ** 2, np.array([0.3, 0.7]))
row("np.linspace", "fc", lambda x: np.linspace(x, x * x, 5, axis=1), v)
row("np.logspace", "f", lambda x: np.logspace(x[0], x[1], 5), u)
row("np.geomspace", "f", lambda x: np.geomspace(x[0], x[1], 5) * np.geomspace(x[1], x[:3], 5)[:, 0], -1 - np.abs(v))
row("np.frombuffer", "fc", lambda x: np.frombuffer(x * x, x.dtype, 2, x.itemsize) * x[:2], v)
row("np.mgrid", "f", lambda x: np.mgrid[0:2, x[0] : x[1] : 3j] * x[2], v)
row("np.ogrid", "f", lambda x: np.ogrid[x[0] : x[1] : 3j, 0:2][0] * x[2], v)
row("np.meshgrid", "fc", lambda x, y: np.meshgrid(x, y)[0] * np.meshgrid(x, y, indexing="xy")[1], v, p)
row("np.tril np.triu np.tri", "fc", lambda x: np.tril(x) ** 2 + np.triu(x, 1) * np.tri(3), s)
row("np.vander", "fc", lambda x: np.vander(x, 4) + np.vander(x, 4, increasing=True), v)
row("np.float64", "f", lambda x: np.float64(x[0]) ** 2 * x, v)
row("np.c_ np.r_", "fc", lambda x: np.c_[x, x * x] * np.r_[x[:1], x[1:2]], v)
row("np.ix_", "fc", lambda x: x[np.ix_([0, 2], [1, 3])] ** 2, m)
row("np.diag_indices_from", "fc", lambda x: x[np.diag_indices_from(x)] ** 2, s)
row("np.tril_indices_from", "fc", lambda x: x[np.tril_indices_from(x)] ** 2, s)
row("np.triu_indices_from", "fc", lambda x: x[np.triu_indices_from(x)] ** 2, s)
row(
    "operator.getitem",
    "fc",
    lambda x: x[1:, ::2] ** 2 + x[i3][:2, :2] + x[0, 0] + x[..., None][:2, :2, 0] + x[::-1][:2, i3[:2]],
    m,
)
row(
    "operator.setitem",
    "fc",
    written(lambda y, q: (y.__setitem__((slice(1), slice(None)), q[0] * 2), y.__setitem__((i3[:2], i3[:2]), q[:2, 0]))),
    m,
    w,
)
row("ndarray.flat", "fc", lambda x: x.flat[3] * x.flat[[1, 2]] + sum(x.flat), m)
row("np.fill_diagonal", "fc", written(lambda y, q: np.fill_diagonal(y, q[0])), s, w)
row("np.place", "fc", written(lambda y, q: np.place(y, y > 0, q)), m, p)
row("np.put", "fc", written(lambda y, q: np.put(y, [0, 5], q[:2])), m, p)
row("np.putmask", "fc", written(lambda y, q: np.putmask(y, y > 0, q)), m, p)
row("np.put_along_axis", "fc", written(lambda y, q: np.put_along_axis(y, np.array([[0], [1], [0]]), q[:3, None], 1)), m, p)
row("np.copyto", "fc", written(lambda y, q: np.copyto(y, q, where=y > 0)), m, w)
row("ndarray.copy ndarray.flatten ndarray.shape", "fc", lambda x: x.copy().flatten() ** 2 * x.shape[0], m)
row("ndarray.fill", "fc", written(lambda y, q: y[0].fill(q[0] ** 2)), m, p)
row("ndarray.partition", "f", lambda x: (lambda y: (y.partition(2), np.sort(y[:3]))[1])(x * 1.0) ** 2, v)
row("ndarray.resize", "fc", lambda x: np.resize(x, (2, 3)) ** 2, v)
row("ndarray.sort", "f", written(lambda y: y.sort()), m)
row("ndarray.view", "fc", lambda x: x.view() ** 2, m)
row("np.choose", "fc", lambda x: np.choose(np.array([0, 1, 0, 1, 1]), [x, x * x]), v)
row("np.clip", "fc", lambda x: np.clip(x, -1.0, 1.0) ** 2 * x, v)
row("np.clip", "f", lambda x, lo: np.clip(x, lo - 1, lo + 0.3) ** 2, v, p)
row("ndarray.clip", "fc", lambda x: x.clip(-1.0, 1.0) ** 2 * x, v)
row("np.delete", "fc", lambda x: np.delete(x, 1) ** 2, v)
row("np.insert", "fc", lambda x, y: np.insert(x, 1, y[0] ** 2) ** 2, v, p)
row("np.insert", "fc", lambda x, y: np.insert(x, [2, 0, 2], y[:3] ** 2) ** 2, v, p)
row("np.piecewise", "fc", lambda x: np.piecewise(x, [x.real < 0, x.real >= 0], [lambda x: x * x, np.sin]), v)
row("np.piecewise", "fc", lambda x: np.piecewise(x, [x.real < 0], [lambda x: x * x, 3.0]), v)
row("np.select", "fc", lambda x: np.select([x.real > 1, x.real < 0], [x, x * x], np.cos(x)), v)
row("np.take", "fc", lambda x: np.take(x, i3, axis=1) ** 2 + np.take(x, 7, mode="wrap"), m)
row("np.take_along_axis", "fc", lambda x: np.take_along_axis(x, np.argsort(x.real, axis=1), 1) ** 2, m)
row("np.where", "fc", lambda x: np.where(x.real > 0, np.sin(x), x * x), v)
row("np.compress", "fc", lambda x: np.compress([True, False, True], x, axis=0) ** 2, m)
row("np.extract", "fc", lambda x: np.extract(np.arange(12).reshape(3, 4) % 2 == 0, x) ** 2, m)
row("np.nonzero np.argwhere np.flatnonzero", "fc", lambda x: x[np.nonzero(x)] ** 2, m)
row("np.unique", "f", lambda x: np.unique(x) ** 2, m)
row("np.unique_values", "f", lambda x: np.sort(np.unique_values(x)) ** 2, m)
row("np.bincount", "f", lambda x: np.bincount(np.array([0, 1, 1, 3, 0]), weights=x, minlength=5) ** 2, v)
row("np.histogram", "f", lambda x: np.histogram(np.array([0.1, 0.5, 0.7, 0.2, 0.9]), bins=3, range=(0, 1), weights=x)[0] ** 2, v)
row("np.histogram_bin_edges", "f", lambda x: np.histogram_bin_edges(x, 4) ** 2, v)
row("np.trim_zeros", "fc", lambda x: np.trim_zeros(x) ** 2, v)
row("np.union1d", "f", lambda x, y: np.union1d(x, y) ** 2, v, p)
row("np.intersect1d", "f", lambda x: np.intersect1d(x, x) ** 2, v)
row("np.setdiff1d", "f", lambda x, y: np.setdiff1d(x, y) ** 2, v, p)
row("np.setxor1d", "f", lambda x, y: np.setxor1d(x, y) ** 2, v, p)
# reshaping
row("np.atleast_1d np.atleast_2d np.atleast_3d", "fc", lambda x: np.atleast_3d(np.atleast_2d(np.atleast_1d(x))) ** 2, v)
row(
    "np.broadcast_to np.broadcast_arrays",
    "fc",
    lambda x: np.broadcast_to(x, (2, 5)) ** 2 * np.broadcast_arrays(x, np.ones((2, 1)))[0],
    v,
)
row("np.expand_dims np.squeeze", "fc", lambda x: np.squeeze(np.expand_dims(x, 0), 0) ** 2, v)
row("np.flip np.fliplr np.flipud np.rot90", "fc", lambda x: np.flip(x) * np.fliplr(x) * np.flipud(x) * np.rot90(x, 2), m)
row(
    "np.matrix_transpose np.linalg.matrix_transpose np.swapaxes np.transpose np.moveaxis np.rollaxis",
    "fc",
    lambda x: (
        np.matrix_transpose(x)
        * np.linalg.matrix_transpose(x)
        * np.swapaxes(x, 0, 1)
        * np.transpose(x)
        * np.moveaxis(x, 0, 1)
        * np.rollaxis(x, 1)
    ),
    m,
)
row(
    "np.ravel np.reshape np.size np.ndim np.shape",
    "fc",
    lambda x: np.ravel(x) * np.reshape(x, -1, order="C") * np.size(x) + np.ravel(x, order="F"),
    m,
)
row("np.append", "fc", lambda x, y: np.append(x, y**2) ** 2, v, p)
row(
    "np.array_split np.split np.hsplit np.vsplit np.dsplit",
    "fc",
    lambda x: (
        np.array_split(x, 3, axis=1)[0][:, :1]
        * np.split(x, 2, axis=1)[1][:, :1]
        * np.hsplit(x, 2)[0][:, :1]
        * np.vsplit(x, 3)[1][:, :1]
    ),
    m,
)
row("np.block", "fc", lambda x: np.block([[x, x * 2], [x * x, x]]), m)
row(
    "np.column_stack np.concatenate np.dstack np.hstack np.vstack np.stack",
    "fc",
    lambda x: (
        np.column_stack([x, x[:, 0]])[:, :4]
        * np.concatenate([x, x * x])[:3]
        * np.dstack([x, x])[..., 0]
        * np.hstack([x, x])[:, :4]
        * np.vstack([x, x])[3:]
        * np.stack([x, x])[0]
    ),
    m,
)
row("np.unstack", "fc", lambda x: np.unstack(x)[0] * x, m)
row("np.fft.fftshift np.fft.ifftshift np.roll", "fc", lambda x: np.fft.fftshift(x) * np.fft.ifftshift(x) * np.roll(x, 2), v)
row("np.repeat np.tile np.resize", "fc", lambda x: np.repeat(x, 2, axis=0) * np.tile(x, (2, 1)) * np.resize(x, (6, 4)), m)
for mode in words("constant edge linear_ramp maximum mean median minimum reflect symmetric wrap empty"):
    row(
        f"np.pad:{mode}",
        "fc" if mode not in ("maximum", "minimum", "median") else "f",
        lambda x, mode=mode: np.pad(x, ((1, 2), (2, 1)), mode=mode)[(np.s_[1:-2, 2:-1] if mode == "empty" else np.s_[:4])] ** 2,
        m,
    )
row("np.pad:odd", "fc", lambda x: np.pad(x, 1, mode="reflect", reflect_type="odd") ** 2, m)
# sorting
row(
    "np.sort np.partition np.argsort np.argpartition np.lexsort",
    "f",
    lambda x: (
        np.sort(x, axis=1) ** 2 * np.arange(4) + np.sort(np.partition(x, 2, axis=1)[:, :2], 1).sum() + x[np.lexsort((x[:, 0],))]
    ),
    m,
)
row("np.sort", "c", lambda x: np.sort(x, axis=1) ** 2 * np.arange(4), m)
row(
    "np.searchsorted np.digitize np.isin",
    "f",
    lambda x: x * np.searchsorted(np.array([-1.0, 0, 1]), x) + np.digitize(x, np.array([-1.0, 0, 1])) * x * x,
    v,
)
row("np.around np.round np.fix", "fc", lambda x: np.around(x, 1) * x + np.round(x) * x, v)
row("np.fix", "f", lambda x: np.fix(x) * x, v)
row("np.apply_along_axis", "fc", lambda x: np.apply_along_axis(lambda r: r * r.sum(), 1, x), m)
for mode in ("full", "same", "valid"):
    row(f"np.convolve:{mode}", "fc", lambda x, y, mode=mode: np.convolve(x, y, mode), v, p[:3])
    row(f"np.correlate:{mode}", "fc", lambda x, y, mode=mode: np.correlate(x, y, mode), v, p[:3])
    row(f"np.convolve:{mode}", "fc", lambda x, y, mode=mode: np.convolve(x, y, mode), v[:2], p)
row("np.diff", "fc", lambda x: np.diff(x, axis=1) ** 2 + np.diff(x, n=2, axis=1, prepend=0.5) ** 2, m)
row("np.ediff1d", "fc", lambda x: np.ediff1d(x, to_begin=1.0) ** 2, v)
row("np.gradient", "fc", lambda x: np.gradient(x)[0] ** 2 + np.gradient(x, 0.5, axis=1, edge_order=2), m)
row("np.gradient", "fc", lambda x, y: np.gradient(x, np.cumsum(np.abs(y))), v, p)
row("np.interp", "f", lambda x, xp, fp: np.interp(x, np.cumsum(np.abs(xp)), fp), v + 1.5, p, v)
row("np.interp", "c", lambda fp: np.interp(np.array([0.2, 1.3, 2.5]), np.arange(5.0), fp), v)
row("np.interp", "f", lambda x, fp: np.interp(x, np.linspace(0, 6, 5), fp, period=6.0), v, p)
row("np.polyval", "fc", np.polyval, v, p)
row("np.poly", "f", np.poly, v)
row("np.polyfit", "fc", lambda y: np.polyfit(np.arange(5.0), y, 2), v)
row("np.polyfit", "f", lambda x, y: np.polyfit(x, y, 2), v, p)
for n, f in {"polyadd": np.polyadd, "polysub": np.polysub, "polymul": np.polymul}.items():
    row("np." + n, "fc", f, v, p)
row("np.polyder", "fc", lambda x: np.polyder(x) ** 2, v)
row("np.polyint", "fc", lambda x: np.polyint(x) ** 2, v)
row("np.trapezoid", "fc", np.trapezoid, v, np.cumsum(p))
row("np.trapezoid", "fc", lambda x: np.trapezoid(x, dx=0.1, axis=0) ** 2, m)
row("np.unwrap", "f", lambda x: np.unwrap(x * 5) ** 2, v)
for n in words("fft ifft fft2 ifft2 fftn ifftn"):
    row("np.fft." + n, "fc", getattr(np.fft, n), m)
for n in words("rfft rfft2 rfftn ihfft"):
    row("np.fft." + n, "f", getattr(np.fft, n), m)
for n in words("irfft irfft2 irfftn hfft"):
    row("np.fft." + n, "fc", getattr(np.fft, n), m)
row("np.fft.fft", "fc", lambda x: np.fft.fft(x, 6, axis=0, norm="ortho") + np.fft.ifft(x, 6, axis=0, norm="forward"), m)
row("np.fft.irfft", "fc", lambda x: np.fft.irfft(x, 7, norm="ortho"), m)
row("np.lib.stride_tricks.sliding_window_view", "fc", lambda x: np.lib.stride_tricks.sliding_window_view(x, 3) ** 2, v)
row(
    "np.lib.stride_tricks.sliding_window_view",
    "fc",
    lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)).sum(axis=(2, 3)) ** 2,
    m,
)
for n in words("erf expit log_softmax logsumexp softmax"):
    row("scipy.special." + n, "f", getattr(special, n), v)
row("scipy.special.logsumexp", "f", lambda x: special.logsumexp(x, b=[1.0, -3, 1, -2, 1], return_sign=True)[0], v)
row("scipy.special.logit", "f", special.logit, np.abs(u))
row("scipy.special.xlogy", "f", special.xlogy, v, p)
for n in words("gammaln digamma erfc erfinv j0 j1 i0 i1 i0e ndtr log_ndtr expm1 entr"):
    row("scipy.special." + n, "f", getattr(special, n), np.abs(u))
row("sorted", "f", lambda x: np.array([*sorted(x)[1:], *sorted((x[3], x[1]), reverse=True)]) ** 2 * np.arange(1.0, x.size + 2), v)
row("max min sum", "f", lambda x: max(x[0], x[1]) ** 2 + min(x[2], x[3]) + sum(x) ** 2, v)
row("round", "f", lambda x: round(x[0], 1) * x[0], v)
row("pow", "fc", lambda x: pow(x[1], 2) * x + pow(x, 3), v)
row("complex", "c", lambda x: complex(x[0]) ** 2 * x, v)
row("float", "f", lambda x: float(x[0]) ** 2 * x, v)
for n in words("acos asin atan atanh cos cosh degrees exp expm1 fabs radians sin sinh sqrt tan tanh log log10 log1p log2 asinh"):
    row("math." + n, "f", lambda x, n=n: getattr(math, n)(x[0]) ** 2, np.array([0.4]))
for n in words("acos asin atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh asinh acosh"):
    row("cmath." + n, "fc", lambda x, n=n: getattr(cmath, n)(x[0] + 0.3j) ** 2, np.array([0.4]))
row("cmath.phase cmath.polar", "fc", lambda x: cmath.phase(x[0]) + cmath.polar(x[1] * 1j)[0] ** 2, p)
row("cmath.rect", "f", lambda x: cmath.rect(x[0], x[1]) ** 2, p)
row("math.acosh", "f", lambda x: math.acosh(x[0]), p + 1)
for n in words("atan2 copysign fmod hypot pow"):
    row("math." + n, "f", lambda x, n=n: getattr(math, n)(x[0], x[1]), p)
for n in words("bartlett blackman hamming hanning"):
    row("np." + n, "f", lambda x, n=n: getattr(np, n)(5) * x, v)
row("np.kaiser", "f", lambda x: np.kaiser(5, 3.0) * x, v)
for n in words("cbrt erf erfc exp2 gamma lgamma"):
    row("math." + n, "f", lambda x, n=n: getattr(math, n)(x[0]), p)
row("math.fsum", "f", lambda x: math.fsum(x) ** 2, v)
row("math.dist", "f", lambda x: math.dist(x, x[::-1] ** 2), v)
row("math.prod", "f", math.prod, v)
row("math.frexp math.modf", "f", lambda x: math.frexp(x[0])[0] * math.modf(x[2])[0], p)
row("math.ldexp", "f", lambda x: math.ldexp(x[0], 3) ** 2, p)
row("math.remainder", "f", lambda x: math.remainder(x[2], 0.7) ** 2, p)
row("math.nextafter math.ulp", "f", lambda x: math.nextafter(x[0], 3.0) ** 2 + math.ulp(x[0]), p)
row("ndarray.compress", "fc", lambda x: x.compress([True, False, True], axis=0) ** 2, m)
row("np.fromfunction", "f", lambda x: np.fromfunction(lambda i: i * x.sum(), (4,)) ** 2, v)
row("np.fromiter", "f", lambda x: np.fromiter((y * y for y in x), float), v)
row("np.ndenumerate np.ndindex np.nditer", "f", lambda x: sum(y * y * i[0] for i, y in np.ndenumerate(x)), m)
row("ndarray.tolist", "f", lambda x: sum(x.tolist()) ** 2, v)
