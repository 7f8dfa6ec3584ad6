"""Complex numbers agree with NumPy: arithmetic, functions, parts as views, reductions, products, promotion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml import UnsupportedError
from support.against_numpy import check, function_of


def drawn(*shape: int, seed: int = 0, dtype: Any = np.complex128) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


Z, W, R = drawn(3, 4), drawn(3, 4, seed=1), np.random.default_rng(2).normal(size=(3, 4))
EXPRESSIONS = """
z + w; z - r; r * z; z / w; 2 / z; z * 2; z + 1j; 1j * r; r + 1j * r; z ** 2; z ** 3; z ** -1; z ** 0.5; z ** w; 2.0 ** z
-z; +z; abs(z); np.abs(z); z.real; z.imag; z.conj(); np.conj(r); np.angle(z); np.angle(r); np.angle(z, deg=True); np.sign(z)
np.angle((r > 0).astype('i1')); np.angle(r > 0)
np.square(z); np.reciprocal(z); np.exp(z); np.log(z); np.log2(z); np.log10(z); np.sqrt(z); np.sin(z); np.cos(z); np.tan(z)
np.sinh(z); np.cosh(z); np.tanh(z); np.arcsin(z); np.arccos(z); np.arctan(z); np.arcsinh(z); np.arccosh(z); np.arctanh(z)
np.expm1(z); np.log1p(z); np.exp2(z); z == w; z != z; z < w; z >= z; np.maximum(z, w); np.minimum(z, w); np.isnan(z)
np.isfinite(z); np.isinf(z); np.iscomplex(z); np.isreal(r); np.iscomplexobj(z); np.isrealobj(z); np.real(r); np.imag(z)
np.round(z, 1); np.isclose(z, z + 1e-12); np.allclose(z, w); z.sum(); z.sum(axis=0); z.mean(axis=1); z.prod()
z.prod(axis=1); z.cumsum(); np.cumprod(z, axis=1); z.var(); z.std(axis=0); z.max(); z.min(axis=1); z.argmax()
np.sort(z, axis=0); np.argsort(z); np.median(z); np.sort_complex(r); np.trace(z); np.ptp(z); z @ w.T; z.dot(w.T)
np.vdot(z, w); np.inner(z, w); np.outer(z[0], w[0]); np.einsum('ij,kj->ik', z, w); np.tensordot(z, w); np.kron(z[0], w[0])
z @ r.T; np.vecdot(z, w); np.linalg.norm(z); np.linalg.norm(z, axis=1); np.convolve(z[0], w[0])
np.correlate(z[0], w[0], 'full'); np.where(r > 0, z, w); np.concatenate([z, r]); np.stack([z, w]); z.T; z.reshape(4, 3)
z[1:, ::2]; z[[0, 2]]; z[r > 0]; z.ravel(); np.zeros_like(z); np.ones(3, complex); np.array([1j, 2]); np.full((2,), 1 + 2j)
z.astype(np.complex64); r.astype(complex); z != 0; np.pad(z, 1); np.roll(z, 1); np.diff(z); np.unique(np.round(z))
np.take(z, [0, 5]); np.nan_to_num(z); np.cov(z); np.average(z); np.count_nonzero(z); np.gradient(z); np.ones(3, complex).sum()
np.interp(r, np.sort(r[0]), r[1]) + 1j; np.linspace(0, 1j, 5); np.clip(z.real, 0, 1); np.trapezoid(z); np.any(z); np.all(z)
np.result_type(z, 1j); np.float32(1) * z; np.complex64(1j) * r; complex(r[0, 0]) * z; z[0, 0] * 2; z[0, 0].real; z.item(0)
"""
LINES = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";")]


@pytest.mark.parametrize("expression", LINES)
def test_expressions(expression: str) -> None:
    check(function_of("z, w, r", expression), Z, W, R, ulps=16)


@pytest.mark.parametrize("expression", LINES)
def test_single_precision(expression: str) -> None:
    check(function_of("z, w, r", expression), Z.astype("c8"), W.astype("c8"), R.astype("f4"), ulps=32)


def test_parts_are_views() -> None:
    def f(x: Any) -> Any:
        x.real *= 2
        x.imag[1:] = 7
        part = x[::2].real
        part += 1
        x.real[0] = -1
        return x.sum(), part

    check(f, drawn(6))


def test_the_callers_array_is_written() -> None:
    def f(x: Any, y: Any) -> None:
        x[1:3] += y[:2]
        x *= 1j

    check(f, drawn(6), drawn(6, seed=1))
    check(f, drawn(12)[::2], drawn(12, seed=1)[::-2])


def test_part_of_an_argument_is_a_view_of_it() -> None:
    x = drawn(5)
    part = jitml.jit(lambda x: x.imag)(x)
    assert np.shares_memory(part, x)
    assert part[0] == x.imag[0]


def mandelbrot(c: Any) -> Any:
    z, steps = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(30):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        steps += inside
    return steps


def newton(z: complex, n: int) -> complex:
    for _ in range(n):
        z = z - (z**3 - 1) / (3 * z**2)
    return z


def horner(coefficients: Any, z: Any) -> Any:
    result = np.zeros_like(z)
    for c in coefficients:
        result = result * z + c
    return result


def collatz_like(z: Any) -> Any:
    n = 0
    while abs(z) < 100 and n < 50:
        z = z * z + (0.3 + 0.5j) if z.real > 0 else z * 2j + 1
        n += 1
    return z, n


def test_programs() -> None:
    check(mandelbrot, np.linspace(-2, 1, 7)[None] + 1j * np.linspace(-1, 1, 5)[:, None])
    check(newton, 1 + 1j, 8, ulps=64)
    check(newton, np.complex128(1 + 1j), 8, ulps=64)
    check(horner, drawn(5), drawn(3, 4, seed=1), ulps=64)
    check(collatz_like, np.complex128(0.1 + 0.2j), ulps=1e6)


def test_python_numbers_are_weak() -> None:
    check(lambda z, k: z * k, drawn(3, dtype=np.complex64), 2j)
    check(lambda r, k: r * k, np.ones(3, np.float32), 2j)
    check(lambda k: (k.real + 1, k.imag, k.conjugate(), k * 2, abs(k)), 3 + 4j)


SPECIAL = np.array([complex(re, im) for re in (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf) for im in (0.0, -0.0, 1.0, -2.5)])


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sinh", "cosh", "tanh", "sin", "cos", "tan", "abs", "sign", "angle"])
def test_special_values(name: str) -> None:
    check(function_of("z", f"np.{name}(z)"), SPECIAL)


@pytest.mark.parametrize("z", [800 + 1j, 1e300 + 1e300j, 1e-310 + 1e-312j, 1 + 1e-12j, 0.6 + 0.8j, 1e-200j, -1e308 + 0j])
def test_large_and_small(z: complex) -> None:
    for name in ("exp", "log", "sqrt", "abs", "tanh"):
        check(function_of("z", f"np.{name}(z)"), np.array([z, z.conjugate(), -z]), ulps=16)


ORDINARY = np.array([0j, 1, -1, 1j, -1j, 2.5 - 1j, 1e-10 + 1e-12j, 1e10 - 3j, -0.5 + 0.5j])
QUIET = """
exp(z / 9e9); sqrt(z); sin(z / 9e9); cos(z / 9e9); tan(z / 9e9); sinh(z / 9e9); cosh(z / 9e9); tanh(z); arcsin(z); arccos(z)
sign(z); abs(z); log(z + 2j); log1p(z + 2j); z / (z + 2j); 1 / (z + 2j); 1j / (z + 2j); z ** 3; z ** (0.5 + 1j); (z + 2j) ** -1
z * z; arcsinh(z)
"""


@pytest.mark.parametrize("expression", [e.strip() for line in QUIET.strip().splitlines() for e in line.split(";")])
def test_no_floating_point_error_is_made_up(expression: str) -> None:
    f = function_of("z", expression)
    f.__globals__.update({ufunc.__name__: ufunc for ufunc in vars(np).values() if isinstance(ufunc, np.ufunc)} | {"abs": np.abs})
    with np.errstate(all="raise", under="ignore"):
        f(ORDINARY)
        jitted = jitml.jit(f)
        jitted(ORDINARY)
        jitted(ORDINARY)
    (variant,) = jitted.variants
    assert not variant.replays


def test_lost_parts_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="loses imaginary parts"):
        jitml.jit(lambda x, z: x.__setitem__(slice(0, 2), z[:2]))(np.zeros(3), drawn(3))
