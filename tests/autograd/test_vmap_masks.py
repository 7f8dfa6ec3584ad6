"""`vmap` of what masks pick, another number of elements in each row: values and gradients are those of the loop over the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitml import UnsupportedError, grad, jit, vmap

rng = np.random.default_rng(3)
X, Z = rng.normal(size=(2, 5, 7))
X[1] = np.abs(X[1])  # a row of which all is picked


def root(x, z):
    y, m = x.copy(), x > 0
    y[m] = np.sqrt(y[m])
    return y


def scaled(x, z):
    y, m = x.copy(), x > 0
    y[m] *= z[m]
    y[~m] = -(z[~m] ** 2)
    y[x > 1] = 0
    y[z > 0] += 1
    return y


def quotients(x, z):
    y, m = x.copy(), x > 0
    y[m] = np.log(y[m]) / z[m] + np.where(y[m] > 0.5, y[m], np.log(y[m]))
    return y


def power(x, z):
    """A number whose slope adds up over what is picked."""
    y, m = x.copy(), x > 0
    y[m] = y[m] ** z[0] + np.log(y[m]) * z[0]
    return y


def sums(x, z):
    m = x > 0
    a, b = x[m], z[m]
    return np.sqrt(a).sum() + a.mean() + b.std() + a @ b + np.outer(a, b).max() + np.linalg.norm(b) + a.size


def products(x, z):
    a = np.stack([x, z, x * z], 1)
    rows = a[x > 0]
    a[x > 0] = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return rows.T @ rows + a.sum()


def flags(x, z):
    a = x[x > 0]
    return np.where((a > 0.5).all() | (a < 0.1).any(), 1.0, 2.0) * x.sum()


def centred(x, z):
    y, m = x.copy(), x > 0
    y[m] = np.maximum(x[m] - x[m].mean(), -x[m].max() / 2)
    return y


def table(x, z):
    a, r = np.outer(x, z), x > 0
    a[a < 0] = 0
    a[a > 1] = np.sqrt(a[a > 1])
    a[r, 2] = z[r]
    a[r] -= a[r].mean(axis=0)
    a[:, r] += 1
    return a


def twice(x, z):
    a = x[x > 0]
    a = a[a > 0.3]
    return (a * a).sum()


def places(x, z):
    y, i = x.copy(), np.nonzero(x > 0)[0]
    y[i] = np.sqrt(y[i]) * z[i]
    np.add.at(y, i, z[i])
    return y


def elsewhere(x, z):
    order, m = np.argsort(x), z > 0
    y, total = x.copy(), np.zeros(3)
    y[order[m]] = np.sqrt(z[m])
    np.add.at(total, order[m] % 3, z[m])
    return np.concatenate([y, total])


def in_front(x, z):
    m, out = x > 0, np.zeros(7)
    out[: np.count_nonzero(m)] = x[m] * z[m]
    out[m] += np.cumsum(z[m]) * np.arange(np.count_nonzero(m))
    return out


def in_a_loop(x, z):
    y = x.copy()
    for i in range(3):
        m = y > i * 0.1
        y[m] = np.sqrt(y[m]) * 0.5
    return y


def in_a_while(x, z):
    y = x.copy()
    while (y > 0.1).any():
        m = y > 0.1
        y[m] = y[m] ** 2 * 0.3
    return y


def in_a_branch(x, z):
    y, m = z.copy(), x > 0
    if x.sum() > 0:
        y[m] = np.log(x[m]) * y[m]
    return y


def integers(x, z):
    y = (x * 10).astype(np.int64)
    y[x > 0] %= y[x > 0] // 2 + 3
    y[x < 0] <<= 1
    return y * z


FUNCTIONS = [
    root, scaled, quotients, power, sums, products, flags, centred, table, twice, places, elsewhere, in_front,
    in_a_loop, in_a_while, in_a_branch, integers,
]  # fmt: skip


def stacked(f: Callable[..., Any]) -> np.ndarray:
    return np.stack([f(x, z) for x, z in zip(X, Z)])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
def test_values_and_gradients(f: Callable[..., Any], finish: Any) -> None:
    def loss(x, z):
        return np.sin(f(x, z) * 1.0).sum()

    slope = grad(loss, (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(finish(vmap(f))(X, Z), stacked(f), rtol=1e-12)
        of_rows = finish(vmap(slope))(X, Z)
        of_all = finish(grad(lambda x, z: vmap(loss)(x, z).sum(), (0, 1)))(X, Z)
    for k in (0, 1):
        expected = stacked(lambda x, z, k=k: slope(x, z)[k])
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(of_rows[k], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(of_all[k], expected, rtol=1e-9, atol=1e-12)


def test_any_number_of_rows_shares_a_variant() -> None:
    f = jit(vmap(root))
    for n in (5, 3, 4, 1):
        np.testing.assert_array_equal(f(X[:n], Z[:n]), stacked(root)[:n])
    assert len(f.variants) == 2


def reversed_(x, z):
    m = x > 0
    y = x.copy()
    y[m] = z[m][::-1]
    return y


def of_fixed_length(x, z):
    y = x.copy()
    y[np.argsort(x) < 2 + (x[0] > 5)] = np.array([1.0, 2.0])
    return y


def read_in_a_loop(x, z):
    a, total = x[x > 0], 0.0
    for i in range(100):
        total += (a * i).sum()
    return total


@pytest.mark.parametrize(
    "f",
    [
        lambda x, z: np.sort(x[x > 0]).sum(),
        lambda x, z: x[x > 0],
        lambda x, z: x[x > 0][0],
        reversed_,
        of_fixed_length,
        read_in_a_loop,
    ],
    ids=["sorted", "returned", "indexed", "reversed", "of fixed length", "read in a loop"],
)
def test_what_is_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="the size of an array differs from row to row"):
        vmap(f)(X, Z)
