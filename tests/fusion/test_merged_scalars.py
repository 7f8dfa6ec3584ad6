"""Kernels without loops, one after the other, as one: the same numbers, checks in their order, and names that do not meet."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from jitml.errors import FailedCheck
from jitml.fusion.merge_steps.scalar_steps import merge_scalars
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Kernel
from jitml.kernels.program import Step
from jitml.kernels.text.parser import parse
from jitml.kernels.verify.kernel import verify

FIRST = """kernel a(x: f64[], n: i64[], s: f64[], ok: bool[]) {
  let t0: f64 = x[] * 2.0
  s[] = t0
  ok[] = n[] < 5
}"""
SECOND = """kernel b(s: f64[], ok: bool[], x: f64[], y: f64[2]) {
  check ok[], ValueError, 'no'
  let t0: f64 = s[] + x[]
  y[0] = t0
  y[1] = t0 * t0 - s[]
}"""
THIRD = """kernel c(y: f64[2], z: f64[]) {
  cell t0: f64 = y[1]
  t0 add= y[0]
  z[] = t0
}"""
APART = {
    "a loop": "kernel b(s: f64[], y: f64[2]) { for i in 0:2 { y[i] = s[] } }",
    "an element that depends on another": "kernel b(s: f64[], n: i64[], y: f64[2]) { y[minimum(maximum(n[], 0), 1)] = s[] }",
    "what it has not stored yet": "kernel b(s: f64[], y: f64[2]) { y[0] = y[1] + s[] }",
}


def merged(*texts: str) -> list[Step]:
    steps: list[Step] = []
    for text in texts:
        kernel = parse(text)
        steps = merge_scalars(steps, kernel, Counter()) or [*steps, kernel]
    return steps


def values(n: int) -> dict[str, Any]:
    given = {"x": np.float64(1.5), "n": np.int64(n)}
    return {name: np.array(x) for name, x in given.items()} | {
        "s": np.zeros(()),
        "ok": np.zeros((), bool),
        "y": np.zeros(2),
        "z": np.zeros(()),
    }


def test_three_kernels_are_one() -> None:
    (whole,) = merged(FIRST, SECOND, THIRD)
    assert isinstance(whole, Kernel) and not set(whole.reads) & set(whole.writes)
    verify(whole)
    one, each = values(3), values(3)
    interpret(whole, {b.name: one[b.name] for b in whole.params})
    for text in (FIRST, SECOND, THIRD):
        kernel = parse(text)
        interpret(kernel, {b.name: each[b.name] for b in kernel.params})
    for name in one:
        np.testing.assert_array_equal(one[name], each[name])
    assert one["z"] == 4.5 + 4.5**2 - 3


def test_a_check_stands_where_it_stood() -> None:
    (whole,) = merged(FIRST, SECOND)
    assert isinstance(whole, Kernel)
    given = values(7)
    with pytest.raises(FailedCheck):
        interpret(whole, {b.name: given[b.name] for b in whole.params})
    assert given["s"] == 3.0 and not given["y"].any()  # what came before is done, and nothing after


@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_others_stay_apart(text: str) -> None:
    assert len(merged(FIRST, text)) == 2
