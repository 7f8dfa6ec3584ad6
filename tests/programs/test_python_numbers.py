"""Python's own numbers, known to the compiled program alone: where they leave 64 bits, are complex or raise, Python answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

LEAST = -(2**63)


def in_a_loop(x: Any) -> Any:
    s = 1
    for v in x:
        s = (s * 3**2 << 1) + int(v)
    return s


# Name: what is computed; of what, first what fits, then what does not.
INTEGERS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "a power": (lambda x: int(x[0]) ** 3, [3], [2**40]),
    "a power of a number that does not change": (lambda x: 2 ** int(x[0]), [61], [63]),
    "a negative power": (lambda x: int(x[0]) ** -1, [2], [0]),
    "a power that is negative this time": (lambda x: int(x[0]) ** int(x[1]), [2, 3], [2, -3]),
    "a shift": (lambda x: int(x[0]) << 40, [-3], [2**30]),
    "a shift by more than there are bits": (lambda x: 1 << int(x[0]), [61], [70]),
    "a negative shift": (lambda x: int(x[0]) << int(x[1]), [1, 3], [1, -3]),
    "a negative shift to the right": (lambda x: int(x[0]) >> int(x[1]), [-5, 70], [1, -3]),
    "minus": (lambda x: -int(x[0]), [4], [LEAST]),
    "a magnitude": (lambda x: abs(int(x[0])), [-4], [LEAST]),
    "a quotient": (lambda x: int(x[0]) // int(x[1]), [-7, 2], [LEAST, -1]),
    "a quotient by zero": (lambda x: int(x[0]) // int(x[1]), [-7, 2], [1, 0]),
    "a rest": (lambda x: divmod(int(x[0]), int(x[1])), [-7, 2], [1, 0]),
    "a true quotient": (lambda x: int(x[0]) / int(x[1]), [7, 3], [2**60 + 1, 7**20]),
    "an integer beside a float": (lambda x: int(x[0]) < float(2**60), [4], [2**60 - 1]),
    "an integer that is a float": (lambda x: int(x[0]) == float(int(x[1])), [4, 4], [2**60 + 1, 2**60]),
    "truths": (lambda x: (-bool(x[0]), bool(x[0]) << 1, bool(x[0]) ** 2, 2 ** bool(x[0])), [1], [0]),
    "a sum that a loop makes": (in_a_loop, [1, 2], np.full(20, 2**60)),
    "beside more bits than there are": (lambda x: (int(x[0]) < 2**70, float(x[0]) * 2**70), [4], [-4]),
}
FLOATS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "a quotient": (lambda x: float(x[0]) / float(x[1]), [1.0, 2.0], [1.0, 0.0]),
    "a quotient of infinity": (lambda x: float(x[0]) / float(x[1]), [1.0, 2.0], [np.inf, 0.0]),
    "a quotient of nan": (lambda x: float(x[0]) // float(x[1]), [7.0, 2.0], [np.nan, 0.0]),
    "a rest": (lambda x: float(x[0]) % float(x[1]), [7.0, -2.0], [7.0, 0.0]),
    "an integer by zero": (lambda x: int(x[0]) // int(x[1]), [7.0, -2.0], [7.0, 0.0]),
    "a root that is complex": (lambda x: float(x[0]) ** 0.5, [4.0], [-4.0]),
    "a power of zero": (lambda x: float(x[0]) ** -1.0, [4.0], [0.0]),
    "a power that is too large": (lambda x: float(x[0]) ** 3.0, [4.0], [1e200]),
    "sqrt": (lambda x: math.sqrt(x[0]), [4.0], [-4.0]),
    "exp": (lambda x: math.exp(x[0]), [4.0], [1e200]),
    "log": (lambda x: math.log(x[0]), [4.0], [0.0]),
    "a logarithm to the base 1": (lambda x: math.log(x[0], x[1]), [4.0, 2.0], [4.0, 1.0]),
    "sin": (lambda x: math.sin(x[0]), [4.0], [np.inf]),
    "fmod": (lambda x: math.fmod(x[0], x[1]), [7.0, 2.0], [7.0, 0.0]),
    "pow": (lambda x: math.pow(x[0], x[1]), [7.0, 2.0], [0.0, -1.0]),
    "a complex quotient": (lambda x: complex(x[0]) / complex(x[1]), [7.0, 2.0], [7.0, 0.0]),
    "a complex magnitude": (lambda x: abs(complex(x[0], x[0])), [7.0], [1.7e308]),
}


def answer(f: Callable[..., Any], x: Any) -> str:
    try:
        result = f(x)
    except (ArithmeticError, TypeError, ValueError) as error:
        return repr(error)
    return repr(result)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_as_large_as_pythons(name: str) -> None:
    f, fits, other = INTEGERS[name]
    assert_agrees(f, fits, other, nullcontext)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("state", [nullcontext, lambda: np.errstate(all="ignore")], ids=["heard", "ignored"])
def test_floats_raise_as_pythons(name: str, state: Callable[[], AbstractContextManager[Any]]) -> None:
    assert_agrees(*FLOATS[name], state)


@pytest.mark.parametrize("name", FLOATS)
def test_no_error_state_of_the_function_silences_python(name: str) -> None:
    f, fits, other = FLOATS[name]

    def silenced(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return f(x)

    assert_agrees(silenced, fits, other, nullcontext)


def assert_agrees(f: Callable[..., Any], fits: Any, other: Any, state: Callable[[], AbstractContextManager[Any]]) -> None:
    compiled = jitml.jit(f)
    for numbers in (fits, other, fits):
        x = np.array(numbers)
        with state():
            assert answer(compiled, x) == answer(f, x)
    assert compiled.variants


def test_sums_with_more_bits_than_there_are_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="an int of more than 64 bits"):
        jitml.jit(lambda x: int(x[0]) + 2**70)(np.array([3]))


def complex_beside_others(x: Any) -> Any:
    z, r, n = complex(x[0], x[1]), float(x[1]), int(x[2])
    return z + r, r + z, z - r, r - z, z * r, r * z, z / 3.25, z + n, n - z, z * n, True * z, z - 1.5, 1j * r, z * -0.0


BEYOND = 2**64
# Of ints that no dtype holds NumPy makes objects, and of some beyond int64 a uint64 or a float64.
OF_LARGE_INTS: dict[str, Callable[[Any], Any]] = {
    "linspace": lambda x: np.linspace(0, BEYOND, 3) + x,
    "logspace": lambda x: np.logspace(0, -BEYOND, 3) + x,
    "geomspace": lambda x: np.geomspace(1, BEYOND, 3) + x,
    "arange": lambda x: np.arange(0, BEYOND, BEYOND // 3),
    "arange, beyond int64 alone": lambda x: np.arange(0, 2**63, 2**61),
    "a ufunc": lambda x: x + np.sqrt(BEYOND),
    "the range of a histogram": lambda x: np.histogram(x, bins=3, range=(0, BEYOND))[0],
    "a size to work out": lambda x: x.reshape(-BEYOND),
    "the length of a transform": lambda x: np.fft.fft(x, BEYOND),
}


@pytest.mark.parametrize("name", OF_LARGE_INTS)
def test_large_ints_are_left_to_numpy(name: str) -> None:
    f, x = OF_LARGE_INTS[name], np.array([1.0, 2.0, 3.0, 4.0])[:3]
    compiled = jitml.jit(f, strict=False, verify="never")
    assert answer(compiled, x) == answer(f, x)
    assert not compiled.variants


@pytest.mark.parametrize("first", [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan])
def test_complex_numbers_beside_others(first: float) -> None:
    """Python 3.14 leaves the other one as it is; those before make it complex first, with an imaginary part of zero."""
    compiled = jitml.jit(complex_beside_others, verify="never")
    for second in (0.0, -0.0, -2.0, np.inf, np.nan):
        x = np.array([first, second, 3.0])
        with np.errstate(all="ignore"):
            assert repr(compiled(x)) == repr(complex_beside_others(x))


def sums_of_all_kinds(x: Any) -> Any:
    """Python 3.12 compensates among floats, 3.14 among ints and complex numbers as well."""
    a, b, c = x.tolist()
    n, z = int(b), complex(b, c)
    of_ints = sum([a, n, 1, True, -a]), sum([1, a, n, 0.1, -a]), sum(float(v) if v > 2 else int(v) for v in x), sum([a], n)
    of_complex = sum([a * 1j, z, z, -a * 1j]), sum([z, a, 1, n, -a]), sum([a, 1.0, z, -a]), sum([z * 0.1] * 7), sum([0.1j] * 10)
    return *of_ints, *of_complex, sum(complex(v, 0.1) for v in x), sum((complex(v, -v) for v in x), 1.0)


@pytest.mark.parametrize("first", [1e16, 0.1, 1e300])
def test_sums_of_ints_floats_and_complex_numbers(first: float) -> None:
    compiled = jitml.jit(sums_of_all_kinds, verify="never")
    for numbers in ([first, 1.0, 2.5], [first, 3.0, -0.0], [-first, 7.0, 1e-3]):
        x = np.array(numbers)
        with np.errstate(all="ignore"):
            assert repr(compiled(x)) == repr(sums_of_all_kinds(x))
