"""What a differentiated function does besides returning: it writes arrays from outside, and draws random numbers, once.

And what it sees besides numbers: how its arguments lie in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml import UnsupportedError, checkpoint, grad, hessian, jacfwd, jit, jvp, value_and_grad, vjp, vmap

x3 = np.array([1.0, 2.0, 3.0])


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    "transform",
    [
        grad,
        value_and_grad,
        hessian,
        jacfwd,
        lambda f: lambda x: jvp(f, (x,), (x,)),
        lambda f: lambda x: vjp(f, x)[1](1.0),
        lambda f: grad(lambda x: (grad(f)(x) ** 2).sum()),
    ],
)
def test_arrays_from_outside(transform: Any, finish: Any) -> None:
    calls, last = np.zeros(2), np.zeros((2, 3))

    def f(x: np.ndarray) -> float:
        calls[0] += 1
        for i in range(3):
            calls[1] += i
        last[1] = 2 * x
        return (last[1] ** 2).sum()

    g = finish(transform(f))
    for n in (1, 2, 3):
        g(x3)
        assert calls.tolist() == [n, 3 * n]
        assert last.tolist() == [[0, 0, 0], [2, 4, 6]]


def test_slopes_see_what_is_written() -> None:
    buffer = np.zeros(3)

    def f(x: np.ndarray) -> float:
        buffer[:] = x * x
        buffer[0] += 1
        return (buffer * x).sum()

    np.testing.assert_allclose(grad(f)(x3), 3 * x3**2 + [1, 0, 0])


def test_random_numbers(finish: Any) -> None:
    """Drawn once, and the same for value and slope."""
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)

    def dropout(x: np.ndarray) -> float:
        return (np.where(ours.random(3) < 0.5, 0.0, x) ** 2).sum()

    g = finish(value_and_grad(dropout))
    for _ in range(4):
        value, slope = g(x3)
        kept = np.where(theirs.random(3) < 0.5, 0.0, x3)
        np.testing.assert_allclose(value, (kept**2).sum())
        np.testing.assert_allclose(slope, 2 * kept)


def test_what_has_no_order(finish: Any) -> None:
    calls = np.zeros(1)

    def f(x: float) -> float:
        calls[0] += 1
        return x

    with pytest.raises(UnsupportedError, match=r"an array .* from outside is written"):
        finish(vmap(f))(x3)
    assert calls[0] == 0
    finish(grad(lambda x: checkpoint(f)(x).sum()))(x3)
    assert calls[0] == 1


def test_floating_point_errors_are_not_reported(finish: Any) -> None:
    """Nor looked for: compiled, nothing is computed for their sake, and no call is repeated."""

    def loss(x: Any) -> Any:
        return np.log(x).sum()

    derived = finish(grad(loss))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(derived(np.zeros(3)), np.full(3, np.inf))
    if hasattr(derived, "variants"):
        assert [node.op.name for node in derived.lower(np.zeros(3)).graph.nodes].count("observe") == 0
        assert not derived.variants[0].replays


WEIGHTS = np.arange(12.0)


def by_memory(x: np.ndarray) -> float:
    """It depends on the order of elements in memory."""
    return (x.ravel(order="K") * WEIGHTS).sum()


LAYOUTS = {
    "C": np.arange(12.0).reshape(3, 4),
    "F": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "backwards": np.arange(12.0).reshape(3, 4).T[::-1],
    "every other": np.asfortranarray(np.arange(48.0).reshape(6, 8))[::2, ::2],
    "transposed": np.arange(12.0).reshape(3, 2, 2).transpose(1, 0, 2),
}


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("wrapped", [lambda f: f, checkpoint, jit, lambda f: lambda x: f(checkpoint(np.exp)(x))])
def test_arguments_lie_in_memory_as_copies_of_them(x: np.ndarray, wrapped: Any, finish: Any) -> None:
    f = wrapped(by_memory)
    value, slope = finish(value_and_grad(f))(x)
    np.testing.assert_allclose(value, f(x))
    np.testing.assert_allclose((slope * x).sum(), jvp(f, (x,), (x,))[1])
    np.testing.assert_allclose(f(x * (1 + 1e-6)) - f(x), (slope * x).sum() * 1e-6, rtol=1e-4)


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
def test_rows_lie_in_memory_as_copies_of_them(x: np.ndarray, finish: Any) -> None:
    many = np.stack([x, x + 1]).copy(order="F")
    np.testing.assert_allclose(finish(vmap(by_memory))(many), [by_memory(row) for row in many])
    last = np.moveaxis(np.stack([x, x + 1]), 0, -1)
    np.testing.assert_allclose(finish(vmap(by_memory, -1))(last), [by_memory(last[..., n]) for n in range(2)])


@pytest.mark.parametrize("read", [lambda x, i: x[i], lambda x, i: np.sin(x)[i], lambda x, i: [x[i] for _ in range(2)]])
def test_indices_of_what_no_slope_needs(read: Any, finish: Any) -> None:
    def total(x, i):
        read(x, i)
        return x.sum()

    slope = finish(grad(total))
    np.testing.assert_array_equal(slope(x3, np.array([2, 0])), np.ones(3))
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        slope(x3, np.array([5, 0]))
