"""Sorts are NumPy's bit for bit: the order of equal elements, of zeros of both signs and of NaN, in every kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.codegen.llvm.runtime.sorting import has_sorts
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.ir.types import BOOL, DTYPES
from jitml.kernels.target import GEMM, Target
from jitml.memory.plan import plan
from jitml.trace.trace import trace
from support.fused import fuse

Array = np.ndarray[Any, Any]
KINDS = ("quicksort", "heapsort", "stable")


def with_ties(shape: tuple[int, ...], dtype: Any) -> Array:
    rng = np.random.default_rng(0)
    x = np.asarray(rng.integers(0, 2 if dtype is BOOL else 9, shape)).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(rng.random(shape) < 0.1, np.nan, np.where(rng.random(shape) < 0.5, x, -x)).astype(dtype)
    return x


def assert_same_bits(function: Callable[..., Any], *args: Any) -> None:
    got, expected = jitml.jit(function)(*args), function(*args)
    assert (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_kind(dtype: str) -> None:
    x = with_ties((40, 70), DTYPES[dtype])
    kinds = [(function, kind) for function in (np.sort, np.argsort) for kind in KINDS]
    got = jitml.jit(lambda x: [function(x, kind=kind) for function, kind in kinds])(x)  # type: ignore[call-overload]
    for y, (function, kind) in zip(got, kinds):
        expected = function(x, kind=kind)  # type: ignore[call-overload]
        assert y.tobytes() == expected.tobytes(), (function, kind)


@pytest.mark.parametrize("function", [np.sort, np.argsort])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (5, 4, 3), (3000, 7), (7, 3000), (20, 30, 40)])
def test_every_axis(function: Any, shape: tuple[int, ...]) -> None:
    x = with_ties(shape, np.float64)
    for axis in (None, *range(len(shape))):
        assert_same_bits(partial(function, axis=axis), x)


@pytest.mark.parametrize("function", [np.sort, np.argsort])
def test_memory_of_any_layout(function: Any) -> None:
    x = with_ties((60, 50), np.float32)
    for y in (x.T, x[::-2, ::3], np.broadcast_to(x[0], (9, 50)), np.asfortranarray(x)):
        before = y.copy()
        assert_same_bits(function, y)
        np.testing.assert_array_equal(y, before)


def test_how_kinds_are_named() -> None:
    x = with_ties((500,), np.int64)
    assert_same_bits(lambda x: np.argsort(x, stable=True), x)
    assert_same_bits(lambda x: np.argsort(x, kind="mergesort"), x)
    with pytest.raises(ValueError, match="sort kind must be"):
        jitml.jit(lambda x: np.sort(x, kind="bogo"))(x)  # type: ignore[call-overload]


@pytest.mark.parametrize("axis", [0, 1])
def test_in_place(axis: int) -> None:
    @jitml.jit
    def sorted_in_place(x: Array) -> None:
        x.sort(axis)

    for x in (with_ties((30, 40), np.float64), with_ties((40, 30), np.float64).T):
        expected = np.sort(x, axis)
        sorted_in_place(x)
        np.testing.assert_array_equal(x, expected)


def test_a_temporary_is_sorted_where_it_lies() -> None:
    graph = parse(
        "graph(a: f64[99]) { b: f64[99] = neg a; c: f64[99] = sort b {axis=0, kind='stable'}; return c }".replace(";", "\n")
    )
    program = plan(fuse(graph))
    assert program.places["b"] == program.places["c"]
    x = with_ties((99,), np.float64)
    np.testing.assert_array_equal(compile_program(program)(x)[0], np.sort(-x))


def test_gradients() -> None:
    x = np.array([3.0, 1.0, 2.0, 5.0])
    np.testing.assert_array_equal(jitml.grad(lambda x: np.sort(x) @ np.arange(4.0))(x), [2.0, 0.0, 1.0, 3.0])
    np.testing.assert_array_equal(jitml.grad(np.median)(x), [0.5, 0.0, 0.5, 0.0])


@pytest.mark.skipif(not has_sorts(), reason="this NumPy's sorts were not found")
def test_programs_call_the_library() -> None:
    assert "jitml_sort_f64_quicksort" in jitml.jit(np.sort).lower(np.ones(9)).llvm


@pytest.mark.parametrize("op", ["sort", "argsort"])
@pytest.mark.parametrize("shape", [(5,), (0, 3), (200, 3), (3, 200)])
def test_without_a_library(op: str, shape: tuple[int, ...]) -> None:
    out = "i64" if op == "argsort" else "f32"
    size = ",".join(map(str, shape))
    x = with_ties(shape, np.float32)
    for axis in range(len(shape)):
        graph = parse(f"graph(a: f32[{size}]) {{ b: {out}[{size}] = {op} a {{axis={axis}, kind='stable'}}\n return b }}")
        program = plan(fuse(graph, target=Target(calls={"gemm": GEMM})))
        expected = getattr(np, op)(x, axis=axis, kind="stable")
        np.testing.assert_array_equal(compile_program(program)(x)[0], expected)
        np.testing.assert_array_equal(run(program, [x])[0], expected)


def test_a_reshaped_argument_along_any_axis() -> None:
    """The reshaped array lies where the flat one does, and the step that copies its columns took it for flat."""

    def f(x: Any) -> Any:
        square, wide = x.reshape(4, 4), x.reshape(2, 8)
        return np.sort(square, axis=0), np.argsort(wide, axis=0), np.sort(wide, axis=1), wide.T @ wide

    x = np.random.default_rng(0).random(16)
    traced = trace(f, (x,), {})
    program = plan(fuse(run_passes(traced.graph), aliases=traced.aliases, strides=traced.strides))
    for got in (jitml.jit(f)(x), run(program, [x])):
        for a, b in zip(got, f(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("function", [np.partition, np.argpartition])
def test_places_beyond_the_end(function: Callable[..., Any]) -> None:
    """Of known lengths, of such that data decide, and by places that the caller gives: NumPy's error, or none of nothing."""

    def parted(x: Any, k: Any) -> Any:
        return function(x, k) * 1, function(x[x > 0], k) * 1, function(x[x > 0], [0, -2]) * 1

    compiled = jitml.jit(parted)
    for x in ([3.0, 1.0, 2.0], [1.0, -1.0], [1.0], [], [-1.0, -2.0, -3.0], [5.0, 4.0, 3.0, 2.0]):
        for k in (0, 1, -1, 2, -3, 7):
            outcomes = []
            for f in (parted, compiled):
                try:
                    outcomes.append([part.shape for part in f(np.array(x), k)])
                except ValueError as error:
                    outcomes.append(str(error).splitlines()[0])
            assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("right", [False, True])
def test_digitize_with_nan_among_the_edges(right: bool) -> None:
    x = np.array([np.nan, 1, 2, -1, 1.5, 3, 4])
    compiled = jitml.jit(lambda x, bins: np.digitize(x, bins, right))
    for bins in itertools.chain(*(itertools.product([np.nan, 1.0, 2.0, 3.0], repeat=n) for n in (1, 2, 3))):
        try:
            expected = np.digitize(x, np.array(bins), right)
        except ValueError:
            with pytest.raises(ValueError, match="monotonically"):
                compiled(x, np.array(bins))
        else:
            assert np.array_equal(compiled(x, np.array(bins)), expected), bins


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("keys", [(1.0, np.nan, 2.0), (np.nan, 1.0), (1.0, 2.0, np.nan), (np.nan, np.nan, 1.0, 3.0)])
def test_searchsorted_with_nan_among_the_keys(keys: tuple[float, ...], side: str) -> None:
    x = np.array([np.nan, 1, 2, -1, 1.5, 3, 4])
    assert np.array_equal(jitml.jit(lambda a, x: np.searchsorted(a, x, side))(np.array(keys), x), np.searchsorted(keys, x, side))
