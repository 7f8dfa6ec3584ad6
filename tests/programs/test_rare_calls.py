"""Ways of calling NumPy that are rarely tried: the same answer, in memory as NumPy lays it out, or the same exception."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UncompiledWarning
from support.against_numpy import compare, function_of, skip_without

R = np.random.default_rng(3)
V, W, A = R.normal(size=5), R.normal(size=5), R.normal(size=(3, 4))
ARGUMENTS: dict[str, Any] = {
    "v": V, "w": W, "a": A, "f": np.asfortranarray(A), "t": R.normal(size=(4, 3, 2)).transpose(1, 2, 0), "s": np.float64(2.5),
    "i": np.array([3, -1, 2, 0, 5]), "n": np.int64(300), "b": V > 0, "g": V.astype("f4"), "h": A.astype("f4"), "z": np.array(2.5),
    "k": np.array([100, -100, 127, 5, 1], np.int8), "q": R.normal(size=(3, 3)), "m": A > 0, "p": 2,
}  # fmt: skip
CALLS = """
np.zeros((2, 3), order="F") ; np.ones((2, 3), order="f") * s ; np.full((2, 3), s, order="F") ; np.eye(3, 4, order="F") * s
np.zeros_like(a, order="F") ; np.ones_like(f, order="A") ; np.full_like(f, 2, order="A") ; np.zeros_like(f, shape=(4, 2))
np.zeros_like(t, shape=(2, 2, 2)) ; np.array([n, 1], dtype=np.int8) ; np.array([v[0], n], dtype=int) ; a.copy("X")
np.array(a, dtype="f4", copy=False) ; np.asarray(a, order="F", copy=False) ; f.astype(float, order="C", copy=False)
s.astype(int, casting="safe") ; np.arange(0.5, 3.5, 0.5, dtype=int) + p ; np.arange(2, dtype=bool) ; np.arange(3, dtype=bool)
np.require(a[::-1][:1], requirements="C") ; np.require(a[:, ::2], float, ["A", "W"]) ; np.require(f, "f4", "F")
np.require(np.broadcast_to(v, (2, 5)), None, ["W", "O"]) ; np.require(a[1:], None, "O") ; np.require(a, None, ["c", "F"])
np.asarray(a[:, ::2], order="A") ; np.require(a, int) ; np.take(v, 1.7) ; np.take(a, [s, -0.3], axis=0) ; v.take(np.float32(2.9))
np.put(v, [s, 0.2], 5) ; np.take(v, v) ; np.take(v, v[:1] * 1e300) ; np.take(v, s * 1e300) ; np.choose(s, [v, w, v])
np.choose(v, [v, w]) ; np.choose(b, [v, w]) ; np.unravel_index(s, (3, 4)) ; np.ravel_multi_index((v, v), (9, 9))
np.linspace(0, s, 1, retstep=True) ; np.meshgrid(v, w, sparse=True, copy=False)
np.mgrid[k[4] : k[3], :2] ; np.mgrid[g[0] : 9 : 3j] ; np.mgrid[:2, g[0] : 9 : 3j] ; np.ogrid[g[0] : 9, k[4] : k[3]]
np.mgrid[i[0] : i[1], :2] ; np.mgrid[i[0] : i[2] : 2, :2] ; np.mgrid[s:1, :2] ; np.ogrid[i[0] : i[1], :2]
np.r_[g[0] : g[1] : 3j, :3]
np.r_[a, a] ; np.r_[t, t] ; np.c_[a, a] ; np.c_[t, t] ; np.ix_([], i) ; np.ix_((), [True, False], b)
np.arange(i[1], i[0], 2) ; np.arange(k[1], k[0], 2) ; np.arange(i[0], i[1], 2) ; np.arange(v[:1], 3) ; np.arange(v, 3)
f.reshape(2, 6, order="A") ; a.reshape(2, 6, copy=True) ; f.reshape(2, 6, copy=False) ; a.reshape(2, 6, order="K")
a.flat == 3 ; a.flat < v[0] ; np.sum(a.flat) ; np.add(a.flat, 1) ; np.concatenate([a.flat, v])
np.add(a, 1, where=a[0], out=np.zeros((3, 4))) ; np.add(a, 1, where=[1, 0, 1, 0], out=np.zeros((3, 4)))
np.clip(v, 0) ; v.clip(0) ; np.clip(v, 0, min=1) ; np.round(v, 1, out=i) ; np.round(v, 400) ; np.result_type(g, float) == float
np.can_cast(p, "i1") ; np.isreal(p) ; np.nan_to_num(i, copy=False)
np.sum(a, axis=[0]) ; np.mean(a, axis=[0]) ; np.sum(a, axis=0, initial=a[0]) ; np.sum(a[0], where=m) ; np.sum(a[:1], where=m)
np.sum(a, where=a) ; np.sum(v, out=np.zeros((), int)) ; np.sum(k, out=np.zeros((), "i2")) ; np.cumsum(v, out=i)
np.argmax(a, axis=0, out=np.empty(4)) ; np.argmax(a, axis=0, out=np.empty(4, "i4")) ; np.cumulative_sum(z)
np.mean(h, axis=0, out=np.empty(4)) ; np.var(h, axis=0, out=np.empty(4)) ; np.median(h, axis=0, out=np.empty(4))
np.mean(i, dtype=int) ; np.var(a, ddof=1, correction=1) ; np.nanmedian(v[:0]) ; np.nanquantile(v[:0], 0.3)
np.quantile(v[:0], 0.3) ; np.quantile(v, []) ; np.average(v[:0]) ; np.cov(v, w, ddof=s) ; np.cov(t)
np.maximum.reduce(v, dtype=int) ; np.add.reduceat(v, [])
np.copyto(i, 2.5) ; np.copyto(b, 1) ; np.copyto(k, 5, casting="safe") ; np.copyto(v, w, where=i)
np.concatenate([v, w], out=np.empty(10, int)) ; np.concatenate([v, w], dtype="f4", out=np.empty(10, "f4")) ; np.tile(f, 1)
np.tile(f, (1, 1, 1)) ; np.delete(a, m[0], axis=1) ; np.delete(f, [0, 1], axis=1) ; np.delete(f, slice(0, 2), axis=1)
np.insert(a, 1, [[1], [2], [3]], axis=1) ; np.insert(a, 1, a, axis=0) ; np.insert(v, 1, a)
np.pad(a, 1, constant_values=[(1,), (2,)]) ; np.pad(a, 1, constant_values=np.array([[1.0, 2.0], [3.0, 4.0]]))
np.pad(v, 2, mode="edge", constant_values=3) ; np.pad(v, 2, nope=3)
np.where(b, k, 300) ; np.where(b, k.astype("u1"), -1) ; np.select([b], [k], 300) ; np.choose(i * 0, [k, 300])
np.piecewise(z, [z < 0], [lambda x: x * 2, lambda x: x * 3]) ; np.piecewise(z, z > 0, [1, 2]) ; np.piecewise(s, [s < 0], [1, 2])
np.piecewise(f, [m], [1, lambda x: x * 2]) ; np.piecewise(v, [b[:2]], [1, 2]) ; np.take(i, [0, 1], out=v[:2])
np.choose([0, 1], [i[:2], k[:2]], out=v[:2]) ; np.choose([1], [v], out=i[:1], mode="clip") ; np.compress(b, v, out=i[:3])
np.searchsorted(g[:1], float(g[0]) + 1e-9) ; np.searchsorted(np.sort(k), 300) ; np.isin(g, 0.1) ; np.isin(k, 300)
np.digitize(0.1, g[:1]) ; np.digitize(v * 1j, v) ; np.partition(v, 1.5) ; np.partition(v, 2, kind="nope")
np.histogram(v, np.sort(w))
np.diff(v, n=0) ; np.ediff1d(i, to_end=2.5) ; np.ediff1d(k, to_end=300)
np.gradient(a, axis=(1, 0)) ; np.gradient(b) ; np.gradient(v, edge_order=3)
np.apply_along_axis(lambda x, y: x.sum() + y, 0, a, 3) ; np.apply_along_axis(np.percentile, 0, a, 50)
np.apply_along_axis(np.sum, 0, a[:0]) ; np.apply_along_axis(np.sum, 1, a[:0])
np.polyder(s) ; np.poly(s) ; np.poly(g)
np.matmul(a, v[:4], dtype=int) ; np.matmul(a, a.T, order="F") ; np.dot(v, w, out=np.empty(()))
np.dot(a, v[:4], out=np.empty(3, int))
np.tensordot(a, a, axes=([0, 0], [0, 0])) ; np.linalg.norm(v[:0], np.inf) ; np.linalg.matrix_power(q, 1)
np.linalg.svd(q + q.T, hermitian=True) ; np.linalg.pinv(a, 0.1, rtol=0.1)
v.view(np.int64) ; g.view("u4") ; k.view(np.uint8) ; i.view(float) ; s.view("u8") ; z.view(np.int64) ; v[::2].view(np.int64)
f.view(np.uint64) ; v.astype("f2").view(np.int16) ; v.astype("f2").view("u2").view("f2")
(0x5F3759DF - (g.view("i4") >> 1)).view("f4")
np.frombuffer(v) ; np.frombuffer(a[1:], int, 3, 8) ; np.frombuffer(a[:, ::2]) ; np.frombuffer(f) ; np.frombuffer(v, count=9)
np.frombuffer(i, None) ; np.roll(a, (), (0, 1)) ; np.roll(a, (), 1) ; np.roll(a, 1, ())
np.frombuffer(v[:0]) ; np.frombuffer(z, count=1) ; np.frombuffer(v, offset=40) ; np.frombuffer(v * 2, offset=16)
np.geomspace(s, 9) ; np.geomspace(-s, -9, 4) ; np.geomspace(v, w, 5, axis=1) ; np.geomspace(abs(v), 3, 4, endpoint=False)
np.geomspace(s, 9, 0)
np.geomspace(s - 2.5, 3) ; np.geomspace(s, 9, 1) ; np.geomspace(9, s, 4, dtype=int) ; np.geomspace(s, 9, -1)
np.geomspace(g[:2], 2, 3, dtype="f4") ; np.geomspace(s, 0) ; np.geomspace(v * 1j, 3, 4) ; np.geomspace(v, w, 5, axis=-1)
np.signbit(np.einsum("i,i->i", v, v * 0)) ; np.signbit(np.einsum("i,j,i->ji", -v, v * 0, w))
np.signbit(np.einsum("i->i", -v * 0))
np.einsum("i->ii", v) ; np.einsum("ij,j->i", a, v[:4], dtype="f4") ; np.einsum("ij,jk->ik", a, a.T, order="F")
"""


def outcome(function: Any, given: list[Any]) -> tuple[Any, list[Any]]:
    """What a call returns, or the type of what it raises, and its arguments afterwards."""
    given = [x.copy(order="K") if isinstance(x, np.ndarray) else x for x in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", UncompiledWarning)
        try:
            return function(*given), given
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            return type(error), given


def agree(got: Any, expected: Any) -> None:
    compare(got, expected, ulps=64, absolute=1e-12)
    for x, y in zip(*(part if isinstance(part, (tuple, list)) else [part] for part in (got, expected))):
        if isinstance(y, np.ndarray):
            assert [step for step, n in zip(x.strides, x.shape) if n > 1] == [s for s, n in zip(y.strides, y.shape) if n > 1]


@pytest.mark.parametrize("call", [part.strip() for part in CALLS.replace("\n", " ; ").split(" ; ") if part.strip()])
def test_call(call: str) -> None:
    skip_without(call)
    names = [name for name in ARGUMENTS if re.search(rf"\b{name}\b", call)]
    function = function_of(", ".join(names), call)
    given = [ARGUMENTS[name] for name in names]
    expected, written = outcome(function, given)
    got, mine = outcome(jitml.jit(function), given)
    agree(got, expected)
    for x, y in zip(mine, written):
        compare(x, y)


@pytest.mark.parametrize("call", ["np.linalg.matrix_power(x, 0)", "np.einsum('ii->i', x)", "np.einsum('ii', x)"])
def test_what_is_square_once_is_not_taken_to_be_it_again(call: str) -> None:
    function = function_of("x", call)
    jitted = jitml.jit(function)
    for shape in ((3, 3), (2, 2), (2, 3)):
        expected, _ = outcome(function, [np.arange(float(np.prod(shape))).reshape(shape)])
        got, _ = outcome(jitted, [np.arange(float(np.prod(shape))).reshape(shape)])
        compare(got, expected)


def _bits_of_an_argument(x: Any) -> Any:
    bits = x.view(np.uint64)
    bits[1:] ^= 1 << 63
    return bits, bits[0] >> 52


def _bits_of_what_is_made(x: Any) -> Any:
    y = x * 2
    bits = y.T.view(np.int64)
    for k in range(len(bits)):
        bits[k] += 1
    y[0] = 0
    return y, bits


@pytest.mark.parametrize("function", [_bits_of_an_argument, _bits_of_what_is_made])
@pytest.mark.parametrize("x", [V, A, ARGUMENTS["f"], A[:, ::2]], ids=["vector", "rows", "columns", "part"])
def test_memory_seen_as_other_numbers_is_written(function: Any, x: Any) -> None:
    mine, eager = x.copy(order="K"), x.copy(order="K")
    jitted = jitml.jit(function)
    for _ in range(2):
        compare(jitted(mine), function(eager), ulps=0)
        compare(mine, eager, ulps=0)
