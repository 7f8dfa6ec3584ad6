"""Numbers in loops that are Python's first and NumPy's later, as data say: value and type are NumPy's, in one rolled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.effort import named, pairs

Function = Callable[[Any], Any]
COUNT = 1500  # more iterations than a loop is unrolled to


def greatest(x: Any) -> Any:
    r = 0.0
    for i in range(len(x)):
        r = max(r, abs(x[i]))
    return r


def least(x: Any) -> Any:
    r = 3
    for i in range(len(x)):
        r = min(x[i], r)
    return r


def counted(x: Any) -> Any:
    n = i = 0
    while i < len(x):
        if x[i] and n < 100:
            n += 1
        i += 1
    return n


def greatest_from_infinity(x: Any) -> Any:
    best, place = -np.inf, -1
    for i in range(len(x)):
        if x[i] > best:
            best, place = x[i], i
    return best, place


def summed(x: Any) -> Any:
    s = n = 0
    for v in x:
        if v > 0:
            s += v
            n += 1
    return s, s / n if n else 0.0


def rectified(x: Any) -> Any:
    t = 0
    for v in x:
        t += v if v > 0 else 0
    return t


def in_a_nest(x: Any) -> Any:
    t = 0
    for i in range(len(x) - 3):
        s = 0
        for j in range(3):
            if x[i + j] > 1:
                s += x[i + j]
        if s > 2:
            t += s
    return t


def stepped(x: Any) -> Any:
    h, t = 1, 0.0
    for i in range(len(x)):
        h = np.clip(0.9 * h * (0.5 / x[i]) if x[i] > 0 else 5, 0.1, 5)
        t += h
    return t, h


def smoothed(x: Any) -> Any:
    y, out = 0, np.zeros(len(x))
    for i in range(len(x)):
        y = 0.9 * y + 0.1 * x[i] if x[i] != 1 else y
        out[i] = y
    return y, out


def held(x: Any) -> Any:
    s, out = 0, np.zeros(len(x), x.dtype)
    for i in range(len(x)):
        if x[i] > 1:
            s = x[i]
        elif x[i] < 0:
            s = 0
        out[i] = s
    return s, out


def two_greatest(x: Any) -> Any:
    a = b = 0
    for v in x:
        if v > a:
            a, b = v, a
        elif v > b:
            b = v
    return a, b


def until(x: Any) -> Any:
    best = 0.0
    for v in x:
        best = max(v, best)
        if best > 3:
            break
    return best


def halved(x: Any) -> Any:
    low, high = 0, 4
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle * middle > x[-1]:
            high = middle
        else:
            low = middle
    return low, high


def typed(x: Any) -> Any:
    best = 0
    for v in x:
        if v > best:
            best = v
    return isinstance(best, int), isinstance(best, np.generic), float(best), best + True


def of_a_truth(x: Any) -> Any:
    found = False
    for v in x:
        found = (found or v > 2) if v != 1 else found and v
    return found


def last_place(x: Any) -> Any:
    best, place = 0, None
    for i in range(len(x)):
        if x[i] > best:
            best, place = x[i], i
    return best, place


def first_place(x: Any) -> Any:
    place, i = None, 0
    while i < len(x):
        if place is None and x[i] > 2:
            place = i
        i += 1
    return -1 if place is None else x[place]


def greatest_of_some(x: Any) -> Any:
    best = None
    for v in x:
        if v > 0 and (best is None or v > best):
            best = v
    return {"best": best, "pair": (best, best is not None)}


def greatest_in_a_dict(x: Any) -> Any:
    """None beside a number, in a container that branches and iterations make anew."""
    found = {"best": None, "at": [None, 0]}
    for i in range(len(x)):
        if x[i] > 0 and (found["best"] is None or x[i] > found["best"]):
            found = {"best": x[i], "at": [i, found["at"][1] + 1]}
    return found["best"], *found["at"]


def steps_up(x: Any) -> Any:
    before, n = None, 0
    for v in x:
        if before is not None and v > before:
            n += 1
        if v > 0:
            before = v
        elif v < -1:
            before = None
    return n, before


def found_in(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 2:
            return i
    return None


def steps_of_some(x: Any) -> Any:
    """Truths of a number or None, by `or`, `not` and a slice that it ends."""
    step, n, end = None, 0, None
    for i in range(len(x)):
        n += step or 2
        if not step:
            n += 1
        if x[i] > 2:
            step = i % 3
        if x[i] > 0:
            end = i
    return step, n, step or 7, x[: end or 1].sum(), np.zeros(step or 1)


def of_none_in_a_nest(x: Any) -> Any:
    places = []
    for i in range(3):
        least = None
        for j in range(len(x)):
            if x[j] > i and (least is None or x[j] < x[least]):
                least = j
        places.append(-1 if least is None else least)
    return places


def of_four_types(x: Any) -> Any:
    """What sees one type after the other."""
    t, counts = None, [0, 0, 0, 0, 0, 0]
    for v in x:
        found = [t is None, isinstance(t, int), isinstance(t, float), hasattr(t, "dtype"), hasattr(t, "bit_length"), t == 1]
        counts = [n + 1 if yes else n for n, yes in zip(counts, found)]
        if v > 2:
            t = 1
        elif v > 1:
            t = 2.5
        elif v > 0:
            t = v
    return tuple(counts), t


def attributes_of_some(x: Any) -> Any:
    """Of numbers that may be None, and of those that may be Python's."""
    t, u, s = None, 0, 0.0
    for v in x:
        if t is not None:
            s += t.real
            s += t.item()
        s += getattr(t, "itemsize", 1) + u.real + u.imag + u.conjugate()
        if v > 1:
            t = v
        if v > 2:
            u = v
        elif v > 1:
            u = 1.5
    return s, t, t is not None and t is t


LOOPS: list[Function] = [
    of_four_types, attributes_of_some,
    steps_of_some, last_place, first_place, greatest_of_some, greatest_in_a_dict, steps_up, found_in, of_none_in_a_nest,
    greatest, least, counted, greatest_from_infinity, summed, rectified, in_a_nest, stepped, smoothed, held, two_greatest, until,
    halved, typed, of_a_truth,
]  # fmt: skip


def calls(dtype: Any) -> list[Any]:
    """Of some numbers, of none but 0, of some late ones, and of one at the end."""
    numbers = (np.arange(COUNT) * 7 % 11 % 5).astype(dtype)
    late, last = np.zeros((2, COUNT), dtype)
    late[COUNT // 2 :] = numbers[COUNT // 2 :]
    last[-1] = 1
    return [numbers, np.zeros(COUNT, dtype), late, last]


CASES = pairs(LOOPS, ["float64", "int32", "bool", "float32", "int64", "uint8"], each=2)


@pytest.mark.parametrize(("function", "dtype"), CASES, ids=named(CASES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_value_and_the_type_are_numpys(function: Function, dtype: str) -> None:
    compiled = jitml.jit(function)
    for x in calls(dtype):
        assert_same(compiled(x.copy()), function(x.copy()))
    assert len(compiled.variants) <= 2  # what is asked of a number after the loop is decided


def assert_same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        got, wanted = tuple(got.items()), tuple(wanted.items())
    if isinstance(wanted, tuple):
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, (np.ndarray, float, np.generic)):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    else:
        assert got == wanted


def test_what_an_operator_makes_of_each_type_is_no_host_call() -> None:
    compiled = jitml.jit(rectified)
    compiled(np.arange(5))
    assert "host" not in str(compiled.lower(np.arange(5)).graph)
