"""Derivatives of factorizations and Fourier transforms, real and complex, against differences along a direction.

What depends on the phase of vectors is asked only where it is one: each function is of quantities that have a definite value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.effort import FULL

RNG = np.random.default_rng(0)
A, B, TALL = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=(5, 3))
A = A + np.diag([1.0, 4, 8, 12])
W = RNG.normal(size=(6, 6))


def phased(v: Any) -> Any:
    """Columns without their phase: the projections on them."""
    return v[:, None, :] * np.conj(v)[None, :, :]


def hermitian(a: Any) -> Any:
    return a + np.conj(a.T)


def weighed(x: Any) -> Any:
    """A real number that every element counts in."""
    flat = x.ravel()
    weights = np.cos(np.arange(1.0, flat.size + 1))
    return (flat.real * weights).sum() + (flat.imag * np.sin(weights)).sum()


def both(*xs: Any) -> Any:
    return sum(weighed(x) for x in xs)


OF_ONE: dict[str, Callable[..., Any]] = {
    "inv": lambda a: weighed(np.linalg.inv(a)),
    "det": lambda a: weighed(np.atleast_1d(np.linalg.det(a))) / 50,
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "cholesky": lambda a: weighed(np.linalg.cholesky(hermitian(a) + 20 * np.eye(4))),
    "eigh": lambda a: both(np.linalg.eigh(hermitian(a))[0], phased(np.linalg.eigh(hermitian(a))[1])),
    "eigh of the upper half": lambda a: weighed(np.linalg.eigh(a, "U")[0]),
    "eigvalsh": lambda a: weighed(np.linalg.eigvalsh(a)),
    "eigvals": lambda a: weighed(np.linalg.eigvals(a)),
    "eig": lambda a: weighed(phased(np.linalg.eig(a)[1])),
    "svd": lambda a: both(np.linalg.svd(a)[1], phased(np.linalg.svd(a)[0]), phased(np.conj(np.linalg.svd(a)[2].T))),
    "low rank": lambda a: weighed((np.linalg.svd(a[:3], False)[0][:, :2] * 2) @ np.linalg.svd(a[:3], False)[2][:2]),
    "nuclear norm": lambda a: np.linalg.norm(a, "nuc"),
    "spectral norm": lambda a: np.linalg.norm(a, 2),
    "cond": lambda a: np.linalg.cond(a) * 2,
    "qr": lambda a: both(*np.linalg.qr(a)),
    "qr of a tall matrix": lambda a: both(*np.linalg.qr(a[:, :2])),
    "qr of a wide matrix": lambda a: both(*np.linalg.qr(a[:2])),
    "pinv": lambda a: weighed(np.linalg.pinv(a[:, :3])) + weighed(np.linalg.pinv(a[:2])),
    "matrix_power": lambda a: weighed(np.linalg.matrix_power(a, -2)),
    "fft": lambda a: weighed(np.fft.fft2(a)),
    "ifft": lambda a: weighed(np.fft.ifft(a, 6, axis=0)),
    "stack": lambda a: weighed(np.linalg.inv(np.stack([a, a @ a + np.eye(4)]))),
}
OF_REAL: dict[str, Callable[..., Any]] = {
    "svd of a part": lambda a: weighed(np.linalg.svd(a[:, :2], full_matrices=False)[0] @ np.linalg.svd(a[:, 2:].T, False)[2]),
    "rfft": lambda a: weighed(np.fft.rfft(a)) + weighed(np.fft.rfft(a, 5)),
    "rfftn": lambda a: weighed(np.fft.rfftn(a)),
    "ihfft": lambda a: weighed(np.fft.ihfft(a)),
}
OF_COMPLEX: dict[str, Callable[..., Any]] = {
    "irfft": lambda a: weighed(np.fft.irfft(a)) + weighed(np.fft.irfft(a, 7)),
    "irfftn": lambda a: weighed(np.fft.irfftn(a)),
    "hfft": lambda a: weighed(np.fft.hfft(a)),
    "abs": lambda a: weighed(np.abs(a)),
    "angle": lambda a: weighed(np.angle(a)),
    "functions": lambda a: weighed(np.exp(a / 9) * np.sin(a / 3) + np.sqrt(a) / np.log(a) + a**3 + np.tanh(a) + 1 / a),
    "more functions": lambda a: weighed(np.arctan(a / 20) + np.arcsinh(a) + np.cosh(a / 5) + np.tan(a / 9) + np.log1p(a)),
    "parts": lambda a: weighed(a.real * a.imag + a.conj() * 2j) + (a * a.conj()).real.sum(),
    "sign": lambda a: weighed(np.sign(a)),
    "products": lambda a: weighed(a @ a.conj().T) + np.linalg.norm(a) + np.vdot(a, a * 1j).imag,
    "reductions": lambda a: weighed(np.cumprod(a / 5, axis=0)) + weighed(a.prod(axis=1) / 99) + a.var(),
    "in place": lambda a: weighed(written(a)),
}


def written(a: Any) -> Any:
    b = a.copy()
    b.real[0] *= 2
    b[1:, 0] = b[0, 0] * 1j
    return b * b


def check(f: Callable[..., Any], *args: Any, compiled: bool = True) -> None:
    """jvp and grad along random directions, compiled and not, against central differences."""
    rng = np.random.default_rng(1)
    directions = [rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0) for x in args]
    step = 1e-5
    ahead, behind = ([x + sign * step * d for x, d in zip(args, directions)] for sign in (1, -1))
    expected = (f(*ahead) - f(*behind)) / (2 * step)
    size = 1e-6 * max(1.0, abs(expected), abs(f(*args)))
    _, along = jitml.jvp(f, args, tuple(directions))
    assert abs(along - expected) < size, (along, expected)
    gradient = jitml.grad(f, argnums=tuple(range(len(args))))
    for g in (gradient, jitml.jit(gradient)) if compiled else (gradient,):
        found = sum(float(np.sum(part * d).real) for part, d in zip(g(*args), directions))
        assert abs(found - expected) < size, (found, expected)


@pytest.mark.parametrize("name", [*OF_ONE, *OF_REAL])
def test_real(name: str) -> None:
    check((OF_ONE | OF_REAL)[name], A)


@pytest.mark.parametrize("name", [*OF_ONE, *OF_COMPLEX])
def test_complex(name: str) -> None:
    check((OF_ONE | OF_COMPLEX)[name], A + 1j * RNG.normal(size=(4, 4)))


OF_TWO: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (lambda a, b: weighed(np.linalg.solve(a, b)), (A, B)),
    "solve a vector": (lambda a, b: weighed(np.linalg.solve(a, b)), (A, B[:, 0])),
    "lstsq": (lambda a, b: both(*np.linalg.lstsq(a, b)[:2], np.linalg.lstsq(a, b)[3]), (TALL, TALL[:, :2] * 2 + 1)),
    "lstsq of a wide matrix": (lambda a, b: weighed(np.linalg.lstsq(a, b)[0]), (TALL.T, TALL[:3, 0])),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two(name: str) -> None:
    f, args = OF_TWO[name]
    check(f, *args)
    check(f, *(x * (1 + 0.3j) + 0.1j * x[::-1] for x in args))


def spectrum(rows: int, columns: int, values: list[float], imaginary: complex) -> Any:
    """A matrix with these singular values."""
    rng = np.random.default_rng(2)
    u, v = (np.linalg.qr(x + imaginary * x.T)[0] for x in (rng.normal(size=(n, n)) for n in (rows, columns)))
    return (u[:, : len(values)] * values) @ v[: len(values)]


CUT: dict[str, tuple[int, int, list[float]]] = {
    "square": (3, 3, [2, 1.2, 0.4]),
    "tall": (5, 3, [2, 1.2, 0.4]),
    "wide": (3, 5, [2, 1.2, 0.4]),
    "equal": (4, 4, [1, 1, 0.2, 0.2]),
    "zeros": (4, 4, [2, 1.2, 0, 0]),
    "whole": (4, 3, [2, 1.2, 1.2]),
    "close": (3, 3, [1, 0.53, 0.47]),
}


@pytest.mark.parametrize(("name", "imaginary"), [*((name, 0) for name in CUT), ("wide", 0.3j), ("equal", 0.3j), ("close", 0.3j)])
def test_cutoffs(name: str, imaginary: complex) -> None:
    """What a cutoff keeps turns with what it leaves out."""
    a = spectrum(*CUT[name], imaginary)

    def inverse(a: Any) -> Any:
        return weighed(np.linalg.pinv(a, rcond=0.5)) / 50

    def solution(a: Any, b: Any) -> Any:
        return weighed(np.linalg.lstsq(a, b, rcond=0.5)[0]) / 50

    def slope(a: Any) -> Any:
        return weighed(jitml.grad(inverse)(a)) / 99

    if name != "zeros":  # which differences do not leave at zero
        check(inverse, a)
        if FULL or name in ("square", "tall", "close"):
            check(slope, a, compiled=FULL or (name == "close" and not imaginary))
    if name not in ("tall", "zeros"):  # of a tall matrix the residuals are missing then
        check(solution, a, a[:, :2] + 1)
    g = jitml.grad(inverse)(a)
    np.testing.assert_allclose(jitml.vmap(jitml.grad(inverse))(np.stack([a, a]))[1], g, rtol=1e-10, atol=1e-12)


def test_cutoff_of_a_matrix_of_lower_rank() -> None:
    """By any cutoff between, as by that of roundings."""
    a = spectrum(4, 4, [2, 1.2, 0, 0], 0)
    rough, fine = (jitml.grad(lambda a, r=r: weighed(np.linalg.pinv(a, rcond=r)))(a) for r in (0.1, 1e-12))
    np.testing.assert_allclose(rough, fine, rtol=1e-10, atol=1e-12)


def test_second_order() -> None:
    f = lambda a: np.linalg.slogdet(a @ a.T + np.eye(4))[1]  # noqa: E731  # grad wants a function
    check(lambda a: weighed(jitml.grad(f)(a)), A)
    forward, backward = (h(lambda a: np.linalg.slogdet(a)[1])(A) for h in (jitml.hessian, lambda f: jitml.jacrev(jitml.grad(f))))
    np.testing.assert_allclose(forward, backward, atol=1e-12)


def minors(a: np.ndarray) -> np.ndarray:
    """The cofactors of a matrix as they are defined."""
    rows, columns = np.indices(a.shape)
    without = [np.delete(np.delete(a, i, 0), j, 1) for i, j in zip(rows.flat, columns.flat)]
    return np.reshape([np.linalg.det(m) for m in without], a.shape) * (-1.0) ** (rows + columns)


@pytest.mark.parametrize("finish", [lambda f: f, jitml.jit], ids=["eager", "jitted"])
@pytest.mark.parametrize("imaginary", [0, 0.3j], ids=["real", "complex"])
def test_determinants_of_singular_matrices(imaginary: complex, finish: Any) -> None:
    """Of any rank, in one stack with regular ones, and where the determinant is too large or too small for a float."""
    rank = np.array([1.0, 1, 1, 0]), np.array([1.0, 1, 0, 0]), np.zeros(4), np.ones(4)
    stack = np.stack([*(np.diag(r) @ A for r in rank), A[[0, 1, 2, 0]], A * 1e-90, A * 1e90, np.ones((4, 4))])
    stack = stack + imaginary * stack[:, :, ::-1]
    expected = np.stack([minors(a) for a in stack])
    slopes = finish(jitml.grad(lambda a: np.linalg.det(a).sum().real))(stack)
    np.testing.assert_allclose(slopes, expected, rtol=1e-10, atol=1e-12)
    forward = finish(lambda a: jitml.jvp(np.linalg.det, (a,), (np.ones_like(a),))[1])(stack)
    np.testing.assert_allclose(forward, expected.sum(axis=(1, 2)), rtol=1e-9, atol=1e-11)
    together = finish(jitml.vmap(jitml.grad(lambda a: np.linalg.det(a).real)))(stack)
    np.testing.assert_allclose(together, expected, rtol=1e-10, atol=1e-12)


def test_second_derivatives_of_determinants() -> None:
    jitml.check_grads(lambda a: np.linalg.det(a) / 50, (A,), order=3)


def test_convention() -> None:
    """df/dx - i df/dy."""
    z = np.array([1 + 2j, -3 + 0.5j])
    np.testing.assert_allclose(jitml.grad(lambda z: (np.abs(z) ** 2).sum())(z), 2 * z.conj())
    np.testing.assert_allclose(jitml.grad(lambda z: (z * z).sum(), holomorphic=True)(z), 2 * z)


@pytest.mark.parametrize("turned", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("imaginary", [0, 0.3j], ids=["real", "complex"])
def test_whole_bases(turned: bool, imaginary: complex) -> None:
    """What the columns span that make a basis whole, and all that does not ask for them."""

    def of_svd(a: Any) -> Any:
        u, s, vh = np.linalg.svd(a.T if turned else a)
        rest = u[:, 3:] if not turned else np.conj(vh[3:].T)
        return weighed(rest @ np.conj(rest.T)) + weighed(s) + weighed(phased(u[:, :3]))

    def of_qr(a: Any) -> Any:
        q, r = np.linalg.qr(a.T if turned else a, mode="complete")
        return weighed(q[:, 3:] @ np.conj(q[:, 3:].T)) + weighed(r) + weighed(q[:, :3])

    tall = TALL * (1 + imaginary) + imaginary * TALL[::-1]
    check(of_svd, tall)
    check(of_qr, tall)


def test_hermitian_singular_values() -> None:
    def f(a: Any) -> Any:
        u, s, vh = np.linalg.svd(hermitian(a), hermitian=True)
        return weighed(np.linalg.pinv(hermitian(a), hermitian=True)) + weighed((u * s**2) @ vh) + weighed(s)

    check(f, A)
    check(f, A + 0.3j * A[::-1])
