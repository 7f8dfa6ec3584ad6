"""New arrays lie in memory as NumPy's: their strides, which a reshape or a view taken afterwards can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from scipy import special

import jitml
from jitml.numpy.support import memory_order
from support.effort import pairs

A = np.random.default_rng(0).normal(size=(4, 6, 3))
MASK = np.array([True, False, True, True])


def ordered(order: tuple[int, ...]) -> Any:
    return np.ascontiguousarray(A.transpose(order)).transpose(np.argsort(order))


FORMS: dict[str, Any] = {
    **{str(order): ordered(order) for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1))},
    "columns with gaps": np.asfortranarray(np.repeat(A, 2, axis=0))[::2],
    "backwards": ordered((2, 0, 1))[:, ::-1],
    "repeated": np.broadcast_to(np.asfortranarray(A[:, :1]), A.shape),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: (a.sum(0), np.sum(a, axis=1, keepdims=True), a.sum((0, 2)), np.add.reduce(a, 1)),
    "means": lambda a: (a.mean(2), a.var(0), np.std(a, 1), np.average(a, 0), np.median(a, 0)),
    "extremes": lambda a: (a.max(0), a.min(1), np.ptp(a, 2), a.argmax(0), np.argmin(a, axis=1)),
    "truth": lambda a: (np.all(a > 0, axis=0), np.any(a > 0, axis=1), np.count_nonzero(a > 0, axis=0)),
    "nan": lambda a: (np.nansum(a, 0), np.nanmean(a, 1), np.nanmax(a, 0), np.nanvar(a, 1), np.nancumsum(a, 1)),
    "scans": lambda a: (a.cumsum(1), np.cumprod(a, 0), np.add.accumulate(a, 2), np.gradient(a), np.diff(a, axis=0)),
    "picked": lambda a: (a[[1, 0]], a[:, [1, 0, 2]], a[..., [0, 2]], a[[0, 1], :, [1, 2]], a[:, [0, 1], [1, 0]]),
    "places": lambda a: (
        np.nonzero(a > 0),
        np.where(a[0] > 0),
        (a > 0).nonzero(),
        np.unravel_index((a * 9).astype(int) % 7, (7, 2)),
    ),
    "accumulated": lambda a: (np.subtract.accumulate(a, 1), np.hypot.accumulate(a, 0), np.logaddexp.accumulate(a[0], 0)),
    "quantiles": lambda a: (
        np.quantile(a, [0.1, 0.6], 1),
        np.nanquantile(a, [0.1, 0.6], 1),
        np.nanpercentile(a[0], [[10, 60]], 0),
    ),
    "real eigenvalues": lambda a: with_lines(np.linalg.eig(np.triu(a[:3, :3, 0]))),
    "masked": lambda a: (a[MASK], a[a[:, 0, 0] > -9], a[:, np.arange(6) > 2], np.argwhere(a > 0)),
    "taken": lambda a: (np.take(a, [1, 0], axis=1), np.compress([1, 0, 1], a, axis=2), np.delete(a, 1, axis=0)),
    "inserted": lambda a: (np.insert(a, 1, 0.0, axis=1), np.append(a, a, axis=1), np.pad(a, 1), np.roll(a, 1), np.roll(a, 1, 0)),
    "joined": lambda a: (np.stack([a, a]), np.stack([a, a], -1), np.concatenate([a, a], 1), np.block([[a, a], [a, a]])),
    "sorted": lambda a: (np.sort(a, 0), np.argsort(a, 0), np.partition(a, 1, axis=0)),
    "triangles": lambda a: (np.tril(a), np.triu(a[0]), np.tril(a[:, 0, 0])),
    "transforms": lambda a: (np.fft.fft(a, axis=0), np.fft.fft2(a), np.fft.rfft(a, axis=1), np.fft.fftshift(a)),
    "times a number": lambda a: (np.dot(a, 2.0), np.inner(3, a), np.dot((a[0] * 9).astype(int), True), np.dot(2.0, a[0])),
    "folded": lambda a: (
        np.subtract.reduce(a, 1),
        np.hypot.reduce(a, axis=0, keepdims=True),
        np.bitwise_or.reduce(a.astype(int), axis=-1),
        np.logical_or.accumulate(a, 1),
        np.bitwise_xor.accumulate(a.astype(int), 0),
        np.add.reduceat(a, [0, 1], axis=1),
    ),
    "norms": lambda a: (
        np.linalg.norm(a, axis=1),
        np.linalg.norm(a, 1, axis=-1, keepdims=True),
        np.linalg.norm(a, axis=(0, 1)),
        np.vecdot(a, a, axis=0),
    ),
    "on the host": lambda a: (np.ldexp(a, 2), np.frexp(a), np.gcd(a.astype(int), 2), np.spacing(a), np.i0(a), special.gammaln(a)),
    "bits": lambda a: (np.packbits(a > 0, axis=0), np.unpackbits(a.astype(np.uint8), axis=1)),
    "special": lambda a: (special.softmax(a, axis=1), special.log_softmax(a, axis=-1), special.logsumexp(a, axis=0)),
    "formulas": lambda a: (np.sinc(a), np.polyval([1.0, 2.0], a), np.isclose(a, 1), np.trapezoid(a, axis=1), np.round(a, 1)),
    "parts": lambda a: (a.imag + 0, np.angle(a + 1j), np.sort_complex(a), np.imag(a) * a),
    "spread": lambda a: (np.linspace(a[0], a[1], 4), np.linspace(a, 1, 3, axis=1), np.geomspace(a**2 + 1, 9.0, 3)),
    "with edges": lambda a: (np.diff(a, axis=0, prepend=0), np.diff(a, axis=-1, append=a), np.insert(a, [0, 1], 9, axis=-1)),
    "many matrices": lambda a: (
        np.linalg.qr(a[:, :3])[1],
        np.linalg.matrix_power(a[:, :3], 0),
        np.stack([a, a], 1) @ np.stack([a, a], 1).swapaxes(-1, -2),
        np.linalg.svd(np.stack([a, a], 1))[1],
    ),
    "in an order of their own": lambda a: (np.unique(a, axis=1), np.einsum("ijk,ijk->ijk", a, a)),
    "numbered": lambda a: (np.ravel_multi_index(((a > 0) * 1, (a < 1) * 1), (2, 2)), np.piecewise(a, [a > 0], [1, 2])),
    "named places": lambda a: (np.insert(a, 5, 0.0, axis=1), np.delete(a, 5, axis=1), np.r_[a, a], np.c_[a, a]),
    "ordered": lambda a: (np.add(a, 1, order="C"), np.add(a, 1, order="F"), np.add(a, a, order="A"), np.sin(a)),
    "einsum": lambda a: (np.einsum("ijk->ki", a), np.einsum("ijk,ilk->lji", a, a), np.einsum("ijk,j->ki", a, a[0, :, 0])),
}


def with_lines(arrays: Any) -> list[Any]:
    """With each array reshaped, which shares its memory or does not; a view that is returned alone would be a copy."""
    return [(x, x.reshape(-1)) for x in arrays]


@pytest.mark.parametrize(("name", "form"), pairs(FUNCTIONS, FORMS, each=3))
def test_strides(name: str, form: str) -> None:
    a = FORMS[form]
    function = FUNCTIONS[name]
    for n, (got, expected) in enumerate(zip(flat(jitml.jit(function)(a)), flat(function(a)), strict=True)):
        assert strides(got) == strides(expected), n
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_numpy_is_not_asked_for_the_order_where_that_would_call_a_users_function(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, shown = [], memory_order._shown
    monkeypatch.setattr(memory_order, "_shown", lambda function, *rest: asked.append(function) or shown(function, *rest))
    monkeypatch.setattr(memory_order, "_KNOWN", {})
    a = FORMS["(2, 1, 0)"]
    double = lambda values: values * 2  # noqa: E731  # as users write it

    def function(a: Any) -> Any:
        line = np.sort(a, 0).reshape(-1)
        line[0] = 7
        return line, np.piecewise(a, [a > 0], [double, 1])

    for ours, theirs in zip(jitml.jit(function)(a), function(a)):
        np.testing.assert_array_equal(ours, theirs)
    assert asked == [np.sort]


LONGER = np.asfortranarray(np.arange(35.0).reshape(7, 5))
BLOCKS = np.asfortranarray(np.arange(315.0).reshape(7, 9, 5))
MATRICES = (np.arange(216).reshape(6, 4, 3, 3) ** 2 % 97 + np.eye(3, dtype=int) * 99).swapaxes(0, 1)
WHOLE = np.array([1, 0, 1, 1, 1, 1, 0], bool)
ONE_POSITIVE = np.asfortranarray(np.where(np.arange(5) == 0, LONGER + 1, -1 - LONGER))
# What small arrays do not show at once: what is taken away, divided by, inverted or counted. The calls follow one another.
CALLS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "most is taken away": (lambda x: np.diff(x, n=4, axis=0), [(LONGER,)]),
    "all but one is taken away": (lambda x: np.diff(x, n=3, axis=0), [(LONGER,), (BLOCKS,)]),
    "a slice is deleted": (lambda x: np.delete(x, slice(0, 4), axis=0), [(LONGER,)]),
    "as much as is asked for is deleted": (lambda x, n: np.delete(x, slice(1, n), axis=0), [(LONGER, 3), (LONGER, 5)]),
    "weights": (lambda x, w: np.average(x, axis=1, weights=w), [(BLOCKS, np.arange(1, 10))]),
    "weights of its own": (lambda x: np.average(x, axis=1, weights=np.arange(1, 10)), [(BLOCKS,)]),
    "repeated by an argument": (lambda x, n: np.tile(x, (n, 1)), [(LONGER, 3), (LONGER, 1), (LONGER, 3)]),
    "repeated as often as data say": (
        lambda x, m: np.tile(x, (int(np.count_nonzero(m)), 1)),
        [(LONGER, WHOLE), (LONGER, WHOLE * 0)],
    ),
    "a shape of an argument": (lambda x, n: np.zeros_like(x, shape=(n, 5)), [(LONGER, 1), (LONGER, 3), (LONGER, 4)]),
    "a shape of data": (lambda x, m: np.full_like(x, 1.0, shape=(int(np.count_nonzero(m)), 5)), [(LONGER, WHOLE)]),
    "as many steps as data say": (lambda x, m: np.logspace(x * 0, x * 0 + 1, int(np.count_nonzero(m))), [(LONGER, WHOLE)]),
    "inverses of integers": (np.linalg.inv, [(MATRICES,)]),
    "inverses of what is repeated": (np.linalg.inv, [(np.broadcast_to(MATRICES[:, :, None] / 7, (4, 6, 5, 3, 3)),)]),
    "logarithms of integers": (lambda x: np.geomspace(x + 1, 9.0, 3), [(BLOCKS.astype(int),)]),
    "a size that data decide, on the host": (lambda x: np.ldexp(x[:, x[0] > 0], 2), [(ONE_POSITIVE,), (LONGER + 1,)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_strides_of_what_small_arrays_do_not_show_at_once(name: str) -> None:
    function, calls = CALLS[name]
    jitted = jitml.jit(lambda *args: with_lines([function(*args)]))
    for args in calls:
        for got, expected in zip(flat(jitted(*args)), flat(with_lines([function(*args)]))):
            assert strides(got) == strides(expected)
            np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_a_reshaped_choice_of_columns_is_a_copy() -> None:
    def columns(a: Any) -> tuple[Any, Any]:
        chosen = a[:, [0, 2]]
        line = chosen.reshape(-1)
        line[0] = 9.0
        return chosen, line

    for got, expected in zip(jitml.jit(columns)(A[0].copy()), columns(A[0].copy())):
        np.testing.assert_array_equal(got, expected)


REPEATED: dict[str, Callable[[Any], Any]] = {
    "copies": lambda y: (np.copy(y), y.copy("K"), np.array(y), y.astype(np.float32), np.zeros_like(y), np.full_like(y, 3)),
    "joined": lambda y: (np.concatenate([y, y]), np.hstack([y, y]), np.append(y, y, 0), np.block([y, y]), np.stack([y, y])),
    "arranged": lambda y: (np.sort(y, 0), np.partition(y, 2), np.roll(y, 1, 0), np.nan_to_num(y), np.gradient(y), np.unwrap(y)),
    "sums": lambda y: (np.nancumsum(y, 0), np.cumsum(y, 0), np.fft.rfft(y)),
    "computed": lambda y: (y * 2, np.sin(y), np.clip(y, 1, 3), np.where(y > 1, y, 0), np.diff(y, axis=0)),
    "lines": lambda y: (y.ravel("K"), y.T.ravel("K"), np.copy(y).ravel("K"), y.reshape(-1), np.copy(y).ravel()),
}


@pytest.mark.parametrize("name", REPEATED)
def test_rows_that_are_one_in_memory(name: str) -> None:
    """NumPy copies them by columns, and computes with them by rows."""

    def repeated(x: Any) -> Any:
        return REPEATED[name](np.broadcast_to(x, (4, 6)))

    x = np.arange(6.0)
    for n, (got, expected) in enumerate(zip(flat(jitml.jit(repeated)(x)), flat(repeated(x)), strict=True)):
        assert strides(got) == strides(expected), n
        np.testing.assert_allclose(got, expected)


def test_reshaped_places_are_copies() -> None:
    def both(a: Any) -> tuple[Any, Any]:
        rows = np.nonzero(a > 0)[0]
        line = rows.ravel()
        line[0] = 9
        return rows, line

    for got, expected in zip(jitml.jit(both)(A[0].copy()), both(A[0].copy())):
        np.testing.assert_array_equal(got, expected)


def flat(results: Any) -> list[Any]:
    return [x for result in results for x in (flat(result) if isinstance(result, (tuple, list)) else [result])]


def strides(x: Any) -> list[int]:
    """Those that matter: an axis of one element may have any, and so may all of nothing."""
    return [step for step, n in zip(x.strides, x.shape) if n > 1 and x.size]


def joins(z: Any, w: Any) -> Any:
    return [np.stack([z, w, z], axis=axis) for axis in (-1, 0, 1)]


def listed(z: Any, w: Any) -> Any:
    items, pairs = [], []
    for i in range(4):
        items.append(z * i)
        pairs.append((w + i, i))
    items[1] = z * 7
    joined = [np.stack(items, axis) for axis in (-1, 0, 1)] + [np.concatenate(items, 1), np.vstack(items), np.dstack(items)]
    return items, pairs, joined, items[2].reshape(-1), joined[1].reshape(-1), items[1:3]


@pytest.mark.parametrize("function", [joins, listed], ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", ["CC", "FF", "CF", "FC"])
def test_joins_and_items_of_lists_that_loops_fill(function: Any, order: str) -> None:
    """They lie as NumPy's, which decides what is a view of what."""
    z, w = (np.array(np.arange(12.0).reshape(3, 4), order=which) for which in order)
    got, want = (optree.tree_leaves(f(z, w)) for f in (jitml.jit(function), function))
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert np.shape(ours) == () or ours.strides == theirs.strides
    shared = [[[np.shares_memory(a, b) for b in leaves] for a in leaves] for leaves in (got, want)]
    assert shared[0] == shared[1]


def test_stacks_of_views_whose_elements_lie_far_apart() -> None:
    """Nothing is read at such distances where NumPy is asked for the order of axes."""
    far = np.zeros((3, 1 << 26), np.int8)
    got, want = (
        f(far) for f in (jitml.jit(lambda x: np.stack([x[:, :2].T, x[:, 4:6].T], 1)), lambda x: np.stack([x[:, :2].T] * 2, 1))
    )
    assert got.strides == want.strides


def test_names_of_orders() -> None:
    def f(x: Any, order: Any) -> Any:
        flat = np.ravel(x, order), x.flatten(order), np.reshape(x, (3, 2), order), *np.unravel_index([1, 4], (2, 3), order)
        return *flat, [float(v) for v in np.nditer(x, order=order or "C")], np.add(x, 1, order=order or "C").ravel("K")

    fast, x = jitml.jit(f), np.arange(6.0).reshape(2, 3)
    for order in ("C", "F", "f", "c", None):
        for got, want in zip(fast(x, order), f(x, order), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=str(order))
    with pytest.raises(ValueError, match="order must be one of"):
        jitml.jit(lambda x: x.ravel("rows"))(x)
