"""One compilation for many sizes: numbers of iterations and of rows that change from call to call are left open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import jit
from jitml.codegen.interpreter import run

Array = np.ndarray[Any, Any]
LENGTHS = (3, 5, 8, 0, 1, 40, 1000, 7)


def chain(x: Array, n: int) -> Any:
    s = 0.0
    for i in range(n):
        s = s + (x * x).sum() * 0.1 / (i + 1)
        x = np.sin(x) + 0.1
    return s


def nested(x: Array, n: int) -> Any:
    s = 0.0
    for i in range(n):
        y = x * 1.0
        for _ in range(min(i, 3)):
            y = np.cos(y) * x
        s = s + y.sum() / (i + 1)
    return s


def chosen(x: Array, n: int) -> Any:
    s = x.sum()
    if x[0] > 0:
        for _ in range(n):
            s = np.sin(s) + x[1]
    return s


def counted(x: Array, n: int) -> Any:
    s, i = x.sum(), 0
    while i < n:
        s = np.sin(s) + x[i % 3]
        i += 1
    return s


@pytest.mark.parametrize("policy", [False, None, "sqrt"])
@pytest.mark.parametrize("f", [chain, nested, chosen, counted], ids=lambda f: f.__name__)
def test_a_number_of_iterations_that_changes(f: Callable[..., Any], policy: Any) -> None:
    derived = jitml.value_and_grad(f)
    compiled = jit(jitml.value_and_grad(f if policy is False else jitml.checkpoint(f, policy=policy)))
    x = np.linspace(0.1, 1.0, 4)
    for n in LENGTHS:
        for got, wanted in zip(compiled(x, n), derived(x, n), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, err_msg=str(n))
    assert len(compiled.variants) <= 3
    assert not [dict(variant.replays) for variant in compiled.variants if variant.replays]


def looped(x: Array) -> Any:
    s = 0.0
    for i in range(5):
        if x.sum() > 1:
            x = x * 0.5
        else:
            x = x + 0.3
        s = s + x[0] * i
    while s > 1:
        s = s * 0.7
    return s


def steps_of_each(x: Array) -> Any:
    s = 0.0
    for i in range(int(x[0] * 7)):
        s = s + np.sin(x[1] * i)
    return s


def written(x: Array) -> Any:
    for i in range(1, len(x)):
        x[i] += x[i - 1] * 0.5
    x[::2] = 0.0
    return x


def indexed(x: Array) -> Any:
    k = int(x.argmax())
    t = np.arange(8.0)
    return t[k] + x[(k + 1) % 3] if x[0] > 0.5 else t[k + 1]


@jitml.custom_vjp
def clipped(x: Any) -> Any:
    return np.sin(x)


clipped.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.clip(ct * np.cos(x), -0.4, 0.4),))


@jitml.custom_jvp
def ruled(x: Any) -> Any:
    return np.exp(x)


@ruled.defjvp
def rule(primals: Any, tangents: Any) -> Any:
    return ruled(primals[0]), 2 * ruled(primals[0]) * tangents[0]


def by_rules(x: Array) -> Any:
    for _ in range(3):
        x = clipped(x) + 0.1 * ruled(x)
    return (x * x).sum()


def remade(x: Array) -> Any:
    return jitml.checkpoint(looped)(x) + jitml.checkpoint(by_rules)(x)


@pytest.mark.parametrize(
    "f",
    [
        looped, steps_of_each, written, indexed, jitml.grad(looped), jitml.value_and_grad(steps_of_each), jitml.jacfwd(written),
        jitml.grad(by_rules), jitml.grad(remade), jitml.hessian(by_rules),
    ],
    ids=[
        "looped", "steps of each", "written", "indexed", "grad looped", "grad steps", "jacfwd written", "grad by rules",
        "grad remade", "hessian by rules",
    ],
)  # fmt: skip
def test_a_number_of_rows_that_changes(f: Callable[..., Any]) -> None:
    compiled = jit(jitml.vmap(f))
    xs = np.random.default_rng(1).random((40, 4))
    for n in (3, 5, 8, 0, 1, 40, 7):
        columns = [found if isinstance(found, tuple) else (found,) for found in (f(x.copy()) for x in xs[:n])]
        for k, got in enumerate(found if isinstance(found := compiled(xs[:n]), tuple) else (found,)):
            assert got.shape[0] == n
            for row, wanted in zip(got, columns, strict=True):
                np.testing.assert_allclose(row, wanted[k], rtol=1e-10, atol=1e-12)
    assert len(compiled.variants) <= 3
    assert not [dict(variant.replays) for variant in compiled.variants if variant.replays]


def mean_over_rows(w: Array, xs: Array) -> Any:
    return jitml.vmap(lambda x: looped(x * w))(xs).sum()


@pytest.mark.parametrize("transform", [jitml.grad, jitml.hessian, jitml.jacfwd], ids=lambda t: t.__name__)
def test_derivatives_through_a_number_of_rows_that_changes(transform: Any) -> None:
    derived, compiled = transform(mean_over_rows), jit(transform(mean_over_rows))
    w, xs = np.linspace(0.5, 1.5, 4), np.random.default_rng(2).random((40, 4))
    for n in (3, 5, 8, 0, 1, 40):
        np.testing.assert_allclose(compiled(w, xs[:n]), derived(w, xs[:n]), rtol=1e-9, atol=1e-12)
    assert len(compiled.variants) <= 3
    assert not [dict(variant.replays) for variant in compiled.variants if variant.replays]


ROUTINES: dict[str, Callable[..., Any]] = {
    "solve": np.linalg.solve,
    "cholesky": lambda a, b: np.linalg.cholesky(np.exp(a / 100) + a) @ b,
    "inv": lambda a, b: np.linalg.inv(a) @ b,
    "det": lambda a, b: np.linalg.det(a) * b,
    "eigh": lambda a, b: np.linalg.eigh(a)[0] * b,
    "svd": lambda a, b: np.linalg.svd(a, compute_uv=False) * b,
    "qr": lambda a, b: np.linalg.qr(a)[1] @ b,
}


@pytest.mark.parametrize("name", ROUTINES)
def test_a_number_of_factorizations_that_changes(name: str) -> None:
    rng, f = np.random.default_rng(0), ROUTINES[name]
    rows = jit(jitml.vmap(f))
    slope = jitml.grad(lambda a, b: f(a, b).sum())
    slopes = jit(jitml.vmap(slope))
    for n in (3, 5, 2, 1, 300):
        a, b = rng.normal(size=(n, 4, 4)), rng.normal(size=(n, 4))
        a = a @ a.swapaxes(1, 2) + 4 * np.eye(4)
        np.testing.assert_allclose(rows(a, b), np.stack([f(*row) for row in zip(a, b)]), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(slopes(a, b), np.stack([slope(*row) for row in zip(a, b)]), rtol=1e-8, atol=1e-10)
    assert len(rows.variants) == len(slopes.variants) == 2
    assert rows(a[:0], b[:0]).shape == (0, 4)


def test_a_factorization_that_fails_in_one_of_many() -> None:
    factorize = jit(np.linalg.cholesky)
    for n in (3, 5, 4):
        factorize(np.stack([np.eye(3)] * n))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorize(np.stack([np.eye(3), -np.eye(3)]))
    assert len(factorize.variants) == 2


def test_factorizations_of_what_a_mask_picks() -> None:
    def f(a: Array, t: Array) -> Any:
        return np.linalg.inv(a[t > 0]) * 2

    rng, compiled = np.random.default_rng(0), jit(f)
    for n in (3, 5, 6):
        a, t = rng.normal(size=(n, 3, 3)) + 5 * np.eye(3), rng.normal(size=n)
        np.testing.assert_allclose(compiled(a, t), f(a, t), rtol=1e-12)
        (interpreted,) = run(jit(f).lower(a, t).program, [a, t])
        np.testing.assert_allclose(interpreted[: (t > 0).sum()], f(a, t), rtol=1e-12)
