"""Short loops over large arrays are written out: with NumPy's bits, and its errors at the iteration where they come up."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir import ops

N = 1 << 16  # elements: the least that pays


def bands(x, y):
    n = len(x)
    for k in range(-2, 3):
        first, last = max(0, -k), min(n, n - k)
        y[first:last] += (k + 1) * x[first + k : last + k]
    return y


def from_the_end(x, y):
    for k in range(1, 5):
        y[-k:] = y[-k:] * x[-1] - k
        y[:-k] += x[k:]
    return y


def shrinking(x, y):
    for k in range(4):
        y[k * 20000 :] += x[: max(0, len(x) - k * 20000)]
        y[::2] -= x[1::2] * k
    return y


def past_the_end(x, y):
    for k in range(3):
        y[k * 40000 : k * 40000 + 40000] = x[k * 40000 : k * 40000 + 40000] + k
    return y


def two(x, y):
    u, v = y, x
    for k in range(3):
        u, v = v + k, np.where(u > v, u, -v)
    return u, v


def rows(x, y):
    a, b = x.reshape(256, 256), y.reshape(256, 256)
    for i in range(3):
        b[i:, 1:-1] = np.maximum(a[: 256 - i, :-2], b[i:, 2:])
        b[i] = a[-i]
    return b


def mixed(x, y):
    total = 1
    for k in range(4):
        total += k
        y[k] = x[k] * total
        y[total:] *= x[:-total]
    return y, total


def backwards(x, y):
    for k in range(4, 0, -1):
        y[::-1][k:] += x[:-k]
    return y


FUNCTIONS = [bands, from_the_end, shrinking, past_the_end, two, rows, mixed, backwards]


def _arguments(dtype: str, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0 if dtype[0] in "u?" else -100, 100, N).astype(dtype) for _ in range(2))
    if x.dtype.kind == "f":
        x[::3] /= 7
        x[5:40:5], y[3:30:3], x[-3:], y[100:104] = np.nan, -0.0, (np.inf, -np.inf, -0.0), np.inf
    return x, y


def _run(function: Callable[..., Any], args: Any) -> tuple[Any, str, Any]:
    """The result, an error, and what has become of the arguments."""
    args = copy.deepcopy(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args), "", args
        except Exception as error:  # whichever it is, both are to raise it
            return None, f"{type(error).__name__}: {error}", args


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "i4", "i2", "i1", "u8", "u1"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_numpys_bits(function: Callable[..., Any], dtype: str) -> None:
    args = _arguments(dtype)
    (wanted, error, changed), (got, own_error, own_changed) = _run(function, args), _run(jitml.jit(function), args)
    assert own_error == error
    for a, b in zip(_leaves((got, own_changed)), _leaves((wanted, changed)), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes() or _is_same_but_for_nan(a, b)


def _leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, tuple) else [x]


def _is_same_but_for_nan(a: Any, b: Any) -> bool:
    """Which of two NaN an operation returns is the processor's choice."""
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))


@pytest.mark.loose("backwards-overlapping", "bands-overlapping", "from_the_end-overlapping", "rows-overlapping")
@pytest.mark.parametrize("layout", ["strided", "reversed", "overlapping", "one memory"])
@pytest.mark.parametrize("function", [bands, from_the_end, rows, backwards], ids=lambda f: f.__name__)
def test_views(function: Callable[..., Any], layout: str) -> None:
    def arranged() -> tuple[Any, Any]:
        rng = np.random.default_rng(1)
        memory = rng.standard_normal(3 * N)
        match layout:
            case "strided":
                return memory[1 : 2 * N : 2], memory[2 * N :]
            case "reversed":
                return memory[N - 1 :: -1], memory[2 * N :][::-1]
            case "overlapping":
                return memory[:N], memory[3 : N + 3]
        return memory[:N], memory[:N]

    x, y = arranged()
    own_x, own_y = arranged()
    function(x, y)
    jitml.jit(function)(own_x, own_y)
    assert own_x.tobytes() == x.tobytes()
    assert own_y.tobytes() == y.tobytes()


def differ_in_the_third(x, y):
    for k in range(4):
        y[:-1] += x[max(0, k - 1) : len(x) - 1]
    return y


def out_of_bounds_in_the_second(x, y):
    for k in range(3):
        y += x[k * (len(x) - 1) + k]
    return y


@pytest.mark.parametrize("function", [differ_in_the_third, out_of_bounds_in_the_second], ids=lambda f: f.__name__)
def test_errors_leave_what_numpy_leaves(function: Callable[..., Any]) -> None:
    args = _arguments("f8")
    (_, error, changed), (_, own_error, own_changed) = _run(function, args), _run(jitml.jit(function), args)
    assert error
    assert own_error == error
    assert own_changed[1].tobytes() == changed[1].tobytes()


@pytest.mark.parametrize(
    ("function", "is_loop"),
    [(bands, False), (from_the_end, False), (rows, False), (differ_in_the_third, True)],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_which_are_written_out(function: Callable[..., Any], is_loop: bool) -> None:
    graph = jitml.jit(function).lower(*_arguments("f8")).graph
    assert any(node.op is ops.loop for node in graph.nodes) is is_loop


def test_what_is_written_out_is_one_pass() -> None:
    """Also where each iteration writes a little less than all of what the one before has made."""
    kernels = jitml.jit(lambda x: bands(x, np.zeros_like(x))).lower(_arguments("f8")[0]).program.kernels
    assert len(kernels.steps) == 1
