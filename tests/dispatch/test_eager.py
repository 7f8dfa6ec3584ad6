"""Transforms outside `jit`: traced once for a kind of arguments, and never stale."""

from __future__ import annotations

import functools
import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch import eager

x3 = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What has been traced from here on."""
    eager._transforms.clear()
    seen: list[Any] = []
    trace = eager.trace
    monkeypatch.setattr(eager, "trace", lambda *args, **kwargs: seen.append(args) or trace(*args, **kwargs))
    yield seen
    eager._transforms.clear()


def square(x: np.ndarray) -> float:
    return (x * x).sum()


def test_once_for_a_kind_of_arguments(traces: list[Any]) -> None:
    slope = jitml.grad(square)
    for x in (x3, 2 * x3, 3 * x3):
        np.testing.assert_array_equal(slope(x), 2 * x)
    np.testing.assert_array_equal(jitml.grad(square)(x3), 2 * x3)
    assert len(traces) == 1
    slope(np.ones(4))
    assert slope(np.float32(2.0)) == 4
    assert len(traces) == 3
    jitml.grad(square, has_aux=False, argnums=(0,))(x3)
    assert len(traces) == 4


def test_axes_that_are_written_anew(traces: list[Any]) -> None:
    rows = np.stack([x3, 2 * x3])
    for _ in range(3):
        np.testing.assert_array_equal(jitml.vmap(np.dot, (0, None))(rows, x3), rows @ x3)
        np.testing.assert_array_equal(jitml.vmap(np.dot, (None, 0))(x3, rows), rows @ x3)
    assert len(traces) == 2


def scaled_distance(scale: float, place: np.ndarray) -> Any:
    return lambda x: ((x - place) ** 2).sum() * scale


def test_functions_of_one_code(traces: list[Any]) -> None:
    """A lambda made anew each time sees what it closes over now."""
    for scale in (1.0, 2.0):
        for place in (x3, x3 + 1):
            got = jitml.grad(scaled_distance(scale, place))(2 * x3)
            np.testing.assert_array_equal(got, 2 * scale * (2 * x3 - place))
    assert len(traces) == 1


factor = 1.0


def with_default(default: float) -> Any:
    def f(x: float, by: float = default) -> float:
        return x * by * factor

    return f


def test_defaults_and_globals_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for default in (1.0, 3.0):
        for value in (1.0, 5.0):
            monkeypatch.setitem(globals(), "factor", value)
            results.append(jitml.grad(with_default(default))(1.0))
    assert results == [1, 5, 3, 15]


def test_transforms_of_transforms_that_are_written_anew(traces: list[Any]) -> None:
    """What a transform had made was told apart by the very object: traced anew in each pass of a loop."""
    rows = np.stack([x3, 2 * x3])
    for scale in (1.0, 2.0, 3.0):
        place = scale + x3
        f = scaled_distance(scale, place)
        np.testing.assert_allclose(jitml.vmap(jitml.grad(f))(rows), 2 * scale * (rows - place))
        np.testing.assert_allclose(jitml.hessian(f)(x3), 2 * scale * np.eye(3))
        np.testing.assert_allclose(jitml.grad(jitml.checkpoint(f))(x3), 2 * scale * (x3 - place))
        np.testing.assert_allclose(jitml.hvp(f, (x3,), (x3,)), 2 * scale * x3)
    assert len(traces) == 4


def test_what_transforms_have_made_otherwise_is_told_apart(traces: list[Any]) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y * y).sum()

    for n in (0, 1, 0, 1):
        found = jitml.vmap(jitml.grad(f, n))(x3, 2 * x3)
        np.testing.assert_allclose(found, (4 * x3**2, 4 * x3**2)[n])
    assert len(traces) == 2
    names = [jitml.grad(jitml.checkpoint(np.exp, policy=policy))(0.0) for policy in (None, "dots", 100)]
    assert names == [1, 1, 1]
    assert len(traces) == 5

    @functools.wraps(jitml.grad(f))
    def doubled(*args: Any) -> Any:
        return 2 * f(*args)

    for _ in range(2):
        np.testing.assert_allclose(jitml.grad(doubled)(x3, x3), 2 * x3**2)
    assert len(traces) == 6


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.weights = np.array([1.0, 2.0, 3.0])

    def loss(self, x: Any) -> Any:
        return (x * self.weights).sum() * self.scale

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return (x * x).sum()


def test_methods_that_are_bound_anew(traces: list[Any]) -> None:
    """Each `model.loss` is another object, and was another function."""
    model = Model(2.0)
    for scale in (2.0, 2.0, 5.0, 2.0):
        model.scale = scale
        np.testing.assert_allclose(jitml.grad(model.loss)(x3), scale * model.weights)
        model.weights[0] += 1
        np.testing.assert_allclose(jitml.vmap(jitml.grad(model.loss))(x3[None]), scale * model.weights[None])
        np.testing.assert_allclose(jitml.grad(Model.of_class)(x3), 2 * x3)
    assert len(traces) == 3
    np.testing.assert_allclose(jitml.grad(Model(7.0).loss)(x3), 7 * x3)
    assert len(traces) == 4


def weighted(weights: np.ndarray, x: Any, power: int = 1) -> Any:
    return (weights * x**power).sum()


def test_partials_that_are_made_anew(traces: list[Any]) -> None:
    weights = x3.copy()
    for _ in range(3):
        np.testing.assert_allclose(jitml.grad(functools.partial(weighted, weights, power=2))(x3), 2 * weights * x3)
        weights += 1  # what an array holds is read at each call
    assert len(traces) == 1
    np.testing.assert_allclose(jitml.grad(functools.partial(weighted, 2 * x3, power=2))(x3), 4 * x3 * x3)
    np.testing.assert_allclose(jitml.grad(functools.partial(weighted, weights, power=3))(x3), 3 * weights * x3**2)
    np.testing.assert_allclose(jitml.grad(functools.partial(weighted, power=2), 1)(weights, x3), 2 * weights * x3)
    assert len(traces) == 4


def test_functions_of_libraries_are_told_apart() -> None:
    for f, slope in ((np.sin, np.cos), (np.exp, np.exp)):
        assert jitml.grad(jitml.grad(f))(0.5) == pytest.approx(jitml.grad(slope)(0.5))


def test_containers_and_keywords(traces: list[Any]) -> None:
    f = jitml.grad(lambda p, *, scale: (p["w"] * p["b"]).sum() * scale)
    for n in (1.0, 2.0):
        got = f({"w": x3, "b": n}, scale=3.0)
        np.testing.assert_array_equal(got["w"], np.full(3, 3 * n))
    assert len(traces) == 1


def test_pullbacks_belong_to_their_call(traces: list[Any]) -> None:
    pulls = [jitml.vjp(np.sin, x)[1] for x in (x3, 2 * x3)]
    for pull, x in zip(pulls, (x3, 2 * x3)):
        np.testing.assert_allclose(pull(np.ones(3))[0], np.cos(x))
    pushes = [jitml.linearize(np.sin, x)[1] for x in (x3, 2 * x3)]
    for push, x in zip(pushes, (x3, 2 * x3)):
        np.testing.assert_allclose(push(np.ones(3)), np.cos(x))
    assert len(traces) == 2


def test_results_have_memory_of_their_own() -> None:
    slope = jitml.grad(lambda x: x.sum())
    for _ in range(3):
        first = slope(x3)
        first[:] = 7
    y, pull = jitml.vjp(lambda x: x, x3)
    y[:] = 9
    ct = np.ones(3)
    pull(ct)[0][:] = 8
    assert x3.tolist() == [1, 2, 3] and ct.tolist() == [1, 1, 1]


def test_results_are_handed_out_as_they_were_made() -> None:
    wide = np.linspace(0, 1, 60_000).reshape(200, 300)
    slope = jitml.grad(lambda x: np.sin(x).sum())
    for _ in range(3):
        slope(wide)
    tracemalloc.start()
    try:
        result = slope(wide)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * wide.nbytes
    finally:
        tracemalloc.stop()
    assert result.flags.owndata and result.flags.c_contiguous
    both = jitml.vjp(lambda x, y: (np.exp(x) * y, y), wide.T, wide.T)
    for _ in range(3):
        (value, same), pull = both
        first, second = pull((value, same))
        arrays = (wide, value, same, first, second)
        assert not any(np.shares_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n])
        both = jitml.vjp(lambda x, y: (np.exp(x) * y, y), wide.T, wide.T)


def test_nothing_of_a_call_is_kept() -> None:
    eager._transforms.clear()
    x = np.arange(1000.0)
    alive = weakref.ref(x)
    jitml.grad(square)(x)
    jitml.vjp(square, x)
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("wrap", [lambda f: f, jitml.jit], ids=["eager", "jit"])
def test_an_index_is_checked_though_nothing_needs_what_lies_there(wrap: Callable[..., Any]) -> None:
    def f(i: Any) -> Any:
        np.add.at(np.zeros(3), i, 1.0)
        np.arange(3.0)[i]
        return 2.0 * i

    rows = wrap(jitml.vmap(f))
    for _ in range(3):
        np.testing.assert_array_equal(rows(np.array([[1], [2]])), [[2.0], [4.0]])
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            rows(np.array([[1], [9]]))
