"""Exceptions of Python's numbers that the function handles: raised in the calls in which Python raises them, in its words."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.loose

_COMPUTED: list[Callable[[int, float], Any]] = [
    lambda n, t: 1 / n,
    lambda n, t: 1 / t,
    lambda n, t: (7 // n, 7 % n),
    lambda n, t: divmod(7, n),
    lambda n, t: divmod(t, n - 1),
    lambda n, t: 7 % t,
    lambda n, t: n**-1,
    lambda n, t: 1 / (n * 2 - 2),
    lambda n, t: math.log(t),
    lambda n, t: math.sqrt(t - 1),
    lambda n, t: math.factorial(n - 1),
    lambda n, t: 1 << (n - 1),
    lambda n, t: (10.0 + t) ** (400 * n),
    lambda n, t: math.acos(t - 2),
    lambda n, t: round(1 / n, 2),
    lambda n, t: int(1 / t),
]


@pytest.mark.parametrize("number", range(len(_COMPUTED)))
def test_numbers(number: int) -> None:
    computed = _COMPUTED[number]

    def f(n: int, t: float) -> Any:
        try:
            return computed(n, t)
        except (ArithmeticError, ValueError) as error:
            return str(error)

    compiled = jitml.jit(f, verify="never")
    for n in (0, 1, 2, 0, 3, 1):
        assert repr(compiled(n, float(n))) == repr(f(n, float(n)))


def test_what_a_manager_suppresses() -> None:
    def f(n: int) -> Any:
        with contextlib.suppress(ValueError):
            return 1 << n
        return "none"

    compiled = jitml.jit(f, verify="never")
    assert [compiled(n) for n in (-1, -2, -3, 4, 9, -5)] == ["none", "none", "none", 16, 512, "none"]


def _looked_up(x: Any, n: int) -> Any:
    table = {(1, 2): "a", 5: "b"}
    try:
        return table[n]
    except KeyError as error:
        return str(error), repr(error), f"{error}; {error!r}", "%s" % error, "{}".format(error), error.args  # noqa: UP031, UP032


def _by_text(x: Any, n: int) -> Any:
    try:
        return {"n5": 1}[f"n{n}"]
    except KeyError as error:
        return str(error)


def _deleted(x: Any, n: int) -> Any:
    table = {(0, 7.0): 1}
    try:
        del table[n, x[0]]
    except KeyError as error:
        return str(error)
    return table


def _removed(x: Any, n: int) -> Any:
    some = {1, 2}
    try:
        some.remove(int(x[0]) + n)
    except KeyError as error:
        return f"no {error}"
    return some


def _raised(x: Any, n: int) -> Any:
    said = []
    for make in (ValueError, KeyError, RuntimeError):
        for args in ((n,), (x[0], n), (x,), ()):
            try:
                raise make(*args)
            except (ValueError, LookupError, RuntimeError) as error:
                said.append((str(error), repr(error), f"{[error]}"))
    return said


def _printed(x: Any, n: int) -> Any:
    try:
        raise KeyError(n, x[1])
    except KeyError as error:
        print(error, repr(error), [error])


TEXTS = [_looked_up, _by_text, _deleted, _removed, _raised, _printed]


@pytest.mark.parametrize("f", TEXTS)
def test_texts(f: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    compiled = jitml.jit(f, verify="never")
    for n in (0, 1, 5):
        x = np.arange(3.0) + n
        found = [(repr(function(x, n)), capsys.readouterr().out) for function in (f, compiled)]
        assert found[0] == found[1]


def _told(x: Any, y: Any) -> Any:
    try:
        return x + y
    except ValueError as error:
        return type(error).__name__, str(error)


def test_a_handler_that_looks_at_an_exception_sees_numpys() -> None:
    compiled = jitml.jit(_told)
    for sizes in ((3, 4), (3, 3), (5, 2)):
        x, y = map(np.ones, sizes)
        assert str(compiled(x, y)) == str(_told(x, y))
