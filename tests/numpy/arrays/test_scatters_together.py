"""Scatters by the same indices run in one pass, where neither needs the other: as NumPy, bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.kernels.ir import Kernel


def sums_and_counts(t, m, i, v):
    np.add.at(t, i, v)
    np.add.at(m, i, 1)


def of_other_lengths(t, m, i, v):
    np.add.at(t[:60], i % 60, v)
    np.add.at(m[10:], i % 60, v.astype(m.dtype))


def into_new_ones(t, m, i, v):
    a, b, c = np.zeros(100), np.zeros(100, np.int32), np.ones(100)
    np.add.at(a, i, v)
    np.maximum.at(b, i, 3)
    np.multiply.at(c, i, np.sign(v))
    t += a * c
    m += b.astype(m.dtype)


def one_after_the_other(t, m, i, v):
    np.add.at(t, i, v)
    np.add.at(t, i, v * 2)
    np.add.at(m, i, t[i].astype(m.dtype))


def by_what_is_changed(t, m, i, v):
    np.add.at(t, i, v)
    np.add.at(m, i, t[: len(m)].astype(m.dtype)[i])
    np.minimum.at(t, i, m[i].astype(t.dtype))


def before_it_is_changed(t, m, i, v):
    old = t[i]
    np.add.at(m, i, old.astype(m.dtype))
    np.add.at(t, i, v)


def written_and_added(t, m, i, v):
    t[i] = v
    np.add.at(m, i, v.astype(m.dtype))
    m[i] = 7


def from_one_start(t, m, i, v):
    a = t + 1
    b = a.copy()
    np.add.at(a, i, v)
    np.subtract.at(b, i, v)
    t[:] = a - b


def rows_and_numbers(t, m, i, v):
    table = np.zeros((100, 3), t.dtype)
    np.add.at(table, i, np.stack([v, v, v], 1).astype(t.dtype))
    np.add.at(t, i, v)
    np.add.at(t, i[::-1], v)
    t += table.sum(axis=1)


FUNCTIONS = [
    sums_and_counts, of_other_lengths, into_new_ones, one_after_the_other, by_what_is_changed, before_it_is_changed,
    written_and_added, from_one_start, rows_and_numbers,
]  # fmt: skip


def _arguments(size: int, dtype: str, index: str, layout: str = "") -> list[Any]:
    rng = np.random.default_rng(size)
    low = 0 if index[-2] == "u" else -100
    memory = rng.integers(0, 9, 400).astype(dtype)
    v = rng.standard_normal(size)
    if size > 8:
        v[1::7], v[2:9:3] = -0.0, (np.nan, np.inf, -np.inf)
    t, m = memory[:100], rng.integers(0, 9, 100).astype(np.int64)
    if layout == "strided":
        t, m = memory[::4], m[::-1]
    elif layout == "overlapping":
        t, m = memory[:100], memory[50:150]
    elif layout == "one memory":
        t = m = memory[:100]
    return [t, m, rng.integers(low, 100, size).astype(index), v]


def _run(f: Callable[..., Any], args: list[Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            f(*args)
        except Exception as error:  # whichever it is, both are to raise it
            return f"{type(error).__name__}: {error}"
    return ""


def _same(f: Callable[..., Any], ours: list[Any], theirs: list[Any], threads: int | None = None) -> None:
    assert _run(jitml.jit(f, verify="never", threads=threads), ours) == _run(f, theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("dtype", "index"), [("f8", "i8"), ("f4", "i4"), (">f8", ">i8"), ("f8", "u1"), ("i8", "i2")])
@pytest.mark.parametrize("size", [0, 1, 9, 70_000])
def test_numpys_bits(f: Callable[..., Any], dtype: str, index: str, size: int) -> None:
    _same(f, _arguments(size, dtype, index), _arguments(size, dtype, index))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("layout", ["strided", pytest.param("overlapping", marks=pytest.mark.loose), "one memory"])
def test_views(f: Callable[..., Any], layout: str) -> None:
    _same(f, _arguments(500, "f8", "i8", layout), _arguments(500, "f8", "i8", layout))


@pytest.mark.parametrize("f", [sums_and_counts, into_new_ones, written_and_added], ids=lambda f: f.__name__)
@pytest.mark.parametrize("bad", [100, -101, 2**40])
def test_indices_that_are_out_of_bounds(f: Callable[..., Any], bad: int) -> None:
    ours, theirs = _arguments(500, "f8", "i8"), _arguments(500, "f8", "i8")
    ours[2][77] = theirs[2][77] = bad
    _same(f, ours, theirs)


def _scatters(f: Callable[..., Any]) -> int:
    kernels = jitml.jit(f, threads=2).lower(*_arguments(70_000, "f8", "i8")).program.kernels
    return sum(isinstance(step, Kernel) and bool(step.updates) for step in kernels.steps)


def test_sums_and_counts_are_made_in_one_pass() -> None:
    assert _scatters(sums_and_counts) == 1
    assert _scatters(into_new_ones) == 1
    assert _scatters(one_after_the_other) == 3


def test_a_size_that_is_asked_for_twice_is_found_once() -> None:
    def means(i: Any, v: Any) -> Any:
        return np.bincount(i, v, 50) / np.maximum(np.bincount(i, minlength=50), 1)

    i, v = np.abs(_arguments(5000, "f8", "i8")[2]), np.ones(5000)
    kernels = jitml.jit(means).lower(i, v).program.kernels
    assert len({source.buffer for source in kernels.sizes.values()}) == 1
    assert sum(isinstance(step, Kernel) and bool(step.updates) for step in kernels.steps) == 1
    np.testing.assert_array_equal(jitml.jit(means)(i, v), means(i, v))
