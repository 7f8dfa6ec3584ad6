"""Scatters that compute what they scatter as they go, and count in tables of their own: as NumPy, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.effort import is_turn, named

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">i4", ">f8"]
MANY = 70_000  # enough for tables of their own


def same(f: Callable[..., Any], *args: Any, threads: int | None = None) -> None:
    """A compiled call gives what NumPy gives, and changes its arguments alike; twice."""
    compiled = jitml.jit(f, verify="never", threads=threads)
    for _ in range(2):
        ours, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
        expected, got = f(*theirs), compiled(*ours)
        for a, b in zip([got, *ours], [expected, *theirs]):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


def values(dtype: str, size: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.integers(-100, 100, size)
    if np.dtype(dtype).kind == "f":
        found = (x / 8).astype(dtype)
        found[:: max(1, size // 7)] = -0.0
        return found
    if np.dtype(dtype).kind == "c":
        return (x / 8 + 1j * rng.integers(-9, 9, size)).astype(dtype)
    return x.astype(dtype)


COMBINED = [
    (name, dtype) for name in ("add", "multiply", "minimum", "maximum") for dtype in DTYPES if name == "add" or dtype[0] != "c"
]


@pytest.mark.parametrize(("name", "dtype"), COMBINED)
@pytest.mark.parametrize("size", [0, 1, 9, MANY])
@pytest.mark.filterwarnings("ignore")
def test_at(name: str, dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    table = values(dtype, 50, 1)
    if np.dtype(dtype).kind in "fc" and size == MANY and name == "multiply":
        table[:] = 0

    def f(t: Any, i: Any, v: Any) -> None:
        getattr(np, name).at(t, i, v)

    same(f, table, rng.integers(-50, 50, size), values(dtype, size))


INDICES = ["i1", "u1", "i2", "u4", "i8", "u8", ">i8"]
SIZES = [0, 1, 9, MANY]


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("size", SIZES)
def test_bincount(index: str, size: int) -> None:
    """Indices and weights of each kind together, and each in all sizes, by turns."""
    rng = np.random.default_rng(size)
    i = rng.integers(0, 100, size).astype(index)
    row, depth = INDICES.index(index), SIZES.index(size)
    for n, minlength in enumerate((0, 3, 100, 200)):
        if is_turn(row, n, depth, len(SIZES)):
            same(lambda i: np.bincount(i, minlength=minlength), i)  # noqa: B023
    for n, dtype in enumerate(("?", "i1", "u2", "i4", "f2", "f4", "f8")):
        if is_turn(row, n, depth, len(SIZES)):
            same(lambda i, w: np.bincount(i, weights=w), i, values(dtype, size))
            same(lambda i, w: np.bincount(i, w, 101) / np.maximum(np.bincount(i, None, 101), 1), i, values(dtype, size))


@pytest.mark.parametrize("bad", [-1, -128])
def test_bincount_of_negative_numbers(bad: int) -> None:
    for size in (1, 9, MANY):
        i = np.zeros(size, np.int8)
        compiled = jitml.jit(np.bincount, verify="never")
        compiled(i)
        i[size // 2] = bad
        with pytest.raises(ValueError, match="must have no negative elements"):
            compiled(i)


@pytest.mark.parametrize("size", [0, 1, 9, MANY])
def test_histograms(size: int) -> None:
    x = np.random.default_rng(size).normal(size=size)
    same(lambda x: np.histogram(x, 20, (-2.0, 2.0))[0], x)
    same(lambda x: np.histogram(x, np.array([-1.0, -0.5, 0.0, 3.0]))[0], x)
    same(lambda x: np.histogram(x, 7, (-2.0, 2.0), weights=np.ones(len(x)))[0], x)
    same(lambda x: np.bincount((np.abs(x) * 10).astype(np.int64), minlength=60), x)


def shifted_onto_itself(x: Any, i: Any) -> None:
    x[i] = x[: len(i)] + 1


def gathered_and_added(x: Any, i: Any) -> None:
    np.add.at(x, i, x[i] * 2)


def places_from_itself(x: Any, i: Any) -> None:
    np.add.at(x, np.abs(x[: len(i)]).astype(np.int64) % len(x), 1)


def view_of_itself(x: Any, i: Any) -> None:
    half = x[::2]
    np.add.at(half, i % len(half), x[i])


def reversed_itself(x: Any, i: Any) -> None:
    x[::-1][i] = x.reshape(-1, 1)[i, 0]


def kept_before(x: Any, i: Any) -> Any:
    old = x[i] * 2
    x[i] = 0
    x[i[::-1]] = old
    return old


def one_after_the_other(x: Any, i: Any) -> Any:
    y = x + 1
    np.add.at(x, i, y[i])
    np.add.at(y, i, x[i])
    x[i] -= y[i]
    return y


def written_twice(x: Any, i: Any) -> Any:
    y = np.zeros_like(x)
    y[i] = x[i]
    y[i + 1 - len(x)] += y[i]
    return y


ALIASED = [
    shifted_onto_itself, gathered_and_added, places_from_itself, view_of_itself, reversed_itself, kept_before,
    one_after_the_other, written_twice,
]  # fmt: skip


LAYOUTS = ["dense", "backwards", "every other"]
PLACES = [
    (f, dtype, layout)
    for n, f in enumerate(ALIASED)
    for row, dtype in enumerate(["i4", "i8", "f8"])
    for column, layout in enumerate(LAYOUTS)
    if is_turn(row, column, n % 3, 3)
]


@pytest.mark.parametrize(("f", "dtype", "layout"), PLACES, ids=named(PLACES))
def test_of_what_is_changed(f: Callable[..., Any], dtype: str, layout: str) -> None:
    for size, times in ((64, 1), (64, 0.5), (64, 0), (2000, 1)):
        rng = np.random.default_rng(size)
        i = rng.integers(0, size, int(size * times))
        x = rng.integers(0, 1000, 2 * size).astype(dtype)

        def on_view(base: Any, i: Any, size: int = size) -> Any:
            x = {"dense": base[:size], "backwards": base[:size][::-1], "every other": base[::2]}[layout]
            return f(x, i)

        same(on_view, x, i)


def columns(x: Any, i: Any, v: Any) -> None:
    np.add.at(x, (slice(None), i), v.T * 2)


def rows(x: Any, i: Any, v: Any) -> None:
    np.add.at(x, i, v + i[:, None])


def pairs(x: Any, i: Any, v: Any) -> None:
    np.add.at(x, (i, (i * 7) % x.shape[1]), v[:, 0])


def outer_pairs(x: Any, i: Any, v: Any) -> None:
    np.maximum.at(x, (i[:40, None], i[None, :30] % x.shape[1]), v[0, 0])


def rows_from_halves(x: Any, i: Any, v: Any) -> None:
    x[i] = np.concatenate([v[: len(v) // 2], -v[len(v) // 2 :]])


def rows_of_products(x: Any, i: Any, v: Any) -> None:
    x[i] += (v @ v.T[:, : x.shape[1]]).astype(x.dtype)


@pytest.mark.parametrize("f", [columns, rows, pairs, outer_pairs, rows_from_halves, rows_of_products], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f8"])
@pytest.mark.parametrize("width", [1, 3, 40])
def test_more_axes(f: Callable[..., Any], dtype: str, width: int) -> None:
    rng = np.random.default_rng(width)
    size = 40
    i = rng.integers(-size, size, 2000)
    x, v = np.zeros((size, size if f is columns else width), dtype), rng.integers(-9, 9, (2000, width)).astype(dtype)
    if f is columns:
        x = np.zeros((width, size), dtype)
    same(f, x, i, v)


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
def test_threads_change_no_bit(dtype: str) -> None:
    rng = np.random.default_rng(0)
    i, v = rng.integers(0, 300, MANY), rng.normal(size=MANY) * 1e3

    def f(i: Any, v: Any) -> Any:
        return np.bincount(i, v), np.bincount(i), np.bincount(i, (v * 1.5).astype(dtype))

    results = [jitml.jit(f, verify="never", threads=threads)(i, v) for threads in (1, 2, 5)]
    for other in (*results[1:], f(i, v)):
        for a, b in zip(results[0], other):
            assert a.tobytes() == b.tobytes()


def test_lengths_that_change() -> None:
    compiled = jitml.jit(lambda i, w: (np.bincount(i, w), np.bincount(i, minlength=5)), verify="never")
    rng = np.random.default_rng(0)
    for size in (5, 6, 0, 1, 40_000, 70_000, 69_999, 3):
        for top in (1, 900, 2000):
            i, w = rng.integers(0, top, size), rng.normal(size=size)
            for got, expected in zip(compiled(i, w), (np.bincount(i, w), np.bincount(i, minlength=5))):
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", [9, 100, MANY])
def test_errors_that_are_ignored_where_they_come_from(size: int) -> None:
    def f(t: Any, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            i = np.minimum(1 / x, 3).astype(np.int64)
        np.add.at(t, i, x)
        return t[i], 1 / (x + 1)

    with np.errstate(all="raise"):
        same(f, np.zeros(5), np.arange(float(size)))
        with pytest.raises(FloatingPointError):
            jitml.jit(f, verify="never")(np.zeros(5), np.arange(-1.0, size))


def kernels(f: Callable[..., Any], *args: Any) -> str:
    return str(jitml.jit(f).lower(*args).kernels)


def test_what_is_scattered_lies_in_no_memory() -> None:
    text = kernels(lambda x: np.bincount((x * 10).astype(np.int64) & 63, minlength=64), np.ones(MANY))
    assert f"[{MANY}]" not in text.replace(f"a: f64[{MANY}]", "")


def test_tables_are_for_integers_alone() -> None:
    i = np.zeros(MANY, np.uint8)
    assert "chunk" in kernels(lambda i: np.bincount(i, minlength=256), i)
    assert "chunk" not in kernels(lambda i, w: np.bincount(i, w, minlength=256), i, np.ones(MANY))
