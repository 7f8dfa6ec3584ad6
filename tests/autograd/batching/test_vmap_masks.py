"""`vmap` of what masks pick, another number of elements in each row: values and gradients are those of the loop over the rows."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitml import UnsupportedError, grad, jit, vmap
from support.effort import named, pairs

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


def ordered(x, z):
    """What is sorted, or turned, lies elsewhere than what a mask picked."""
    y, m = x.copy(), x > 0
    y[m] = np.sort(y[m]) * z[m][::-1]
    return y + np.median(x[m]) + np.percentile(x[m], 30) + np.sort(z[m])[:2].sum()


def ends(x, z):
    a, b = x[x > 0], z[x > 0]
    return a[0] * b[-1] + a[: len(a) // 2].sum() + b[-2:].sum() + a[1:] @ b[:-1] + np.diff(b).max(initial=0) + a[np.argmax(b)]


def joined(x, z):
    m = x > 0
    a = np.concatenate([z[m], [0.5], z[~m] * x[~m]])
    return a * np.arange(8) + np.repeat(x[m], 2)[-1] + np.cumsum(z[m])[-1] + np.prod(x[m]) + np.roll(x[m], 1)[0]


def of_pairs(x, z):
    a, b = x[x > 0], z[z < 1]
    d = np.abs(a[:, None] - b[None, :])
    return d.min(axis=1).sum() + np.sort(d.ravel())[0] + d.reshape(-1)[-1]


def picked_again(x, z):
    a = np.sort(x[x > 0])
    a = a[a > 0.3]
    a[a > 1] *= 2
    return a.sum() + np.where(a > 0.5, a, 0).sum()


def by_index(x, z):
    i = np.nonzero(x > 0)[0]
    a = z[i]
    a[0] += 2.0
    a[1:] *= 3.0
    a[np.array([0, -1])] -= 1.0
    return a.sum() * x[i[-1]]


def iterated(x, z):
    a, total = x[x > 0], 0.0
    for k, v in enumerate(a):
        if v > 1.5:
            continue
        total = total * z[k] + v * a[-1]
    return total


def accumulated(x, z):
    a = x[x > 0]
    for i in range(1, len(a)):
        a[i] += np.sin(a[i - 1]) * z[i]
    return a.sum()


def until(x, z):
    a, i, total = np.sort(x[x > 0]), 0, 0.0
    while i < len(a) and total < 1:
        total += a[i] * z[0]
        i += 1
    return total


def shrinking(x, z):
    a, total = x[x > 0], 0.0
    while a.size:
        total = total * 0.5 + a.sum()
        a = a[a > a.min()]
    return total


def in_each_branch(x, z):
    a = x[x > 0]
    return np.sort(a)[-1] * z[0] if z[0] > 0 else a[0] * a[-1]


FUNCTIONS = [
    root, scaled, quotients, power, sums, products, flags, centred, table, twice, places, elsewhere, in_front,
    in_a_loop, in_a_while, in_a_branch, integers, ordered, ends, joined, of_pairs, picked_again, by_index, iterated, accumulated,
    until, shrinking, in_each_branch,
]  # fmt: skip


def stacked(f: Callable[..., Any]) -> np.ndarray:
    return np.stack([f(x, z) for x, z in zip(X, Z)])


def eager(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


CASES = pairs(FUNCTIONS, [jit, eager])


@pytest.mark.parametrize(("f", "finish"), CASES, ids=named(CASES))
def test_values_and_gradients(f: Callable[..., Any], finish: Any) -> None:
    def loss(x, z):
        return np.sin(f(x, z) * 1.0).sum()

    slope = grad(loss, (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_sum = grad(lambda x, z: vmap(loss)(x, z).sum(), (0, 1))
        values, of_rows, of_all = finish(lambda x, z: (vmap(f)(x, z), vmap(slope)(x, z), of_sum(x, z)))(X, Z)
    np.testing.assert_allclose(values, stacked(f), rtol=1e-12)
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


def pick(kind: str, dtype: str) -> np.ndarray:
    x = np.abs(rng.normal(size=(5, 6)) * 4).astype(dtype) + 1
    if kind != "all":
        x[rng.random((5, 6)) < 0.5] *= -1
        x[:, 1] = np.abs(x[:, 1])
        x[2, [0, 2, 3, 4, 5]] = -2  # a row of which one is picked
    if kind == "none":
        x[3] = -1
    return x


def stepping(x):
    total = x[0] * 0
    for v in x[x > 0]:
        total = total * 2 + v
    return total


def largest_below(x):
    best = x.min()
    for v in x[x > 0]:
        if v > 3:
            break
        best = max(best, v)
    return best


PICKS: dict[str, Callable[..., Any]] = {
    "sort": lambda x: np.sort(x[x > 0])[::-1][0],
    "first": lambda x: x[x > 0][0],
    "last": lambda x: x[x > 0][-1],
    "third": lambda x: x[x > 0][2],
    "by indices": lambda x: x[x > 0][np.array([0, -2])],
    "some": lambda x: x[x > 0][:2].sum(),
    "every other": lambda x: x[x > 0][::-2].sum(),
    "argmax": lambda x: np.argmax(x[x > 0]),
    "argmin": lambda x: x[x > 0].argmin(),
    "max": lambda x: x[x > 0].max(),
    "median": lambda x: np.median(x[x > 0]),
    "percentile": lambda x: np.percentile(x[x > 0], [10, 50]),
    "unique": lambda x: np.unique(x[x > 0]).size,
    "cumsum": lambda x: np.cumsum(x[x > 0])[-1],
    "searchsorted": lambda x: np.searchsorted(np.sort(x[x > 0]), 2),
    "nonzero": lambda x: np.nonzero(x > 0)[0][-1],
    "join": lambda x: np.concatenate([x[x > 0], x[x <= 0]]),
    "counts": lambda x: np.bincount(x[x > 0].astype(int) + 200).sum(),
    "loop": stepping,
    "break": largest_below,
    "returned": lambda x: np.sort(x[x > 0]),
}


def result_or_error(f: Callable[..., Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f()
        except (ValueError, IndexError) as error:
            return type(error).__mro__, str(error).partition("\n")[0]


@pytest.mark.parametrize(("name", "finish"), pairs(PICKS, [jit, eager]), ids=named(pairs(PICKS, [jit, eager])))
def test_rows_that_pick_all_one_or_none(name: str, finish: Any) -> None:
    """The loop over the rows decides, also what is raised: what is returned has rows of one size, or none."""
    batched = finish(vmap(PICKS[name]))
    for kind in ("all", "one", "none"):
        for dtype in ("float64", "float32", "int64"):
            xs = pick(kind, dtype)
            expected = result_or_error(lambda xs=xs: np.stack([PICKS[name](x) for x in xs]))
            got = result_or_error(lambda xs=xs: batched(xs))
            if isinstance(expected, tuple):
                assert got[1] == expected[1] and set(expected[0]) <= set(got[0])
                continue
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_rows_of_rows() -> None:
    xs = rng.normal(size=(3, 4, 6))
    f = vmap(vmap(lambda x: np.sort(x[x > -5])[:2] + x[x > 0].sum()))
    of_picked = vmap(lambda x, t: vmap(lambda row: row[row > t].sum())(x[x[:, 0] > t]).sum())
    expected = [[np.sort(x)[:2] + x[x > 0].sum() for x in part] for part in xs]
    t = np.array([-0.5, 0.0, 0.3])
    sums = [sum(row[row > s].sum() for row in part if row[0] > s) for part, s in zip(xs, t)]
    for finish in (lambda f: f, jit):
        np.testing.assert_allclose(finish(f)(xs), expected, rtol=1e-12)
        np.testing.assert_allclose(finish(of_picked)(xs, t), sums, rtol=1e-12)


def test_rows_of_sizes_from_arguments() -> None:
    f, ns = lambda n: np.ones(n).sum() + np.arange(n + 1)[-1], np.array([2, 0, 5])
    for finish in (lambda f: f, jit):
        np.testing.assert_array_equal(finish(vmap(f))(ns), np.stack([f(n) for n in ns]))


def test_rows_with_ways_of_their_own() -> None:
    """What one program cannot compute for all rows is computed row by row; a compiled program cannot do that."""

    def kept(x):
        return sum([v for v in x if v > 0], x[0])

    np.testing.assert_array_equal(vmap(kept)(X), np.stack([kept(x) for x in X]))
    np.testing.assert_array_equal(vmap(kept, in_axes=1, out_axes=0)(X.T), np.stack([kept(x) for x in X]))
    with pytest.raises(UnsupportedError, match="differs from row to row"):
        jit(vmap(kept))(X)
    with pytest.raises(UnsupportedError, match="differs from row to row"):
        vmap(kept)(X[:0])
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 7"):
        vmap(lambda x: x[9])(X[:0])


def test_what_rows_get_that_are_computed_one_by_one() -> None:
    def told(x, f, scale, name):
        """What all rows share comes as it is, arrays as copies of a row are laid out, and errors are not reported."""
        assert type(scale) is float and name == "sin" and scale / np.zeros(()) > 0
        return f(sum([v for v in x.ravel() if v > 0], x[0, 0])) * scale, x.ravel("K"), np.ones(2), x.shape[0] * 1.0

    many = rng.normal(size=(3, 4, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = vmap(told, (2, None, None, None), (0, 0, None, None))(many, np.sin, 2.0, "sin")
    with np.errstate(divide="ignore"):
        rows = zip(*(told(many[..., n].copy("K"), np.sin, 2.0, "sin") for n in range(5)))
    for result, expected in zip(got, [*map(np.stack, itertools.islice(rows, 2)), np.ones(2), 3.0], strict=True):
        np.testing.assert_array_equal(result, expected)
    with pytest.raises(ValueError, match="a result whose out_axes is None differs from row to row"):
        vmap(lambda x: sum([v for v in x if v > 0], x[0]), out_axes=None)(X)
    with pytest.raises(ValueError, match="all input arrays must have the same shape"):
        vmap(lambda x: [v for v in x if v > 0])(X)
