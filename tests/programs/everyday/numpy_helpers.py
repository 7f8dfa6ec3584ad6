"""NumPy's functions of functions, grids, choices, polynomials, and arrays that are no plain arrays of numbers."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import datetime
import math
from fractions import Fraction

import numpy as np
from numpy import c_, mgrid, ogrid, r_

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.linspace(-1.0, 2.0, 7)
Y = np.linspace(3.0, 1.0, 7)
A = np.arange(6.0).reshape(2, 3)
THREE = ((X,), (Y,), (X[:4],))


@calls(*THREE, host=True)
def vectorized_branches(x):
    def f(t):
        if t > 1:
            return t**2
        return -t

    return np.vectorize(f)(x)


@calls(*THREE, host=True)
def vectorized_with_otypes(x):
    g = np.vectorize(lambda t, a: math.floor(t * a), otypes=[float])
    return g(x, 2.0)


@calls((A,), (A * 2,), (np.ones((3, 2)),), host=True)
def along_an_axis(a):
    def spread(row):
        return row.max() - row.min()

    return np.apply_along_axis(spread, 1, a), np.apply_along_axis(np.cumsum, 0, a)


@calls((A,), (A * 2,), (np.ones((3, 2)),), host=True)
def over_axes(a):
    return np.apply_over_axes(np.sum, a, [0, 1])


@calls(*THREE, refused="object")
def from_python_functions(x):
    f = np.frompyfunc(lambda a, b: a + 2 * b, 2, 1)
    return f(x, x).astype(float)


@calls((X, 3, 2), (Y, 2, 2), (X[:4], 4, 1))
def from_a_function_of_indices(x, n, m):
    return np.fromfunction(lambda i, j: i * 10 + j, (n, m)) * x[0], np.fromfunction(lambda i: i, (m,), dtype=int)


@calls((X, 3), (Y, 4), (X[:4], 2))
def from_an_iterator(x, n):
    return np.fromiter((v * v for v in x), dtype=float), np.fromiter(range(n), int)


@calls((X, Y), (Y, X), (X[:4], Y[:2]))
def grids(x, y):
    gx, gy = np.meshgrid(x, y)
    r = np.sqrt(gx**2 + gy**2)
    u, v = np.meshgrid(x, y, indexing="ij", sparse=True)
    i, j = np.ogrid[:3, :2]
    k = np.mgrid[0:2, 0:3]
    return r, u * v, i + j, k.sum(), np.indices((2, 3))[1]


@calls(
    lambda: (np.random.default_rng(0).random((6, 5)), 3),
    lambda: (np.random.default_rng(1).random((9, 4)), 5),
    lambda: (np.random.default_rng(2).random((5, 5)), 0),
)
def grids_of_windows(x, n):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            i0, i1, j0, j1 = max(i - 2, 0), min(i + 3, x.shape[0]), max(j - 1, 0), min(j + 2, x.shape[1])
            y, z = np.mgrid[i0:i1, j0:j1]
            total += (x[i0:i1, j0:j1] * np.exp(-((y - i) ** 2) - (z - j) ** 2)).sum()
    return total, np.mgrid[:n], np.mgrid[:n, 1:n:2], np.ogrid[:n, -1:1:0.3], np.ogrid[:n,], np.r_[:n, 7]


@calls((X, 3), (Y, 4), (X[:4], 2))
def grids_by_names_of_their_own(x, n):
    i, j = mgrid[-1 : n - 1, :3]
    k, m = ogrid[:n, 0:2]
    return x[0] * i + j, k + m, r_[x, 1.0, n], c_[x, x]


@calls(*THREE)
def choices(x):
    piecewise = np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t * 2])
    selected = np.select([x < 0, x < 1], [x * 10, x * 100], default=-1)
    chosen = np.choose((x > 0).astype(int), [x, x * 2])
    return piecewise, selected, chosen, np.where(x > 0, x, 0)


@calls((np.array([1.0, -3.0, 2.0]),), (np.array([1.0, -5.0, 6.0]),), (np.array([1.0, 2.0]),), host=True)
def polynomials_by_coefficients(c):
    return np.polyval(c, 2.0), np.roots(c), np.polyder(c), np.convolve(c, c), np.polymul(c, c)


@calls((np.array([1.0, -3.0, 2.0]),), (np.array([1.0, -5.0, 6.0]),), (np.array([1.0, 2.0]),), as_python="poly1d")
def a_poly1d(c):
    p = np.poly1d(c)
    return p(3.0), p.coeffs, np.poly1d([1.0, 2.0])(c)


@calls((X, Y), (Y, X), (X[:4], Y[:4]), host=True)
def a_fitted_polynomial(x, y):
    c = np.polyfit(x, y, 2)
    return np.polyval(c, x), np.interp(0.5, np.sort(x), y)


@calls((X,), (Y,), (X[:4],), host=True)
def polynomial_classes(x):
    p = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    return p(x), np.polynomial.chebyshev.chebval(x, [1.0, 0.5])


@calls((X, 1.5), (Y, 1.5), (X[:4], 0.5), refused="dtype")
def a_structured_array(x, m):
    points = np.zeros(len(x), dtype=[("x", float), ("m", float)])
    points["x"] = x
    points["m"] = m
    return (points["x"] * points["m"]).sum()


@session(refused="void|structured|dtype")
def a_structured_argument(jit):
    points = np.array([(1.0, 2), (3.0, 4)], dtype=[("x", float), ("n", int)])
    f = jit(lambda p: p["x"] * p["n"])
    return f(points), f(points), f(points)


@session()
def a_record_array_is_read_by_its_fields_outside(jit):
    points = np.array([(1.0, 2), (3.0, 4)], dtype=[("x", float), ("n", int)])
    f = jit(lambda x, n: x * n)
    return f(points["x"], points["n"]), f(points["x"][:1], points["n"][:1])


@session(as_python="MaskedArray, is asked for its mean")
def a_masked_argument(jit):
    f = jit(lambda x: x.mean())
    x = np.ma.masked_less(X, 0)
    return f(x), f(x), f(x)


@calls(*THREE, as_python="MaskedArray")
def masking_inside(x):
    m = np.ma.masked_where(x < 0, x)
    return m.mean()


@session(refused="matrix")
def a_matrix_argument(jit):
    f = jit(lambda a: a * a)
    return f(np.matrix([[1.0, 2.0], [3.0, 4.0]])), f(np.matrix([[1.0]]))


@session(refused="object|dtype")
def an_object_array_argument(jit):
    f = jit(lambda a: a + a)
    return f(np.array([Fraction(1, 2), Fraction(1, 3)])), f(np.array([1, "a"], dtype=object))


@session(refused="<U|str|dtype")
def an_array_of_strings(jit):
    f = jit(lambda names, x: x[names == "a"].sum())
    return f(np.array(["a", "b", "a"]), X[:3]), f(np.array(["a", "b"]), X[:2])


@session(refused="datetime64|dtype")
def an_array_of_dates(jit):
    f = jit(lambda t, x: (t[1:] - t[:-1]) / np.timedelta64(1, "D") * x[1:])
    t = np.array(["2020-01-01", "2020-01-03", "2020-01-10"], dtype="datetime64[D]")
    return f(t, X[:3]), f(t[:2], X[:2])


@session(refused="Tagged|subclass")
def a_subclass_of_ndarray(jit):
    class Tagged(np.ndarray):
        def __array_finalize__(self, other):
            self.tag = getattr(other, "tag", "none")

    x = X.copy().view(Tagged)
    x.tag = "first"
    f = jit(lambda a: a * 2)
    y = f(x)
    return type(y).__name__, y.tag, f(x)


@calls((X, "sum"), (Y, "mean"), (X[:4], "ptp"))
def functions_by_name(x, name):
    return getattr(np, name)(x), {"sum": np.sum}.get(name, np.max)(x)


@calls(*THREE)
def parts_of_the_machine(x):
    eps = np.finfo(x.dtype).eps
    big = np.iinfo(np.int32).max
    return x + eps, big * x, np.result_type(x, np.float32), x.dtype.name, np.pi * x


@calls(*THREE, host=True)
def a_histogram_and_bins(x):
    counts, edges = np.histogram(x, bins=3)
    return counts, edges, np.digitize(x, edges), np.bincount(np.digitize(x, edges)), np.cov(x, x**2), np.corrcoef(x, -x)


@calls((X, 0), (Y, 1), (X[:4], 2))
def a_generator_made_inside(x, seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=len(x))
    order = rng.permutation(len(x))
    return (x + noise)[order]


@calls((A, [0, 1]), (A, [1, 1]), (A, [0, 2]))
def lists_as_indices(a, columns):
    return a[:, columns], a[[0]], a[[True, False]], a[np.ix_([0, 1], columns)]


@calls(*THREE)
def a_sliding_window_and_strides(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 2)
    return w.mean(axis=1), np.convolve(x, np.ones(2) / 2, mode="valid")


@calls((X, Y), (Y, X), (X[:4], Y[:4]))
def arrays_from_lists_of_arrays(x, y):
    stacked = np.array([x, y])
    pairs = np.array(list(zip(x, y)))
    table = np.column_stack((x, y, x * y))
    return stacked.T, pairs, table, np.r_[x, 1.0, y], np.c_[x, y], np.block([[stacked], [stacked]])


@calls((X, Y), (Y, X), (X[:4], Y[:4]), host=True)
def trapezoids_and_gradients(x, y):
    return np.trapezoid(y, x), np.gradient(y), np.diff(y, n=2), np.cumsum(y), np.unwrap(y)


@calls((np.array([3, 1, 2]),), (np.array([3, 1, 1]),), (np.array([7, 7]),))
def unique_counts(k):
    values, counts = np.unique(k, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist())), values[counts.argmax()]


@calls((np.arange(36.0).reshape(4, 3, 3), 3), (np.arange(36.0).reshape(4, 3, 3), 2000))
def streams_that_roll_on(f, steps):
    towards = np.array([[0, 0], [1, 0], [0, -1], [-4, 17]])
    for _ in range(steps):
        for i in range(4):
            f[i] = np.roll(f[i], towards[i], axis=(0, 1))
        f -= (f - f.mean()) * 0.01
    return f


@calls((X, 3), (X, 2000))
def correlations_at_all_lags(x, n):
    return np.array([(x * np.roll(x, -k)).sum() for k in range(n)])
