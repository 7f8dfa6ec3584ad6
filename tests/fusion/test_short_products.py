"""Products of windows with few numbers run as loops, with all around them: the layer of a convolution is one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.kernels.program import Call


def layer(x, w):
    height, width = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    out = np.zeros((x.shape[0], height, width, w.shape[3]), x.dtype)
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            out += x[:, i : i + height, j : j + width, :] @ w[i, j]
    return np.maximum(out, 0)


def every_second(x, w):
    out = np.ones((x.shape[0], x.shape[1] // 2, x.shape[2] // 2 - 1, w.shape[3]), x.dtype)
    for k in range(3):
        out -= np.tanh(x[:, ::2, k : k + x.shape[2] - 2 : 2] @ w[0, k % w.shape[1]])
    return out


def one_window(x, w):
    return (x[:, 1:-1, 1:-1] * 2) @ w[0, 0] + x[:, 1:-1, 1:-1] @ w[-1, -1], x[:, 1:] @ w[0, 0]


def on_the_left(x, w):
    return np.einsum("oc,bijc->bijo", w[0, 0].T, x[:, 1:-1, 2:]), np.tensordot(w[0, 0], x[:, :-1, 1:-1], ((0,), (3,)))


FUNCTIONS = [layer, every_second, one_window, on_the_left]
SHAPES = {
    "sixteen channels": ((2, 34, 36, 16), (3, 3, 16, 16)),
    "three to five": ((3, 66, 64, 3), (2, 3, 3, 5)),
    "one to sixteen": ((1, 70, 70, 1), (3, 2, 1, 16)),
    "to one": ((2, 50, 40, 4), (2, 2, 4, 1)),
    "more than loops take": ((2, 20, 22, 24), (2, 2, 24, 20)),
    "hardly a window": ((1, 4, 6, 16), (3, 3, 16, 16)),
}


def _arguments(shapes: str, dtype: str, *, special: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-9, 9, shape).astype(dtype) for shape in SHAPES[shapes])
    if special:
        x.flat[::97], x.flat[3::101], x.flat[5::103] = np.nan, np.inf, -0.0
        w.flat[::5] = -0.0
    return x, w


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.filterwarnings("ignore")
def test_as_numpy(f: Callable[..., Any], shapes: str, dtype: str) -> None:
    """Of whole numbers sums are exact, so that each bit is told; infinities and nan are where they are in NumPy."""
    for special in (False, True):
        x, w = _arguments(shapes, dtype, special=special)
        got, expected = jitml.jit(f, verify="never")(x, w), f(x, w)
        for a, b in zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]:
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 if f is every_second else 0, strict=True)


@pytest.mark.parametrize("dtype", ["i4", "f2", "c8", ">f4"])
def test_other_dtypes(dtype: str) -> None:
    x, w = _arguments("sixteen channels", dtype)
    np.testing.assert_array_equal(jitml.jit(layer, verify="never")(x, w), layer(x, w), strict=True)


@pytest.mark.parametrize("arranged", [np.asfortranarray, lambda x: x[:, ::-1, ::-1], lambda x: x.transpose(0, 2, 1, 3)])
def test_layouts(arranged: Callable[[Any], Any]) -> None:
    x, w = _arguments("sixteen channels", "f4")
    np.testing.assert_array_equal(jitml.jit(layer, verify="never")(arranged(x), w), layer(arranged(x), w), strict=True)


def test_a_layer_is_one_kernel_with_rows_side_by_side() -> None:
    program = jitml.jit(layer).lower(*_arguments("sixteen channels", "f4")).program.kernels
    assert len(program.steps) == 1
    (schedule,) = program.schedules.values()
    assert "jam i2 2" in str(schedule)


def test_a_product_of_what_the_library_takes_as_it_is_stays_the_librarys() -> None:
    lowered = jitml.jit(lambda x, w: x[1:] @ w[0, 0]).lower(*_arguments("sixteen channels", "f4"))
    assert [step.name for step in lowered.program.kernels.steps if isinstance(step, Call)] == ["gemm"]
