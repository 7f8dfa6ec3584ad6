"""Limits of integers: what a rule knows, and what is then not looked at when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir.analysis.limits import intervals
from jitml.ir.text.parser import parse
from jitml.kernels.ir import Check, Kernel, walk

Array = Any
ROWS = {
    "i: i64[9] = iota {axis=0, shape=(9,)}; y: i64[9] = reshape i {shape=(9,)}": (0, 8),
    "y: i64[4] = argsort x {axis=0, kind='stable'}": (0, 3),
    "i: i64[9] = iota {axis=0, shape=(9,)}; y: i64[9] = mul i i": (0, 64),
    "i: i64[9] = iota {axis=0, shape=(9,)}; y: i64[9] = neg i": (-8, 0),
}


@pytest.mark.parametrize("text", ROWS)
def test_limits_follow_from_how_a_value_is_made(text: str) -> None:
    graph = parse(f"graph(x: f64[4]) {{ {text.replace(';', chr(10))} \n return y }}")
    assert intervals(graph)[graph.outputs[0]] == ROWS[text]


def at_a_mask(x: Array, mask: Array) -> None:
    x[mask] = x[mask] * 2 + np.arange(mask.sum())


def at_nonzero(x: Array, mask: Array) -> None:
    (i,) = np.nonzero(mask)
    x[i] += 1.0


def in_order(x: Array, mask: Array) -> None:
    x[np.argsort(x)] = np.arange(x.size)


@pytest.mark.parametrize("function", [at_a_mask, at_nonzero, in_order])
def test_places_that_the_program_found_itself_need_no_check(function: Callable[[Array, Array], None]) -> None:
    rng = np.random.default_rng(0)
    args = rng.random(20), rng.random(20) < 0.5
    expected = [a.copy() for a in args]
    function(*expected)
    compiled = jitml.jit(function)
    kernels = [step for step in compiled.lower(*args).program.kernels.steps if isinstance(step, Kernel)]
    assert not [s for kernel in kernels for s in walk(kernel.body) if isinstance(s, Check) and s.error == "IndexError"]
    compiled(*args)
    np.testing.assert_array_equal(args[0], expected[0])
