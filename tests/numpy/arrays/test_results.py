"""What comes back: a scalar, an array or a Python object; the argument itself, a view or new memory; writeable or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.numpy.support.versions import broadcast_keeps_arrays
from support.against_numpy import compare, function_of, run_traced

V, Z, X, S = np.array([0.5, 1.5, 2.5]), np.array(1.5), np.arange(6.0).reshape(2, 3), np.float64(1.5)
# NumPy warns of a write into these, and will forbid it; here it is forbidden.
READ_ONLY = ["np.broadcast_arrays(v, x)[0]", "np.meshgrid(v, v, copy=False)[0]"]
if not broadcast_keeps_arrays():
    READ_ONLY += ["np.broadcast_arrays(v, x)[1]", "np.meshgrid(v, v[:1], copy=False)[0]"]

ROWS = """
v[0] ; v[np.array(0)] ; z[()] ; z[...] ; x[0, 0] ; x[0, 0, ...] ; x[0] ; x[:, 0] ; x[0, ...] ; x[..., 0] ; v[None] ; v[:1]
v[:1].squeeze() ; v[:1].squeeze(0) ; z + 1 ; -z ; divmod(z, 1) ; np.modf(z) ; np.add.reduce(v) ; np.add.reduce(x)
np.add.outer(z, z) ; v.sum() ; x.sum(axis=()) ; z.sum(axis=()) ; v.argmax() ; np.median(v) ; np.percentile(v, 50)
np.dot(v, v) ; np.vdot(v, v) ; np.inner(v, v) ; v @ v ; np.vecdot(v, v) ; np.trace(x) ; np.einsum("i,i->", v, v)
np.einsum("ij->ij", x) ; np.round(z) ; np.clip(z, 0, 1) ; np.nan_to_num(z) ; np.isclose(z, 1) ; np.conj(z) ; np.fix(z)
np.sinc(z) ; np.interp(1.5, v, v) ; np.searchsorted(v, 1.0) ; np.digitize(1.0, v) ; v.take(0) ; v.take([0]) ; np.squeeze(s)
np.transpose(s) ; np.real(s) ; s.astype("f4") ; np.copy(s) ; s.reshape(()) ; s.reshape(1) ; np.linalg.norm(v)
np.count_nonzero(v) ; np.flip(z) ; np.unravel_index(3, (2, 2)) ; np.polyval([1.0, 2.0], 3.0) ; np.corrcoef(v) ; np.zeros(())
np.full((), 2.0) ; np.array(1.5) ; np.array(s) ; np.asarray(s) ; np.zeros_like(z) ; z.copy() ; np.copy(z)
np.where(z > 0, z, 0.0) ; np.select([z > 0], [z]) ; z.astype("f4") ; z.astype("f8") ; z.astype("f8", copy=False)
z.reshape(()) ; z.T ; z.view() ; np.transpose(z) ; np.tensordot(v, v, 1) ; np.roll(z, 1) ; np.cov(v) ; np.broadcast_to(z, ())
np.broadcast_to(v, (2, 3)) ; np.broadcast_to(v, (3,)) ; z.conj() ; z.real ; z.squeeze() ; np.asarray(z) ; np.asarray(v)
v.conj() ; v.real ; v.squeeze() ; np.ravel(v) ; np.ravel(x) ; np.ravel(x.T) ; x.T ; x.T.ravel() ; x.reshape(-1)
x.T.reshape(-1) ; x.flatten() ; x.swapaxes(0, 1) ; np.moveaxis(x, 0, 1) ; np.expand_dims(v, 0) ; np.atleast_1d(v)
np.atleast_2d(v) ; np.atleast_1d(z) ; np.cumsum(z) ; np.cumprod(z) ; np.ravel(z) ; np.unique(z) ; np.ascontiguousarray(z)
np.ascontiguousarray(v) ; np.ascontiguousarray(x.T) ; v[True] ; z[True] ; v[[0, 1]] ; v[v > 0] ; v[::-1] ; v[::2]
x[::-1, ::2] ; np.flip(v) ; np.fliplr(x) ; np.rot90(x) ; np.rot90(x, 2) ; np.diagonal(x) ; np.diag(x) ; np.diag(v)
np.split(v, [1]) ; np.array_split(v, 2) ; np.hsplit(x, [1]) ; np.array(v) ; np.array(v, copy=False) ; np.array(v, ndmin=2)
np.positive(v) ; +v ; abs(v) ; np.real(v) ; np.imag(v) ; v.imag ; np.triu(x) ; np.squeeze(x[None]) ; v.astype(float)
v.astype(float, copy=False) ; v.astype("f4", copy=False) ; np.take(v, [0, 1]) ; np.compress([True, False, True], v)
np.broadcast_arrays(v, x)[0] ; np.broadcast_arrays(v, x)[1] ; np.meshgrid(v, v)[0] ; np.meshgrid(v, v, copy=False)[0]
np.meshgrid(v, copy=False)[0] ; np.meshgrid(v, v[:1], copy=False)[0] ; np.broadcast_arrays(v, v)[1] ; np.count_nonzero(v, 0)
np.resize(v, 3) ; np.tile(v, 1) ; np.repeat(v, 1) ; np.concatenate([v]) ; np.stack([v]) ; np.nan_to_num(v)
np.nan_to_num(v, copy=False) ; np.round(v) ; np.around(v, 2) ; np.rollaxis(x, 1) ; np.matrix_transpose(x) ; x.mT ; v[...]
v[:] ; v[()] ; x[1:][0] ; x[1:, 1] ; v.flatten() ; v.copy() ; np.vstack([v]) ; v.max(keepdims=True) ; z.max()
np.allclose(v, v) ; np.array_equal(v, v) ; np.size(v) ; np.ndim(v) ; np.shape(v) ; v.shape ; len(v) ; v.nbytes ; v.strides
x.T.strides ; v.flags.writeable ; v[::2].flags.c_contiguous ; np.linspace(0, 1, 3) ; np.arange(3) ; np.ones(2) ; np.eye(2)
v.mean() ; np.average(v) ; v.std() ; np.var(v, keepdims=True) ; np.ptp(v) ; np.prod(v) ; v.any() ; v.all() ; np.maximum(z, 1)
np.logical_not(z) ; z == z ; v == v ; np.sqrt(z) ; z * v ; s * v ; z * 2 ; z // 1 ; z ** 2 ; np.add(z, 1, out=np.zeros(()))
np.add(v, 1, out=np.zeros(3)) ; np.float64(z) ; np.float32(v) ; float(1) + z ; np.int64(3) + z ; np.bool_(True) + z
int(3) * z ; np.asarray(v > 1, float) ; np.asarray(x.astype("f4"), dtype=np.float64) ; np.array(v > 1, "f8", copy=None)
np.ascontiguousarray(v.astype("i4"), float) ; np.asarray(v, "f4") ; np.asarray(v, float) ; np.asfortranarray(x > 1, float)
"""


def describe(result: Any, arguments: list[Any]) -> Any:
    """All that a program can find out about an object but its values."""
    if isinstance(result, (tuple, list)):
        return [describe(part, arguments) for part in result]
    if not isinstance(result, np.ndarray):
        return type(result)
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    strides = [s for s, n in zip(result.strides, result.shape) if n > 1]
    shared = [np.shares_memory(result, a) for a in arrays]
    return result.dtype, result.shape, strides, result.flags.writeable, shared, any(result is a for a in arrays)


@pytest.mark.parametrize("expression", [e.strip() for line in ROWS.strip().splitlines() for e in line.split(" ; ")])
def test_what_comes_back(expression: str) -> None:
    function, arguments = function_of("v, z, x, s", expression), [V.copy(), Z.copy(), X.copy(), S]
    expected = function(*arguments)
    got = run_traced(function, *arguments)
    compare(got, expected, ulps=20)
    if expression not in READ_ONLY:
        assert describe(got, arguments) == describe(expected, arguments)
