"""Programs that once differed from NumPy, made small: code of branches, and the interpreters of graphs and planned programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from programs.small import check

# Name: the layer; what `program` does with its arguments; what the arguments are, and in the last call.
INTERPRETED: dict[str, tuple[str, list[str], str, str]] = {
    "an array is carried with its size": (
        "program",
        ["for i, row in enumerate(x):", "    v = np.full(i, 2.5)", "return v"],
        "np.zeros((2, 4))",
        "np.zeros((2, 4))",
    ),
    "as many elements are copied as there are": (
        "program",
        ["for i in range(3):", "    v = y[~(y != 2)]", "return v, i"],
        "np.zeros(1), np.arange(6)",
        "np.zeros(1), np.arange(2)",
    ),
    "NumPy raises for an index out of bounds, after what it has written": (
        "graph",
        ["x += x", "return y[x]"],
        "np.arange(3), np.arange(6)",
        "np.arange(4), np.arange(6)",
    ),
    "NumPy raises what a call of it raises, after what it has written": (
        "graph",
        ["x += x", "return (x > 1) ** y"],
        "np.arange(3), np.arange(3)",
        "np.arange(3), np.arange(-1, 2)",
    ),
    "a step raises what a call of NumPy raises": (
        "program",
        ["x += x", "return (x > 1) ** y"],
        "np.arange(3), np.arange(3)",
        "np.arange(3), np.arange(-1, 2)",
    ),
    "as many elements are sorted as there are": (
        "program",
        ["for i in range(3):", "    x = np.unique(x)", "return x"],
        "np.array([2, 1, 2, 3])",
        "np.array([1, 1, 0, 1])",
    ),
    "a generator draws once": (
        "graph",
        ["v = y.random(3)", "x += 1", "return v[:2] * x[1::2]"],
        "np.arange(4), np.random.default_rng(0)",
        "np.arange(7), np.random.default_rng(0)",
    ),
}


@pytest.mark.parametrize("name", INTERPRETED)
def test_interpreters_agree(name: str) -> None:
    layer, *case = INTERPRETED[name]
    check(*case, layer=layer)


def test_work_with_branches_is_hoisted_out_of_a_while() -> None:
    """Code of several blocks in front of the loop: its phi named the block before them, and LLVM's optimiser aborted."""

    def f(y: Any, limit: int) -> Any:
        k = 0
        while abs(y[0, -1]) > limit and k < 3:
            k += 1
        return k

    compiled = jitml.jit(f)
    for last in (15, -15, 2, -32768):
        y = np.array([[-1, 0, 8, last]], np.int16)
        with np.errstate(over="ignore"):
            assert compiled(y, 6) == f(y, 6)
