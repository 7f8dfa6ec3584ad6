"""Floating-point errors: the warnings and exceptions of NumPy, with its text and the user's line, or none where it is silent."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.numpy.floating_point import BAD, ORDINARY, STATES, Array, outcome, with_one

import jitml


def in_place(x: Array) -> Any:
    x /= x - x[::-1][3] * 2
    x += 1
    return x.sum()


def twice(x: Array) -> Any:
    a = np.log(x)
    b = 1 / x
    return a + b


def guarded(x: Array) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x) / x
    return np.where(np.isfinite(y), y, 0.0)


def guarded_on_host(x: Array) -> Any:
    with np.errstate(over="ignore"):
        y = np.ldexp(x, 1000)
    return y / x


def raising_inside(x: Array) -> Any:
    with np.errstate(divide="raise"):
        y = 1 / x
    return y + np.sqrt(x)


EXPRESSIONS: dict[str, Callable[[Array], Any]] = {
    "divide": lambda x: 1 / x,
    "divide two": lambda x: (x - x) / (x - 2.0),
    "log": lambda x: -np.log(x),
    "log10": lambda x: np.log10(x) * 2,
    "log1p": lambda x: np.log1p(x - 1),
    "sqrt": lambda x: np.sqrt(x) + 1,
    "exp": lambda x: np.exp(x * 90),
    "power": lambda x: x**-1.5,
    "multiply": lambda x: x * x * 1e10,
    "subtract": lambda x: x - x[::-1],
    "floor_divide": lambda x: x // (x - 2.0),
    "remainder": lambda x: x % (x - 2.0),
    "arcsin": lambda x: np.arcsin(x / 8),
    "arccosh": lambda x: np.arccosh(x + 1),
    "sum": lambda x: (x * 1e8).sum(),
    "mean of rows": lambda x: (x.reshape(3, 3) / x[0]).mean(axis=1),
    "a scalar": lambda x: x[5] / (x[5] - x[5]),
    "a cast": lambda x: x.astype(np.float32) * 2,
    "two at once": twice,
    "in place": in_place,
    "where": lambda x: np.where(x > 0, 1 / x, 0.0),
    "normalise": lambda x: (x - x.mean()) / x.std(),
    "softmax": lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
    "a product without elements": lambda x: np.zeros((0, 9)) @ (1 / x),
    "padding by nothing": lambda x: np.pad(x, 0, constant_values=1 / x[5]),
    "guarded": guarded,
    "host call": lambda x: np.ldexp(x, 1000) / x,
    "guarded host call": guarded_on_host,
    "raising inside": raising_inside,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_warnings_and_exceptions_are_numpys(name: str) -> None:
    f = EXPRESSIONS[name]
    jitted = jitml.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jitted(ORDINARY.copy())
    for state in STATES.values():
        for bad in ("zero", "minus", "infinite", "nan", "huge", "tiny"):
            mine, theirs = with_one(BAD[bad]), with_one(BAD[bad])
            want, got = outcome(f, theirs, state), outcome(jitted, mine, state)
            assert got[1:] == want[1:], f"{state}, {bad}"
            if want[0] is not None:
                np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    assert len(jitted.variants) == 1


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_replay_where_nothing_happens(name: str) -> None:
    jitted = jitml.jit(EXPRESSIONS[name])
    x = ORDINARY.copy() if name not in ("divide two", "floor_divide", "remainder", "in place") else ORDINARY[1:] + 0.125
    if name in ("a scalar", "mean of rows"):
        return
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jitted(x.copy())
    assert not jitted.variants[0].replays


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_is_added_in_vain_may_be_too_much_for_half_precision(dtype: type) -> None:
    def f(x: Array) -> Any:
        y, z = x + dtype(100), x - dtype(-900)
        return y[:3], z[3:6]

    x = np.ones(9, dtype)
    x[7] = np.finfo(dtype).max
    want, got = outcome(f, x, {}), outcome(jitml.jit(f), x, {})
    assert got[1:] == want[1:] and bool(got[2]) == (dtype is np.float16)


def test_kernels_that_share_a_function_are_heard_apart() -> None:
    """The line and what `np.errstate` ignores belong to each of them."""

    def roots(x: Array, y: Array, z: Array) -> Any:
        with np.errstate(all="ignore"):
            a = np.sort(np.sqrt(x))
        b = np.sort(np.sqrt(y))
        return a, b, np.sort(np.sqrt(z))

    jitted = jitml.jit(roots)
    arrays = [np.arange(1.0, 2001.0) for _ in range(3)]
    jitted(*arrays)
    assert jitted.lower(*arrays).module.text.count("define hidden i64 @k") == 1
    for bad, warned in ((0, 0), (1, 1), (2, 1)):
        mine = [x - 2 * (k == bad) for k, x in enumerate(arrays)]
        want, got = (outcome(lambda _, f=f: f(*mine), arrays[0], {})[2] for f in (roots, jitted))  # noqa: B023  # called at once
        assert got == want and len(got) == warned


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u2"])
def test_integers(dtype: str) -> None:
    for f in (lambda x, y: x // y, lambda x, y: x % y, np.fmod):
        jitted = jitml.jit(f)
        for divisor in (3, 0):
            x, y = np.arange(40).astype(dtype), np.full(40, 2, dtype)
            y[17] = divisor
            want = outcome(lambda z: f(x, z), y, {})  # noqa: B023  # called at once
            got = outcome(lambda z: jitted(x, z), y, {})  # noqa: B023  # as above
            assert [w[0] for w in got[2]] == [w[0] for w in want[2]]
            np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u2", "u8"])
def test_a_late_division_of_integers_by_zero_is_that_alone(dtype: str) -> None:
    """Vectors divide as floats, whose 0 / 0 would be invalid; what is large is not computed anew by NumPy."""

    def f(x: Array, y: Array) -> None:
        x //= y
        x %= y + y

    jitted, n = jitml.jit(f), 1 << 16
    for _ in range(2):
        assert outcome(lambda x: jitted(x, np.full(n, 3, dtype)), np.zeros(n, dtype), {})[2] == []
    late = outcome(lambda x: jitted(x, np.zeros(n, dtype)), np.zeros(n, dtype), {})
    assert [w[0].split(" in ")[0] for w in late[2]] == ["divide by zero encountered"]


def test_integers_are_not_suspected_of_what_only_floats_raise() -> None:
    def f(x: Array, k: Array) -> None:
        k %= k[5]
        x /= x[0]

    jitted, n = jitml.jit(f), 1 << 16
    for _ in range(2):
        assert outcome(lambda x: jitted(x, np.arange(n)), np.ones(n), {})[2] == []
    late = outcome(lambda x: jitted(x, np.arange(n)), np.zeros(n), {})
    assert [w[0] for w in late[2]] == ["invalid value encountered in divide"]


def test_numpy_is_asked_where_arrays_of_an_open_size_are_small() -> None:
    def f(x: Array) -> Array:
        x /= x[0]
        return np.log(x)

    jitted = jitml.jit(f)
    for n in (4, 5, 6, 7):
        assert outcome(jitted, np.ones(n), {})[2] == []
    assert len(jitted.variants) < 3  # the last one is of an open size
    assert outcome(jitted, np.zeros(9), {})[2] == outcome(f, np.zeros(9), {})[2]


def test_threads_report_to_the_caller() -> None:
    f = jitml.jit(lambda x: np.log(x) * 2, threads=2)
    x = np.ones(2_000_000)
    for place in (0, 1_234_567, 1_999_999):
        y = x.copy()
        assert outcome(f, y, {})[2] == []
        y[place] = 0
        assert [w[0] for w in outcome(f, y, {})[2]] == ["divide by zero encountered in log"]


def test_a_late_error_in_a_program_that_writes() -> None:
    def f(x: Array) -> None:
        x /= x[0]

    jitted = jitml.jit(f)
    for first in (2.0, 4.0, 2.0):
        assert outcome(jitted, np.array([first, 1.0]), {})[2] == []
    late, x = None, np.array([0.0, 1.0])
    late = outcome(jitted, x, {})
    assert [w[0] for w in late[2]] == ["divide by zero encountered in divide", "invalid value encountered in divide"]
    assert late[2][0][2] == __file__
    np.testing.assert_array_equal(x, [np.nan, np.inf])
    careful = outcome(jitted, np.array([0.0, 1.0]), {})
    assert careful == outcome(f, np.array([0.0, 1.0]), {})
    with np.errstate(all="raise"):
        y = np.array([0.0, 1.0])
        with pytest.raises(FloatingPointError):
            jitted(y)
        np.testing.assert_array_equal(y, [np.nan, np.inf])


NAMED: dict[str, tuple[float, Callable[[Array], Any]]] = {
    "divide": (0, lambda x: np.divide(1, x[1])),
    "scalar divide": (0, lambda x: 1 / x[1]),
    "divide of a 0-d array": (0, lambda x: 1 / x[1:2].reshape(())),
    "scalar power": (0, lambda x: x[1] ** -1),
    "scalar power, squared": (1e300, lambda x: x[1] ** 2),
    "scalar power, root": (-1, lambda x: x[1] ** 0.5),
    "power": (0, lambda x: np.power(x[1], -1)),
    "power, squared": (1e300, lambda x: np.power(x[1:3], 2)[0]),
    "square": (1e300, lambda x: (x[1:3] ** 2)[0]),
    "reciprocal": (0, lambda x: (x[1:3] ** -1)[0]),
    "ufunc reciprocal": (0, lambda x: np.reciprocal(x[1])),
    "float_power": (0, lambda x: np.float_power(x[1], -1)),
    "multiply": (1e300, lambda x: np.multiply(x[1], x[1])),
    "scalar multiply": (1e300, lambda x: x[1] * x[1]),
    "cast": (1e300, lambda x: np.add(np.float32(x[1]), np.float32(1))),
    "in a loop": (0, lambda x: sum(np.divide(1, x[k]) for k in range(1, 9))),
    "scalar remainder": (0, lambda x: 1 % x[1]),
    "scalar remainder of an infinity": (np.inf, lambda x: 1 % x[1]),
    "scalar floor_divide": (0, lambda x: 3.0 // x[1]),
    "fmod": (0, lambda x: np.fmod(1.0, x[1])),
    "scalar power, inverse square": (0, lambda x: x[1] ** -2),
    "power of no real number": (-1, lambda x: x[1] ** x[2]),
    "log1p": (-1, lambda x: np.log1p(x[1])),
    "log2": (0, lambda x: np.log2(np.float32(x[1]))),
    "arctanh": (1, lambda x: np.arctanh(x[1])),
    "scalar divmod": (0, lambda x: divmod(1, x[1])[0]),
    "divmod": (0, lambda x: np.divmod(1.0, x[1])[0]),
    "divmod of an array": (0, lambda x: divmod(1.0, x[1:3])[1][0]),
    "an integer beside a float": (0, lambda x: 3.0 // np.int64(x[1] * 2)),
    "integers of a third dtype": (0, lambda x: np.int8(5) // np.uint8(x[1] * 2)),
    "a truth": (0, lambda x: (x[0] > 9) / np.float32(x[1])),
    "sum of squares": (1e300, lambda x: np.sum(x * x)),
    "root of it": (1e300, lambda x: np.sqrt(np.add.reduce(x * x))),
    "norm": (1e300, lambda x: np.linalg.norm(x[1:])),
    "norms of rows": (1e300, lambda x: np.linalg.norm(x[:4].reshape(2, 2), axis=1)[0]),
    "dot": (1e300, lambda x: np.dot(x, x)),
    "inner": (1e300, lambda x: np.inner(x, x)),
    "matmul": (1e300, lambda x: x @ x),
    "vdot, unheard": (1e300, lambda x: np.vdot(x, x)),
    "einsum, unheard": (1e300, lambda x: np.einsum("i,i", x, x)),
    "round": (1.7e308, lambda x: np.round(x[1:3], 2)[0]),
    "in a loop, log1p": (-1, lambda x: sum(np.log1p(x[k]) for k in range(1, 9))),
    "in a loop, remainder": (0, lambda x: sum(np.float32(1) % np.float32(x[k]) for k in range(1, 9))),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_late_error_names_the_operator_or_ufunc(name: str) -> None:
    bad, made = NAMED[name]

    def f(x: Array) -> None:
        x[0] = made(x)

    jitted = jitml.jit(f)
    for _ in range(3):
        assert outcome(jitted, np.full(4000, 0.5), {})[2] == []
    x = np.full(4000, 0.5)
    x[1] = bad
    late, want = (outcome(g, x.copy(), {})[2] for g in (jitted, f))
    assert [w[0] for w in late] == [w[0] for w in want]


EXTREMES = (0.0, -0.0, 1.0, -1.0, -2.5, np.inf, -np.inf, np.nan, 1e-310, 1e-300, 1e200, -1e200, 1.5e308, 1e20, 3e38)
# What raises only errors that NumPy raises; not np.exp and its kin, nor powers to an infinity, of which some overflow.
EXACT: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in (
        "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arcsinh", "arccosh",
        "arctanh", "tanh", "reciprocal", "square", "modf", "floor", "rint", "sign",
    )},
    **{f"x ** {k}": lambda x, k=k: x**k for k in (-2, -1, 0.5, -0.5, 1.5, 3, 2.5)},
    **{f"{k} % x": lambda x, k=k: k % x for k in (1.0, 0.0, np.inf, 1e308)},
    **{f"{k} // x": lambda x, k=k: k // x for k in (1.0, 0.0, np.inf)},
    **{f"fmod {k}": lambda x, k=k: (np.fmod(k, x), np.fmod(x, k)) for k in (1.0, np.inf)},
    "divmod": lambda x: (divmod(1.0, x), divmod(x, 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT)
def test_numpy_is_asked_only_where_it_warns(name: str, dtype: type) -> None:
    """A flag that NumPy does not raise makes the program run twice, or, where it cannot, warn of nothing."""

    def of_all(x: Array) -> Any:
        return EXACT[name](x)

    for jitted in (jitml.jit(of_all), jitml.jit(lambda x: EXACT[name](x[1]))):
        for value in EXTREMES:
            with np.errstate(over="ignore"):
                x = np.array([2.0, value, 0.5, 1.25, 3.0], dtype)
            before = sum(v.replays.total() for v in jitted.variants)
            got, want = outcome(jitted, x, {}), outcome(jitted.__wrapped__, x, {})
            assert got[2] == want[2]
            assert sum(v.replays.total() for v in jitted.variants) - before == bool(want[2]), value
            for e, g in zip(np.atleast_1d(want[0]), np.atleast_1d(got[0])):
                np.testing.assert_allclose(g, e, rtol=1e-6)
                np.testing.assert_array_equal(np.signbit(g)[~np.isnan(e)], np.signbit(e)[~np.isnan(e)])


MERGED: dict[str, Callable[[Any], Any]] = {
    "negative": operator.neg, "absolute": operator.abs, "add": lambda t: t + t.dtype.type(100), "square": lambda t: t * t,
    "subtract": lambda t: t - t.dtype.type(1), "from": lambda t: t.dtype.type(0) - t,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64])
@pytest.mark.parametrize("name", MERGED)
def test_integers_that_a_branch_merges(name: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    for pair in ((info.max, 3), (info.min, 3), (3, 0), (100, 101), (info.min, info.max)):
        a, b = map(dtype, pair)

        def chosen(c: Array, a: Any = a, b: Any = b) -> Any:
            t = a if c[0] > 0 else b
            return MERGED[name](t)

        jitted = jitml.jit(chosen)
        for c in (1.0, -1.0):
            for state in ({}, {"all": "raise"}):
                want, got = (outcome(f, np.array([c]), state) for f in (chosen, jitted))
                assert got[1:] == want[1:]


PYTHONS: dict[str, tuple[float, Callable[[Array], Any]]] = {
    "math": (-1, lambda x: math.sqrt(x[1])),
    "a number": (0, lambda x: float(x[1]) ** -1),
    "errstate": (0, raising_inside),
}


@pytest.mark.parametrize("name", PYTHONS)
def test_a_late_error_that_raises(name: str) -> None:
    """Where the function itself may raise, large arrays that it writes are copied before each call."""
    bad, made = PYTHONS[name]

    def f(x: Array) -> Any:
        x[0] = 2
        return made(x)

    jitted = jitml.jit(f)
    for _ in range(3):
        jitted(np.full(4000, 0.5))
    x = np.full(4000, 0.5)
    x[1] = bad
    raised = []
    for function in (f, jitted):
        mine = x.copy()
        with pytest.raises((ArithmeticError, ValueError)) as error:
            function(mine)
        raised.append((repr(error.value), mine.tobytes()))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_orders_of_nan_are_no_floating_point_errors(size: int) -> None:
    """NumPy compares quietly, and a program over data with gaps must not run twice."""
    x = np.linspace(-2, 2, size)
    x[::3] = np.nan

    def program(x: Any) -> Any:
        return x > 0.5, np.maximum(x, 0), np.clip(x, -1, 1), np.where(x < 0.3, x * 2, x + 1), x.max(), np.sort(x)[0] <= x[0]

    step = jitml.jit(program)
    for e, g in zip(program(x), step(x)):
        np.testing.assert_array_equal(e, g)
    step(x)
    assert [dict(variant.replays) for variant in step.variants] == [{}]


@pytest.mark.parametrize("bad", [np.inf, 1e308])
def test_what_a_mask_leaves_out_raises_nothing(bad: float) -> None:
    """It is left out because it would; a program over such data must not run twice."""

    def program(x: Array) -> Any:
        mask, y = x < 100, np.zeros(x.shape)
        y[mask] = (x[mask] - x[mask] * 2) * 10
        z = np.zeros(x.shape, int)
        z[mask] = x[mask].astype(int)
        return y, z, (x[mask] * x[mask]).sum()

    x = with_one(bad)
    step = jitml.jit(program)
    for _ in range(2):
        for e, g in zip(program(x), step(x)):
            np.testing.assert_allclose(g, e)
    assert [dict(variant.replays) for variant in step.variants] == [{}]


def test_elements_that_no_label_asks_for_are_heard() -> None:
    """They are computed on the pass that finds the label's element, and stored nowhere."""

    def program(x: Array, labels: Array) -> Any:
        inverse = 1 / x
        return inverse[np.arange(len(x)), labels]

    x = np.arange(1.0, 41.0).reshape(8, 5)
    step, labels = jitml.jit(program), np.full(8, 4)
    np.testing.assert_array_equal(step(x, labels), program(x, labels))
    x[3, 2] = 0
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        step(x, labels)
