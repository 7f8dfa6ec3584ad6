"""Ufuncs: promotion in every combination, weak numbers, out=, where=, dtype=, methods, scalars, exceptions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import ShapeError
from jitml.numpy.support.versions import power_takes_shortcuts
from jitml.numpy.ufuncs.loops import LOOPS
from jitml.trace.trace import trace
from support.against_numpy import agree, check, function_of, run_traced

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
SAMPLES = [np.array([0, 1, 2, 3, 5, 100]).astype(d) for d in DTYPES]
SIGNED = [np.array([-3, -1, 0, 1, 7]).astype(d) for d in DTYPES if d[0] in "if"]
SPECIAL = [np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -1.5, 2.5, 1e-7]).astype(d) for d in ("f2", "f4", "f8")]

UNARY = [f for f in LOOPS if f.nin == 1]
BINARY = [f for f in LOOPS if f.nin == 2]
# Bits are NumPy's wherever it computes with IEEE arithmetic; these go through libm in one of the two.
ROUNDED = {np.arctan2, np.hypot, np.logaddexp, np.logaddexp2, np.power, np.float_power}


# Promotion is decided while tracing; that compiled code follows is looked at for these only.
COMPILED = {np.add, np.true_divide, np.floor_divide, np.less, np.power, np.left_shift}


def _only_some_compiled(ufunc: np.ufunc, target: str) -> None:
    if target == "compiled" and ufunc not in COMPILED:
        pytest.skip("promotion is decided before compilation")


def _has_loop(ufunc: np.ufunc, *args: Any) -> bool:
    try:
        with np.errstate(all="ignore"):
            ufunc(*args)
    except (TypeError, OverflowError, ValueError):
        return False
    return True


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda f: f.__name__)
def test_unary(ufunc: np.ufunc) -> None:
    arrays = [x for x in (*SAMPLES, *SIGNED, *SPECIAL) if _has_loop(ufunc, x)]
    if ufunc is np.reciprocal:
        arrays = [x[x != 0] if x.dtype.kind in "iu" else x for x in arrays]
    check(lambda *xs: [ufunc(x) for x in xs], *arrays, ulps=2)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_binary_promotion(ufunc: np.ufunc, target: str) -> None:
    _only_some_compiled(ufunc, target)

    def pairs(*xs: Any) -> Any:
        return [ufunc(xs[n], xs[m]) for n, m in allowed]

    with np.errstate(all="ignore"):
        allowed = [
            (n, m)
            for n, x in enumerate(SAMPLES)
            for m, y in enumerate(SAMPLES)
            if _has_loop(ufunc, x, y) and not (ufunc is np.power and ufunc(x, y).dtype.kind == y.dtype.kind == "i")
        ]
    check(pairs, *SAMPLES, ulps=0 if ufunc not in ROUNDED else 4)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_weak_numbers(ufunc: np.ufunc, target: str) -> None:
    _only_some_compiled(ufunc, target)
    numbers = (3, 2.5, True)
    allowed = [(n, number) for n, x in enumerate(SAMPLES) for number in numbers if _has_loop(ufunc, x, number)]
    swapped = [(n, k) for n, x in enumerate(SAMPLES) for k in numbers if _has_loop(ufunc, k, x) and ufunc not in ROUNDED]

    def constants(*xs: Any) -> Any:
        return [ufunc(xs[n], number) for n, number in allowed] + [ufunc(number, xs[n]) for n, number in swapped]

    def traced_numbers(three: Any, half: Any, true: Any, *xs: Any) -> Any:
        traced = {3: three, 2.5: half, True: true}
        return [ufunc(xs[n], traced[number]) for n, number in allowed]

    check(constants, *SAMPLES, ulps=0 if ufunc not in ROUNDED else 4)
    check(traced_numbers, *numbers, *SAMPLES, ulps=0 if ufunc not in ROUNDED else 4)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.floor_divide, np.remainder, np.fmod, np.divmod, np.copysign, np.hypot, np.heaviside]
)
def test_signs_and_specials(ufunc: np.ufunc) -> None:
    arrays = SIGNED if ufunc not in (np.copysign, np.heaviside, np.hypot) else []
    check(lambda *xs: [ufunc(x[:, None], x) for x in xs], *arrays, *SPECIAL, ulps=1)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_are_exact(name: str) -> None:
    compare = getattr(operator, name)
    small, large = np.array([-1, 0, 2**63 - 1]), np.array([0, 2**63, 2**64 - 1], np.uint64)
    check(lambda x, y: (compare(x, y), compare(y, x)), small, large)
    tiny = np.array([-128, 0, 127], np.int8)
    check(lambda x: (compare(x, 300), compare(x, -300), compare(300, x), compare(x, 127)), tiny)
    check(lambda x, n: (compare(x, n), compare(n, x)), tiny, 300)
    check(lambda x: (compare(x, -1), compare(x, 2**63)), large)


@pytest.mark.parametrize("exponent", [2, 3, 0, 1, 0.5, -1.0, 2.0, 1.5, -2.5])
def test_powers_by_python_numbers(exponent: float) -> None:
    check(lambda x, y: x**y, np.array([0.3, 2.0, -0.0]), np.float64(exponent))
    arrays = [*SPECIAL, *([] if exponent < 0 else SIGNED), *(SAMPLES[1:9] if exponent >= 0 else [])]
    check(lambda *xs: [x**exponent for x in xs], *arrays, ulps=4)
    check(lambda n, *xs: [x**n for x in xs], exponent, *arrays, ulps=4)


def test_integer_powers_by_known_exponents() -> None:
    check(lambda x: x ** np.arange(3), np.array([2, 3, -1]))
    check(lambda x: 2**x, np.arange(5, dtype="u1"))
    check(lambda x: x**x, np.arange(3))


def test_power_shortcuts_have_numpys_bits() -> None:
    x = np.array([-0.0, 0.1, 1.7, 3.3, np.inf])
    check(lambda x: (x**2, x**0.5, x**-1), x, ulps=0)
    with_minus = np.array([*x, -np.inf])
    check(lambda x: (x**0.5, x**1, x**-1.0), with_minus, ulps=0)
    # np.power has the same bits only where it takes the shortcuts too; -inf tells which of the two this NumPy does.
    check(lambda x: (np.power(x, 2), np.power(x, 0.5), np.power(x, -1)), with_minus, ulps=0 if power_takes_shortcuts() else 4)


@pytest.mark.parametrize(
    "exponent", [2, 2.0, 0, 0.5, 1, -1, 3, np.float64(2), np.float64(0.5), np.float32(2), np.int64(2), np.int8(2)]
)
def test_power_operator_has_numpys_dtype(exponent: Any) -> None:
    """Before NumPy 2.3 the operator's shortcuts do not look at the dtype of a strong exponent."""
    floats = [np.array([0.5, 2.0, 3.0]).astype(d) for d in ("f2", "f4", "f8")]
    integers = [np.array([0, 1, 3]).astype(d) for d in ("?", "i1", "i8", "u1")]
    check(lambda *xs: [x**exponent for x in xs], *floats, *(integers if exponent >= 0 else []))
    check(lambda n, *xs: [x**n for x in xs], exponent, *floats)

    def in_place(x: Any) -> None:
        x **= exponent

    agree(in_place, floats[1])


def test_out_where_and_dtype() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])

    def into(x: Any, y: Any) -> Any:
        result = np.exp(x, out=x)
        assert result is x
        np.add(x, y, x)
        np.multiply(x, 2, out=x, where=y > 1.5)
        np.subtract(x[0], x[1], out=x[1])
        return x

    check(into, x, y)
    check(lambda x: np.add(x, 1, dtype="f4"), x)
    check(lambda x: np.add(x, 1, dtype=np.float64), np.arange(3, dtype="i1"))
    for number in (np.float64(2.0), np.array(2.0), np.ones(2)):
        agree(lambda x: np.add(x, x, out=...), number)
    check(lambda x: np.divmod(x, 3), np.arange(-4, 5))
    check(np.modf, SPECIAL[2])

    def in_place(x: Any) -> None:
        x += 1
        x *= x
        x //= 2

    check(in_place, np.arange(5, dtype="i4"))
    check(in_place, np.arange(5, dtype="f4"))


def test_scalars_and_zero_dimensions() -> None:
    check(lambda x: (x + 1, -x, np.exp(x), x * np.ones(3)), np.array(2.0))
    check(lambda x: (x + 1, -x, np.exp(x), divmod(x, 2)), np.float32(2.0))
    check(lambda x, y: (x + y, x < y, x // y), np.int8(7), np.uint8(2))
    check(lambda x: x + np.float32(1), np.arange(3, dtype="f4"))
    check(lambda n: (np.sqrt(n), np.add(n, 1), np.multiply(n, 2.5)), 4)


def test_empty_and_strided() -> None:
    check(lambda x: (x + 1, np.sin(x), x @ x.T, x.sum(0), x.mean(1)), np.zeros((2, 0)))
    check(lambda x: (x + 1, x.T * 2, x.sum(-1)), np.arange(24.0).reshape(2, 3, 4)[::-1, :, ::2])
    check(lambda x: (x + x[0], np.exp(x)), np.asfortranarray(np.arange(6.0).reshape(2, 3)))


REFUSED: list[tuple[type[Exception], Callable[..., Any], tuple[Any, ...]]] = [
    (OverflowError, lambda x: x + 300, (np.zeros(2, "i1"),)),
    (OverflowError, lambda x, n: x + n, (np.zeros(2, "u1"), -1)),
    (TypeError, lambda x: np.add(x, 0.5, dtype="i4"), (np.zeros(2),)),
    (TypeError, lambda x: np.bitwise_and(x, 1.5), (np.zeros(2, int),)),
    (TypeError, np.negative, (np.zeros(2, bool),)),
    (TypeError, np.add, (np.zeros(2),)),
    (ValueError, lambda x, y: x + y, (np.zeros(2), np.zeros(3))),
    (ValueError, lambda x: np.add(x, 1, out=x[:1]), (np.zeros(2),)),
    (ValueError, lambda x: x**-1, (np.arange(3),)),
    (TypeError, lambda x: np.add(x, 0.5, out=x), (np.zeros(2, int),)),
    (ValueError, np.max, (np.zeros(0),)),
    (ValueError, lambda x: x.reshape(4, 2), (np.zeros(6),)),
    (np.exceptions.AxisError, lambda x: x.sum(axis=2), (np.zeros((2, 2)),)),
    (ValueError, lambda x: x.sum(axis=(0, 0)), (np.zeros((2, 2)),)),
    (ValueError, lambda x: x @ x, (np.zeros((2, 3)),)),
    (ValueError, lambda x: np.concatenate([x, x[0]]), (np.zeros((2, 3)),)),
    (ValueError, lambda x: np.stack([x, x[0]]), (np.zeros((2, 3)),)),
]


@pytest.mark.parametrize(("kind", "function", "arguments"), REFUSED)
def test_exceptions_are_numpys(kind: type[Exception], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(kind):
        function(*arguments)
    with pytest.raises(kind):
        run_traced(function, *arguments)


def test_a_broadcast_error_says_which_axis_and_where() -> None:
    with pytest.raises(ShapeError, match=r"shapes \(2, 3\) and \(4,\) \(axis -1: 3 and 4\)") as error:
        trace(lambda x, y: x + y, (np.zeros((2, 3)), np.zeros(4)), {})
    assert "test_ufuncs.py" in str(error.value)


def test_what_is_not_compiled_runs_on_the_host() -> None:
    check(lambda n: np.gcd(n, 6) + n, np.arange(3))
    check(lambda x: (np.nextafter(x, 0), np.frexp(x)[0]), np.ones(3))


def test_long_expressions_of_bytes() -> None:
    """More lanes in one step than a byte can count."""
    coefficients, x = np.arange(64, dtype="i1") - 30, np.arange(1000).astype("i1")
    check(function_of("c, x", "np.polyval(c, x)"), coefficients, x)


def test_python_numbers_where_no_dtype_may_change() -> None:
    f = jitml.jit(lambda x, y: np.add(x, y, casting="equiv"))
    np.testing.assert_array_equal(f(np.ones(3), np.ones(3)), np.full(3, 2.0))
    with pytest.raises(TypeError, match="equiv"):
        f(np.ones(3), 1)
