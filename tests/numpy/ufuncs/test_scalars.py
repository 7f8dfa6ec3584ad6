"""Scalar, 0-d array or Python object: what NumPy gives back for each, and what may be written afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import check, function_of

U = np.array([1, 3], np.uint64)
V, M = np.array([0.5, -1.5, 2.5]), np.arange(6.0).reshape(2, 3)
Z, S, F = np.array(1.5), np.float64(1.5), np.float32(0.5)
I, B = np.int64(1), np.bool_(True)
N, P = np.array(7, np.int8), 3
K = np.array([2, 0, 1])

CASES = """
V | v[0] ; v[np.array(0)] ; v[-1] ; list(v) ; v[0, ...] ; v[...] ; v[:1].squeeze() ; v[None]
Z | z[()] ; z[...] ; z + 1 ; -z ; divmod(z, 1) ; np.modf(z) ; np.exp(z) ; z.reshape(()) ; z.T ; z[None]
Z | z.squeeze() ; z.astype("f4")
Z | z.sum() ; z.sum(axis=()) ; z.mean() ; z.max() ; np.median(z) ; np.clip(z, 0, 1) ; np.round(z)
Z | np.isclose(z, 1) ; np.fix(z) ; np.sinc(z)
Z | np.cumsum(z) ; np.ravel(z) ; np.atleast_1d(z) ; np.copy(z) ; np.zeros_like(z) ; np.where(z > 0, z, 0.0)
Z | np.broadcast_to(z, ())
Z | z.flatten() ; z.copy() ; np.nan_to_num(z) ; np.select([z > 0], [z])
Z | np.transpose(z)
S | s + 1 ; s * 2.5 ; s[...] ; s[()] ; np.squeeze(s) ; np.transpose(s) ; s.astype("f4") ; s.copy()
S | s.reshape(()) ; np.exp(s) ; s.round(1) ; s.fill(7) ; [v for v in s.flat] ; s.flat[0] ; np.int32(4).fill(5)
S | np.asarray(s) ; np.array(s) ; np.zeros_like(s) ; np.cumsum(s) ; np.atleast_2d(s) ; s < 2 ; s == s
S | np.maximum(s, 2) ; s // 1 ; s ** 2
F | f + 1 ; f * 2.5 ; f + np.float64(1) ; f ** 2 ; np.sqrt(f) ; f + np.ones(2, "f4") ; f * np.arange(2) ; -f
F | abs(f) ; f.sum()
I | i + 1 ; i / 2 ; i // 2 ; i * 1.5 ; ~i ; i << 2 ; np.float32(i) ; i == 1 ; np.sqrt(i)
I | i - np.int8(3)
N | np.vdot(n, 1) ; np.vdot(n[()], 1.5) ; np.vdot(1, n) ; np.dot(n, 1) ; np.inner(n, 1.5) ; np.kron(n, 1) ; np.outer(n, 1)
N | np.tensordot(n, 1, axes=0) ; np.einsum(",->", n, 1) ; np.einsum("i,", n[None], 1.5) ; np.linalg.outer([1], n[None])
P | np.vdot(np.int8(3), p) ; np.kron(np.float32(2), p) ; np.einsum(",", np.float32(2), p) ; np.inner(np.int8(3), p)
B | ~b ; b & True ; b + 1 ; b * 2.5 ; np.where(b, 1, 0) ; np.sum(b) ; np.logical_not(b) ; b | False
M | m.sum() ; m.sum(0) ; m.argmax() ; np.dot(m[0], m[1]) ; m @ m.T ; m[0] @ m[1] ; np.vdot(m, m)
M | np.inner(m[0], m[0]) ; np.trace(m)
M | np.einsum("ij,ij->", m, m) ; np.tensordot(m[0], m[0], 1) ; m.std() ; np.median(m) ; np.percentile(m, 50)
M | m.any() ; np.ptp(m)
M | np.count_nonzero(m, 0) ; m[0, 0] ; m[1:, 0].squeeze() ; m.max(1, keepdims=True) ; np.cov(m[0])
M | np.corrcoef(m[0]) ; m.T ; m[[0, 1], [0, 1]]
M | np.allclose(m, m) ; np.array_equal(m, m.T) ; np.shape(m) ; m.ndim ; m.size ; m.nbytes ; len(m) ; m.dtype
M | m.itemsize ; m.strides
K | k.sum() ; k.mean() ; k.prod() ; k.cumsum() ; np.sort(k) ; k.argsort() ; k[k] ; k / 2 ; np.mean(k)
U | np.arange(u[1]) ; np.arange(1, u[1]) ; np.arange(u[0], 5) ; np.arange(u.max(), dtype=np.int8) ; np.arange(u[1].astype("u4"))
U | np.arange(*np.ones(3, "f4")) ; np.arange(np.float32(2))
K | k.astype(bool) ; k.argmin() ; k.take(0)
"""


@pytest.mark.parametrize("line", CASES.strip().splitlines())
def test_kinds_of_results(line: str) -> None:
    name, expressions = line.split("|", 1)
    name = name.strip()
    body = ", ".join(f"({e.strip()})" for e in expressions.split(" ; "))
    check(function_of(name.lower(), f"[{body}]"), globals()[name])


def test_type_of_scalars_beside_a_comparison_in_long_long() -> None:
    """NumPy compares an int8 and a uint64 as C's long longs, which equal int64 and are another type."""

    def program(x: Any, y: Any) -> Any:
        if x[0] != y[0]:
            y[0] = 3
        else:
            for _ in range(3):
                y[0] += 0
                counts = [7 for _ in range(4)]
                total = np.negative(np.array(counts).sum())
        return total

    x, y = np.array([1], np.int8), np.array([1], np.uint64)
    assert type(jitml.jit(program)(x, y)) is type(program(x, y)) is np.int64
