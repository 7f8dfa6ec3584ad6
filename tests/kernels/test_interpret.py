"""The kernel interpreter against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.kernels.interpret import interpret
from jitml.kernels.text.parser import parse
from support.kernel_texts import BLOCK_KERNELS, KERNELS

RNG = np.random.default_rng(0)


def test_pointwise() -> None:
    a, b, y = RNG.normal(size=(3, 8))
    interpret(parse(KERNELS["axpy"]), {"a": a, "b": b, "y": y})
    np.testing.assert_array_equal(y, a * b + a)


def test_row_wise_chain_keeps_float32() -> None:
    x = RNG.normal(size=(4, 9)).astype(np.float32)
    y = np.empty_like(x)
    interpret(parse(KERNELS["softmax"]), {"x": x, "y": y})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_blocks_and_threads() -> None:
    x = RNG.normal(size=(5, 70)).astype(np.float32)
    y = np.empty_like(x)
    interpret(parse(BLOCK_KERNELS["blocks"]), {"x": x, "y": y})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_small_integers_wrap_and_strides_are_followed() -> None:
    memory = np.full(15, 100, np.int8)
    y = np.empty((5, 3), np.int8)
    x = memory.reshape(3, 5).T
    interpret(parse(KERNELS["cumsum"]), {"x": memory, "y": y})
    np.testing.assert_array_equal(y, np.cumsum(x, 0, dtype=np.int8))


def test_tiles_and_flat_indices() -> None:
    x, y = RNG.normal(size=(10, 7)), np.empty((7, 10))
    interpret(parse(KERNELS["transpose"]), {"x": x, "y": y})
    np.testing.assert_array_equal(y, x.T)
    flat, square = RNG.normal(size=24).astype(np.float32), np.empty((4, 6), np.float32)
    interpret(parse(KERNELS["flat"]), {"x": flat, "y": square})
    np.testing.assert_array_equal(square, flat.reshape(4, 6))


def test_gather_and_its_check() -> None:
    x, y = RNG.normal(size=6), np.zeros(4)
    interpret(parse(KERNELS["gather"]), {"x": x, "k": np.array([0, -1, 5, -6]), "y": y})
    np.testing.assert_array_equal(y, x[[0, -1, 5, -6]])
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        interpret(parse(KERNELS["gather"]), {"x": x, "k": np.array([0, 6, 5, 7]), "y": y})


def test_scatter_branches_scratch_and_lane_cells() -> None:
    x, h = RNG.uniform(size=20), np.empty(4, np.int64)
    interpret(parse(KERNELS["histogram"]), {"x": x, "h": h})
    np.testing.assert_array_equal(h, np.histogram(x, 4, (0, 1))[0])
    x, y = RNG.normal(size=3), np.empty(8)
    interpret(parse(KERNELS["pad"]), {"x": x, "y": y})
    np.testing.assert_array_equal(y, [-1, -1, *x, 0, 0, 0])
    x, s = RNG.normal(size=12), np.empty(())
    interpret(parse(KERNELS["scratch"]), {"x": x, "s": s})
    np.testing.assert_allclose(s, 2 * x.sum(), rtol=1e-14)
    x, y = RNG.normal(size=(5, 8)), np.empty(8)
    interpret(parse(KERNELS["lanes"]), {"x": x, "y": y})
    np.testing.assert_allclose(y, x.sum(0), rtol=1e-14)


def test_while_bisects() -> None:
    x, k = np.sort(RNG.normal(size=9)), np.zeros((), np.int64)
    for v in (-9.0, x[4], x[4] + 1e-9, 9.0):
        interpret(parse(KERNELS["bisect"]), {"x": x, "v": np.array(v), "k": k})
        assert k == np.searchsorted(x, v)


def test_an_access_outside_its_buffer_is_caught() -> None:
    kernel = parse("kernel k(x: f64[4], y: f64[4]) { for i in 0:4 vector { y[i] = x[i + 1] } }")
    with pytest.raises(IndexError, match=r"x: index 1\.\.4 is outside axis 0"):
        interpret(kernel, {"x": np.zeros(4), "y": np.zeros(4)})


def test_a_single_lane_stores_to_a_number() -> None:
    y = np.zeros((), np.int64)
    interpret(parse("kernel k(y: i64[]) { for i in 0:1 vector { y[] = i + 7 } }"), {"y": y})
    assert y == 7


def test_scratch_is_garbage_before_it_is_written_and_warnings_stop_nothing() -> None:
    y = np.zeros(2)
    text = (
        "kernel k(y: f64[2]) { check false, UserWarning, 'no'; alloc s: f64[] { y[0] = s[] }; alloc s: f64[1] { y[1] = s[0] } }"
    )
    interpret(parse(text), {"y": y})
    assert (y != 0).all()


def test_a_lane_invariant_value_counts_once_per_lane() -> None:
    kernel = parse("kernel k(s: i64[]) { cell c: i64 = 0; for i in 0:5 vector { c add= 2 }; s[] = c }")
    s = np.zeros((), np.int64)
    interpret(kernel, {"s": s})
    assert s == 10


def test_select_and_conversions_keep_dtypes() -> None:
    kernel = parse(
        "kernel k(x: f32[3], y: u8[3]) { for i in 0:3 { let v: f32 = select(x[i] > 0.0_f32, x[i], 7.5_f32); y[i] = u8(v) } }"
    )
    y = np.zeros(3, np.uint8)
    interpret(kernel, {"x": np.array([-1, 2.5, np.nan], np.float32), "y": y})
    assert y.tolist() == [7, 2, 7]
