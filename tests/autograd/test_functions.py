"""NumPy's differentiable functions, at smooth points: both modes to second order against differences, compiled and over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitml import check_grads, grad, jit, vjp, vmap

rng = np.random.default_rng(0)
x5 = np.array([0.31, -1.27, 2.05, 0.83, -0.44])
p5 = np.array([0.37, 1.21, 2.11, 0.79, 0.52])
x34 = rng.permutation(12).reshape(3, 4) * 0.37 - 2.1
y34 = rng.normal(size=(3, 4))
m33 = rng.normal(size=(3, 3)) + 3 * np.eye(3)
i3 = np.array([2, 0, 2])


def write(x: np.ndarray) -> np.ndarray:
    out = np.zeros((4, 4))
    out[1:, :] = x
    out[0] = x[i3].sum(0)
    out[:, 1] *= 2
    np.put_along_axis(out, np.array([[0], [1], [2], [3]]), 7.0, axis=1)
    return out * out


def add_at(x: np.ndarray) -> np.ndarray:
    out = np.ones(4)
    np.add.at(out, np.array([0, 1, 1]), x[:, 0])
    np.maximum.at(out, np.array([2, 3]), x[0, 1:3])
    return out * out


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    # Arithmetic at places where there is a slope.
    "power": (np.power, (p5, x5)),
    "float_power": (lambda x: np.float_power(x, 2.5), (p5,)),
    "square root": (lambda x: np.sqrt(x) + np.cbrt(x) + np.square(x) + np.reciprocal(x), (p5,)),
    "logaddexp": (lambda x, y: np.logaddexp(x, y) + np.logaddexp2(x, y), (x5, p5)),
    "expm1 and log1p": (lambda x: np.expm1(x) * np.log1p(x * x), (x5,)),
    "sinc": (np.sinc, (x5,)),
    "hyperbolic": (lambda x: np.sinh(x) * np.cosh(x) / np.tanh(x), (x5,)),
    "angles": (lambda x: np.deg2rad(x) + np.degrees(x) + np.arctan2(x, 2.0) + np.hypot(x, 1.5), (x5,)),
    "remainder": (lambda x: np.mod(x, 1.1) + np.fmod(x, 0.7) + np.remainder(7.3, x), (x5,)),
    "divmod": (lambda x: np.divmod(x, 1.1)[1] + np.modf(x)[0], (x5,)),
    "absolute": (lambda x: np.abs(x) * np.fabs(x) + np.copysign(x, -1.0), (x5,)),
    "extremes": (lambda x, y: np.maximum(x, y) * np.minimum(x, 0.2) + np.fmax(x, y) - np.fmin(x, y), (x5, p5)),
    "clip": (lambda x: np.clip(x, -1.0, 1.0) ** 2, (x5,)),
    "where": (lambda x: np.where(x > 0, np.sin(x), x * x), (x5,)),
    "select": (lambda x: np.select([x > 1, x < 0], [x, x * x], np.cos(x)), (x5,)),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda x: x * x, np.sin]), (x5,)),
    "nan_to_num": (lambda x: np.nan_to_num(x) ** 2, (x5,)),
    "heaviside": (lambda x: np.heaviside(x, 0.5) * x, (x5,)),
    # Reductions.
    "sums": (lambda x: x.sum(0) + np.sum(x, 1).sum() + x.mean(axis=0) + np.nansum(x, 0), (x34,)),
    "average": (lambda x, w: np.average(x, axis=1, weights=w), (x34, np.abs(y34) + 0.1)),
    "products": (lambda x: np.prod(x, axis=1) + np.nanprod(x, axis=1), (x34,)),
    "spread": (lambda x: np.var(x, axis=0) + np.std(x, axis=0, ddof=1) + np.nanvar(x, axis=0), (x34,)),
    "extremes of rows": (lambda x: np.max(x, axis=1) * np.min(x, axis=1) + np.ptp(x, axis=1) + np.nanmax(x, 1), (x34,)),
    "median": (lambda x: np.median(x, axis=0) * np.median(x), (x34,)),
    "quantile": (lambda x: np.quantile(x, 0.3, axis=1) + np.percentile(x, 65, axis=1), (x34,)),
    "norm": (
        lambda x: np.linalg.norm(x) + np.linalg.norm(x, axis=1) + np.linalg.norm(x[0], 1) + np.linalg.norm(x[0], 3),
        (x34,),
    ),
    "trace": (lambda x: np.trace(x) * np.diagonal(x).sum(), (m33,)),
    "covariance": (lambda x: np.cov(x) + np.corrcoef(x), (x34,)),
    "trapezoid": (np.trapezoid, (x5, np.cumsum(p5))),
    # Cumulative.
    "cumsum": (lambda x: np.cumsum(x, axis=1) * np.cumsum(x).reshape(3, 4), (x34,)),
    "cumprod": (lambda x: np.cumprod(x, axis=0), (x34,)),
    "running extremes": (lambda x: np.maximum.accumulate(x, axis=1) * np.minimum.accumulate(x, axis=0), (x34,)),
    "diff": (lambda x: np.diff(x, axis=1) ** 2 + np.diff(x, n=2, axis=1).sum(), (x34,)),
    "gradient": (lambda x: np.gradient(x) ** 2, (x5,)),
    "ediff1d": (lambda x: np.ediff1d(x) ** 2, (x5,)),
    # Order.
    "sort": (lambda x: np.sort(x, axis=1) ** 2 * np.arange(4), (x34,)),
    "partition": (lambda x: np.sort(np.partition(x, 2, axis=1)[:, :2], axis=1) ** 2, (x34,)),
    "take along": (lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1) ** 2, (x34,)),
    "topmost": (lambda x: x[np.arange(3), x.argmax(axis=1)] ** 2, (x34,)),
    "unique": (lambda x: np.unique(x) ** 2, (x34,)),
    # Places.
    "take": (lambda x: np.take(x, i3, axis=1) ** 2 + x[:, i3], (x34,)),
    "compress": (lambda x: np.compress([True, False, True], x, axis=0) ** 2, (x34,)),
    "masks": (lambda x: x[x > 0] ** 2, (x5,)),
    "choose": (lambda x: np.choose(np.array([0, 1, 0, 1, 1]), [x, x * x]), (x5,)),
    "put": (write, (x34,)),
    "add at": (add_at, (x34,)),
    "interp": (lambda x, fp: np.interp(x, np.array([-2.0, -1.0, 0.5, 1.5, 3.0]), fp), (x5, p5)),
    "bincount": (lambda w: np.bincount(np.array([0, 1, 1, 3, 0]), weights=w, minlength=5) ** 2, (x5,)),
    # Shapes.
    "joins": (lambda x, y: np.concatenate([x, y]) @ np.vstack([x, y]).T @ np.hstack([x, y]).sum(0)[:6], (x34, y34)),
    "stacks": (lambda x: np.stack([x, x * x], axis=1) + np.array([x, 2 * x]).transpose(1, 0, 2), (x34,)),
    "blocks": (lambda x: np.block([[x, x * 2], [x * x, x]]), (x34,)),
    "splits": (lambda x: np.split(x, 2, axis=1)[0] * np.array_split(x, 2, axis=1)[1], (x34,)),
    "repeats": (lambda x: np.tile(x, (2, 1)) * np.repeat(x, 2, axis=0), (x34,)),
    "turns": (lambda x: np.roll(x, 2, axis=1) * np.flip(x) + np.rot90(x, 2) * np.fliplr(x), (x34,)),
    "pads": (lambda x: np.pad(x, 1) + np.pad(x, 1, mode="edge") + np.pad(x, ((1, 1), (1, 1)), mode="reflect") ** 2, (x34,)),
    "axes": (lambda x: np.moveaxis(x[None], 0, 2)[..., 0] * np.expand_dims(x, 0)[0] * np.atleast_2d(x), (x34,)),
    "triangles": (lambda x: np.tril(x) ** 2 + np.triu(x, 1), (m33,)),
    "diagonals": (lambda x: np.diag(np.diag(x)) @ x, (m33,)),
    # Products.
    "matmul": (lambda x, y: x @ y.T + np.matmul(x, y.T), (x34, y34)),
    "dot": (lambda x, y: np.dot(x, y.T) * np.vdot(x, y) + np.inner(x, y), (x34, y34)),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([0, 1], [0, 1])) * np.outer(x[0], y[0]), (x34, y34)),
    "einsum": (lambda x, y: np.einsum("ij,kj->ik", x, y) + np.einsum("ij,ij->i", x, y), (x34, y34)),
    "cross": (lambda x, y: np.cross(x[:, :3], y[:, :3]), (x34, y34)),
    "kron": (np.kron, (x34[:2, :2], y34[:2, :2])),
    "convolve": (lambda x, y: np.convolve(x, y) + np.correlate(x, y, mode="full"), (x5, p5)),
    "polyval": (np.polyval, (x5, p5)),
    "vander": (lambda x: np.vander(x, 4), (x5,)),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 3), (m33,)),
    "multi_dot": (lambda x, y: np.linalg.multi_dot([x, y.T, x]), (x34, y34)),
}


@pytest.mark.parametrize("name", CASES)
def test_to_second_order(name: str) -> None:
    f, args = CASES[name]
    check_grads(f, args, order=2, eps=1e-3, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_compiled_and_in_rows(name: str) -> None:
    f, args = CASES[name]
    y = f(*args)
    ct = np.asarray(np.random.default_rng(1).normal(size=np.shape(y)))
    expected = vjp(f, *args)[1](ct)
    for got, wanted in zip(jit(lambda ct, *args: vjp(f, *args)[1](ct))(ct, *args), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-11)
    if name in ("masks", "unique"):
        return  # results of different sizes
    rows = vmap(lambda ct, *args: vjp(f, *args)[1](ct))(np.stack([ct, ct]), *(np.stack([a, a]) for a in args))
    for got, wanted in zip(rows, expected):
        np.testing.assert_allclose(got, np.stack([wanted, wanted]), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays(name: str) -> None:
    f, args = CASES[name]
    narrow = tuple(a.astype(np.float32) for a in args)
    slopes = grad(lambda *args: f(*args).sum(), tuple(range(len(args))))(*narrow)
    assert {s.dtype for s in slopes} == {np.dtype(np.float32)}
