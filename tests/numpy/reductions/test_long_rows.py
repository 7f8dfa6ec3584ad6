"""Sorts of long rows, and selection from them, are NumPy's bit for bit, whatever the rows hold."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime import sorting
from jitml.codegen.llvm.runtime.jit import load
from jitml.codegen.llvm.runtime.target import host_target
from jitml.codegen.llvm.sorts.long_rows import long_sort_ir
from jitml.codegen.llvm.sorts.radix_sort import LEAST
from jitml.ir import ops
from jitml.ir.graph import Graph
from jitml.ir.passes import run_passes
from jitml.kernels.program import Call
from jitml.trace.trace import trace
from support.fused import fuse

Array = np.ndarray[Any, Any]
KINDS = ("quicksort", "heapsort", "stable")
N = LEAST + 3
RNG = np.random.default_rng(0)


def integers(dtype: str) -> dict[str, Array]:
    d = np.dtype(dtype)
    low, high = np.iinfo(d).min, np.iinfo(d).max
    return {
        "of all sizes": RNG.integers(low, high, N, dtype=d, endpoint=True),
        "the ends": RNG.choice(np.array([low, high, 0, 1], d), N),
        "few values": RNG.integers(0, 9, N).astype(d),
        "no two equal": RNG.permutation(N).astype(d),
        "all equal": np.full(N, 7, d),
        "falling": np.arange(N)[::-1].astype(d),
        "rising": np.arange(N).astype(d),
        "in order but for its last element": np.r_[1:N, 0].astype(d),
        "in order, two and two equal": (np.arange(N) // 2).astype(d),
        "a few runs": (np.arange(N) % 500).astype(d),
        "drawn, with some equal": RNG.integers(0, 1 << 31, N)[RNG.integers(0, 40 * N, N) % N].astype(d),
        "wide apart": RNG.permutation(N).astype(d) * d.type(high // N),
        "alike in their highest bits": (d.type(1) << d.type(8 * d.itemsize - 2)) + RNG.integers(0, 9 * N, N).astype(d),
    }


def numbers(dtype: str) -> dict[str, Array]:
    d = np.dtype(dtype)
    x, one = RNG.standard_normal(N).astype(d), RNG.uniform(0, 1, N).astype(d)
    odd = np.array([0xFFC00001 if d.itemsize == 4 else 0xFFF8000000000001], f"u{d.itemsize}").view(d)[0]

    def with_at(y: Array, *pairs: tuple[int, Any]) -> Array:
        y = y.copy()
        for step, value in pairs:
            y[step // 2 :: step] = value
        return y

    return {
        "drawn": x,
        "in order": np.sort(x),
        "in order, from infinity to nan": np.sort(with_at(x, (7, np.nan), (13, np.inf), (17, -np.inf))),
        "in order but for zeros": np.sort(with_at(x, (7, 0.0), (5, -0.0))),
        "in order but for nan": np.r_[np.sort(x[:-9]), [odd, np.nan, -np.nan] * 3].astype(d),
        "a few runs": np.concatenate([np.sort(x[:600]), np.sort(x[600:1700])[::-1], np.sort(x[1700:])]),
        "close together": (99 + 2 * one).astype(d),
        "alike in their highest bits": (1 + RNG.integers(0, 1 << 20, N) * np.finfo(d).eps).astype(d),
        "integers": RNG.integers(-50, 50, N).astype(d),
        "of all magnitudes": np.exp(np.linspace(-80, 80, N)[RNG.permutation(N)]).astype(d) * np.sign(x),
        "subnormal": (x * np.finfo(d).tiny).astype(d),
        "infinite and nan": with_at(x, (7, np.nan), (13, np.inf), (17, -np.inf)),
        "one nan": with_at(x, (N, np.nan)),
        "only nan": np.full(N, np.nan, d),
        "nan of other kinds": with_at(x, (7, np.nan), (11, -np.nan), (13, odd)),
        "zeros of both signs": with_at(x, (7, 0.0), (5, -0.0)),
        "mostly zeros": with_at(np.zeros(N, d), (7, -0.0), (11, 1.0)),
        "minus zero above": with_at(-one, (N, -0.0)),
        "minus zero below": with_at(one, (N, -0.0)),
        "plus zero": with_at(-one, (N, 0.0)),
        "only minus zero": np.full(N, -0.0, d),
    }


ROWS = {(t, name): x for t in ("i4", "u4", "i8", "u8") for name, x in integers(t).items()}
ROWS |= {(t, name): x for t in ("f4", "f8") for name, x in numbers(t).items()}
PLACES = (0, 1, N // 20, N // 2 - 1, N // 2, N - 7, N - 2, N - 1)


@pytest.mark.parametrize("dtype", sorted({t for t, _ in ROWS}))
def test_every_row(dtype: str) -> None:
    rows = {name: x for (t, name), x in ROWS.items() if t == dtype}

    def function(x: Array) -> Any:
        sorts = [(np.sort(x, kind=kind), np.argsort(x, kind=kind)) for kind in KINDS]
        picked = [[np.sort(x, kind=kind)[place] for place in PLACES] for kind in KINDS]
        return sorts, picked, np.sort(x)[3:9:2], np.sort(x)[-5:][::-1]

    fast = jitml.jit(function)
    for name, x in rows.items():
        before = x.tobytes()
        same_bits(fast(x), function(x), name)
        assert x.tobytes() == before


def same_bits(got: Any, expected: Any, name: str) -> None:
    if isinstance(expected, (tuple, list)):
        for g, e in zip(got, expected, strict=True):
            same_bits(g, e, name)
    else:
        assert (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes()), name


SORT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radix", [False, True])
def test_either_sort_may_be_chosen(kind: Any, radix: bool) -> None:
    called: list[str] = []

    def numpy_sort(name: str, kind: Any) -> Any:
        def sort(at: int, n: int, _: int) -> int:
            called.append(name)
            np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_double)), (n,)).sort(kind=kind)
            return 0

        return SORT(sort)

    kinds = {"numpy_sort": kind, "numpy_quick": "quicksort", "numpy_stable": "stable"}
    functions = {name: numpy_sort(name, kind) for name, kind in kinds.items()}
    imports = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in functions.items()}
    code = load(long_sort_ir(np.dtype("f8"), kind), imports=imports, exports=("jitml_sort_long", "jitml_choose"))
    ctypes.CFUNCTYPE(None, ctypes.c_bool)(code["jitml_choose"])(radix)
    own = {"quicksort": "numpy_sort"}.get(kind, "numpy_quick")
    for name, caller in {
        "drawn": None if radix else own,
        "in order": None,
        "a few runs": "numpy_sort" if kind == "stable" else "numpy_stable",
        "zeros of both signs": "numpy_sort",
    }.items():
        called.clear()
        x, expected = ROWS["f8", name].copy(), np.sort(ROWS["f8", name], kind=kind)
        assert SORT(code["jitml_sort_long"])(x.ctypes.data, N, None) == 0
        same_bits(x, expected, name)
        assert called == ([] if caller is None else [caller]), name


def test_a_trial_tells_which_sort_is_faster() -> None:
    slow = SORT(lambda at, n, _: time.sleep(0.002) or 0)
    quick = SORT(lambda at, n, _: 0)
    seconds = [sorting._seconds(ctypes.cast(f, ctypes.c_void_p).value or 0, np.dtype("f4")) for f in (slow, quick)]
    assert seconds[0] >= 0.002 and seconds[1] < seconds[0]


@pytest.mark.parametrize("n", [LEAST - 1, LEAST, 70_001])
def test_lengths(n: int) -> None:
    """The tables of selection are larger from 65,536 elements on."""
    x = RNG.standard_normal(n)
    for function in (np.sort, np.argsort, np.median, partial(np.quantile, q=[0.0, 0.05, 0.95, 1.0])):
        same_bits(jitml.jit(function)(x), function(x), str(n))  # type: ignore[operator]


QUANTILES: dict[str, Callable[[Array], Any]] = {
    "median": lambda x: (np.median(x, axis=1), np.median(x, axis=0), np.median(x), np.median(x, axis=1, keepdims=True)),
    "quantile": lambda x: (np.quantile(x, [0.05, 0.5, 0.95], axis=1, keepdims=True), np.percentile(x.T, 30, axis=0)),
    "methods": lambda x: [
        np.quantile(x, 0.37, axis=1, method=method)  # type: ignore[call-overload]
        for method in ("inverted_cdf", "hazen", "weibull", "median_unbiased", "lower", "higher", "midpoint", "nearest")
    ],
    "nan": lambda x: (np.nanmedian(x, axis=1), np.nanquantile(x, 0.2, axis=1)),
}


@pytest.mark.parametrize("name", QUANTILES)
@pytest.mark.parametrize("holes", [False, True])
def test_quantiles_of_rows(name: str, holes: bool) -> None:
    x = RNG.standard_normal((5, N))
    x[3:, ::9] = np.nan if holes else 0.5
    function = QUANTILES[name]
    same_bits(jitml.jit(function)(x), function(x), name)


def sorts_of(function: Callable[..., Any], *args: Any) -> list[Call]:
    graph: Graph = run_passes(trace(function, args, {}).graph)
    return [s for s in fuse(graph, target=host_target()).steps if isinstance(s, Call) and s.name in ("sort", "argsort")]


def test_only_places_that_are_read_are_asked_for() -> None:
    x = np.zeros(5000)
    (call,) = sorts_of(lambda x: np.clip(x, *np.quantile(x, [0.05, 0.95])), x)
    assert call.params["places"] == (249, 250, 4749, 4750, 4999)
    (call,) = sorts_of(lambda x: np.sort(x)[-3:] * 2, x)
    assert call.params["places"] == (4997, 4998, 4999)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (np.sort(x), np.median(x)),
        lambda x: np.sort(x)[x[:2].astype(int)],
        lambda x: np.sort(x)[:100],
        lambda x: np.sort(x)[::500],
        lambda x: np.argsort(x)[:3],
        lambda x: np.sort(x[:10])[3],
    ],
)
def test_all_is_sorted_where_more_is_read(function: Any) -> None:
    assert all("places" not in call.params for call in sorts_of(function, np.zeros(5000)))


def test_a_row_that_is_sorted_in_place() -> None:
    """The row is the program's own by then, and the sorted one may lie in its memory."""
    x = RNG.standard_normal(N)
    same_bits(jitml.jit(lambda x: np.median(x * 2 + 1))(x), np.median(x * 2 + 1), "in place")
    same_bits(jitml.jit(lambda x: ops.sort(x * 2, axis=0, kind="stable"))(x), np.sort(x * 2), "in place")


def test_rows_that_are_not_contiguous() -> None:
    x = RNG.standard_normal((N, 6))

    def function(x: Array) -> Any:
        return np.sort(x, axis=0), np.argsort(x, axis=0), np.median(x, axis=0)

    for view in (x[:, 2], x[::-1, 3], x[:, ::2], x.T):
        same_bits(jitml.jit(function)(view), function(view), str(view.strides))
    swapped = x[:, 0].astype(">f8")
    np.testing.assert_array_equal(jitml.jit(np.sort)(swapped), np.sort(swapped))


SHORT = 301  # a few more than blocks of eight
ENDS: dict[str, Callable[[Array], Array]] = {
    "last": lambda x: np.argpartition(x, -10, axis=1)[:, -10:],
    "last one": lambda x: np.argpartition(x, -1, axis=1)[:, -1:],
    "first": lambda x: np.argpartition(x, 14, axis=1)[:, :15],
    "first two": lambda x: np.argpartition(x, (0, 1), axis=1)[:, :2],
    "down": lambda x: np.argpartition(x.T, 4, axis=0)[:5].T,
}
OTHERS: dict[str, Callable[[Array], Array]] = {
    "middle": lambda x: np.argpartition(x, range(7, 12), axis=1)[:, 7:12],
    "many": lambda x: np.argpartition(x, 40, axis=1)[:, :41],
    "all": lambda x: np.argpartition(x, 40, axis=1),
}


@pytest.mark.parametrize("dtype", sorted({t for t, _ in ROWS} | {"i2", "f2"}))
def test_first_and_last_of_rows(dtype: str) -> None:
    """Which they are; equal elements may be any of them, as in NumPy, but none is there twice."""
    rows = {(t, name): x[:SHORT] for (t, name), x in ROWS.items()}
    if dtype in ("i2", "f2"):
        of = "i4" if dtype == "i2" else "f4"
        rows = {(dtype, name): x.clip(-9e3, 9e3).astype(dtype) for (t, name), x in rows.items() if t == of}
    x = np.stack([row for (t, _), row in rows.items() if t == dtype])
    for function in (ENDS | OTHERS).values():
        got, expected = (np.sort(f(x), axis=1) for f in (jitml.jit(function), function))
        assert (got[:, 1:] != got[:, :-1]).all()
        values = (np.sort(np.take_along_axis(x, places, axis=1), axis=1) for places in (got, expected))
        np.testing.assert_array_equal(*values)


def test_partitions_find_the_ends_by_insertion() -> None:
    for name, function in (ENDS | OTHERS).items():
        (call,) = sorts_of(function, np.zeros((8, SHORT)))
        llvm = str(jitml.jit(function).lower(np.zeros((8, SHORT))).llvm)
        assert ("jitml_argsort_places_f64" in llvm) == (name in ENDS), call


def test_of_equal_elements_at_the_boundary_a_sort_chooses() -> None:
    x = RNG.integers(0, 40, (30, SHORT))
    got, order = jitml.jit(ENDS["last"])(x), np.argsort(x, axis=1)
    np.testing.assert_array_equal(np.sort(got, axis=1), np.sort(order[:, -10:], axis=1))
    got = jitml.jit(ENDS["first"])(x)
    np.testing.assert_array_equal(np.sort(got, axis=1), np.sort(order[:, :15], axis=1))


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_ends_of_rows_of_all_lengths(dtype: str, count: int) -> None:
    """Elements are looked at eight at a time; the rest of a row is less than that."""
    for n in (16 * count, 16 * count + 1, 16 * count + 7, 16 * count + 8, 512, 517, 3000):  # from 512 on by a sample
        rows = [RNG.permutation(n), np.arange(n), np.arange(n)[::-1], RNG.integers(0, 9, n), np.zeros(n), np.eye(1, n, n // 2)[0]]
        x = np.array(rows).astype(dtype)
        got = jitml.jit(lambda x: (np.argpartition(x, -count)[:, -count:], np.argpartition(x, count - 1)[:, :count]))(x)
        order = np.argsort(x, axis=1)
        for places, expected in zip(got, (order[:, -count:], order[:, :count])):
            np.testing.assert_array_equal(np.sort(places, axis=1), np.sort(expected, axis=1))
