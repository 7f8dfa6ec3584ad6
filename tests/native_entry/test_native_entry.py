"""Native entries: what machine code answers, and what it leaves to Python, is what NumPy gives."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import engine
from jitml.codegen.llvm.runtime import c_api
from jitml.codegen.llvm.runtime.c_api import native_calls

pytestmark = pytest.mark.skipif(not native_calls(), reason="arrays of this interpreter cannot be read in place")
X, Y = np.array([1.0, -2.5, 3.0]), np.array([0.5, 4.0, -1.0])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OFTEN", 3)


def hits(f: Any) -> int:
    """How many calls machine code has answered."""
    entries = f.engine._entries
    return 0 if entries is None else int(entries._hits[0])


def entered(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A jitted function whose calls with such arguments machine code answers."""
    f = jitml.jit(function)
    for _ in range(4):
        f(*args, **kwargs)
    before = hits(f)
    f(*args, **kwargs)
    assert hits(f) == before + 1
    return f


def same_results(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted), (got, wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            same_results(a, b)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        same_results([*got.values()], [*wanted.values()])
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert (got.dtype, got.shape, got.strides) == (wanted.dtype, wanted.shape, wanted.strides)
        assert got.flags.writeable == wanted.flags.writeable
        np.testing.assert_allclose(got, wanted, rtol=1e-15)
    else:
        np.testing.assert_equal(got, wanted)


def mixed(x, y, t):
    return (1 - t) * x + t * y


def parts(p):
    return p["b"][0] - p["a"], {"twice": 2 * p["b"][1]}


def several(x, n):
    return x.sum(), float(x[0]), int(x[0]), bool(x[0] > 0), x + n, n, "text", None


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (mixed, (X, Y, 0.25), {}),
        (mixed, (X, Y), {"t": 0.25}),
        (mixed, (), {"y": Y, "t": np.float64(0.5), "x": X}),
        (parts, ({"b": (Y, [X][0]), "a": X},), {}),
        (lambda p, q=None: p[0] + p[1][0], ([X, (Y, None)],), {}),
        (several, (X, 3), {}),
        (lambda: np.arange(4.0), (), {}),
        (lambda x: x[::2], (X.copy(),), {}),
        (lambda x: (x, x), (X,), {}),
        (lambda x: x.T @ x, (np.ones((0, 3)),), {}),
        (lambda x, y: x * y, (X.astype(">f8"), Y[::-1]), {}),
        (lambda a, b: a // b, (7, 3), {}),
        (lambda x: np.where(x > 0)[0], (X,), {}),
        (lambda x: x[x > 0] * 2, (X,), {}),
        (lambda z: abs(z) + z.real, (X + 1j * Y,), {}),
    ],
)
def test_answers_are_numpys(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    f = jitml.jit(function)
    for _ in range(8):
        same_results(f(*args, **kwargs), function(*args, **kwargs))
    assert hits(f) or any(x.dtype.byteorder == ">" for x in args if isinstance(x, np.ndarray))


class Sub(np.ndarray):
    @property
    def shape(self) -> Any:  # type: ignore[override]
        return (3,)


class Number(float):
    def __rsub__(self, other: Any) -> Any:
        return 100.0


OTHERS = [
    (X[:2], Y[:2], 0.5),
    (X[:1], Y, 0.5),
    (X.reshape(3, 1), Y, 0.5),
    (X.astype(np.float32), Y, 0.5),
    (X.astype(">f8"), Y, 0.5),
    (X.astype(np.int64), Y, 0.5),
    (np.repeat(X, 2)[::2], Y, 0.5),
    (np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64), Y, 0.5),
    (X.view(Sub), Y, 0.5),
    (X.tolist()[0], Y, 0.5),
    (np.float64(2.0), Y, 0.5),
    (X, Y, 1),
    (X, Y, True),
    (X, Y, Number(0.5)),
    (X, Y, np.float64(0.5)),
    (X, Y, np.float32(0.5)),
    (X, Y, 0.5j),
    (X, Y, 10**30),
    (X, Y, np.array(0.5)),
    (X, Y, float("nan")),
    (np.array([np.nan, np.inf, -0.0]), Y, -0.0),
    (X, X, 0.5),
    (np.empty((0, 3)), Y, 0.5),
]


@pytest.mark.loose
@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_other_arguments_are_answered_as_by_numpy(number: int) -> None:
    f, args = entered(mixed, X, Y, 0.25), OTHERS[number]
    with np.errstate(all="ignore"):
        for _ in range(6):
            same_results(f(*args), mixed(*args))
            same_results(f(X, Y, 0.25), mixed(X, Y, 0.25))


def test_wrong_calls_raise_as_python_does() -> None:
    f = entered(mixed, X, Y, 0.25)
    for args, kwargs in [((X, Y), {}), ((X, Y, 0.25, 1), {}), ((X, Y), {"s": 0.25}), ((X, Y, 0.25), {"t": 1.0})]:
        with pytest.raises(TypeError) as ours:
            f(*args, **kwargs)
        with pytest.raises(TypeError) as pythons:
            mixed(*args, **kwargs)
        assert str(ours.value) == str(pythons.value)


def test_keys_of_a_dict_count_and_so_does_their_order() -> None:
    f = entered(lambda p: next(iter(p)) + str(p["a"].sum()), {"a": X, "b": Y})
    assert f({"b": Y, "a": X}) == "b1.5"
    assert f({"a": X, "b": Y}) == "a1.5"
    with pytest.raises(KeyError):
        f({"b": Y, "c": X})


@pytest.mark.loose
def test_an_error_is_warned_of_in_each_call() -> None:
    f = entered(lambda x: 1 / x, X)
    before = hits(f)
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            f(np.array([1.0, 0.0, 2.0]))
    f(X)
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            assert f(np.array([1.0, 0.0, 2.0]))[1] == np.inf
    assert hits(f) > before


@pytest.mark.loose
def test_a_failed_check_is_left_to_python() -> None:
    def item(x, i):
        return x[i] * 2

    f = entered(item, X, 1)
    for _ in range(12):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
            f(X, 7)
    assert f(X, -1) == 6.0


SCALE = {0: 2.0}


def _helper(x):
    return x + 1


def _other_helper(x):
    return x - 1


def test_what_is_read_from_outside_is_looked_at_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    f = entered(lambda x: _helper(x) * SCALE[0], X)
    same_results(f(X), (X + 1) * 2)
    monkeypatch.setitem(SCALE, 0, 3.0)
    same_results(f(X), (X + 1) * 3)
    monkeypatch.setitem(globals(), "_helper", _other_helper)
    same_results(f(X), (X - 1) * 3)


def test_methods_and_what_they_write() -> None:
    class Mean:
        def __init__(self) -> None:
            self.total, self.count = np.zeros(3), 0

        @jitml.jit
        def add(self, x: Any, *, weight: float = 1.0) -> Any:
            self.count += 1
            self.total = self.total + weight * x
            return self.total / self.count

    a, b = Mean(), Mean()
    for n in range(1, 12):
        same_results(a.add(X), X * n / n)
    same_results(b.add(X, weight=2.0), 2 * X)
    assert (a.count, b.count) == (11, 1)


@pytest.mark.loose
def test_arrays_that_are_written_may_overlap_others() -> None:
    def update(x, y):
        x += 2 * y

    f = jitml.jit(update)
    for views in [(slice(0, 4), slice(4, 8)), (slice(1, 5), slice(0, 4)), (slice(0, 4), slice(0, 4))] * 4:
        ours, numpys = np.arange(8.0), np.arange(8.0)
        f(*(ours[view] for view in views))
        update(*(numpys[view] for view in views))
        same_results(ours, numpys)


def test_traces_and_python_get_the_function_itself() -> None:
    f = entered(lambda x: (x * x).sum(), X)
    same_results(jitml.grad(f)(X), 2 * X)
    before = hits(f)
    same_results(jitml.jit(lambda x: f(x) + 1)(X), (X * X).sum() + 1)
    with jitml.debug_nans():
        f(X)
    with jitml.disable():
        f(X)
    assert hits(f) == before
    for _ in range(20):
        f(X)
    assert hits(f) > before


def test_a_forgotten_variant_answers_no_more() -> None:
    f = entered(mixed, X, Y, 0.25)
    before = hits(f)
    f.clear_cache()
    same_results(f(X, Y, 0.25), mixed(X, Y, 0.25))
    assert hits(f) == before
    assert len(f.variants) == 1


def test_nothing_is_held() -> None:
    def counts(calls: int) -> list[int]:
        for _ in range(calls):
            f(X, 3)
            f(X[:2], 3)
            f({"x": X}, 3)
        gc.collect()
        return [*map(sys.getrefcount, held)]

    held = (X, X.dtype, np.float64, tuple, "text")
    f = jitml.jit(lambda x, n: several(x["x"] if isinstance(x, dict) else x, n))
    before = counts(40)
    was = hits(f)
    after = counts(2000)
    assert hits(f) == was + 6000
    assert all(n - m < 100 for m, n in zip(before, after))


def test_no_object_is_read_in_place_where_it_is_laid_out_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in c_api.OFFSETS:
        with monkeypatch.context() as otherwise:
            otherwise.setitem(c_api.OFFSETS, part, 48)
            found = c_api._has_versions.__wrapped__ if part == "VERSION_TAG" else c_api.native_calls.__wrapped__
            assert not found(), part


def test_threads_get_their_own_answers() -> None:
    f, wrong = entered(mixed, X, Y, 0.25), []

    def run(scale: float) -> None:
        x = scale * X
        for n in range(2000):
            size = 3 if n % 50 else 2
            if not np.array_equal(f(x[:size], Y[:size], 0.25), mixed(x[:size], Y[:size], 0.25)):
                wrong.append(scale)

    threads = [threading.Thread(target=run, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_a_host_call_raises_is_left_to_python() -> None:
    """It has been begun then, and plain Python raises what NumPy does."""

    def f(x: np.ndarray[Any, Any]) -> Any:
        return np.linalg.inv(x) + 1.0

    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    fast = jitml.jit(f)
    for _ in range(8):
        np.testing.assert_array_equal(fast(np.eye(2)), f(np.eye(2)))
    for _ in range(8):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            fast(singular)
