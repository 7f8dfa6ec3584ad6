"""Values of every kind as arguments: a second one of the same class has an answer of its own."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.stats

import jitml
from jitml.errors import UnsupportedError

X = np.array([0.5, 1.0, 1.5])
KNOTS = np.arange(4.0)


def sparse(k: float) -> Any:
    return scipy.sparse.eye(3, format="csr") * k


def curve(k: float) -> Any:
    return scipy.interpolate.CubicSpline(KNOTS, [0, k, 0, 1])


def applied(g: Any, x: Any) -> Any:
    return g(x)


def times(k: float) -> Callable[[Any], Any]:
    return lambda v: v * k


def summed(k: float) -> Callable[[Any], Any]:
    return lambda v: (v * k).sum()


class Holder:
    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def run(self, x: Any) -> Any:
        return self.matrix @ x


def with_rule(k: float) -> Any:
    @jitml.custom_vjp
    def f(v: Any) -> Any:
        return v * k

    f.defvjp(lambda v: (v * k, None), lambda _, ct: (ct * k * 10,))
    return f


def in_a_loop(s: Any, x: Any) -> Any:
    for _ in range(5):
        x = s @ x
    return x


def under_a_condition(s: Any, x: Any) -> Any:
    return s @ x if x.sum() > 1 else x


# How often each is compiled for three objects: once, if it is opaque or holds nothing but numbers.
ONCE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[float], Any]]] = {
    "an attribute": (lambda s, x: s.data * x, sparse),
    "its shape": (lambda s, x: np.zeros(s.shape[0]) + x, sparse),
    "in an attribute": (lambda s, x: s.matrix.data * x, lambda k: Holder(sparse(k))),
    "by its class": (lambda s, x: s.data * x if isinstance(s, scipy.sparse.csr_matrix) else x, sparse),
    "whether it is called": (lambda g, x: x * 2 if callable(g) else x * 0, curve),
    "a partial of NumPy's": (applied, lambda k: functools.partial(np.multiply, k)),
    "a partial by name": (applied, lambda k: functools.partial(np.clip, a_min=0, a_max=k / 2)),
    "a method of a dict": (lambda g, x: g("a") * x, lambda k: {"a": k}.get),
}
BREAKS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[float], Any]]] = {
    "a view of a dict": (lambda g, x: sum(g) * x, lambda k: {"a": k}.values()),
    "a dict that may not be written": (lambda g, x: g["a"] * x, lambda k: types.MappingProxyType({"a": k})),
    "a method of the user's, bound": (applied, lambda k: Holder(sparse(k)).run),
    "a matrix": (lambda s, x: s @ x, sparse),
    "on the other side": (lambda s, x: x @ s, sparse),
    "its method": (lambda s, x: s.dot(x), sparse),
    "its method, bound": (applied, lambda k: sparse(k).dot),
    "its operator, bound": (applied, lambda k: sparse(k).__matmul__),
    "an item": (lambda s, x: s[0, 0] * x, sparse),
    "its shape": (lambda s, x: np.zeros(s.shape[0]) + s.sum() * x, sparse),
    "what it makes": (lambda s, x: (s * 2).tocsc().T @ x, sparse),
    "in a list": (lambda s, x: s[0] @ x, lambda k: [sparse(k)]),
    "in a dict in a tuple": (lambda s, x: s[0]["a"] @ x, lambda k: ({"a": sparse(k)},)),
    "by the user's method": (lambda s, x: s.run(x), lambda k: Holder(sparse(k))),
    "in a partial": (applied, lambda k: functools.partial(operator.matmul, sparse(k))),
    "in a loop": (in_a_loop, sparse),
    "under a condition": (under_a_condition, sparse),
    "given to a library": (lambda s, x: scipy.sparse.linalg.spsolve(s, x) * 2, lambda k: sparse(k).tocsc()),
    "factors": (lambda s, x: s.solve(x), lambda k: scipy.sparse.linalg.splu(sparse(k).tocsc())),
    "a linear operator": (lambda s, x: s.matvec(x), lambda k: scipy.sparse.linalg.LinearOperator((3, 3), matvec=times(k))),
    "a polynomial of old": (applied, lambda k: np.poly1d([1, k])),
    "a curve": (applied, curve),
    "its slope": (lambda g, x: g.derivative()(x) + g(x, 1), curve),
    "a curve that others call": (lambda g, x: scipy.integrate.quad(g, 0, 1)[0] * x, curve),
    "a distribution": (lambda d, x: d.pdf(x) if d else x, lambda k: scipy.stats.norm(k, 1)),
    "its function": (applied, lambda k: scipy.stats.norm(k, 1).cdf),
    "neighbours": (lambda t, x: t.query(x[:, None])[0], lambda k: scipy.spatial.cKDTree(KNOTS[:, None] * k)),
    "a vectorized function": (applied, lambda k: np.vectorize(times(k))),
    "a dict that is a matrix": (lambda s, x: s @ x, lambda k: sparse(k).todok()),
}
EACH: dict[str, tuple[Callable[[Any, Any], Any], Callable[[float], Any]]] = {
    "a polynomial": (applied, lambda k: np.polynomial.Polynomial([1, k])),
    "a partial of a jitted function": (applied, lambda k: functools.partial(jitml.jit(operator.mul), k)),
    "a jitted function": (applied, lambda k: jitml.jit(times(k))),
    "a gradient": (applied, lambda k: jitml.grad(summed(k))),
    "rows": (applied, lambda k: jitml.vmap(times(k))),
    "a function with a rule": (applied, with_rule),
    "the rule": (lambda g, x: jitml.grad(lambda v: g(v).sum())(x), with_rule),
    "a function that picks": (applied, lambda k: operator.itemgetter(int(k) - 1)),
}


@pytest.mark.parametrize("name", [*ONCE, *EACH])
def test_another_object_has_its_own_answer(name: str) -> None:
    function, make = {**ONCE, **EACH}[name]
    compiled = jitml.jit(function)
    for k in (1.0, 2.0, 3.0, 1.0):
        np.testing.assert_allclose(compiled(make(k), X), function(make(k), X), rtol=1e-12)
    assert (len(compiled.variants) == 1) == (name in ONCE)


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("name", BREAKS)
def test_what_only_the_object_can_say_is_a_break(name: str) -> None:
    function, make = BREAKS[name]
    compiled = jitml.jit(function)
    for k in (1.0, 2.0, 3.0, 1.0):
        np.testing.assert_allclose(compiled(make(k), X), function(make(k), X), rtol=1e-12)
    with pytest.raises(UnsupportedError):
        jitml.jit(function, strict=True)(make(1.0), X)


def test_whether_two_are_one_is_seen() -> None:
    compiled = jitml.jit(lambda s, t, x: x * 2 if s is t else x * 3)
    s = sparse(1.0)
    for t in (s, sparse(1.0), s):
        np.testing.assert_array_equal(compiled(s, t, X), X * (2 if s is t else 3))


@pytest.mark.loose
def test_an_object_is_a_key() -> None:
    first, second = curve(1.0), curve(2.0)
    table = {first: 2.0, second: 3.0}
    compiled = jitml.jit(lambda g, x: table[g] * x + (g in table) + (g == first))
    for g in (first, second, first):
        np.testing.assert_allclose(compiled(g, X), table[g] * X + 1 + (g is first))


def test_an_object_comes_back_as_it_is() -> None:
    compiled = jitml.jit(lambda s, x: ([s], x + 1))
    for k in (1.0, 2.0):
        s = sparse(k)
        method = s.dot
        assert compiled(s, X)[0][0] is s
        assert jitml.jit(lambda g, x: (g, x))(method, X)[0] is method


def test_what_a_method_of_a_list_changes_is_changed() -> None:
    compiled = jitml.jit(lambda add, x: add(x.sum()))
    items: list[Any] = []
    for _ in range(3):
        compiled(items.append, X)
    assert items == [3.0] * 3


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[], Any], str]] = {
    "a method": (lambda q, x: q.random(1)[0] * x, lambda: scipy.stats.qmc.Sobol(1), r"q, a .*Sobol, is asked for its random"),
    "an iterator": (lambda g, x: sum(g) * x, lambda: iter([1.0, 2.0]), "g is a list_iterator from outside, which goes forward"),
    "a zip": (lambda g, x: sum(a for a, _ in g) * x, lambda: zip([1.0], [2.0]), "g is a zip"),
    "an item set": (
        lambda s, x: operator.setitem(s, (0, 0), x[0]),
        lambda: sparse(1.0).tolil(),
        "s, a .*lil_matrix, is asked for its __setitem__",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, make, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message):
        jitml.jit(function)(make(), X)
