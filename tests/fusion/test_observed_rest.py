"""Errors of elements that nobody reads, of arrays that are not kept for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.fuse import fuse
from jitml.fusion.prepare.observed_rest import SMALL
from jitml.ir.text.parser import parse

N = 2 * SMALL
Function = Callable[..., Any]


def upwind(u, c):
    flux = c * u
    return u[1:-1] - (flux[1:-1] - flux[:-2])


def inner(u, c):
    flux = c * u + 1.0
    return flux[1:-1, 2:] - u[1:-1, 2:]


def twice(u, c):
    flux = c * u
    square = flux * flux
    return square[2:] - square[:-2] + flux[1:-1]


def every_other(u, c):
    flux = c * u
    return flux[::2] - u[::2]


@pytest.mark.parametrize("function, shape", [(upwind, N), (inner, (96, 96)), (twice, N), (every_other, N)])
def test_each_element_is_heard_of(function: Function, shape: Any) -> None:
    """Results and warnings are NumPy's, wherever the number lies that overflows."""
    compiled = jitml.jit(function)
    rng = np.random.default_rng(0)
    size = int(np.prod(shape))
    places = {0, 1, 2, 3, size // 2, size - 4, size - 3, size - 2, size - 1, *rng.integers(0, size, 8).tolist()}
    for place in (None, *sorted(places)):
        u = rng.standard_normal(shape)
        if place is not None:
            u.reshape(-1)[place] = 1e300
        expected, told = heard(function, u)
        found, ours = heard(compiled, u)
        np.testing.assert_array_equal(found, expected)
        assert ours == told, place
        assert told == (place is not None)


def heard(function: Function, u: np.ndarray[Any, Any]) -> tuple[Any, bool]:
    """A result, and whether a warning of an overflow came with it."""
    with warnings.catch_warnings(record=True) as found, np.errstate(all="ignore", over="warn"):
        warnings.simplefilter("always")
        result = function(u, 1e30)
    return result, any("overflow" in str(w.message) for w in found)


def program(n: int, first: int, op: str = "mul c a") -> Any:
    return fuse(
        parse(
            f"""
            graph(a: f64[{n}], b: f64[]) {{
              c: f64[{n}] = broadcast b {{axes=(), shape=({n},)}}
              d: f64[{n}] = {op}
              observe d
              e: f64[{n - 2}] = slice d {{start=({first},), step=(1,), stop=({n - 2 + first},)}}
              f: f64[{n - 2}] = slice d {{start=(0,), step=(1,), stop=({n - 2},)}}
              g: f64[{n - 2}] = sub e f
              return g
            }}
            """
        )
    )


def kept(n: int, first: int, op: str = "mul c a") -> int:
    """The elements in memory besides arguments and results."""
    made = program(n, first, op)
    return sum(b.size for name, b in made.buffers.items() if name not in (*made.inputs, *made.outputs))


def test_only_what_is_missing_is_kept() -> None:
    assert kept(N, 1) == 1
    assert kept(N, 0) == 2


def test_small_arrays_and_long_work_are_kept() -> None:
    """What costs less: the memory of few elements, or of those that take long to be computed again."""
    assert kept(SMALL - 1, 1) == SMALL - 1
    assert kept(N, 1, "sin a") == N


def test_what_everybody_reads_is_not_observed() -> None:
    assert kept(N, 2) == 0
