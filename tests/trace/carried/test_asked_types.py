"""What is asked of a number that is Python's, NumPy's or None, as data say: type, attributes, what operators make of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Function = Callable[[Any], Any]


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


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.loose), *range(1, len(NONE))])
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
