"""Loops over arrays whose elements keep to themselves run tile by tile, and leave a tile that does not change any more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.merge_steps.tile_loops import MASKED_TILE
from jitml.kernels.ir import Cell, Kernel, Loop, walk

N = 40_000  # elements that are worth kernels of their own


def escaping(c: Any, steps: Any) -> Any:
    z = np.zeros_like(c)
    times = np.zeros(c.shape, np.int32)
    for _ in range(steps):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        times[inside] += 1
    return z, times


def escaping_by_where(c: Any, steps: Any) -> Any:
    z, times = c * 0, np.zeros(c.shape, np.int64)
    for _ in range(steps):
        far = z * z > 4
        z = np.where(far, z, z * z + c)
        times = np.where(far, times, times + 1)
    return z, times


def of_two_masks(c: Any, steps: Any) -> Any:
    x, y = c.copy(), c.copy()
    for _ in range(steps):
        x = np.where(x < 5, x + 1, x)
        y = np.where(y < 9, np.where(x > -1, y + x, y), y)
    return x, y


def logistic(x: Any, steps: Any) -> Any:
    for _ in range(steps):
        x = 3.5 * x * (1 - x)
    return x


def by_time(x: Any, steps: Any) -> Any:
    for t in range(steps):
        x = np.where(x > t - 5, x - t, x)
    return x


def changed_in_place(x: Any, steps: Any) -> Any:
    speed = np.ones_like(x)
    for _ in range(steps):
        speed -= 0.25 * x
        x += 0.25 * speed
    return speed


def of_rows(x: Any, steps: Any) -> Any:
    y = x.reshape(-1, 8) if x.size % 8 == 0 else x
    row = np.arange(y.shape[-1]) * 0.5
    for _ in range(steps):
        y = y * 0.5 + row
    return y


def of_sums_of_rows(x: Any, steps: Any) -> Any:
    y = x.reshape(-1, 8) if x.size % 8 == 0 else x.reshape(1, -1)
    for _ in range(steps):
        y = y * 0.5 - (y * y).sum(axis=1)[:, None] * 0.125
    return y


TILED = (escaping, escaping_by_where, of_two_masks, logistic, by_time, changed_in_place, of_rows)


def diffusing(x: Any, steps: Any) -> Any:
    for _ in range(steps):
        x[1:-1] = 0.25 * (x[:-2] + 2 * x[1:-1] + x[2:])
    return x


def turned(x: Any, steps: Any) -> Any:
    for _ in range(steps):
        x = x[::-1] * 0.5 + x
    return x


def exchanged(x: Any, steps: Any) -> Any:
    y = x + 1
    for _ in range(steps):
        x, y = y, np.where(x > 1, x * 0.5, x + 1)
    return x, y


def of_the_sum(x: Any, steps: Any) -> Any:
    for _ in range(steps):
        x = x - x.sum() * 1e-6
    return x


def beside_rows(x: Any, steps: Any) -> Any:
    """Each element takes what the first row was."""
    y = x.reshape(-1, 8) if x.size % 8 == 0 and x.size else x.reshape(-1, 1)
    for _ in range(steps):
        y = y * 0.5 + y[:1]
    return y


def moving(x: Any, steps: Any) -> Any:
    """At each time another element."""
    for t in range(steps):
        x[t::7] = x[t::7] * 2 + 1
    return x


NOT_TILED = (of_sums_of_rows, diffusing, turned, exchanged, of_the_sum, beside_rows, moving)


def kernel_of(function: Callable[..., Any], *args: Any) -> Kernel | None:
    """The kernel that has all iterations in it."""
    steps = jitml.jit(function).lower(*args).program.kernels.steps
    return next((step for step in steps if isinstance(step, Kernel) and step.name.endswith("loop")), None)


def is_in_tiles(kernel: Kernel | None) -> bool:
    return kernel is not None and isinstance(kernel.body[-1], Loop) and kernel.body[-1].kind == "parallel"


@pytest.mark.parametrize("function", TILED, ids=lambda f: f.__name__)
def test_elements_that_keep_to_themselves_run_in_tiles(function: Callable[..., Any]) -> None:
    assert is_in_tiles(kernel_of(function, np.linspace(-2, 2, N), 30))


@pytest.mark.parametrize("function", NOT_TILED, ids=lambda f: f.__name__)
def test_elements_that_look_at_others_do_not(function: Callable[..., Any]) -> None:
    assert not is_in_tiles(kernel_of(function, np.linspace(-2, 2, N), 30))


@pytest.mark.parametrize(("function", "leaves"), [(escaping, True), (of_two_masks, True), (by_time, False), (logistic, False)])
def test_tiles_are_left_that_no_longer_change(function: Callable[..., Any], leaves: bool) -> None:
    """Unless what changes depends on the time."""
    kernel = kernel_of(function, np.linspace(-2, 2, N), 30)
    assert kernel is not None
    assert ("goes_on0" in {s.name for s in walk(kernel.body) if isinstance(s, Cell)}) == leaves


SPECIAL = np.array([0.0, -0.0, 0.25, np.nan, np.inf, -np.inf, 1e-310, -1e300, 3.0, -0.75, 1.75, 4.0, -2.0])
SHAPES = ((0,), (1,), (MASKED_TILE - 1,), (MASKED_TILE + 1,), (8, 40), (5, 3, 7))


@pytest.mark.parametrize("function", [*TILED, *NOT_TILED], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "i2", "c16"])
def test_tiles_are_numpys(function: Callable[..., Any], dtype: str) -> None:
    if dtype == "c16" and function not in (escaping, logistic, changed_in_place, of_rows, of_the_sum):
        pytest.skip("complex numbers are in no order")
    if "i" in dtype and function in (changed_in_place, diffusing, of_rows, of_the_sum):
        pytest.skip("NumPy writes no halves to whole numbers")
    compiled = jitml.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shape in (*SHAPES, (N,)):
            if len(shape) > 1 and function is moving:
                continue
            size = int(np.prod(shape))
            values = SPECIAL if "i" not in dtype else np.array([0, 1, -1, 3, 100, -100, 2])
            x = np.resize(values, size).reshape(shape).astype(dtype)
            if dtype == "c16":
                x = x.real * 1j * 0.5 + x.real[..., ::-1] * 0.25
            forms = (x, np.repeat(x, 2, axis=-1)[..., ::2], x.T.copy().T, x[..., ::-1]) if size < N else (x,)
            for form in forms:
                for steps in (0, 1, 12):
                    mine, theirs = np.array(form, copy=True), np.array(form, copy=True)
                    want, got = function(theirs, steps), compiled(mine, steps)
                    np.testing.assert_array_equal(mine, theirs)
                    for a, b in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
                        assert a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and a.shape == b.shape
                        if function in (of_the_sum, of_sums_of_rows) or dtype == "c16":
                            np.testing.assert_allclose(b, a, rtol=1e-5 if dtype == "f4" else 1e-12)
                        else:
                            np.testing.assert_array_equal(b, a)


def test_warnings_of_a_tile_that_is_left_are_numpys() -> None:
    def growing(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = np.where(x < 1e300, x * 1e200, x)
        return x

    x = np.full(N, 0.5)
    compiled = jitml.jit(growing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(compiled(x, 1), growing(x, 1))
    for function in (growing, compiled):
        with pytest.warns(RuntimeWarning, match="overflow"):
            function(x, 9)


def test_threads_leave_the_same_bits() -> None:
    c = np.linspace(-2, 0.5, 300) + 1j * np.linspace(-1, 1, 300)[:, None]
    one, two = (jitml.jit(escaping, threads=n)(c, 40) for n in (1, 2))
    for a, b in zip(one, two):
        np.testing.assert_array_equal(a, b)


def test_how_many_iterations_may_be_known_to_the_run_alone() -> None:
    compiled = jitml.jit(logistic, dynamic=True)
    x = np.linspace(0, 1, N)
    for steps in (3, 4, 0, 50, -1):
        np.testing.assert_array_equal(compiled(x, steps), logistic(x, steps))
