"""Numbers that a function of NumPy refuses, or warns of: Python integers beyond a dtype, negative sizes, edges in disorder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from programs.comparing import difference, within

Function = Callable[..., Any]
NAN = np.array([[np.nan, 1.0], [np.nan, np.nan]])

WRITTEN_BEFORE: dict[str, Function] = {
    "a scalar": lambda a, n: np.int8(295 + n),
    "a constant": lambda a, n: np.int8(300),
    "a constant of another sign": lambda a, n: np.uint8(-1),
    "a list": lambda a, n: np.array([n * 60, 1], dtype="i1"),
    "nested tuples": lambda a, n: np.asarray(((1, 2), (3, n * 60)), np.uint8),
    "beside a float": lambda a, n: np.array([a[0], 300], dtype="i1"),
    "a list of floats": lambda a, n: np.array([2.7, n], dtype="i1"),
    "a float that is no number": lambda a, n: np.array([1.5, np.nan], dtype=int),
    "a scalar's list": lambda a, n: np.int8([300]),
    "a NumPy scalar wraps": lambda a, n: np.int8(np.int64(300)),
    "a range": lambda a, n: np.arange(300, 302, dtype="i1"),
    "a range's second number": lambda a, n: np.arange(100, 300, 100, dtype="i1"),
    "a range that wraps": lambda a, n: np.arange(126, 130, dtype="i1"),
    "a range of nothing": lambda a, n: np.arange(300, 300, dtype="i1"),
    "a range from a number": lambda a, n: np.arange(n * 60, n * 60 + 2, dtype="i1"),
    "a range whose second number is one too many": lambda a, n: np.arange(n + 122, n + 125, dtype="i1"),
    "a range of one number": lambda a, n: np.arange(n + 122, n + 123, dtype="i1"),
    "where": lambda a, n: np.where(a.astype("i1") > 0, a.astype("i1"), 300),
    "choose": lambda a, n: np.choose([0, 1, 0, 1, 0], [a.astype("i1"), 300]),
    "union": lambda a, n: np.union1d(a.astype("i1"), 300),
    "intersection": lambda a, n: (np.intersect1d(a.astype("f2"), 7), np.setxor1d(a.astype("f4"), 0.1)),
    "searched": lambda a, n: (np.searchsorted(a.astype("i1"), 300), np.isin(a.astype("f4"), 0.1)),
    "padded with what is too large": lambda a, n: np.pad(a.astype("i1"), 1, constant_values=300),
    "differences": lambda a, n: np.ediff1d(a.astype("u1"), to_end=3),
    "joined": lambda a, n: np.r_[a.astype("i1"), 300],
    "joined with floats": lambda a, n: np.r_[a.astype("f4"), 0.1, n],
    "filled with a text": lambda a, n: a.fill("x"),
    "a text that is a number": lambda a, n: a.__setitem__(0, "3"),
    "nothing": lambda a, n: a.fill(None),
    "stored from a list": lambda a, n: np.place(a.astype("i1"), a > 0, [n * 60]),
    "eye": lambda a, n: np.eye(-1),
    "tri is empty": lambda a, n: np.tri(-3),
    "indices": lambda a, n: np.indices((-1, 2)),
    "tile": lambda a, n: np.tile(a, -1),
    "repeat": lambda a, n: np.repeat(a, -1),
    "vander": lambda a, n: np.vander(a, -1),
    "broadcast": lambda a, n: np.broadcast_to(a, (-1, 5)),
    "edges": lambda a, n: np.digitize(a, np.array([3.0, 1.0, 2.0])),
    "computed edges": lambda a, n: np.digitize(a, a * 1),
    "falling edges": lambda a, n: np.digitize(a, np.sort(a)[::-1]),
    "edges of unknown number": lambda a, n: np.digitize(a, a[a > 0]),
    "partition": lambda a, n: np.partition(a, 9),
    "a size beyond 64 bits": lambda a, n: np.zeros(a.view("u8")[1]),
    "a side beyond 64 bits": lambda a, n: np.full((2, a.view("u8")[1]), 1.0),
    "as many copies": lambda a, n: np.repeat(a, a.view("u8")[1]),
    "as many tiles": lambda a, n: np.tile(a, (a.view("u8")[1], 2)),
    "a range that ends there": lambda a, n: np.arange(a.view("u8")[1] - np.uint64(2), a.view("u8")[1]),
    "a slice that does": lambda a, n: (a[: a.view("u8")[1]], a[a.view("u8")[1] :], np.roll(a, a.view("u8")[1])),
    "the length of a range of Python's that does": lambda a, n: len(range(a.view("u8")[1])),
    "that of one on both sides of zero": lambda a, n: len(range(a.view("i8")[1], -a.view("i8")[1])),
    "what is in one": lambda a, n: 5 in range(a.view("u8")[1]),
    "a truth for a size": lambda a, n: np.zeros(n > 3),
    "one of NumPy's": lambda a, n: np.zeros(a[0] > 0),
    "one that is computed": lambda a, n: np.full((2, bool(a[0] > 0)), 1.0),
    "a truth for a side": lambda a, n: a.reshape(n > 3, -1),
    "a truth for an axis": lambda a, n: a.reshape(1, 5).sum(axis=n > 3),
    "one for another": lambda a, n: np.concatenate([a.reshape(1, 5)] * 2, axis=n > 3),
    "a truth for a width": lambda a, n: np.pad(a, n > 3),
    "a truth to delete": lambda a, n: np.delete(a, a[0] > 0),
    "where a truth is a number": lambda a, n: (np.arange(n > 3), np.tri(n > 3), np.tile(a, n > 3), np.linspace(0, 1, n > 3)),
    "argpartition": lambda a, n: np.argpartition(a, -7),
    "unique": lambda a, n: np.unique(a, axis=1),
    "reduceat": lambda a, n: np.add.reduceat(a, [7]),
    "nanmax": lambda a, n: np.nanmax(NAN + a[0], axis=1),
    "nanmin": lambda a, n: np.nanmin(a * np.nan),
    "nanvar": lambda a, n: np.nanvar(a[:1] * np.nan),
}
if np.lib.NumpyVersion(np.__version__) >= "2.3.0":  # before, it was deprecated: the call runs without compilation, and says so
    WRITTEN_BEFORE["a truth for a place"] = lambda a, n: np.partition(a, a[0] > 0)


def outcome(function: Function, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            result = type(error).__name__, str(error)
    return [result, list(args), sorted((w.category.__name__, str(w.message)) for w in seen)]


def array() -> Any:
    return np.array([7.0, -2.0, 9.0, 0.5, -1.0])


@pytest.mark.parametrize("name", WRITTEN_BEFORE)
def test_the_call_ends_as_in_numpy(name: str) -> None:
    function = WRITTEN_BEFORE[name]

    def program(a: Any, n: int) -> Any:
        a[0] = 5
        result = function(a, n)
        a[1] = 8
        return result

    compiled = jitml.jit(program)
    for _ in range(2):
        assert difference(outcome(compiled, array(), 5), outcome(program, array(), 5), within(1e-12)) is None


def test_a_range_from_a_number_that_changes() -> None:
    def ranges(n: int) -> Any:
        return np.arange(n, n + 2, dtype="i1"), np.arange(n, n + 2, dtype="u2")

    compiled = jitml.jit(ranges)
    for n in (3, 4, 5, 126, 127, 300, -1, 7):
        assert difference(outcome(compiled, n), outcome(ranges, n), within(1e-12)) is None


@pytest.mark.parametrize("function", [lambda x, n: x > n, lambda x, n: n in x, lambda x, n: max(x[0], n)])
def test_an_integer_beyond_64_bits_after_others(function: Function) -> None:
    compiled = jitml.jit(function)
    for n in (5, 300, -129, 0, 2**63, 2**70, 1):
        x = np.array([1, -2, 100], np.int8)
        assert difference(outcome(compiled, x, n), outcome(function, x, n), within(1e-12)) is None
