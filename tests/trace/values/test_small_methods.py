"""Small pieces of the interface of arrays and numbers, as plain NumPy and Python have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.specialize import Specializer
from jitml.errors import DerivativeError

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")


def nearest(x: Array) -> Any:
    distances: list[Any] = []
    for i in range(2):
        v = x[i : i + 1, None]
        distances.append(v.T @ v)
    distances.append(20.0)
    return distances.index(min(distances)), min(distances), max(distances)


def doubled_if_whole(x: Array) -> Any:
    return x * 2 if x[0].is_integer() else x


PROGRAMS: dict[str, Callable[[Array], Any]] = {
    "shapes": lambda x: (np.broadcast_shapes(x.shape, (3, 1)), x * np.zeros(np.broadcast_shapes(x.shape, (3, 1)))),
    "device": lambda x: (x.device, (x * 2).device, x.to_device("cpu") * 2, np.zeros(3, device=x.device)),
    "real_if_close": lambda x: (np.real_if_close(x + 0j), np.real_if_close(x), np.real_if_close(x + 1j)),
    "is_integer": lambda x: (x[0].is_integer(), (x[0] * 1.5).is_integer(), x.sum().is_integer(), float(x[1]).is_integer()),
    "is_integer of infinity": lambda x: (x[0] * np.inf).is_integer(),
    "is_integer of float32": lambda x: (x / 2).astype(np.float32)[0].is_integer(),
    "is_integer of integers": lambda x: x.astype(int)[0].is_integer(),
    "is_integer decides": doubled_if_whole,
    "bits": lambda x: (x.astype(int)[2].bit_count(), x.size.bit_length(), int(x[2]).bit_length(), int(x[2]).bit_count()),
    "ratio": lambda x: (x[1].as_integer_ratio(), float(x[1]).as_integer_ratio()),
    "min of arrays": nearest,
    "min of mixed": lambda x: (
        min(x[0:1], x[1:2]),
        max(x[0:1], 2.0),
        min(np.ones(1) * x[0], 7),
        min(x[0], 1, 2.5),
        min((x[0], 1), (x[1], 2)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_without_jit(name: str) -> None:
    compiled = jitml.jit(PROGRAMS[name])
    for x in (np.array([3.0, 2.0, 6.0]), np.array([0.5, 2.5, 1.0])):
        assert repr(compiled(x)) == repr(PROGRAMS[name](x))


def test_another_device_is_refused_as_numpy_refuses_it() -> None:
    with pytest.raises(ValueError, match="Unsupported device"):
        jitml.jit(lambda x: x.to_device("gpu"))(np.ones(3))


def test_an_extreme_of_arrays_has_no_truth() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        jitml.jit(lambda x: min(x, x * 2))(np.ones(3))


def test_an_extreme_of_lists_and_numbers_compares_them_as_numpy_does() -> None:
    x = np.array([3.0, 1.0])
    assert jitml.jit(lambda x: min(x[-1], [x[0]]))(x) == 1.0
    assert jitml.jit(lambda x: max(x[-1], [x[0]]))(x) == [3.0]
    with pytest.raises(ValueError, match="inhomogeneous"):
        jitml.jit(lambda x: max([1, x], x[-1]))(x)


def endless(x: Any) -> Any:
    return endless(x * 2)


def grows(x: Array) -> Any:
    return x if x.sum() < 0 else grows(x * 2)


@pytest.fixture
def shallow() -> Iterator[None]:
    """Python's limit is soon reached: the time until then grows with its square."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("shallow")
@pytest.mark.filterwarnings("default::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", [endless, grows])
def test_recursion_without_end_is_pythons_error(function: Any) -> None:
    for call in (jitml.jit(function), jitml.grad(lambda x: np.sum(function(x)))):
        with pytest.raises(RecursionError):
            call(np.ones(2))


@pytest.mark.usefixtures("shallow")
@pytest.mark.parametrize("strict", [True, pytest.param(False, marks=pytest.mark.loose)])
def test_recursion_without_end_is_traced_once(strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the stack ends while tracing, Python makes the same calls again: each of them would be traced to the end."""

    @jitml.jit(strict=strict)
    def deeper(n: int) -> Any:
        return deeper(n + 1)

    traced, trace = [], Specializer._trace_with
    monkeypatch.setattr(Specializer, "_trace_with", lambda self, *args: traced.append(args) or trace(self, *args))
    with pytest.raises(RecursionError):
        deeper(0)
    assert len(traced) == 1


def test_arguments_are_named_in_one_way() -> None:
    def f(x: float, y: float) -> float:
        return x * y * y

    for transform in (jitml.grad, jitml.value_and_grad, jitml.jacfwd, jitml.jacrev, jitml.hessian):
        with pytest.raises(DerivativeError, match="by argnums or by argnames, not both"):
            transform(f, argnums=0, argnames="y")
    assert jitml.grad(f)(3.0, 2.0) == jitml.grad(f, 0)(3.0, 2.0) == 4.0
    assert jitml.grad(f, argnames="y")(3.0, 2.0) == 12.0
