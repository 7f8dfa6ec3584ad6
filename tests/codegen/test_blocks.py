"""Long basic blocks are written as several, and compute the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.ir import blocks, translation_unit
from jitml.codegen.llvm.ir.blocks import longest_block, split_blocks

Array = np.ndarray[Any, Any]

BODY = """entry:
  %a = alloca i64
; of a line
  %b = add i64 %x, 1
  %c = add i64 %b, 1
  switch i64 %c, label %loop [
    i64 0, label %end
    i64 1, label %end
  ]

loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %j = add i64 %i, 1
  %k = add i64 %j, 1
  %l = icmp eq i64 %k, 9
  br i1 %l, label %end, label %loop

end:
  ret i64 0"""


def test_where_a_value_comes_from_is_the_last_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LONG_BLOCK", 2)
    found = split_blocks(BODY)
    assert longest_block(found) < longest_block(BODY)
    assert "%i = phi i64 [ 0, %entry.more1 ], [ %j, %loop.more3 ]" in found
    rest = [re.sub(r"[.]more\d+ ", " ", line) for line in found.splitlines() if not re.search(r"[.]more\d+:?$", line)]
    assert rest == BODY.splitlines()
    assert found.index("alloca") < found.index(".more")
    assert "label %loop [\n    i64 0, label %end\n    i64 1, label %end\n  ]" in found


def test_a_body_of_short_blocks_stays_as_it_is() -> None:
    assert split_blocks(BODY) is BODY


def some(x: Array, n: int) -> Any:
    total = 0.0
    for i in range(n):
        x = np.where(x > i, x, np.sin(x) * 2)
        if x[0] > 5:
            total += x.sum()
        x[i] = x.mean()
    return x, total, np.sort(x)


def test_programs_of_many_short_pieces_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation_unit, "LONG_BLOCK", 1)
    monkeypatch.setattr(blocks, "LONG_BLOCK", 3)
    x = np.linspace(0, 3, 37)
    with np.errstate(all="ignore"):
        result, expected = jitml.jit(some)(x.copy(), 5), some(x.copy(), 5)
    for a, b in zip(result, expected):
        np.testing.assert_allclose(a, b, rtol=1e-13)
