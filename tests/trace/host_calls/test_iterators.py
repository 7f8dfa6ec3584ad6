"""Iterators that a function makes over what is traced: what has been taken of them does not come again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")


def enumerated(x: Array) -> Any:
    it = enumerate(x)
    _, first = next(it)
    s = first
    for i, v in it:
        s = s + i * v
    return s


def zipped(x: Array) -> Any:
    z = zip(x, x[1:] * 2)
    a, b = next(z)
    return a * b * sum((p * q for p, q in z))


def turned(x: Array) -> Any:
    r = reversed(x)
    a = next(r)
    b = next(r)
    for v in r:
        a = a * v + b
    return a


def a_second_loop_finds_nothing(x: Array) -> Any:
    z = zip(x, x * 2)
    s = 0.0
    for a, b in z:
        s += a * b
    for a, b in z:
        s += 100 * a * b
    return s


def goes_on_after_a_break(x: Array) -> Any:
    z = enumerate(x)
    s = 0.0
    for i, v in z:
        s += v
        if i == 1:
            break
    for i, v in z:
        s += i * v * 10
    return s


def in_pairs(x: Array) -> Any:
    it = iter(x)
    return [a * b for a, b in zip(it, it)]


def numbered_in_pairs(x: Array) -> Any:
    it = enumerate(x)
    return [a[1] * b[1] + a[0] for a, b in zip(it, it)]


def nested(x: Array) -> Any:
    it = enumerate(zip(x, x[::-1]), 3)
    n, (a, b) = next(it)
    return n * a + b + sum((k * p for k, (p, q) in it))


def a_default(x: Array) -> Any:
    it = zip(x[:1], x)
    next(it)
    return next(it, x[2] * 7)


def stops(x: Array) -> Any:
    it = enumerate(x[:1])
    next(it)
    try:
        next(it)
    except StopIteration:
        return x * 2
    return x


def of_numpys(x: Array) -> Any:
    it = np.ndenumerate(x)
    (i,), v = next(it)
    return v + i + sum((k[0] * w for k, w in it))


def of_elements(x: Array) -> Any:
    it = np.nditer(x)
    a = next(it)
    s = a * 1.0
    for v in it:
        s = s + v * 2
    return s


def of_a_line(x: Array) -> Any:
    f = x.reshape(2, 2).flat
    a = next(f)
    b = next(f)
    s = a - b
    for v in f:
        s = s * 2 + v
    return s


def a_second_list_is_empty(x: Array) -> Any:
    z = zip(x, x)
    a = list(z)
    b = list(z)
    return (len(a), len(b), a[0][0])


def a_dict_of_the_rest(x: Array) -> Any:
    z = zip("abcd", x)
    next(z)
    d = dict(z)
    return d["c"] + len(d)


def made_in_a_loop(x: Array) -> Any:
    s = 0.0
    for k in range(3):
        it = enumerate(x)
        next(it)
        for i, v in it:
            s += v * k * i
    return s


def goes_on_in_a_while(x: Array) -> Any:
    it = zip(x, x)
    s = 0.0
    k = 0
    while k < 3:
        a, b = next(it)
        s += a * b
        k += 1
    return (s, next(it)[0])


def goes_on_in_a_branch(x: Array) -> Any:
    it = enumerate(x)
    if x[0] > 0:
        next(it)
    return sum((v for _, v in it))


def islice(x: Array) -> Any:
    it = enumerate(x)
    a = list(itertools.islice(it, 2))
    return a[1][1] + next(it)[1]


def two_of_one_array(x: Array) -> Any:
    a = enumerate(x)
    b = enumerate(x)
    next(a)
    s = 0.0
    for (i, v), (j, w) in zip(a, b):
        s += v * w + i * j
    return s


def of_an_open_size(x: Array) -> Any:
    y = x[x > 1]
    it = enumerate(y)
    i, v = next(it)
    s = v
    for i, v in it:
        s += v * i
    return s


PROGRAMS: list[Callable[[Array], Any]] = [
    enumerated,
    zipped,
    turned,
    a_second_loop_finds_nothing,
    goes_on_after_a_break,
    in_pairs,
    numbered_in_pairs,
    nested,
    a_default,
    stops,
    of_numpys,
    of_elements,
    of_a_line,
    a_second_list_is_empty,
    a_dict_of_the_rest,
    made_in_a_loop,
    goes_on_in_a_while,
    goes_on_in_a_branch,
    islice,
    two_of_one_array,
    of_an_open_size,
]


@pytest.mark.parametrize("program", [pytest.param(f, marks=[pytest.mark.loose] * (f.__name__ == "stops")) for f in PROGRAMS])
def test_an_iterator_goes_on_where_it_was(program: Callable[[Array], Any]) -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    expected, got = program(x), jitml.jit(program)(x)
    assert type(got) is type(expected)
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected))


@pytest.mark.parametrize("program", [enumerated, zipped, turned, nested, in_pairs])
def test_and_so_it_does_under_a_derivative(program: Callable[[Array], Any]) -> None:
    jitml.check_grads(lambda x: np.sum(np.asarray(program(x))), (np.array([1.0, 2.0, 3.0, 4.5]),), order=1)


def test_one_that_another_goes_over_is_not_gone_through_by_itself() -> None:
    def f(x: Array) -> Any:
        numbered = enumerate(x)
        pairs = zip(numbered, x)
        return next(pairs)[1] + next(numbered)[1]

    with pytest.raises(UnsupportedError, match="enumerate is gone through by another iterator, and by itself"):
        jitml.jit(f)(np.ones(4))


@pytest.mark.loose
def test_what_python_cannot_turn_is_not_turned() -> None:
    def f(x: Array) -> Any:
        try:
            reversed(enumerate(x))  # type: ignore[call-overload]
        except TypeError as error:
            return x, str(error)
        return x, ""

    assert jitml.jit(f)(np.ones(2))[1] == f(np.ones(2))[1]
