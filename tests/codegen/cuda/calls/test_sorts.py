"""Sorts on a GPU are NumPy's stable ones: NaN last, both zeros equal, equal elements in their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.ir.types import I64
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call
from support.cuda_calls import Case, check, program_of

Array = np.ndarray[Any, Any]


def _values(rows: int, n: int, dtype: str) -> Array:
    """Few different values, so that many are equal; of floats some NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(rows * n)
    x = rng.integers(-n // 2, n // 2 + 1, (rows, n)) if np.dtype(dtype).kind != "b" else rng.integers(0, 2, (rows, n))
    x = x.astype(dtype)
    if np.dtype(dtype).kind == "f":
        special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], dtype)
        x = np.where(rng.random(x.shape) < 0.3, special[rng.integers(0, 6, x.shape)], x)
    return x


def _sort(rows: int, n: int, dtype: str, name: str = "sort", *, live: tuple[int, int] | None = None, same: bool = False) -> Case:
    """
    Args:
        live: elements of a row, and rows, that count.
        same: whether the result has the memory of what is sorted.
    """
    x = _values(rows, n, dtype)
    result = np.full((rows, n), 5, np.int64 if name == "argsort" else dtype)
    n_live, rows_live = live or (n, rows)
    wanted = x.copy() if same else result.copy()
    wanted[:rows_live, :n_live] = getattr(np, name)(x[:rows_live, :n_live], axis=1, kind="stable")
    y = "x" if same else "y"
    buffers = [Buffer("x", x.dtype, x.shape), Buffer(y, result.dtype, x.shape), *([Buffer("lengths", I64, (2,))] if live else [])]
    reads = ("x", "lengths") if live else ("x",)
    call = Call(name, reads, (y,), {"axis": 1, "kind": "stable"})
    memory = {"x": x} | ({} if same else {"y": result}) | ({"lengths": np.array(live)} if live else {})
    return Case(program_of(buffers, call), memory, y, wanted)


def test_every_dtype_is_sorted() -> None:
    dtypes = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
    check([_sort(3, 37, dtype, ("sort", "argsort")[k % 2]) for k, dtype in enumerate(dtypes)] + [_sort(2, 100, "f2", "argsort")])


def test_rows_of_all_lengths_are_sorted() -> None:
    check(
        [_sort(rows, n, "f4") for rows, n in ((1, 1), (300, 5), (70, 8), (5, 255), (2, 2048), (2, 2049), (1, 9001))]
        + [_sort(rows, n, "f8", "argsort") for rows, n in ((1, 1), (40, 17), (2, 2049), (1, 5000), (1, 9001))]
    )


def test_places_may_need_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.codegen.cuda.calls.sorts._FAR", 0)
    check([_sort(2, 5000, "i4"), _sort(1, 5000, "f4", "argsort")])


def test_a_sort_may_be_in_place() -> None:
    check([_sort(3, 100, "i4", same=True), _sort(2, 5000, "f4", same=True), _sort(1, 9001, "f4", same=True)])


def test_the_run_may_tell_how_many_count() -> None:
    cases = [(700, 3), (0, 2), (1, 1), (1000, 4), (3, 0)]
    check([_sort(4, 1000, "f4", live=live) for live in cases[:3]] + [_sort(4, 1000, "f4", "argsort", live=cases[3])])
    check([_sort(2, 7000, "f4", "argsort", live=live) for live in ((5000, 1), (100, 2), (0, 2))])
