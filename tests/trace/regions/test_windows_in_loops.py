"""Loops over windows: rows up to the diagonal, blocks that slide, parts that data delimit; interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.trace.trace import trace
from support import against_numpy
from support.against_numpy import check

RNG = np.random.default_rng(0)
N = 7
M = RNG.random((N, N))
S = M @ M.T + N * np.eye(N)
B = RNG.random(N)
CSR = (RNG.random(6), np.array([0, 3, 1, 2, 4, 0]), np.array([0, 2, 2, 5, 6]), B)


def cholesky(A: Any) -> Any:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def lu(A: Any) -> Any:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def growing(A: Any, B: Any) -> Any:
    """Products whose sizes change, from nothing on: too large for loops."""
    out = np.zeros((len(A), B.shape[1]))
    for i in range(len(A)):
        out[:i] += A[:i, :i] @ B[:i]
        out[i:] -= A[i:, :i] @ B[:i]
        out += (A.T[i:]).T @ B[i:]
    return out


def trisolv(L: Any, b: Any) -> Any:
    n = len(b)
    x = np.zeros(n)
    for i in range(n):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def syrk(C: Any, A: Any) -> Any:
    for i in range(A.shape[0]):
        C[i, : i + 1] *= 0.5
        for k in range(A.shape[1]):
            C[i, : i + 1] += 1.5 * A[i, k] * A[: i + 1, k]


def csr(data: Any, cols: Any, row: Any, x: Any) -> Any:
    y = np.zeros(len(row) - 1)
    for i in range(len(row) - 1):
        a, b = row[i], row[i + 1]
        y[i] = data[a:b] @ x[cols[a:b]]
    return y


def csr2(data: Any, cols: Any, row: Any, x: Any) -> Any:
    y = np.empty(len(row) - 1)
    for i in range(len(row) - 1):
        y[i] = np.sum(data[row[i] : row[i + 1]] * x[cols[row[i] : row[i + 1]]])
    return y


def durbin(r: Any) -> Any:
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gram(A: Any) -> Any:
    n = A.shape[1]
    Q = np.zeros_like(A)
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def ludcmp(A: Any, b: Any) -> Any:
    n = len(b)
    x = np.zeros(n)
    y = np.zeros(n)
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def symm(C: Any, A: Any, B: Any) -> Any:
    tmp = np.empty(C.shape[1])
    C *= 0.3
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += 1.5 * B[i, j] * A[i, :i]
            tmp[j] = B[:i, j] @ A[i, :i]
        C[i, :] += 1.5 * B[i, :] * A[i, i] + 1.5 * tmp


def trmm(A: Any, B: Any) -> Any:
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= 1.5


def conv(x: Any, w: Any) -> Any:
    k = len(w)
    y = np.zeros(len(x) - k + 1)
    for i in range(len(y)):
        y[i] = np.sum(x[i : i + k] * w)
    return y


def conv2d(img: Any, k: Any) -> Any:
    H = img.shape[0] - k.shape[0] + 1
    W = img.shape[1] - k.shape[1] + 1
    out = np.empty((H, W))
    for i in range(H):
        for j in range(W):
            out[i, j] = np.sum(img[i : i + k.shape[0], j : j + k.shape[1]] * k)
    return out


def wrap(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i - 1] + x[(i + 1) % len(x)]
    return y


def bubble(x: Any) -> Any:
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                t = x[j]
                x[j] = x[j + 1]
                x[j + 1] = t


def primes(n_arr: Any) -> Any:
    n = len(n_arr)
    s = np.ones(n, bool)
    s[:2] = False
    for i in range(2, n):
        if s[i]:
            s[i * i :: i] = False
    return np.flatnonzero(s)


def lookup(idx: Any, x: Any) -> Any:
    s = 0.0
    for k in range(len(idx)):
        s += x[idx[k]]
    return s


def maskloop(X: Any, lab: Any) -> Any:
    out = np.zeros((3, X.shape[1]))
    for k in range(3):
        out[k] = X[lab == k].mean(axis=0)
    return out


def prefix(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[: i + 1].max()
    return out


def windows(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        lo = max(0, i - 2)
        hi = min(len(x), i + 3)
        out[i] = np.median(x[lo:hi])
    return out


def windows2(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[max(0, i - 2) : min(len(x), i + 3)].mean()
    return out


def nuss(seq: Any) -> Any:
    n = len(seq)
    T = np.zeros((n, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                T[i, j] = max(T[i, j], T[i, j - 1])
            if i + 1 < n:
                T[i, j] = max(T[i, j], T[i + 1, j])
            if i < j - 1:
                T[i, j] = max(T[i, j], T[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
            for k in range(i + 1, j):
                T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])
    return T


def bins(x: Any, edges: Any) -> Any:
    h = np.zeros(len(edges) - 1, int)
    for k in range(len(edges) - 1):
        h[k] = np.sum((x >= edges[k]) & (x < edges[k + 1]))
    return h


def weighted(x: Any) -> Any:
    m = x[x > 0]
    s = 0.0
    for i in range(len(m)):
        s += m[i] * i
    return s


def sieve(x: Any) -> Any:
    n = len(x)
    s = np.ones(n, bool)
    s[:2] = False
    for i in range(2, n):
        if s[i]:
            s[i * i :: i] = False
    return np.flatnonzero(s)


def strides(x: Any) -> Any:
    out = np.zeros(len(x))
    for k in range(1, len(x)):
        out[k] = x[::k].sum()
        x[k::k] += 1
    return out


def behind(x: Any, y: Any) -> Any:
    for _ in x:
        for last in range(len(y) - 1, 0, -1):  # noqa: B007
            rest = y.copy()
    for i in range(last):  # noqa: B007
        y[:2] *= 3
    if x.sum() > -2:
        rest[i + 1 :] += 1
    return rest


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (growing, (RNG.random((20, 20)), RNG.random((20, 12)))),
    (cholesky, (S,)), (lu, (S,)), (trisolv, (np.linalg.cholesky(S), B)), (syrk, (M, RNG.random((N, 5)))), (csr, CSR), (csr2, CSR),
    (durbin, (B,)), (gram, (RNG.random((8, 5)),)), (ludcmp, (S, B)), (symm, (RNG.random((N, 5)), M, RNG.random((N, 5)))),
    (trmm, (M, RNG.random((N, 5)))), (conv, (RNG.random(12), RNG.random(3))), (conv2d, (RNG.random((6, 7)), RNG.random((3, 2)))),
    (wrap, (B,)), (bubble, (B,)), (primes, (np.zeros(40),)), (lookup, (np.array([1, 3, -1, 2]), B)),
    (maskloop, (RNG.random((9, 2)), np.arange(9) % 3)), (prefix, (B,)), (windows, (B,)), (windows2, (B,)),
    (nuss, (np.array([0, 1, 2, 3, 1, 2, 0, 3]),)), (bins, (B, np.linspace(0, 1, 5))), (behind, (B, np.arange(5))),
]  # fmt: skip


@pytest.mark.parametrize("target", ["interpreted", "compiled"])
@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_program(function: Any, arguments: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_numpy, "target", target)
    check(function, *arguments, ulps=200, absolute=1e-12)


def test_a_loop_over_what_a_mask_picks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_numpy, "target", "interpreted")
    check(weighted, B - 0.5)


@pytest.mark.parametrize("function, arguments", [p for p in PROGRAMS if p[0] in (cholesky, lu, syrk, csr, conv2d, trmm, nuss)])
def test_what_loops_index_needs_no_check(function: Any, arguments: Any) -> None:
    graph = trace(function, tuple(x.copy() for x in arguments), {}).graph
    assert "check " not in str(graph)
    assert "loop " in str(graph)


def test_products_whose_sizes_the_run_tells_go_to_blas() -> None:
    lowered = jitml.jit(growing).lower(RNG.random((40, 40)), RNG.random((40, 12)))
    assert lowered.kernels.count("gemm(") == 3 and lowered.kernels.count("sized=True") == 3


def test_lengths_that_change_share_a_product() -> None:
    f = jitml.jit(lambda x, w: np.tanh(x @ w))
    w = RNG.random((30, 20))
    for n in (5, 0, 1, 700, 3):
        x = RNG.random((n, 30))
        np.testing.assert_allclose(f(x, w), np.tanh(x @ w), rtol=1e-12)
    assert len(f.variants) <= 3


def shrinking(x: Any) -> Any:
    y, n = 2 * x, 0
    for i in range(100):
        if x.size == 0:
            break
        keep = x > 0.01 * i
        x, y, n = x[keep] * 1.001, y[keep], n + 1
    return x, y, n


def test_arrays_that_shrink_are_not_copied_into_memory_of_their_largest_size() -> None:
    x = np.random.default_rng(0).random(50)
    check(shrinking, x)
    kernels = str(jitml.jit(shrinking).lower(x).kernels)
    inside = kernels[kernels.index("region") :]
    assert "empty()" not in inside and "kernel k0_dynamic_slice" not in inside
