"""Indices that are looked at before they are used: what NumPy raises, in its words, and nothing has been changed then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.effort import is_turn

INDICES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i8", ">i4"]
SIZES = [1, 7, 33, 5000]  # looked at one by one, or by their extremes; a vector and a rest, and blocks


def read(t: Any, i: Any) -> Any:
    return t[i]


def read_after_arithmetic(t: Any, i: Any) -> Any:
    return t[i + 1] - 2 * t[i - 1]


def read_pairs(t: Any, i: Any) -> Any:
    grid = np.stack([t, t + 1, t + 2])
    return grid[i[:, None] % 3, i[None, :]].sum(axis=1)


def read_backwards(t: Any, i: Any) -> Any:
    return t[i[::-1]] + t[i.reshape(1, -1)]


def write(t: Any, i: Any) -> Any:
    t[i] = np.arange(len(i))
    return t


def add(t: Any, i: Any) -> Any:
    np.add.at(t, i, 2.5)
    return t


def read_and_overwrite(t: Any, i: Any) -> Any:
    t += 1
    s = t[i].sum()
    t *= 2
    return s


def from_floats(t: Any, i: Any) -> Any:
    return t[np.floor(i * 1.0).astype(np.int64)]


FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    read, read_after_arithmetic, read_pairs, read_backwards, write, add, read_and_overwrite, from_floats,
]  # fmt: skip


def outcome(f: Callable[..., Any], t: Any, i: Any) -> tuple[Any, ...]:
    """What comes of a call: its result or what it raises, and the array afterwards."""
    t = t.copy()
    try:
        result: Any = np.asarray(f(t, i)).tolist()
    except IndexError as error:
        return "IndexError", str(error).partition("\n")[0], t.tolist()
    return "", result, t.tolist()


def cases(dtype: str, size: int, n: int) -> list[Any]:
    kind = np.dtype(dtype)
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    rng = np.random.default_rng(size)
    good = rng.integers(max(low, -n + 1), min(high, n - 1), size).astype(kind)
    found = [good]
    for place in {0, size // 2, size - 1}:
        for bad in (-n - 1, -n, n - 1, n, low, high):
            if low <= bad <= high:
                x = good.copy()
                x[place] = bad
                found.append(x)
    if size > 2:  # the first one is named, though it is no extreme
        x = good.copy()
        for place, bad in ((size // 2, n + 1), (size - 1, high)):
            if bad <= high:
                x[place] = bad
        found.append(x)
    return found


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", INDICES)
def test_as_numpy(f: Callable[..., Any], dtype: str) -> None:
    """Each function with each dtype in two sizes, by turns in the others."""
    n = 100
    t = np.arange(-30.0, n - 30)  # exact sums
    row, column = FUNCTIONS.index(f), INDICES.index(dtype)
    for depth, size in enumerate(SIZES if f is not read_pairs else SIZES[:-1]):
        if not is_turn(row, column, depth % 2, 2):
            continue
        compiled = jitml.jit(f, verify="never")
        for i in cases(dtype, size, n):
            with np.errstate(all="ignore"):
                expected = outcome(f, t, i)
                assert outcome(compiled, t, i) == expected, (size, i.dtype)


@pytest.mark.parametrize("f", [write, add], ids=lambda f: f.__name__)
def test_what_has_been_written_when_a_later_index_is_bad(f: Callable[..., Any]) -> None:
    def twice(t: Any, i: Any) -> Any:
        f(t, i)
        return f(t, i + 11)

    compiled = jitml.jit(twice, verify="never")
    for top in (30, 39, 40, 61):
        t, i = np.zeros(50), np.arange(top)
        assert outcome(compiled, t, i) == outcome(twice, t, i), top


def test_no_indices_and_no_elements() -> None:
    compiled = jitml.jit(read, verify="never")
    nothing, none = np.zeros(0), np.zeros(0, np.int64)
    assert outcome(compiled, nothing, none) == outcome(read, nothing, none)
    assert outcome(compiled, np.ones(3), none) == outcome(read, np.ones(3), none)
    for size in (1, 100):
        i = np.zeros(size, np.int64)
        assert outcome(compiled, nothing, i) == outcome(read, nothing, i)


def test_sizes_that_change() -> None:
    compiled = jitml.jit(read_after_arithmetic, verify="never")
    for n in (60, 61, 40, 5, 1, 0, 3000):
        for top in (n - 1, n, n + 5):
            t, i = np.arange(float(n + 2)), np.arange(1, max(1, top))
            assert outcome(compiled, t, i) == outcome(read_after_arithmetic, t, i), (n, top)


def kernels(f: Callable[..., Any], *args: Any) -> str:
    return str(jitml.jit(f).lower(*args).kernels)


def test_one_look_for_all_uses_before_broadcasting_and_without_memory() -> None:
    def gathers(t: Any, i: Any) -> Any:
        rows = np.broadcast_to(np.floor(i).astype(np.int64)[:, None], (1000, 64))
        return t[rows] + 3 * t[rows] - np.exp(t)[rows]

    text = kernels(gathers, np.ones(500), np.zeros(1000))
    assert text.count("IndexError") == 1
    assert "1000" in text and "64000" not in text.partition("IndexError")[0]
    assert "i64[1000]" not in text  # the indices are computed again where one is bad


LIMITS = [lambda i: np.clip(i, 0, 499), lambda i: i % 500, lambda i: np.minimum(np.maximum(i, -500), 499)]


@pytest.mark.parametrize("limits", LIMITS)
def test_no_look_where_limits_are_known(limits: Callable[[Any], Any]) -> None:
    t, i = np.ones(500), np.arange(1000)
    assert "IndexError" not in kernels(lambda t, i: t[limits(i)], t, i)
    assert "IndexError" in kernels(lambda t, i: t[limits(i) + 1], t, i)


def test_no_look_at_bytes_in_a_table_for_all_of_them() -> None:
    i = np.zeros(1000, np.uint8)
    assert "IndexError" not in kernels(read, np.ones(256), i)
    assert "IndexError" in kernels(read, np.ones(255), i)
    assert "IndexError" not in kernels(read, np.ones(128), i.astype(np.int8))
    assert "IndexError" in kernels(read, np.ones(127), i.astype(np.int8))


def test_indices_within_their_limits_are_used_as_they_are() -> None:
    i = np.zeros(1000, np.uint8)
    for f in (read, lambda t, i: t[i & 63], lambda t, i: t[i % np.uint8(200) + np.uint8(50)]):
        text = kernels(f, np.ones(256), i)
        assert "select" not in text and "minimum" not in text, text
    assert kernels(lambda t, i: t[np.clip(i, 0, 299)], np.ones(300), np.zeros(1000, np.int64)).count("minimum") == 1
    assert "minimum" in kernels(read, np.ones(255), i)
