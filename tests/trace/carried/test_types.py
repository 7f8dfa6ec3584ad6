"""Numbers in loops that are Python's first and NumPy's later, as data say: value and type are NumPy's, in one rolled program."""

from __future__ import annotations

import math
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


def maybe(x: Any) -> Any:
    t = None
    for v in x:
        if v > 2:
            t = v
    return t


def matched(x: Any) -> Any:
    match maybe(x):
        case None:
            return "none"
        case _:
            return "a number"


NONE: list[Function] = [
    matched,
    lambda x: (maybe(x) == None, maybe(x) != None, maybe(x) == 3),  # noqa: E711
    lambda x: (isinstance(maybe(x), float), type(maybe(x)).__name__),
    lambda x: (f"{maybe(x)}", bool(maybe(x)), maybe(x) or 7),
    lambda x: maybe(x) in (None, 3),
    lambda x: (hasattr(maybe(x), "dtype"), getattr(maybe(x), "dtype", None)),
    lambda x: (x[: None if maybe(x) is None else 2].sum(), [maybe(x), {"a": maybe(x)}]),
    lambda x: np.array([maybe(x), 1.0]) if maybe(x) is not None else None,
    lambda x: maybe(x) + 1,
    lambda x: x * maybe(x),
    lambda x: max(maybe(x), 1),
]


@pytest.mark.parametrize("number", range(len(NONE)))
def test_none_is_seen_by_whoever_asks_and_no_number(number: int) -> None:
    compiled = jitml.jit(NONE[number])
    for x in [np.array([1.0, 3.0, 2.0]), np.zeros(3)] * 2:
        assert told(compiled, x) == told(NONE[number], x)


def told(function: Function, x: Any) -> str:
    try:
        return repr(function(x))
    except TypeError as error:
        return type(error).__name__


def digits(x: Any, n: Any) -> Any:
    t = n if x[0] > 0 else x[1]
    return t % 10


def kind(x: Any, n: Any) -> Any:
    t = n if x[0] > 0 else x[1]
    return isinstance(t, int), type(t).__name__, float(t)


@pytest.mark.parametrize("function", [digits, kind], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [3, 2**60 + 1])
def test_an_int_that_may_be_a_float_is_one_after_a_branch(function: Callable[..., Any], n: int) -> None:
    compiled = jitml.jit(function)
    for x in (np.zeros(2), np.ones(2)):
        assert repr(compiled(x, n)) == repr(function(x, n))


def test_what_an_operator_makes_of_each_type_is_no_host_call() -> None:
    compiled = jitml.jit(rectified)
    compiled(np.arange(5))
    assert "host" not in str(compiled.lower(np.arange(5)).graph)


def of_two_widths(x: Any) -> Any:
    t = np.float32(0.1) if x[0] > 0 else np.float64(0.1)
    return t**2, np.power(t, 3), np.power(2, t), t.dtype, t.itemsize, t.item(), t.astype(int), np.zeros(2, t.dtype) + t


def of_three(x: Any) -> Any:
    t = min(x[0], 2, 3.5)
    return bool(t), t.real, t.conjugate(), np.power(t, 2), t * t


def indices(x: Any) -> Any:
    return x[True if x[0] > 0 else 1], np.arange(3 if x[0] > 0 else np.float64(2))


def promotions(x: Any) -> Any:
    t = x[0] if x[0] > 0 else 3
    return np.result_type(t, np.int8), np.result_type(t), np.result_type(t, "f4"), hasattr(t, "dtype"), hasattr(t, "bit_length")


def compared_and_added(x: Any) -> Any:
    t = x[0] if x[0] > 0 else 3
    return t > 2, t == 3, 1 + t


def added_in_place(x: Any) -> Any:
    t = x[0] if x[0] > 0 else 3
    y = np.ones(2, np.int8)
    y += t
    return y


def member_in_a_loop(x: Any) -> Any:
    found: Any = 0
    for i in range(len(x)):
        t = np.int64(3) if x[i] > 0 else 2.5
        found = t in (3, None)
    return found


def decimals_of_a_truth(x: Any) -> Any:
    return np.round(x > 0, 1)


def rounded_truth(x: Any) -> Any:
    return round(np.bool_(True) if x[0] > 0 else np.float64(2))


def cut_truth(x: Any) -> Any:
    return math.trunc(np.bool_(True) if x[0] > 0 else 3)


def index_of_a_truth(x: Any) -> Any:
    return [5, 6, 7][np.bool_(True) if x[0] > 0 else 1]


def divided(x: Any) -> Any:
    n = int(x[0]) - int(x[0])
    with np.errstate(all="ignore"):
        return 1 / (n if x[0] > 0 else x[1])


def dtype_of_pythons(x: Any) -> Any:
    t = 1 if x[0] > 0 else 0.5
    return t.dtype


def powers_and_shifts(x: Any) -> Any:
    t = np.int64(3) if x[0] > 0 else 10**10
    return t**2, t << 62, 2 ** np.float64(t % 7), t % 7 >> 1


def powers(x: Any) -> Any:
    t = x[1] if x[0] > 0 else -2
    return t**-1, t**3, (t + 2.5) ** 0.5


def shifted_by_less_than_nothing(x: Any) -> Any:
    return (np.int64(3) if x[0] > 0 else 2) >> -1


def parts(x: Any) -> Any:
    t, u, v = x[0] if x[0] > 0 else 3, True if x[0] > 0 else 2, 2 if x[0] > 0 else 2.5
    return np.imag(t), np.real(u), +u, -u, t.__class__, v.__class__ is int, u is True, round(v, 1), round(v, -1)


def on_the_host(x: Any) -> Any:
    t, u = np.float64(x[0]) if x[0] > 0 else 3, np.uint8(6) if x[0] > 0 else 3
    return np.spacing(t), np.gcd(u, 2)


def type_of_four(x: Any) -> Any:
    t = None
    for v in x:
        if v > 3:
            t = 1
        elif v > 0:
            t = 2.5 if x.dtype == np.float32 else v
    return type(t)


def of_complex(x: Any) -> Any:
    t = x[0] if x[0] > 0 else 3
    return 1j * x[0], x[0] * 1j, 2j - x[1], 1j / (x[1] + 1), 1j * t


def keys(x: Any) -> Any:
    t, u = np.float64(x[0]) if x[0] > 0 else 3, np.int8(2) if x[0] > 0 else 3
    return {t: 1}, [5, 6, 7, 8][u]


def repeated(x: Any) -> Any:
    t = np.int8(2) if x[0] > 0 else 3
    return [1] * t, t * (1, 2), "a" * t, np.int64(x[0]) * [x[1]]


def repeated_by_a_float(x: Any) -> Any:
    return [1] * (x[0] if x[0] > 0 else 3)


def of_types_and_not_of_instances(x: Any) -> Any:
    t = x[0] if x[0] > 0 else 3
    return [hasattr(n, name) for n in (t, x[0], True if x[0] > 0 else 1) for name in ("mro", "__name__", "__call__", "real")]


ASKING: list[Function] = [
    of_complex, type_of_four, powers_and_shifts, powers, shifted_by_less_than_nothing, parts, on_the_host, keys, repeated,
    repeated_by_a_float, of_types_and_not_of_instances,
    of_two_widths, of_three, dtype_of_pythons, indices, promotions, compared_and_added, added_in_place,
    member_in_a_loop, decimals_of_a_truth, rounded_truth, cut_truth,
    index_of_a_truth, divided,
]  # fmt: skip


@pytest.mark.parametrize("function", ASKING, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
def test_attributes_and_powers_tell_the_type(function: Function) -> None:
    compiled = jitml.jit(function)
    for x in (np.zeros(2), np.ones(2), np.full(2, 5), np.ones(2, np.float32)):
        assert _told(compiled, x) == _told(function, x)


def _told(function: Function, x: Any) -> str:
    try:
        return repr(function(x))
    except (AttributeError, TypeError, ValueError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}"


def test_an_argument_has_the_attributes_of_its_type() -> None:
    def attributes(k: Any) -> Any:
        return hasattr(k, "dtype"), hasattr(k, "is_integer"), hasattr(k + 1, "item"), hasattr(k, "bit_length")

    compiled = jitml.jit(attributes)
    for k in (1.5, np.float32(1.5), np.ones(()), 3, True):
        assert compiled(k) == attributes(k)
