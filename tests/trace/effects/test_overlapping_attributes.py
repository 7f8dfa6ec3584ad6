"""Parts of one memory that attributes, globals, cells and items hold, and that are written: Python does it, as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.loose


class Parts:
    def __init__(self, buffer: Any, first: Any, second: Any) -> None:
        self.buffer, self.a, self.b = buffer, first(buffer), second(buffer)


def both(p: Parts) -> Any:
    p.a *= 2
    p.b += 1
    return p.a.sum()


def one_after_the_other(p: Parts) -> Any:
    p.a[1:] = p.b[: len(p.a) - 1]
    p.b[0] = p.a[-1] * 3
    p.a[0] += p.b[0]
    return p.b * 1


def in_a_loop(p: Parts) -> Any:
    total = 0.0
    for k in range(3):
        p.a[k] += p.b[k]
        p.b[0] -= p.a[2]
        total += p.a.sum()
    return total


def under_a_condition(p: Parts) -> Any:
    if p.b[0] > 2:
        p.a[...] = p.b[0]
    else:
        p.b[...] = p.a[0]
    return p.a + 0


def with_the_whole(p: Parts) -> Any:
    p.a += 1
    p.buffer *= 2
    p.b[0] = p.buffer[-1]
    return p.buffer.sum()


def returned(p: Parts) -> Any:
    p.a += 1
    p.b *= 2
    return p.a


VIEWS = {
    "ranges": (lambda x: x[:5], lambda x: x[3:]),
    "steps": (lambda x: x[::2], lambda x: x[1:5]),
    "reversed": (lambda x: x[5::-1], lambda x: x[2:]),
    "rows": (lambda x: x.reshape(2, -1)[0], lambda x: x[2:]),
    "the same": (lambda x: x[1:6], lambda x: x[1:6]),
}
FUNCTIONS = [both, one_after_the_other, in_a_loop, under_a_condition, with_the_whole, returned]


def agree(f: Any, make: Any, shown: Any, calls: int = 3) -> Any:
    fast = jitml.jit(f)
    ours, theirs = make(), make()
    for _ in range(calls):
        np.testing.assert_allclose(fast(ours), f(theirs))
        np.testing.assert_allclose(shown(ours), shown(theirs))
    return fast


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_attributes_of_an_object(f: Any, views: str) -> None:
    agree(f, lambda: Parts(np.arange(8.0), *VIEWS[views]), lambda p: p.buffer)


def test_an_object_whose_parts_lie_elsewhere_has_its_own_answer() -> None:
    fast = jitml.jit(both)
    fours = [(lambda x: x[:4], lambda x, k=k: x[k : k + 4]) for k in (2, 3, 4, 0, 2)]
    for views in (VIEWS["ranges"], *fours, VIEWS["ranges"]):
        for n in (8, 9):
            ours, theirs = (Parts(np.arange(float(n)), *views) for _ in range(2))
            assert fast(ours) == both(theirs)
            np.testing.assert_array_equal(ours.buffer, theirs.buffer)
    apart = Parts(np.arange(8.0), lambda x: x[:5].copy(), lambda x: x[3:])
    assert fast(apart) == 20.0
    np.testing.assert_array_equal(apart.buffer, [0, 1, 2, 4, 5, 6, 7, 8])


def test_two_objects() -> None:
    def f(pair: Any) -> Any:
        first, second = pair
        first.a += 1
        second.b *= 2
        return first.a.sum() + second.b[0]

    def make() -> Any:
        buffer = np.arange(8.0)
        return Parts(buffer, *VIEWS["ranges"]), Parts(buffer, *VIEWS["steps"])

    agree(f, make, lambda pair: pair[0].buffer)


def test_an_argument_and_an_attribute() -> None:
    buffer, other = np.arange(8.0), np.arange(8.0)

    def f(x: Any, p: Parts) -> Any:
        x += 1
        p.b *= 2
        return x.sum()

    fast, ours, theirs = jitml.jit(f), Parts(buffer, *VIEWS["ranges"]), Parts(other, *VIEWS["ranges"])
    for _ in range(2):
        assert fast(buffer[2:6], ours) == f(other[2:6], theirs)
        np.testing.assert_array_equal(buffer, other)


def test_items_and_cells() -> None:
    def items(held: Any) -> Any:
        held["a"] += 1
        held["b"][0] *= 2
        return held["a"].sum()

    def make() -> Any:
        x = np.arange(8.0)
        return {"a": x[:5], "b": x[3:], "x": x}

    agree(items, make, lambda held: held["x"])

    def closed(x: Any) -> Any:
        a, b = x[:5], x[3:]

        def f(k: Any) -> Any:
            a[...] += k
            b[...] *= 2
            return a.sum()

        return f

    ours, theirs = np.arange(8.0), np.arange(8.0)
    fast, plain = jitml.jit(closed(ours)), closed(theirs)
    for k in (1.0, 2.0):
        assert fast(k) == plain(k)
        np.testing.assert_array_equal(ours, theirs)
