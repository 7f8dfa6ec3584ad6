"""Jacobians, Hessians and products with them: both modes give the same, in the structure of arguments and results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from jitml import DerivativeError, grad, hessian, hvp, jacfwd, jacobian, jacrev, jit, vmap

rng = np.random.default_rng(0)
a35 = rng.normal(size=(3, 5))
x5 = rng.normal(size=5)
MODES = [jacfwd, jacrev, jacobian]


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def same(got: object, expected: object) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
    assert np.shape(got) == np.shape(expected)


@pytest.mark.parametrize("mode", MODES)
def test_by_hand(mode: Any, finish: Any) -> None:
    same(finish(mode(lambda x: np.sin(a35 @ x)))(x5), np.cos(a35 @ x5)[:, None] * a35)
    same(finish(mode(lambda x: np.outer(x, x)))(x5), np.eye(5)[:, None] * x5[:, None] + x5[:, None, None] * np.eye(5))
    same(finish(mode(lambda x: x @ x))(x5), 2 * x5)
    same(finish(mode(lambda s: x5 * s))(2.0), x5)
    same(finish(mode(lambda x: np.float64(3.0)))(x5), np.zeros(5))
    same(finish(mode(np.cumsum))(x5), np.tril(np.ones((5, 5))))


class Pair(NamedTuple):
    a: Any
    b: Any


@pytest.mark.parametrize("mode", MODES)
def test_containers(mode: Any, finish: Any) -> None:
    def f(p: Pair, s: float) -> dict:
        return {"ax": a35 @ p.a, "b": p.b * s}

    both = finish(mode(f, argnums=(0, 1)))(Pair(x5, 2.0), 3.0)
    by_pair, by_s = both["ax"]
    assert isinstance(by_pair, Pair)
    same(by_pair.a, a35)
    same(by_pair.b, np.zeros(3))
    same(by_s, np.zeros(3))
    by_pair, by_s = both["b"]
    same(by_pair.a, np.zeros(5))
    same([by_pair.b, by_s], [3, 2])
    assert isinstance(by_s, np.float64)
    same(finish(mode(f, argnames="s"))(Pair(x5, 2.0), s=3.0)["b"], 2)
    jac, aux = mode(lambda x: (x * x, x.sum()), has_aux=True)(x5)
    same(jac, np.diag(2 * x5))
    same(aux, x5.sum())


def test_the_cheaper_mode() -> None:
    wide, tall = (str(jit(jacobian(f)).lower(x5).graph) for f in (lambda x: np.tanh(a35 @ x), lambda x: np.outer(x, x)))
    assert "3,3" in wide and "5,5" in tall and "25,25" not in tall


def test_hessian(finish: Any) -> None:
    f = lambda x: (np.sin(x) * x).sum() + x[0] * x[1]  # noqa: E731
    expected = np.diag(2 * np.cos(x5) - x5 * np.sin(x5))
    expected[0, 1] = expected[1, 0] = 1
    same(finish(hessian(f))(x5), expected)
    same(jacrev(jacfwd(f))(x5), expected)
    same(jacrev(jacrev(f))(x5), expected)
    same(jacfwd(grad(f))(x5), expected)
    same(hvp(f, (x5,), (np.arange(5.0),)), expected @ np.arange(5))
    blocks = finish(hessian(lambda x, y: (x * x).sum() * y, (0, 1)))(x5, 2.0)
    same(blocks[0][0], 4 * np.eye(5))
    same(blocks[0][1], 2 * x5)
    same(blocks[1][1], 0)


def test_hvp_of_several_arguments() -> None:
    dx, dy = hvp(lambda x, y: (x * x).sum() * y, (x5, 2.0), (np.ones(5), 1.0))
    same(dx, 4 * np.ones(5) + 2 * x5)
    same(dy, 2 * x5.sum())


@pytest.mark.parametrize("mode", MODES)
def test_of_loops(mode: Any, finish: Any) -> None:
    def f(x: np.ndarray, s: float) -> np.ndarray:
        out = np.zeros(5)
        total = 0.0
        for i in range(5):
            total = total + x[i] * s
            out[i] = total * total
        return out

    by_x, by_s = finish(mode(f, (0, 1)))(x5, 2.0)
    sums = np.cumsum(x5)
    same(by_x, 8 * sums[:, None] * np.tril(np.ones((5, 5))))
    same(by_s, 4 * sums**2)
    same(finish(hessian(lambda x, s: f(x, s).sum(), (0, 1)))(x5, 2.0)[0][1], 8 * (np.tril(np.ones((5, 5))).T @ sums))


def test_inside_of_other_transforms(finish: Any) -> None:
    f = lambda x: np.sin(a35 @ x)  # noqa: E731
    xs = rng.normal(size=(4, 5))
    same(finish(vmap(jacfwd(f)))(xs), [jacfwd(f)(x) for x in xs])
    same(finish(vmap(jacrev(f)))(xs), [jacfwd(f)(x) for x in xs])
    same(finish(grad(lambda x: (jacfwd(np.sin)(x) ** 2).sum()))(x5), -2 * np.cos(x5) * np.sin(x5))
    same(jacfwd(jacfwd(jacfwd(lambda x: x**3)))(2.0), 6)


@pytest.mark.parametrize("mode", MODES)
def test_errors(mode: Any) -> None:
    with pytest.raises(DerivativeError, match=f"{mode.__name__}: argument 0 is int64"):
        mode(np.sin)(np.arange(3))
    with pytest.raises(DerivativeError, match=f"{mode.__name__}: the function returns bool"):
        mode(np.isnan)(x5)
    with pytest.raises(DerivativeError, match=rf"{mode.__name__}\(holomorphic=True\): argument 0 is float64"):
        mode(np.sin, holomorphic=True)(x5)


@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
def test_a_product_with_the_basis_is_not_computed(finish: Any) -> None:
    """What a matrix does to all unit vectors is the matrix: an infinite element reaches its own column alone."""
    a = np.array([[1.0, 2.0], [3.0, np.inf], [5.0, 6.0]])
    np.testing.assert_array_equal(finish(jacfwd(lambda x: a @ x))(np.zeros(2)), a)
    np.testing.assert_array_equal(finish(jacfwd(lambda x: x @ a.T))(np.zeros(2)), a)
    np.testing.assert_array_equal(finish(jacrev(lambda x: a.T @ x))(np.zeros(3)), a.T)
    graph = jit(jacfwd(lambda x: np.tanh(a @ x))).lower(np.zeros(2)).graph
    assert [node.op.name for node in graph.nodes].count("dot_general") == 1
