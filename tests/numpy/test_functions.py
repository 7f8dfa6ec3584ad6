"""One table of calls: each is evaluated by NumPy and by a trace, and compared in value, dtype, shape and kind."""

from __future__ import annotations

import numpy as np
import pytest

from support.against_numpy import agree, check, function_of, skip_without

R = np.random.default_rng(7)
A, B, V = R.normal(size=(3, 4)), R.normal(size=(4, 5)), R.normal(size=4)
T, U, S = R.normal(size=(2, 3, 4)), R.normal(size=(2, 4, 5)), R.normal(size=(3, 3))
I = R.integers(-5, 5, size=(3, 4))
N = np.where(A > 0.5, np.nan, A)
M = A > 0
H, HT, IT, MT, K = A.astype("f2"), A.astype("f2").T, I.T, M.T, M.astype(int)
P, W = I % 4, R.normal(size=7)
L, F4, U1 = R.normal(size=40), A.astype("f4"), P.astype("u1")

# The names of the arguments (x, y, ...), then the expression.
CASES = """
# ufunc methods
A     | np.add.reduce(x)
A     | np.add.reduce(x, axis=(0, 1))
A     | np.multiply.reduce(x, 1)
A     | np.maximum.reduce(x)
A     | np.minimum.reduce(x, None)
A     | np.logical_or.reduce(x, 1)
A     | np.add.accumulate(x)
A     | np.maximum.accumulate(x, 1)
I     | np.multiply.accumulate(x)
A V   | np.add.outer(x, y)
V V   | np.subtract.outer(x, y)
V     | np.less.outer(x, 3)

# products
A B   | x @ y
T U   | np.matmul(x, y)
V B   | x @ y
V V   | x @ y
T B   | x  @ y
A U   | x @  y
V U   | np.matmul(x, y)
T U   | np.dot(x, y)
A     | np.dot(x, 2.0)
A T   | np.inner(x, y)
V A   | np.outer(x, y)
A A   | np.vdot(x, y)
A T   | np.vecdot(x, y)
T V   | np.matvec(x, y)
V U   | np.vecmat(x, y)
T U   | np.tensordot(x, y, ((0, 2), (0, 1)))
A B   | np.tensordot(x, y, 1)
A B   | np.kron(x, y)
A V   | np.kron(x, y)
S S   | np.cross(x, y)
T     | np.diagonal(x)
T     | np.diagonal(x, 1, 1, 2)
S     | np.trace(x)
S     | np.diag(x, 1)
V     | np.diag(x, -1)
V     | np.diag(x, 2)
A     | np.diagflat(x)
A     | np.linalg.norm(x)
V     | np.linalg.norm(x, 1)
V     | np.linalg.norm(x, 3)
A     | np.linalg.norm(x, np.inf)
A     | np.linalg.norm(x, axis=1)
A     | np.linalg.norm(x, 'fro', keepdims=True)
V     | np.linalg.norm(x, -np.inf)
V     | np.linalg.norm(x, 0)
S     | np.linalg.matrix_power(x, 5)
S     | np.linalg.matrix_power(x, 0)
A B   | np.linalg.multi_dot([x, y, y.T])
H HT  | x @ y
I IT  | x @ y
M MT  | x @ y
A IT  | np.matmul(x, y)

# joining
A     | np.concatenate([x, x])
A     | np.stack([x, x * 2], -1)
A     | np.hstack([x, x])
A     | np.vstack([x, x[0]])
A     | np.dstack([x, x])
A     | np.column_stack([x, x[:, 0]])
A     | np.block([[x, x], [x, x]])
A     | np.split(x, 2, 1)
A     | np.array_split(x, 3, 1)
A     | np.split(x, [1, 3], 1)
A     | np.hsplit(x, 2)
A     | np.tile(x, (2, 1, 3))
A     | np.repeat(x, 3)
A     | np.repeat(x, 2, 1)
A     | np.repeat(x, [1, 0, 2], 0)
A     | np.repeat(x, 2.5)
A     | np.repeat(x, [1.5, 0, 2], 0)
A     | np.roll(x, 2)
A     | np.roll(x, (1, -1), (0, 1))
A     | np.roll(x, (1, 2))
A     | np.roll(x, np.array([1, 2]), (0, 1))
A     | np.roll(x, np.array([1]), 1)
A     | np.concatenate([x, x.astype('f4')], None)
A     | np.append(x, 3.0)
A     | np.resize(x, (2, 9))
I     | np.concatenate([x, [[1, 2, 3, 4]]])
A     | np.unstack(x)
V     | np.unstack(x)

# selection
A     | np.where(x > 0, x, 0)
H     | np.where(x > 0, x, 0)
M     | np.where(x, 1, 2.5)
I A   | np.where(x > 0, x, y)
A     | np.clip(x, -1, 1)
H     | np.clip(x, None, 0.5)
I     | x.clip(-2, 2)
A V   | np.clip(x, y, None)
A     | np.select([x > 1, x < -1], [x, -x], 0.5)
A     | np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])
A P   | np.take(x, y)
A     | np.take(x, [0, -1], 1)
A     | np.take(x, 1, 0)
A I   | np.take(x, y, mode='wrap')
A I   | np.take(x, y, mode='clip')
A     | np.take_along_axis(x, np.argsort(x, 1), 1)
K A   | np.choose(x, [y, y * 2])
A     | np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1)
A     | np.compress([True, False, True], x, 0)
N     | np.nan_to_num(x)
N     | np.nan_to_num(x, nan=1.0)
A     | np.delete(x, 1, 1)
V     | np.insert(x, 1, 5)
V     | np.insert(x, [1, 0, -1, 1], [5, 6, 7, 8])
V     | np.insert(x, [1], [5, 6, 7])
V     | np.insert(x, slice(0, 3), 5)
V     | np.insert(x, [], 5)
A     | np.insert(x, [0, 2], x[0, :2], 1)
A     | np.insert(x, [1], x[0], 0)
A     | np.insert(x, 1, 5, 1)

# statistics
A     | np.mean(x)
A     | x.mean(1)
A     | np.mean(x, (0, 1), keepdims=True)
I     | np.mean(x)
H     | np.mean(x)
A     | np.mean(x, where=x > 0)
A     | np.mean(x, dtype='f4')
A     | np.var(x)
A     | np.var(x, 0, ddof=1)
A     | np.std(x, 1)
I     | np.std(x)
I     | np.var(x)
A     | np.var(x, where=x > 0)
N     | np.nanmean(x)
N     | np.nanmean(x, 0)
N     | np.nanvar(x, 1)
N     | np.nanstd(x)
N     | np.nansum(x, 0)
N     | np.nanmax(x)
N     | np.nanmin(x, 1)
N     | np.nanprod(x)
N     | np.nancumsum(x)
N     | np.nanargmax(x)
A     | np.average(x, 0)
A     | np.average(x, weights=x * x)
A     | np.average(x, 1, [1, 2, 3, 4])
A     | np.average(x, 1, [1, 2, 3, 4], returned=True)
A     | np.median(x)
A     | np.median(x, 1)
A     | np.median(x, 0, keepdims=True)
I     | np.median(x)
N     | np.median(x)
A     | np.percentile(x, 30)
A     | np.percentile(x, [10, 50, 99], 1)
A     | np.quantile(x, 0.25, 0)
I     | np.quantile(x, 0.3, method='lower')
A     | np.quantile(x, [[0.0], [1.0]])
A     | np.quantile(x, 0.3, method='nearest')
A     | np.cov(x)
A     | np.cov(x, rowvar=False, ddof=0)
A     | np.corrcoef(x)
V     | np.cov(x)
V     | np.corrcoef(x)
A     | np.ptp(x, 1)
I     | np.count_nonzero(x, 1)
I     | np.quantile(x, [0, 1])
I     | np.quantile(x, 1, 0)
I     | np.percentile(x, 33.3, axis=(0, 1), keepdims=True)
A     | np.quantile(x, np.array([0.25, 0.75]), 1, keepdims=True)
F4    | np.percentile(x, [10, 50])
F4    | np.percentile(x, 10)
H     | np.quantile(x, 0.3)
F4    | np.dot(x, 2.0)
F4    | np.clip(x, -1, 0.5)
M     | np.polyval(x[0], x)

# sorting and searching
A     | np.sort(x)
A     | np.sort(x, 0)
A     | np.sort(x, None)
N     | np.sort(x)
I     | np.argsort(x, 0, kind="stable")
A     | x.argsort()
A     | np.sort(x)[:, ::-1]
V A   | np.searchsorted(np.sort(x), y)
V V   | np.searchsorted(np.sort(x), y, side="right")
V V   | np.searchsorted(np.sort(x), y[0])
A     | np.digitize(x, [-1.0, 0.0, 1.0])
I     | np.isin(x, [1, 2])
I     | np.isin(x, [1, 2], invert=True)
I A   | np.lexsort((x[0], x[1]))
A     | np.digitize(x, [1.0, 0.0, -1.0])
A V   | np.digitize(x, np.sort(y)[::-1], right=True)
N     | np.nanargmax(x, 1)
N     | np.nanargmin(x, axis=0, keepdims=True)

# rounding and closeness
A     | (np.shares_memory(x[:2], x[1:]), np.shares_memory(x[:2], x[2:]), np.shares_memory(x, x.copy()), np.shares_memory(x.T, x))
A     | (np.may_share_memory(x[::2], x[1::2]), np.shares_memory(x[::2], x[1::2]), np.shares_memory(x[:, 1], x[:, 0]))
A     | np.round(x)
A     | np.round(x, 2)
A     | x.round(1)
A     | np.around(x * 100, -1)
I     | np.round(x)
A     | np.fix(x)
A     | np.isclose(x, x + 1e-9)
N     | np.isclose(x, x, equal_nan=True)
A     | np.allclose(x, x)
A     | np.array_equal(x, x + 1)
A     | np.sinc(x)
N     | np.isposinf(x)

# calculus
A     | np.diff(x)
A     | np.diff(x, 2, 0)
V     | np.diff(x, prepend=0)
M     | np.diff(x)
V     | np.ediff1d(x, 1.0, 2.0)
V     | np.gradient(x)
A     | np.gradient(x)
A     | np.gradient(x, 0.5, axis=1)
A V   | np.gradient(x, y.cumsum(), axis=1)
A V   | np.gradient(x, y.cumsum(), axis=1, edge_order=2)
A     | np.gradient(x, 2.0, 3.0, edge_order=2)
A     | np.trapezoid(x)
A V   | np.trapezoid(x, y)
A     | np.trapezoid(x, dx=0.1, axis=0)
A V   | np.polyval(y, x)
A V   | np.interp(x, np.sort(y), y)
A V   | np.interp(x, np.sort(y), y, left=-1, right=9)
A     | np.interp(0.3, [0.0, 1.0, 2.0], [3.0, 1.0, 2.0])
V W   | np.convolve(x, y)
V W   | np.convolve(x, y, "same")
W V   | np.convolve(x, y, "valid")
V W   | np.correlate(x, y)
W V   | np.correlate(x, y, "same")
W V   | np.correlate(x, y, "full")
I W   | np.convolve(x[0], x[1])
W     | np.unwrap(x * 9)
A     | np.apply_along_axis(lambda v: v.sum(), 0, x)
A     | np.apply_along_axis(lambda v: v * 2, 0, x)

# padding
A     | np.pad(x, 1)
A     | np.pad(x, ((1, 2), (0, 3)), constant_values=7)
A     | np.pad(x, (2, 1), "edge")
A     | np.pad(x, ((0, 0), (2, 5)), "reflect")
A     | np.pad(x, 3, "symmetric")
A     | np.pad(x, (1, 2), mode="wrap")
A     | np.pad(x, 1, constant_values=(1, 2))
A     | np.pad(x, (1, 2), mode="edge")
A     | np.pad(x, ((2, 1), (3, 2)), "reflect")
A     | np.pad(x, ((3, 0), (0, 4)), "symmetric")
A     | np.pad(x, ((0, 3), (4, 1)), "wrap")
A     | np.pad(x, 7, "wrap")
L V   | np.convolve(x, y)
L L   | np.convolve(x, y, "same")
L L   | np.correlate(x, y, "full")

# einsum
A B   | np.einsum("ij,jk->ik", x, y)
A B   | np.einsum("ij,jk", x, y)
A B   | np.einsum(x, [0, 1], y, [1, 2]) ; np.einsum(x, [40, 2], y, (2, 1), [1, 40])
A     | np.einsum(x, [1, 0]) ; np.einsum(x, [0, ...], [..., 0]) ; np.einsum(x, [7, 3], [])
S     | np.einsum(x, [0, 0]) ; np.einsum(x, [0, 0], [0])
A     | np.einsum("ij->ji", x)
A     | np.einsum("ij->", x)
A     | np.einsum("ij->i", x)
S     | np.einsum("ii->i", x)
S     | np.einsum("ii", x)
T U   | np.einsum("bij,bjk->bik", x, y)
T U   | np.einsum("...ij,...jk->...ik", x, y)
A V   | np.einsum("ij,j->ij", x, y)
V V   | np.einsum("i,j->ji", x, y)
V V   | np.einsum("i,i->", x, y)
A B T | np.einsum("ij,jk,bij->bk", x, y, z)
I IT  | np.einsum("ij,jk->ik", x, y)

# shapes and copies
A     | np.ravel(x, "F")
A     | np.reshape(x, (2, -1), order="F")
T     | np.swapaxes(x, 0, 2)
T     | np.moveaxis(x, [0, 1], [-1, -2])
T     | np.rollaxis(x, 2)
T     | np.rollaxis(x, 0, 3)
A     | np.expand_dims(x, (0, 3))
A     | np.squeeze(x[:, :1])
A V   | np.broadcast_arrays(x, y)
V     | np.broadcast_to(x, (3, 4))
V     | np.atleast_2d(x)
V     | np.atleast_3d(x)
A     | np.rot90(x)
A     | np.rot90(x, 2)
A     | np.rot90(x, -1)
A     | np.fliplr(x)
A     | np.flip(x)
A     | (np.shape(x), np.ndim(x), np.size(x, 0), len(x), x.T.shape)

# helpers for indices
A     | x[np.ix_([0, 2], [1, 3])]
P     | np.unravel_index(x, (2, 3))
P     | np.ravel_multi_index((x, x), (5, 5))
S     | x[np.triu_indices_from(x)]
S     | x[np.diag_indices_from(x)]
S     | x[np.tril_indices(3, -1)]
V     | np.r_[x, 1.0, 0:3, x]
V     | np.c_[x, x]
V     | np.r_[0:x[0]:3j, x]
V     | np.mgrid[0:2, 0:3] * x[0]
V     | np.mgrid[0:2, x[0]:3:4j]
V     | np.ogrid[x[1]:x[0]:5j, :2]
V     | np.ogrid[x[1]:x[0]:5j]
V     | np.fft.fftshift(x)
W     | np.fft.ifftshift(x)
V     | np.cumulative_sum(x, include_initial=True)
A     | np.cumulative_prod(x, axis=1)
"""


def _cases() -> list[tuple[str, str]]:
    lines = (line.split("|", 1) for line in CASES.splitlines() if "|" in line)
    return [(names.strip(), expression.strip()) for names, expression in lines]


@pytest.mark.parametrize(("names", "expression"), _cases())
def test_function(names: str, expression: str) -> None:
    skip_without(expression)
    arguments = [globals()[name] for name in names.split()]
    function = function_of(", ".join("xyz"[: len(arguments)]), expression)
    check(function, *arguments, ulps=16, absolute=1e-3 if arguments[0].dtype == np.float16 else 1e-13)


@pytest.mark.parametrize(
    "expression",
    [
        "np.clip(x, -1, 300)", "np.clip(x, 3, 300)", "np.clip(x, -1, None)", "x.clip(-1, 2)", "np.clip(x, 0, 255)",
        "np.reshape(x, newshape=(4, 3))",
        "np.corrcoef(x, None, True, True)", "np.corrcoef(x, ddof=1)", "np.corrcoef(x, bias=True)",
        "np.roll(x, -2.7)", "np.roll(x, (1, 2.5))", "np.roll(x, 2.0 * x.size)", "np.roll(x, (1.5, np.float64(-1)), (0, 0))",
    ],
)  # fmt: skip
def test_what_not_every_numpy_takes(expression: str) -> None:
    agree(function_of("x", expression), U1, ulps=16)
