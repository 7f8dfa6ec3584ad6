"""Many pieces joined: the one that holds an element is found by halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.fuse import fuse
from jitml.fusion.grouping.groups import ReadRecorder
from jitml.ir.text.parser import parse
from jitml.kernels.ir import Expr

Array = np.ndarray[Any, Any]


def test_few_questions_are_asked_of_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, inside = 0, ReadRecorder.inside

    def counted(self: ReadRecorder, expr: Expr, low: int, high: int) -> bool | None:
        nonlocal asked
        asked += 1
        return inside(self, expr, low, high)

    monkeypatch.setattr(ReadRecorder, "inside", counted)
    jitml.jit(lambda rows: np.stack(rows) * 2).lower([np.arange(3.0) for _ in range(200)])
    assert 0 < asked < 40 * 200


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13])
def test_pieces_of_all_lengths(n: int) -> None:
    pieces = [np.arange(float(i * 5 % 4)) + 10 * i for i in range(n)]

    def joined(*x: Array) -> Any:
        whole = np.concatenate(x)
        return whole[::-1] * 2, whole[1::3], np.roll(whole, 2) + whole, np.stack([whole, -whole], 1).reshape(-1)[1:-1]

    for a, b in zip(jitml.jit(joined)(*pieces), joined(*pieces)):
        np.testing.assert_array_equal(a, b, strict=True)


def test_a_stack_of_stacks_is_one_loop() -> None:
    """Of a piece of a piece each element is made once, in its own box, so that no inner stack is stored."""
    program = fuse(
        parse(
            """graph(a: f64[1000], b: f64[1000]) {
              p: f64[1000,1] = reshape a {shape=(1000, 1)}
              q: f64[1000,1] = reshape b {shape=(1000, 1)}
              n: f64[1000,1] = exp q
              x: f64[1000,2] = concat p q {axis=1}; r: f64[1000,1,2] = reshape x {shape=(1000, 1, 2)}
              y: f64[1000,2] = concat n p {axis=1}; s: f64[1000,1,2] = reshape y {shape=(1000, 1, 2)}
              z: f64[1000,2,2] = concat r s {axis=1}
              return z
            }"""
        )
    )
    assert [buffer.shape for name, buffer in program.buffers.items() if name not in program.inputs] == [(1000, 2, 2)]
