"""Arrays and numbers of functions on the tape: memory, conversions, objects; and what would lose a slope is refused."""

from __future__ import annotations

import copy
import functools
import json
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import DerivativeError, grad, stop_gradient, value_and_grad

pytestmark = pytest.mark.loose

x3 = np.array([0.3, -0.8, 1.1])
FACTOR, LONG = np.zeros(3), np.zeros(2000)


def mutated_from_outside(x: Any) -> Any:
    total = 0.0
    for i in range(3):
        FACTOR[:], LONG[:] = i + 1, i
        total += (x * FACTOR).sum() ** 2 + (x[0] * LONG).mean() ** 2
        LONG[7] += 1
        total += (x[1] * LONG).mean() ** 2
    return total


def written_after_it_was_read(x: Any) -> Any:
    y = x * 1.0
    squared = y * y
    y[0] = 5.0
    return (squared + y * y).sum()


def through_views(x: Any) -> Any:
    y = np.zeros((3, 3))
    y[1] = x
    row, turned = y[1], y.T[1:, ::2]
    row *= 2
    turned += x[0]
    turned[..., 0] *= x[1]
    y[1:] = y[:-1]
    y.reshape(-1)[::4] -= row[2]
    return (y * y * np.arange(9).reshape(3, 3)).sum()


def by_index(x: Any) -> Any:
    y, index = np.zeros(4), np.array([0, 1, 0])
    y[index] = x
    index[:] = 3
    y[[1, 2]] += x[0]
    mask = x > 0
    z = x * 2
    z[mask] = z[mask] ** 2
    mask[:] = True
    return (y**2).sum() + z.sum() + (x[[0, 0, 2]] ** 2).sum()


def added_at(x: Any) -> Any:
    y = np.zeros(2)
    np.add.at(y, [0, 1, 0], x)
    np.subtract.at(y, [0, 0], x[:2] * x[1])
    return (y**2).sum()


def into_outputs(x: Any) -> Any:
    y = np.empty(3)
    np.multiply(x, x, out=y)
    np.add(y, x, y)
    kept = y.copy()
    np.exp(y, out=y, where=np.array([True, False, True]))
    np.copyto(kept, x, where=x > 0.5)
    return y.sum() + (kept**2).sum()


def written_argument(x: Any) -> Any:
    x *= 2
    x[0] = x[1] * x[2]
    x += x[::-1]
    x.sort()
    return (x * np.array([1.0, 2.0, 3.0])).sum()


def cached(x: Any) -> Any:
    @functools.lru_cache(None)
    def square(v: Any) -> Any:
        return v * v

    return square(x[0]) + 2 * square(x[0] * 1.0) + square(x[1])


def numbers(x: Any) -> Any:
    a, b = float(x[0]), x[1].item()
    c = math.exp(a) * b
    items = x.tolist()
    ordered = sorted((v, i) for i, v in enumerate(items))
    d = -a + 2**a + (3 - b) / (1 + a) + a // 1 + b % 1
    return max(a, b, c) + abs(b) + d + sum(v * (i + k) for k, (v, i) in enumerate(ordered))


def told_by_type(x: Any) -> Any:
    assert isinstance(x, np.ndarray) and type(x) is np.ndarray and x.shape == (3,) and len(x) == 3
    assert isinstance(x[0], np.float64) and type(float(x[0])) is float and f"{x[0]:.2f}" == "0.30"
    assert "%.1f" % x[1] == "-0.8"  # noqa: UP031  # which asks for the float itself
    return x.sum()


def copied(x: Any) -> Any:
    first = [x * 1.0]
    second, third = copy.deepcopy(first), copy.copy(first[0])
    second[0][0], third[1] = 0.0, 7.0
    return (first[0] ** 2).sum() + (second[0] ** 2).sum() + (third**3).sum()


def complex_numbers(x: Any) -> Any:
    z = x + 1j * x[::-1]
    w = np.exp(z) * z.conj()
    w[0] = x[1]
    z.real = x**2
    z[1] += 1j * x[0]
    return (z * z.conj()).real.sum() + (np.abs(w) ** 2).sum() + w.real.sum() + np.fft.fft(x).imag.sum()


def of_powers(x: Any) -> Any:
    total = 2 ** x[0] + np.float_power(x[2], x[0])
    for i in range(-2, 5):
        total += x[2] ** i + (x[2] + 1) ** (i / 2)
    return total


def in_threads(x: Any) -> Any:
    found: list[Any] = [None] * 3

    def work(i: int) -> None:
        found[i] = x[i] ** 3

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(found)


def suspended(x: Any) -> Any:
    def steps(n: int) -> Iterator[Any]:
        y = x
        for _ in range(n):
            y = y * 1.1
            yield y.sum()

    return sum(steps(4))


def of_matrices(x: Any) -> Any:
    a = np.outer(x, x) + np.diag([1.0, 2.0, 4.0])
    values, _ = np.linalg.eigh(a)
    return values[0] + np.linalg.solve(a, x).sum() + (np.linalg.cholesky(a) ** 3).sum() + np.einsum("ij,j->", a, x)


def of_lists(x: Any) -> Any:
    y = np.array([[x[0], 1.0], [2.0, x[1] * x[2]]])
    z = np.concatenate([x, y[0], [x[1]]]) + np.array([x[:2], x[1:]]).sum()
    return np.mean([x[0], x[1] * 2]) + (z**2).sum() + y.sum()


PROGRAMS = [
    mutated_from_outside, written_after_it_was_read, through_views, by_index, added_at, into_outputs, written_argument, cached,
    numbers, told_by_type, copied, complex_numbers, of_powers, in_threads, suspended, of_matrices, of_lists,
]  # fmt: skip


@pytest.fixture
def never_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function is one that cannot be captured."""
    from jitml.autograd.api import transform_driver

    capture = transform_driver.run

    def refuse(*args: Any) -> Any:
        if transform_driver.current_trace() is None:
            raise jitml.UnsupportedError("not this time")
        return capture(*args)

    monkeypatch.setattr(transform_driver, "run", refuse)
    monkeypatch.setattr(transform_driver, "_refused", type(transform_driver._refused)())


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.usefixtures("never_captured")
def test_slopes_are_those_of_differences(f: Callable[[Any], Any]) -> None:
    x = x3.copy()
    value, slope = value_and_grad(f)(x)
    np.testing.assert_array_equal(x, x3)
    np.testing.assert_allclose(value, f(x3.copy()), rtol=1e-13)
    expected = [(f(x3 + step) - f(x3 - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, expected, rtol=2e-5, atol=1e-6)


class Model:
    def __init__(self) -> None:
        self.losses: list[Any] = []
        self.state: dict[str, Any] = {"steps": 0}
        self.last: Any = None


def test_what_is_left_behind_is_plain(never_captured: None) -> None:
    model, log = Model(), {}

    def f(x: Any) -> Any:
        for n in range(3):
            x = x * 0.9
            model.losses.append((n, x.sum()))
            model.state["x"] = x
            model.last = [x[0], {"norm": float(x @ x)}]
        log["all"] = tuple(model.losses)
        return x.sum()

    for _ in range(2):
        model.losses.clear()
        grad(f)(x3)
        assert type(model.state["x"]) is np.ndarray and {type(loss) for _, loss in model.losses} == {np.float64}
        assert type(model.last[1]["norm"]) is float and type(log["all"][2][1]) is np.float64
        json.dumps(model.last)  # which knows Python's numbers, and those of NumPy's that are such


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: np.ma.masked_invalid(x).mean(), "an array of NumPy's own by numpy.ma"),
        (lambda x: {x[0]: 1.0}[x[0]] * x[1], "a key"),
        (lambda x: x.view(np.int64).view(float).sum(), "bits"),
        (lambda x: FACTOR.__setitem__(0, x[0]) or x.sum(), "a float|sequence"),
        (lambda x: np.add(x, 1.0, out=FACTOR).sum(), "put into an array that comes from outside"),
        (lambda x: np.multiply.at(y := x * 1.0, [0], x[1]) or y.sum(), "np.multiply.at has no derivative"),
    ],
)
def test_what_would_lose_a_slope_is_refused(f: Any, says: str, never_captured: None) -> None:
    with pytest.raises(Exception, match=says) as caught:
        grad(f)(x3)
    assert "test_values.py" in str(caught.value) if isinstance(caught.value, DerivativeError) else "sequence" in str(caught.value)


def test_what_is_constant_may_be_taken_as_a_number(never_captured: None) -> None:
    assert grad(lambda x: float(np.ma.masked_invalid(stop_gradient(x)).mean()) * x[0])(x3)[0] == pytest.approx(0.2)


def test_nothing_stays_behind(never_captured: None) -> None:
    """An exception, or Ctrl-C, ends the tape; what is called afterwards knows nothing of it."""
    from jitml.autograd.tape.tape import current_tape

    kept: list[Any] = []

    def f(x: Any, error: BaseException) -> Any:
        kept.append(x * 2)
        raise error

    for error in (KeyboardInterrupt(), ZeroDivisionError("as it is")):
        with pytest.raises(type(error)) as caught:
            grad(f)(x3, error)
        assert caught.value is error and current_tape() is None
        assert all(type(x) is np.ndarray for x in kept)
