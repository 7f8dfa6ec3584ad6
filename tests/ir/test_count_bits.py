"""Set bits that a program counts by sums of neighbours are counted by the processor, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir import ops


def count(x, last=0):
    """Warren's sum of neighbours; `last` is added to the last mask."""
    width, t = 8 * x.dtype.itemsize, x.dtype.type
    every = (1 << width) - 1
    x = x - ((x >> t(1)) & t(every // 3 & (every >> 1 if x.dtype.kind == "i" else every)))
    x = (x & t(every // 5)) + ((x >> t(2)) & t(every // 5))
    x = (x + (x >> t(4))) & t(every // 17 + last)
    return x if width == 8 else (x * t(every // 255)) >> t(width - 8)


def other_order(x):
    t = x.dtype.type
    x = x - (t(0x55555555) & (x >> t(1)))
    x = ((x >> t(2)) & t(0x33333333)) + (t(0x33333333) & x)
    x = t(0x0F0F0F0F) & ((x >> t(4)) + x)
    return (t(0x01010101) * x) >> t(24)


def _values(dtype: str) -> Any:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    random = rng.integers(info.min, info.max, 200, dtype=np.dtype(dtype).newbyteorder("="), endpoint=True)
    return np.concatenate([random, np.array([info.min, info.max, 0, 1, 2, info.max - 1], dtype)]).astype(dtype)


def _counts(f: Callable[..., Any], x: Any) -> bool:
    return any(node.op is ops.count_bits for node in jitml.jit(f).lower(x).graph.nodes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", ">u4", "i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("shape", [(206,), (2, 103), (0,), (1,), ()])
def test_as_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.resize(_values(dtype), shape) if 0 not in shape else np.zeros(shape, dtype)
    for f in (count, lambda x: count(x, 1), lambda x: count(x).sum(axis=-1) if x.ndim else count(x), np.bitwise_count):
        np.testing.assert_array_equal(jitml.jit(f, verify="never")(x), f(x), strict=True)


def test_of_which_the_processor_counts() -> None:
    assert all(_counts(count, _values(dtype)) for dtype in ("u1", "u2", "u4", "u8"))
    assert _counts(other_order, _values("u4"))
    assert not _counts(lambda x: count(x, 1), _values("u4"))  # another mask
    assert not _counts(other_order, _values("u8"))  # masks of 32 bits over 64
    assert not _counts(count, _values("i8"))  # whose shifts keep the sign
    x = _values("u4")
    np.testing.assert_array_equal(jitml.jit(other_order)(x), np.bitwise_count(x))
