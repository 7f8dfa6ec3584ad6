"""Calls that change their arguments, answered by machine code: arrays are NumPy's after each, or as they were where it cannot."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from tests.native_entry.test_native_entry import hits

import jitml
from jitml import engine
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.codegen.run.fp_errors import SMALL

pytestmark = pytest.mark.skipif(not native_calls(), reason="arrays of this interpreter cannot be read in place")
SIZES = (3, SMALL // 16, SMALL // 8 + 1)  # copied in machine code, in one piece, or by Python


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OFTEN", 3)


def update(x: Any, y: Any) -> None:
    x += 1.0
    x /= y


def two(x: Any, y: Any) -> Any:
    x *= 2.0
    y /= x
    return x.sum()


def entered(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> Any:
    """A jitted function whose calls with such arguments machine code answers."""
    f = jitml.jit(function)
    for _ in range(5):
        f(*make())
    before = hits(f)
    f(*make())
    assert hits(f) == before + 1
    return f


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What comes of a call: the result, the exception, warnings, and what arguments hold then."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result, raised = function(*args), ""
        except Exception as error:
            result, raised = None, f"{type(error).__name__}: {error}"
    texts = [str(w.message) for w in told]
    return result, raised, texts, [x.tobytes() if isinstance(x, np.ndarray) else x for x in args]


def layouts(size: int) -> dict[str, Callable[[], np.ndarray[Any, Any]]]:
    return {
        "plain": lambda: np.arange(1.0, size + 1),
        "backwards": lambda: np.arange(1.0, size + 1)[::-1],
        "every other": lambda: np.arange(1.0, 2 * size + 1)[::2],
        "rows": lambda: np.arange(1.0, 2 * size + 1).reshape(2, size),
        "columns": lambda: np.asfortranarray(np.arange(1.0, 2 * size + 1).reshape(2, size)),
        "every other column": lambda: np.arange(1.0, 4 * size + 1).reshape(2, 2 * size)[:, ::2],
        "no axis": lambda: np.array(3.0),
        "empty": lambda: np.empty((0, size)),
    }


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", layouts(1))
@pytest.mark.parametrize("state", ["ignore", "warn", "raise"])
def test_an_error_leaves_what_numpy_leaves(size: int, layout: str, state: Any) -> None:
    make = layouts(size)[layout]
    f = entered(update, lambda: (make(), np.ones(make().shape)))
    before = hits(f)
    for _ in range(3):
        assert outcome(f, (make(), np.ones(make().shape))) == outcome(update, (make(), np.ones(make().shape)))
    assert hits(f) == before + 3
    zeros = np.ones(make().shape)
    zeros[(0,) * zeros.ndim if zeros.size else ...] = 0.0
    with np.errstate(all=state):
        ours, numpys = outcome(f, (make(), zeros)), outcome(update, (make(), zeros))
    if size == SIZES[2] and state == "warn":  # of which there is no copy: the warning has another text
        assert len(ours[2]) == len(numpys[2])
        ours, numpys = (*ours[:2], *ours[3:]), (*numpys[:2], *numpys[3:])
    assert ours == numpys


@pytest.mark.parametrize("size", SIZES[:2])
def test_several_arrays_are_put_back(size: int) -> None:
    f = entered(two, lambda: (np.ones(size), np.ones((2, size))))
    x = np.ones(size)
    x[-1] = 0.0
    for _ in range(4):
        assert outcome(f, (x.copy(), np.ones((2, size)))) == outcome(two, (x.copy(), np.ones((2, size))))
        with np.errstate(all="raise"):
            assert outcome(f, (x.copy(), np.ones((2, size)))) == outcome(two, (x.copy(), np.ones((2, size))))


def test_a_warning_that_raises_says_that_what_had_no_copy_is_written() -> None:
    f = entered(update, lambda: (np.ones(SIZES[2]), np.ones(SIZES[2])))
    y = np.ones(SIZES[2])
    y[1] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning) as raised:
            f(np.ones(SIZES[2]), y)
    assert "has written its arrays" in raised.value.__notes__[0]
    with warnings.catch_warnings():  # from now on there are copies
        warnings.simplefilter("error")
        ours, numpys = np.ones(SIZES[2]), np.ones(SIZES[2])
        for function, x in ((f, ours), (update, numpys)):
            with pytest.raises(RuntimeWarning):
                function(x, y)
        np.testing.assert_array_equal(ours, numpys)


VIEWS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "one behind the other": lambda: (m := np.arange(1.0, 9.0), (m[:4], m[4:]))[1],
    "overlapping": lambda: (m := np.arange(1.0, 9.0), (m[1:5], m[:4]))[1],
    "the same": lambda: (m := np.arange(1.0, 9.0), (m[:4], m[:4]))[1],
    "one object": lambda: (m := np.arange(1.0, 5.0), (m, m))[1],
    "between each other": lambda: (m := np.arange(1.0, 9.0), (m[::2], m[1::2]))[1],
    "backwards": lambda: (m := np.arange(1.0, 9.0), (m[3::-1], m[4:]))[1],
    "backwards over each other": lambda: (m := np.arange(1.0, 9.0), (m[4:0:-1], m[4:]))[1],
    "other owner": lambda: (np.arange(1.0, 5.0), np.arange(1.0, 5.0)),
    "foreign buffer": lambda: (m := bytearray(64), (np.frombuffer(m)[:4], np.frombuffer(m)[4:]))[1],
    "foreign buffer twice": lambda: (m := bytearray(64), (np.frombuffer(m)[:4], np.frombuffer(m)[2:6]))[1],
    "read only": lambda: (np.arange(1.0, 5.0), np.broadcast_to(np.float64(2.0), (4,))),
    "stretched": lambda: (np.arange(1.0, 5.0), as_strided(np.ones(2), (4,), (0,))),
    "misaligned": lambda: (np.frombuffer(bytearray(41), np.uint8)[1:33].view(np.float64), np.arange(1.0, 5.0)),
    "bytes": lambda: (np.arange(1.0, 5.0), np.arange(4, dtype=np.int8)),
    "big end": lambda: (np.arange(1.0, 5.0, dtype=">f8"), np.arange(1.0, 5.0)),
    "another size": lambda: (np.arange(1.0, 6.0), np.arange(1.0, 6.0)),
    "another shape": lambda: (np.ones((1, 4)), np.arange(1.0, 5.0)),
    "not to be written": lambda: (np.broadcast_to(np.ones(()), (4,)), np.arange(1.0, 5.0)),
    "a number": lambda: (np.arange(1.0, 5.0), 2.0),
    "a subclass": lambda: (np.ma.masked_array(np.arange(1.0, 5.0)), np.arange(1.0, 5.0)),
    "no array": lambda: ([1.0, 2.0], np.arange(2.0)),
}


def mixed(x: Any, y: Any) -> None:
    x += 2 * y
    x[0] = y[-1] if np.ndim(y) else 7.0


@pytest.mark.loose
@pytest.mark.parametrize("name", VIEWS)
def test_other_arrays_are_changed_as_by_numpy(name: str) -> None:
    f = entered(mixed, lambda: (np.arange(1.0, 5.0), np.arange(1.0, 5.0)))
    for _ in range(8):
        ours, numpys = VIEWS[name](), VIEWS[name]()
        assert repr(outcome(f, ours)) == repr(outcome(mixed, numpys))
        x, z = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
        f(x, np.ones(4))
        mixed(z, np.ones(4))
        np.testing.assert_array_equal(x, z)


@pytest.mark.loose("-1", "-64", "-7", "1", "64", "7")
@pytest.mark.parametrize("distance", [-64, -7, -1, 1, 7, 64])
def test_long_arrays_that_overlap_are_changed_as_by_numpy(distance: int) -> None:
    f = entered(mixed, lambda: (np.arange(200.0), np.arange(200.0)))
    for _ in range(4):
        ours, numpys = np.arange(400.0), np.arange(400.0)
        for function, m in ((f, ours), (mixed, numpys)):
            function(m[100:300], m[100 + distance : 300 + distance])
        np.testing.assert_array_equal(ours, numpys)


def test_arrays_of_one_owner_that_lie_apart_need_no_python() -> None:
    m = np.zeros((4, 3))
    f = entered(mixed, lambda: (m[0], m[1]))
    before = hits(f)
    for _ in range(10):
        f(m[2], m[1])
    assert hits(f) == before + 10


def test_a_check_that_fails_leaves_arrays_as_they_were() -> None:
    def put(x: Any, i: Any) -> None:
        x += 1.0
        x[i] = 5.0

    f = entered(put, lambda: (np.ones(3), 1))
    for i in (7, -4, 2, -1):
        for _ in range(3):
            assert outcome(f, (np.ones(3), i)) == outcome(put, (np.ones(3), i))


def test_methods_change_arrays_of_their_object() -> None:
    class Sum:
        def __init__(self) -> None:
            self.total = np.zeros(3)

        @jitml.jit
        def add(self, x: Any) -> None:
            self.total += 0.5 * x

    one, other = Sum(), Sum()
    for _ in range(12):
        one.add(np.ones(3))
    assert hits(Sum.__dict__["add"])
    np.testing.assert_array_equal(one.total, np.full(3, 6.0))
    other.add(np.ones(3))
    np.testing.assert_array_equal(other.total, np.full(3, 0.5))
    shared, one.total = one.total, one.total.copy()
    one.add(one.total)  # which overlaps what is written
    np.testing.assert_array_equal(one.total, 1.5 * shared)
    del one.total
    with pytest.raises(AttributeError):
        one.add(np.ones(3))


def test_nothing_is_held() -> None:
    f = entered(update, lambda: (np.ones(3), np.ones(3)))
    x, y, bad = np.ones(3), np.ones(3), np.array([1.0, 0.0, 1.0])
    large, others = np.ones(SIZES[2]), np.ones(SIZES[2])
    for _ in range(5):
        f(large, others)
    held = (x, y, bad, large, others, x.dtype)
    counts, before = [sys.getrefcount(o) for o in held], hits(f)
    with np.errstate(all="ignore"):
        for _ in range(100_000):
            f(x, y)
        for _ in range(1000):
            f(large, others)
            f(x, bad)
    assert hits(f) == before + 102_000
    assert all(abs(sys.getrefcount(o) - n) < 100 for o, n in zip(held, counts))
    for _ in range(300):  # and left to Python
        x[...] = 1.0
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            f(x, bad)
    assert all(abs(sys.getrefcount(o) - n) < 100 for o, n in zip(held[:5], counts))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, ValueError])
def test_an_interrupt_says_what_was_being_written(kind: type[BaseException]) -> None:
    def iterate(x: Any, n: Any) -> None:
        done = 0.0
        while done < n[0]:
            x += 1.0
            x *= 0.999
            done += 1.0

    def ring(*_: Any) -> None:
        raise kind("now")

    f = entered(iterate, lambda: (np.ones(10_000), np.full(1, 1e2)))
    before, handler = hits(f), signal.signal(signal.SIGALRM, ring)
    try:
        for g in (f, jitml.jit(iterate)):  # from Python, too
            x, many = np.ones(10_000), np.full(1, 1e9)
            g(x, np.full(1, 1e2))
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(kind, match="now") as raised:
                g(x, many)
            assert raised.value.__notes__ == ["The compiled function was writing x: some of the elements may be new."]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    f(np.ones(10_000), np.full(1, 1e2))
    assert hits(f) == before + 2


def test_the_program_itself_may_be_given_what_is_no_array() -> None:
    """Of an argument that it writes it wants an array: a number has no memory to be written."""

    def half(x: Any) -> None:
        x /= 2.0

    run = jitml.jit(half).lower(np.array(3.0)).compile()
    assert float(run(np.array(3.0))[0]) == 1.5
    assert float(run(3.0)[0]) == 1.5
