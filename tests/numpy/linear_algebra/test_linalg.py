"""np.linalg agrees with NumPy: every factorization, stacks of matrices, dtypes, exceptions; and in programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import check, function_of

RNG = np.random.default_rng(0)
A, Z = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
S, H = A @ A.T + 4 * np.eye(4), Z @ Z.conj().T + 4 * np.eye(4)
STACK, TALL, B = RNG.normal(size=(2, 3, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(4, 2))
NAMES = {"a": A, "z": Z, "s": S, "h": H, "k": STACK, "t": TALL, "b": B}
EXPRESSIONS = """
inv(a); inv(z); inv(k); inv(a.astype(np.float32)); inv((a * 9).astype(int)); solve(a, b); solve(a, b[:, 0]); solve(z, b)
solve(k, k[0]); solve(k, np.ones(3)); det(a); det(z); det(k); slogdet(a); slogdet(z); slogdet(k); slogdet(a).logabsdet
cholesky(s); cholesky(h); cholesky(s, upper=True); cholesky(h.astype(np.complex64)); eigh(s); eigh(h)
eigh(s, 'U').eigenvalues; eigvalsh(h); eigvalsh(s, UPLO='U'); eig(a); eig(z); eig(s); eigvals(a); eigvals(s); svd(t)
svd(t, full_matrices=False); svd(z); svd(t, compute_uv=False); svdvals(k); qr(t); qr(t, mode='complete'); qr(z)
qr(t, mode='r'); qr(k); lstsq(t, t[:, 0]); lstsq(t, t[:, :2]); lstsq(a, b); lstsq(t.T, t.T[:, 0]); pinv(t); pinv(z); pinv(k)
pinv(t, rcond=0.5); norm(a, 2); norm(a, -2); norm(a, 'nuc'); norm(k, 2, axis=(1, 2)); norm(z, 2); cond(a); cond(a, -2)
cond(a, 1); cond(a, 'fro'); cond(k); matrix_rank(t); matrix_rank(k); matrix_rank(t[:, :1] * t[:1]); matrix_rank(t[0])
matrix_power(a, -2); matrix_power(z, 3); tensorinv(np.eye(6).reshape(2, 3, 3, 2) + 0.1)
tensorsolve(np.eye(6).reshape(2, 3, 6) + 0.1, b[:2, :1] + t[:2]); inv(a) @ b; inv(a.reshape(2, 8).reshape(4, 4)); inv(a.T)
solve(a[::-1], b[::-1]); det(a) * 2 + 1; norm(solve(a, b)); svd(s, hermitian=True)
"""
LINES = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split("; ")]


def with_names(expression: str) -> Any:
    f = function_of(", ".join(NAMES), expression)
    f.__globals__.update({name: getattr(np.linalg, name) for name in np.linalg.__all__})
    return f


@pytest.mark.parametrize("expression", LINES)
def test_expressions(expression: str) -> None:
    check(with_names(expression), *NAMES.values(), ulps=256, absolute=1e-4 if "32" in expression or "64" in expression else 1e-12)


SINGULAR = np.ones((3, 3))
MISTAKES = {
    "singular": (np.linalg.inv, (SINGULAR,)),
    "singular, and not used": (lambda a: (np.linalg.inv(a), a)[1] + 1, (SINGULAR,)),
    "not positive definite": (lambda a: np.linalg.cholesky(a - 5), (SINGULAR,)),
    "not square": (np.linalg.inv, (TALL,)),
    "no matrix": (np.linalg.det, (TALL[0],)),
    "half precision": (np.linalg.inv, (A.astype(np.float16),)),
    "nan": (lambda a: np.linalg.eigvals(a * np.nan), (A,)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_numpys(name: str) -> None:
    f, args = MISTAKES[name]
    with pytest.raises((np.linalg.LinAlgError, TypeError)) as expected:
        f(*args)
    with pytest.raises(expected.type):
        jitml.jit(f)(*args)


def test_other_numbers_may_have_other_eigenvalues() -> None:
    f = jitml.jit(np.linalg.eigvals)
    for a in (S, np.array([[0.0, 1], [-1, 0]]), A, S):
        got, expected = f(a), np.linalg.eigvals(a)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_a_failure_changes_nothing() -> None:
    def f(x: Any, a: Any) -> Any:
        x += 1
        return np.linalg.inv(a) @ x

    x = np.zeros(3)
    with pytest.raises(np.linalg.LinAlgError):
        jitml.jit(f)(x, SINGULAR)
    np.testing.assert_array_equal(x, 1.0)  # as NumPy leaves it


def kalman(x: Any, p: Any, measurements: Any) -> Any:
    f, q, r = np.array([[1, 0.1], [0, 1]]), 0.01 * np.eye(2), np.array([[0.5]])
    h = np.array([[1.0, 0.0]])
    for z in measurements:
        x, p = f @ x, f @ p @ f.T + q
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x, p = x + gain @ (np.array([z]) - h @ x), (np.eye(2) - gain @ h) @ p
    return x, p


def newton(x: Any) -> Any:
    for _ in range(6):
        g = np.array([x[0] ** 2 + x[1] - 3, x[0] - x[1] ** 2 + 1])
        j = np.array([[2 * x[0], 1.0], [1.0, -2 * x[1]]])
        x = x - np.linalg.solve(j, g)
    return x


def test_programs() -> None:
    check(kalman, np.zeros(2), np.eye(2), np.linspace(0, 1, 7), ulps=64, absolute=1e-12)
    check(newton, np.array([1.0, 1.0]), ulps=64, absolute=1e-12)


def densities(x: Any, covariance: Any, scale: Any) -> Any:
    total = 0.0
    for row in x:
        total += 1.0 / scale
        total += np.exp(-0.5 * row @ np.linalg.inv(covariance) @ row) / np.sqrt(np.linalg.det(covariance))
    return total


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("scale", [2.0, 0.0])
@pytest.mark.parametrize("covariance", [np.eye(3) + 0.1, SINGULAR, np.full((3, 3), np.nan)])
def test_what_each_iteration_inverts_is_inverted_once(count: int, scale: float, covariance: Any) -> None:
    """What comes first is raised first, and of no iteration nothing."""
    x = np.random.default_rng(0).normal(size=(count, 3))
    jitted = jitml.jit(densities)
    jitted(x, np.eye(3), 1.0)
    for _ in range(2):
        got, expected = outcome(jitted, x, covariance, scale), outcome(densities, x, covariance, scale)
        assert got[0] == expected[0]
        np.testing.assert_allclose(got[1], expected[1], rtol=1e-12)


def outcome(function: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    try:
        return "", function(*args)
    except (ZeroDivisionError, np.linalg.LinAlgError) as error:
        return repr(error), 0.0


def test_they_are_no_host_calls() -> None:
    f = jitml.jit(lambda a: np.linalg.inv(a) * 2, host_calls="error")
    np.testing.assert_allclose(f(A), np.linalg.inv(A) * 2)
