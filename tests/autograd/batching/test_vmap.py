"""`vmap` is the loop over the rows, whatever the function does: axes, containers, branches, loops, in-place updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import ShapeError, UnsupportedError, grad, jit, jvp, vmap

rng = np.random.default_rng(0)
x53 = rng.normal(size=(5, 3))
y5 = rng.normal(size=5)


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def agrees(finish: Any, f: Callable[..., Any], *columns: np.ndarray) -> None:
    """vmap(f) over the first axes is the stack of f's results."""
    got = finish(vmap(f))(*columns)
    expected = np.stack([f(*row) for row in zip(*columns)])
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_axes(finish: Any) -> None:
    f = lambda x, w: x @ w  # noqa: E731
    w = rng.normal(size=(3, 2))
    np.testing.assert_allclose(finish(vmap(f, in_axes=(0, None)))(x53, w), x53 @ w)
    np.testing.assert_allclose(finish(vmap(f, in_axes=(1, None)))(x53.T, w), x53 @ w)
    np.testing.assert_allclose(finish(vmap(f, in_axes=(-1, None), out_axes=1))(x53.T, w), (x53 @ w).T)
    np.testing.assert_allclose(finish(vmap(f, in_axes=[0, None], out_axes=-1))(x53, w), (x53 @ w).T)
    np.testing.assert_allclose(finish(vmap(vmap(np.dot, (None, 1)), (0, None)))(x53, w), x53 @ w)
    np.testing.assert_allclose(finish(vmap(vmap(f, (None, -1), 0), (0, None), 1))(x53, w), (x53 @ w).T)


@dataclass
class Layer:
    w: Any
    b: Any


def test_containers(finish: Any) -> None:
    def f(p: Layer, x: dict) -> dict:
        return {"y": x["x"] * p.w + p.b, "same": p.b}

    layer, x = Layer(x53, 2.0), {"x": x53.T}
    axes = (Layer(0, None), {"x": 1})
    got = finish(vmap(f, axes, {"y": 1, "same": None}))(layer, x)
    np.testing.assert_allclose(got["y"], (x53 * x53 + 2).T)
    assert got["same"] == 2.0
    got = finish(vmap(f, axes))(layer, x)
    np.testing.assert_allclose(got["same"], np.full(5, 2.0))
    assert vmap(lambda t: t[0] + t[2])((y5, None, y5)).shape == (5,)


def test_arguments_that_are_the_same_stay_python(finish: Any) -> None:
    np.testing.assert_allclose(finish(vmap(lambda x, n: np.ones(n) * x, (0, None)))(y5, 4), np.ones(4) * y5[:, None])
    np.testing.assert_allclose(finish(vmap(lambda x, *, scale: x * scale))(y5, scale=y5), y5 * y5)


def test_results(finish: Any) -> None:
    first, second = finish(vmap(lambda x: (x.sum(), 3)))(x53)
    np.testing.assert_allclose(first, x53.sum(1))
    assert second.tolist() == [3] * 5 and second.dtype == np.int64
    assert finish(vmap(np.sin))(np.zeros((0, 3))).shape == (0, 3)


def test_in_place_updates(finish: Any) -> None:
    def smooth(x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        out[1:] = x[:-1]
        out[out > 0.5] *= 2
        x += 1  # a copy
        return out + x

    before = x53.copy()
    agrees(finish, lambda x: smooth(x.copy()), x53)
    np.testing.assert_array_equal(finish(vmap(smooth))(x53), vmap(lambda x: smooth(x.copy()))(x53))
    np.testing.assert_array_equal(x53, before)


def test_indices_that_differ(finish: Any) -> None:
    table, places = rng.normal(size=(5, 7)), rng.integers(0, 7, 5)
    agrees(finish, lambda t, i: t[i], table, places)
    agrees(finish, lambda i: table[2, i], places)

    def write(t: np.ndarray, i: int) -> np.ndarray:
        t = t.copy()
        t[i] = 10.0
        t[i - 1] += 1.0
        return t

    agrees(finish, write, table, places)
    agrees(finish, lambda t, i: np.sort(t)[::-1][i] + t.argmax(), table, places)


def test_branches(finish: Any) -> None:
    def f(x: float) -> float:
        if x > 0:
            y = np.sqrt(x)
        else:
            y = x * 2
        return y

    agrees(finish, f, y5)
    agrees(finish, lambda x: f(x[0]) if x.sum() > 0.1 else x[1], x53)
    np.testing.assert_allclose(finish(vmap(lambda x, n: x if n > 2 else -x, (0, None)))(y5, np.float64(1.0)), -y5)


def test_a_name_that_a_branch_binds_anew_is_written(finish: Any) -> None:
    def f(x: np.ndarray) -> np.ndarray:
        y = x * 2
        if x[0] > 0:
            y = x * 3
        y[0] = 1.0
        return y * y

    agrees(finish, f, x53)
    expected = 2 * np.where(x53[:, :1] > 0, 3, 2) ** 2 * x53
    expected[:, 0] = 0
    np.testing.assert_allclose(finish(grad(lambda x: vmap(f)(x).sum()))(x53), expected)


def test_numbers_that_are_pythons_in_some_rows(finish: Any) -> None:
    def doubled(x: Any) -> Any:
        best = 0
        for v in x:
            best = max(best, v)
        return best * 2.0 + (3 if x[0] > 0 else x[1]) ** 2

    def told(x: Any) -> Any:
        t, s = 0, 0.0
        for v in x:
            s += 1.0 if isinstance(t, int) else t
            t = v if v > 0 else 2.5 if v < -0.5 else 1
        return s

    x = np.random.default_rng(0).normal(size=(6, 9))
    agrees(finish, doubled, np.vstack([x, -abs(x)]))
    agrees(finish, told, x)


def test_loops_of_equal_length(finish: Any) -> None:
    def f(x: np.ndarray) -> np.ndarray:
        out = np.zeros(3)
        total = 0.0
        for i in range(3):
            total += x[i]
            out[i] = total * x[i - 1]
        return out

    agrees(finish, f, x53)


def test_loops_that_end_at_different_times(finish: Any) -> None:
    def halvings(x: float) -> Any:
        n = 0
        while abs(x) > 0.1:
            x = x / 2
            n += 1
        return x * n

    agrees(finish, halvings, y5)

    def power(x: float, n: int) -> float:
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    agrees(finish, power, y5, np.array([0, 3, 1, 7, 2]))

    def search(x: np.ndarray, limit: float) -> Any:
        i = 0
        while i < len(x) and x[i] < limit:
            i += 1
        return i

    agrees(finish, search, np.sort(x53, 1), y5)

    def until_negative(x: np.ndarray) -> Any:
        total = 0.0
        for i in range(3):
            if x[i] < 0:
                return total * x[i]
            total += x[i]
        return total

    agrees(finish, until_negative, np.abs(x53) * [[1, 1, 1], [1, 1, -1], [1, 1, 1], [1, -1, 1], [1, 1, 1]])


def test_branches_inside_of_loops(finish: Any) -> None:
    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    agrees(finish, collatz, np.array([1, 6, 7, 27, 8]))


def test_checks_of_rows(finish: Any) -> None:
    def f(x: np.ndarray, i: int) -> float:
        return x[i] if i < 3 else 0.0

    agrees(finish, f, x53, np.array([0, 2, 9, 1, 3]))
    with pytest.raises(IndexError):
        finish(vmap(lambda x, i: x[i]))(x53, np.array([0, 2, 9, 1, 3]))


def test_host_calls(finish: Any) -> None:
    square = rng.normal(size=(5, 3, 3))
    agrees(finish, lambda x: np.linalg.eigvalsh(x + x.T), square)


def test_random_numbers_of_a_generator_made_inside(finish: Any) -> None:
    agrees(finish, lambda x: x * np.random.default_rng(3).normal(size=3), x53)


def test_with_derivatives(finish: Any) -> None:
    f = lambda x: (np.tanh(x) * x).sum()  # noqa: E731
    slope = lambda x: np.tanh(x) + x * (1 - np.tanh(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(finish(vmap(grad(f)))(x53), slope(x53))
    np.testing.assert_allclose(finish(grad(lambda x: vmap(f)(x).sum()))(x53), slope(x53))
    np.testing.assert_allclose(finish(vmap(lambda x: jvp(f, (x,), (x,))[1]))(x53), (slope(x53) * x53).sum(1))
    np.testing.assert_allclose(finish(vmap(vmap(grad(grad(np.sin)))))(x53), -np.sin(x53))
    np.testing.assert_allclose(vmap(jit(f))(x53), [f(x) for x in x53])


def test_closures_over_other_rows(finish: Any) -> None:
    np.testing.assert_allclose(finish(vmap(lambda x: vmap(lambda y: x - y)(y5)))(y5), y5[:, None] - y5)


ERRORS = [
    (lambda: vmap(np.add)(x53, y5[:3]), ShapeError, "vmap: argument 0 has 5 rows, argument 1 has 3"),
    (lambda: vmap(np.sum)([1.0, 2.0]), ShapeError, "vmap: argument 0[0] is a Python float, which has no axis of rows"),
    (lambda: vmap(np.add)(x53, 1.0), ShapeError, "vmap: argument 1 is a Python float, which has no axis of rows"),
    (lambda: vmap(np.sin, 2)(x53), ShapeError, "vmap: argument 0 is float64[5, 3], which has no axis 2"),
    (lambda: vmap(np.sin, None)(x53), ShapeError, "vmap: no argument has rows"),
    (lambda: vmap(np.add, (0, 0, 0))(x53, x53), ShapeError, "vmap: in_axes has 3 entries"),
    (lambda: vmap(np.sin, ((0, 1),))(x53), ShapeError, "vmap: in_axes is"),
    (lambda: vmap(np.sin, True)(x53), TypeError, "vmap: in_axes holds True; an axis is an int, or None"),
    (lambda: vmap(np.sin, out_axes=2)(y5), ShapeError, "vmap: out_axes has 2 for a result of 0 axes in each row"),
    (lambda: vmap(np.sin, out_axes=None)(y5), ShapeError, "vmap: a result whose out_axes is None differs from row to row"),
    (lambda: vmap(lambda x: "a")(y5), TypeError, "vmap: the function returns a str, of which there are no rows"),
    (lambda: jit(vmap(lambda x: sum([v for v in x if v > 0], 0)))(x53), UnsupportedError, "vmap: a size, or"),
    (lambda: vmap(lambda x, i: x[i])(x53, np.arange(5)), IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    (lambda: jit(vmap(lambda x, i: x[None][0, i]))(x53, np.arange(5)), IndexError, "index 3 is out of bounds for axis 1"),
    (lambda: vmap(lambda x: x + np.random.normal())(y5), UnsupportedError, "a generator from outside draws random numbers"),
    (lambda: vmap(lambda n: np.random.default_rng(n).normal())(np.arange(3)), UnsupportedError, "vmap: np.random.default_rng"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_errors(call: Callable[[], Any], kind: type, message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_the_name_stays() -> None:
    assert vmap(np.sin).__name__ == "sin"
    assert jitml.vmap is vmap


def test_rows_that_save_in_loops_of_their_own_length() -> None:
    """What a row has room to save is neither copied nor touched as a whole, and the rows share it."""
    resource = pytest.importorskip("resource")

    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-9:
            x = 0.5 * (x + a / x) + 0 * np.sin(x)
        return x

    xs = np.array([0.5, 2.0, 9.0, 1e6])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for derived in (jitml.vmap(jitml.grad(root)), jitml.jit(jitml.vmap(jitml.grad(root)))):
        np.testing.assert_allclose(derived(xs), 0.5 / np.sqrt(xs), rtol=1e-6)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10  # KiB


def test_writes_of_rows_that_end_at_different_times(finish: Any) -> None:
    def filled(x: np.ndarray, n: int) -> np.ndarray:
        y = np.zeros(5)
        for i in range(n):
            y[i] = x[i] * (i + 1)
            y[0] += 1
        return y

    def sieved(x: np.ndarray, n: int) -> np.ndarray:
        k, x = 0, x.copy()
        while x[k] < n:
            x[k] = -1.0
            x[4 - k] += 0.5
            k += 1
        return x

    rows = np.random.default_rng(3).random((6, 5)) * 3 + np.arange(5)
    agrees(finish, filled, rows, np.array([0, 5, 2, 3, 1, 4]))
    agrees(finish, sieved, rows, np.array([0, 4, 2, 3, 1, 4]))


@pytest.mark.parametrize(
    ("in_axes", "text"),
    [
        ({"a": 0}, r"in_axes is \{'a': 0\}, which is not built as the tuple of arguments(.|\n)*in_axes=\(\{'a': 0\},\)"),
        (({"b": 0},), r"as the tuple of arguments(.|\n)*as deep as they differ"),
        ((0, 0), r"2 entries, but the function is called with 1 arguments by position(.|\n)*by keyword have their rows"),
    ],
)
def test_axes_that_are_not_built_as_the_arguments(in_axes: Any, text: str) -> None:
    with pytest.raises(jitml.ShapeError, match=text) as caught:
        jitml.vmap(lambda d: d["a"].sum(), in_axes=in_axes)({"a": np.ones((2, 3))})
    assert "Traced" not in str(caught.value)
