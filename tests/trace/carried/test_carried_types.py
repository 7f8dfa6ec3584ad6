"""Numbers that a loop carries, and that are an int, a float or NumPy's, as it happens: who sees the type sees NumPy's?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def as_often_as_data_say(x: Any) -> Any:
    s = 0
    for _ in range(int(x.sum())):
        s += 0.5
    return s


def largest(x: Any) -> Any:
    best = 0
    for v in x:
        if v > best:
            best = v
    return best


def computed_on(x: Any) -> Any:
    best = 0
    for v in x:
        if v > 0:
            if v > best:
                best = v * 2
    return best + 1, best * 0.5, -best, best > 1, 2**best


def bits_of_it(x: Any) -> Any:
    best = 0
    for v in x.astype(np.int64):
        if v > best:
            best = v
    return best & 3, best | True, ~best, +best, best << 1, 1 << best, 3 ^ best, best >> 1


def truths(x: Any) -> Any:
    s = True
    for v in x:
        if v > 1:
            s = v > 2
    return s * s, s | True, s & 3, s << 1


def under_a_condition(x: Any) -> Any:
    t = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            t += x[i]
    return t


def of_extremes(x: Any) -> Any:
    t = 0
    for i in range(len(x)):
        t = max(x[i] * 0.5, 1.0, t)
    return t


def nested(x: Any) -> Any:
    t = 0
    for i in range(len(x)):
        for j in range(i):
            if x[j] > x[i]:
                t += x[j]
    return t


def until(x: Any) -> Any:
    t, i = 0, 0
    while i < len(x) and x[i] > 0:
        t += 0.5 * x[i]
        i += 1
    return t


def returned(x: Any) -> Any:
    for v in x:
        if v > 2:
            return v
        if v < 0:
            return 0
    return 1.5


def summed(x: Any) -> Any:
    return sum(v for v in x if v > 1), sum(0.5 for v in x if v > 1)


def ended(x: Any) -> Any:
    best = 0
    for v in x:
        if v < 0:
            break
        if v > 1:
            best = v
    return best


TOLD: list[Callable[[Any], Any]] = [
    as_often_as_data_say, largest, bits_of_it, truths, under_a_condition, of_extremes, nested, until, returned, summed, ended,
]  # fmt: skip


def scaled_inside(x: Any) -> Any:
    t = 1.0
    y = np.zeros(3, np.float32)
    for i in range(len(x)):
        y = y * t
        if x[i] > 1:
            t = x[i] * 0.25
    return y, t


SEEN: list[Callable[[Any], Any]] = [
    computed_on,
    scaled_inside,
    lambda x: np.ones(2, np.float32) * largest(x),
    lambda x: np.array([largest(x), 1]),
    lambda x: np.full(2, as_often_as_data_say(x)),
    lambda x: np.ones(2, np.int8) * largest(x),
]

CALLS = [np.array(x, float) for x in ([1, 0, 0], [2, 3, 4], [0, 0, 0], [-1, 2, 3], [-1, -1, -1], [5, 1, -1])]


@pytest.mark.parametrize("function", TOLD, ids=lambda f: f.__name__)
def test_the_program_says_what_a_loop_has_left(function: Callable[[Any], Any]) -> None:
    agrees(function, variants=1)


@pytest.mark.parametrize("number", range(len(SEEN)))
def test_a_dtype_follows_what_a_loop_has_left(number: int) -> None:
    agrees(SEEN[number], variants=4)


def agrees(function: Callable[[Any], Any], *, variants: int) -> None:
    compiled = jitml.jit(function)
    for x in CALLS:
        assert repr(compiled(x.copy())) == repr(function(x.copy()))
    assert len(compiled.variants) <= variants


def added_to_an_int(x: Any) -> Any:
    s = 0
    for v in x:
        if v > 0:
            s = s + v * v
    return s


def counted_on(x: Any) -> Any:
    s = 2**24
    for v in x:
        if v > 0:
            s += 1
        elif v < 0:
            s = s * v
    return s


@pytest.mark.parametrize(("function", "is_held"), [(added_to_an_int, True), (counted_on, False)])
def test_a_number_of_pythons_keeps_its_digits_in_fewer_bits(function: Callable[[Any], Any], is_held: bool) -> None:
    compiled = jitml.jit(function)
    for x in CALLS:
        assert repr(compiled(x.astype(np.float32))) == repr(function(x.astype(np.float32)))
    assert is_held is not any(variant.replays for variant in compiled.variants)


def test_a_sum_that_begins_with_an_int_has_a_gradient_in_fewer_bits() -> None:
    x = np.array([2.0, -1.0, 3.0], np.float32)
    for gradient in (jitml.grad(added_to_an_int), jitml.jit(jitml.grad(added_to_an_int))):
        np.testing.assert_array_equal(gradient(x), np.array([4.0, 0.0, 6.0], np.float32))
    with pytest.raises(OverflowError, match=r"carried as float32, .* begin with np.float32\(0\)"):
        jitml.grad(counted_on)(x)


def test_where_nobody_looks_no_truth_is_carried() -> None:
    def f(x: Any) -> Any:
        s = 0
        for i in range(x.shape[0]):
            for j in range(i):
                s += x[i, j]
        for v in x[0]:
            s = s + v if v > 0 else s
        x[0, 0] = s

    text = str(jitml.jit(f).lower(np.ones((9, 9))).kernels)
    assert "cell" in text
    assert ": bool = true" not in text
    assert "bool[]" not in text


@pytest.mark.parametrize("operation", [lambda s: s + True, lambda s: ~s], ids=["sum", "complement"])
def test_truths_that_compute_otherwise_are_refused(operation: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        s = True
        for v in x:
            if v > 1:
                s = v > 2
        return operation(s)

    with pytest.raises(jitml.UnsupportedError, match="truths"):
        jitml.jit(f).lower(np.ones(3))


def test_what_a_dropped_truth_was_computed_from_is_dropped() -> None:
    """Its choices were left over, once the branch had lost it, and read what the loop did not carry any more."""

    def stepped(x: Any) -> Any:
        t, h = 0.0, 0.5
        while t < 4:
            if t + h > 4:
                h = 4 - t
            error = h * np.max(x)
            if error <= 2:
                t += h
                x = x * 0.5
            h *= min(5.0, max(0.2, 1 / error))
        return x

    x = np.array([1.0, 0.5, 3.0])
    np.testing.assert_array_equal(jitml.jit(stepped)(x), stepped(x))
