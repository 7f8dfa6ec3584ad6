"""Every function of docs/supported.md has derivatives: forward, backward, twice, compiled, in rows, in both precisions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitml import check_grads, jit, jvp, vjp, vmap
from support.function_table import ROWS, is_here, words

PAGE = Path(__file__).parents[3] / "docs" / "supported.md"
# Their results are integers, truth values, places, dtypes or shapes, or do not depend on the numbers in their arguments.
WITHOUT_SLOPE = words(
    "np.bitwise_and np.bitwise_count np.bitwise_or np.bitwise_xor np.equal np.greater_equal np.greater np.invert np.isfinite "
    "np.isinf np.isnan np.left_shift np.less_equal np.less np.logical_and np.logical_not np.logical_or np.logical_xor "
    "np.not_equal np.right_shift np.signbit np.logical_and.reduce np.logical_or.reduce np.iscomplex np.iscomplexobj np.isreal "
    "np.isrealobj np.all np.any np.argmax np.argmin np.count_nonzero np.nanargmax np.nanargmin np.bool np.empty_like "
    "np.empty np.eye np.identity np.indices np.int16 np.int32 np.int64 np.int8 np.ones_like np.ones np.uint16 np.uint32 "
    "np.uint64 np.uint8 np.zeros_like np.zeros np.ravel_multi_index np.unravel_index ndarray.flags ndarray.setflags "
    "np.unique_counts np.allclose np.array_equal np.array_equiv np.can_cast np.isclose np.isneginf np.isposinf "
    "np.may_share_memory np.result_type np.shares_memory np.fft.fftfreq np.fft.rfftfreq all any bool in is int len math.isfinite "
    "math.isinf math.isnan math.ceil math.floor math.trunc "
    "cmath.isfinite cmath.isinf cmath.isnan "
    "math.comb math.factorial math.gcd math.isclose math.isqrt math.lcm math.perm collections.deque"
)
# Of which another row shows as much.
LIKE_OTHERS = {
    "np.unique_all",
    "np.unique_inverse",
    "np.complex64",
    "np.complex128",
    "np.float16",
    "np.float32",
    "np.real_if_close",
}
# How many elements there are depends on their values: rows may differ.
OF_ANY_SIZE = words(
    "np.nonzero np.argwhere np.flatnonzero np.unique np.unique_values np.trim_zeros np.union1d np.intersect1d np.setdiff1d "
    "np.setxor1d"
)
CASES = [(name, kind) for name, rows in ROWS.items() for kind in "fc" if any(kind in kinds for kinds, _, _ in rows)]


def test_the_table_is_complete() -> None:
    supported = PAGE.read_text().partition("## Supported")[2].partition("Every supported")[0]
    names = set(re.findall(r"`([^`]+)`", supported)) - {"is not"}
    missing = set(filter(is_here, names)) - {name.partition(":")[0] for name in ROWS} - set(WITHOUT_SLOPE) - LIKE_OTHERS
    assert not missing, f"give {', '.join(sorted(missing))} a row in function_table.py, or say that there is no slope"


def complexes(x: np.ndarray) -> np.ndarray:
    return x * (1 + 0.3j) + 0.2j * np.sin(np.arange(x.size)).reshape(x.shape)


def cotangent(y: Any) -> Any:
    drawn = np.random.default_rng(1)
    y = np.asarray(y)
    ct = drawn.normal(size=y.shape) + (1j * drawn.normal(size=y.shape) if y.dtype.kind == "c" else 0)
    return ct.astype(y.dtype)[()]


def close(got: Any, expected: Any) -> None:
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}-{kind}" for name, kind in CASES])
def test_derivatives(name: str, kind: str) -> None:
    """Of the first row all is asked, of the others both modes, twice."""
    rows = [(f, args if kind == "f" else tuple(map(complexes, args))) for kinds, f, args in ROWS[name] if kind in kinds]
    for function, args in rows:
        check_grads(function, args, order=2, atol=2e-5, rtol=2e-5)
    function, args = rows[0]
    ct = cotangent(function(*args))
    pull = lambda ct, *args: vjp(function, *args)[1](ct)  # noqa: E731  # transforms want a function
    expected = pull(ct, *args)
    ways = tuple(np.cos(x) if kind == "f" else np.exp(1j * x.real) for x in args)
    twice = jvp(lambda *args: pull(ct, *args), args, ways)
    first, second = jit(lambda ct, *args: jvp(lambda *args: pull(ct, *args), args, ways))(ct, *args)
    close(first, expected)
    close(second, twice[1])
    if name not in OF_ANY_SIZE:
        together = vmap(pull)(np.stack([ct, ct]), *(np.stack([x, x]) for x in args))
        close(together, [np.stack([ct, ct]) for ct in expected])
    narrow = tuple(x.astype(np.float32 if kind == "f" else np.complex64) for x in args)
    dtype = np.asarray(function(*narrow)).dtype
    for ours, theirs, x in zip(pull(ct.astype(dtype), *narrow), expected, narrow):
        assert ours.dtype == x.dtype
        np.testing.assert_allclose(ours, theirs, rtol=3e-3, atol=3e-3 * max(1, np.abs(theirs).max()))
