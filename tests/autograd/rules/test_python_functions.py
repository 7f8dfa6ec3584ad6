"""Python's own functions, by name or handed over, have the slopes that differences give, and Python's values and errors."""

from __future__ import annotations

import cmath
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

X = np.array([1.5, 2.5, 0.5])
Function = Callable[..., Any]


# Functions of one float, handed to a transform as they are; where; the slope.
@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (math.sqrt, 4.0, 0.25),
        (math.exp, 1.0, math.e),
        (math.gamma, 3.0, 1.8455686701969343),
        (math.fabs, -2.0, -1.0),
        (functools.partial(math.pow, 2.0), 3.0, 8 * math.log(2)),
        (functools.lru_cache(math.sin), 1.0, math.cos(1.0)),
        (np.float64, 3.2, 1.0),
        (float, 3.2, 1.0),
        (abs, -3.2, -1.0),
        (math.floor, 3.2, None),
    ],
)
def test_functions_as_they_are(function: Function, at: float, slope: float | None) -> None:
    if slope is None:
        with pytest.raises(jitml.errors.DerivativeError, match="returns a Python int"):
            jitml.grad(function)(at)
        return
    assert jitml.grad(function)(at) == pytest.approx(slope, rel=1e-14)
    assert jitml.jit(jitml.grad(function))(at) == pytest.approx(slope, rel=1e-14)
    assert jitml.grad(jitml.checkpoint(function))(at) == pytest.approx(slope, rel=1e-14)
    assert jitml.jvp(function, (at,), (2.0,))[1] == pytest.approx(2 * slope, rel=1e-14)
    assert jitml.vmap(jitml.grad(function))(np.array([at, at])) == pytest.approx(slope, rel=1e-14)
    if not isinstance(function, type):
        assert jitml.grad(jitml.jit(function))(at) == pytest.approx(slope, rel=1e-14)
        assert jitml.jit(function)(at) == function(at)


PROGRAMS: dict[str, Function] = {
    "jitted in it": lambda x: jitml.jit(math.exp)(x[0]) * x[1],
    "reduce": lambda x: functools.reduce(math.pow, [x[0], x[1], 2.0]),
    "starmap": lambda x: sum(itertools.starmap(math.pow, [(x[0], x[1]), (2.0, x[2])])),
    "accumulate": lambda x: list(itertools.accumulate([x[0], x[1], 1.0], math.hypot))[-1],
    "accumulate by name": lambda x: list(itertools.accumulate(x, func=math.pow))[-1],
    "map": lambda x: sum(map(math.pow, x, x)),
    "cached": lambda x: functools.lru_cache(math.exp)(x[0]),
    "cmath": lambda x: cmath.exp(complex(x[0], x[1])).real + cmath.sqrt(-x[0]).imag * x[1],
    "complex of one": lambda x: abs(complex(float(x[0])) + complex(x[1]) * 1j),
    "polar": lambda x: sum(cmath.polar(complex(x[0], x[1]))),
    "rect": lambda x: abs(cmath.rect(x[0], x[1]) - x[2]),
    "phase": lambda x: cmath.phase(complex(x[0], x[1])) * cmath.log(complex(x[0], x[1]), 2.0).imag,
    "sorted": lambda x: sorted(x, key=math.sin)[0] * x[1],
    "min": lambda x: min(x[0], x[1], x[2], key=math.sin) * x[1],
    "complex": lambda x: abs(complex(x[0], x[1])),
    "complex by name": lambda x: abs(complex(real=x[0], imag=x[1])),
    "complex and zero": lambda x: (complex(x[0], 0.0) * complex(1.0, x[1])).imag,
    "complex of floats": lambda x: abs(complex(float(x[0]), float(x[1]))),
    "complex of complex": lambda x: abs(complex(complex(x[0], x[1]), complex(x[2], x[0]))),
    "hypot of one": lambda x: math.hypot(-x[0]),
    "hypot": lambda x: math.hypot(x[0], x[1], x[2], 3.0),
    "hypot of all": lambda x: math.hypot(*x),
    "hypot of large": lambda x: math.hypot(*(1e200 * x)) * 1e-200,
    "hypot of small": lambda x: math.hypot(*(1e-200 * x)) * 1e200,
    "dist": lambda x: math.dist(x, [1.0, 0.0, 2.0]),
    "dist of lists": lambda x: math.dist([x[0], 2.0], [1.0, x[1]]),
    "fsum": lambda x: math.fsum([x[0] * x[1], 2.0, x[2]]),
    "fsum of a generator": lambda x: math.fsum(v * v for v in x),
    "arange": lambda x: (np.arange(x[0], x[0] + 3) ** 2).sum(),
    "arange by a step": lambda x: (np.exp(-np.arange(0.0, 1.03, x[2] / 5)) * np.arange(0, 1.03, x[2] / 5)).sum() * x[2],
    "arange by numbers": lambda x: (np.arange(float(x[0]), 9.7, float(x[1])) ** 2).sum(),
    "r_": lambda x: (np.r_[x[0] : x[0] + 3, x[1]] ** 2).sum(),
    "mgrid": lambda x: (np.mgrid[x[0] : x[0] + 3.2 : x[2]] ** 2).sum(),
    "mgrid of two": lambda x: (np.mgrid[x[0] : x[0] + 3, 0:9:2] ** 2).sum(),
    "ogrid": lambda x: (np.ogrid[x[0] : x[0] + 3] ** 2).sum(),
}


def by_differences(function: Function, x: np.ndarray) -> np.ndarray:
    steps = 1e-6 * np.eye(x.size)
    return np.array([(function(x + step) - function(x - step)) / 2e-6 for step in steps])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function = PROGRAMS[name]
    slope = by_differences(function, X)
    assert np.any(slope)
    for transform in (
        jitml.grad(function),
        jitml.jit(jitml.grad(function)),
        jitml.grad(jitml.jit(function)),
        jitml.jacfwd(function),
    ):
        np.testing.assert_allclose(transform(X), slope, rtol=1e-6, atol=1e-6)
    assert jitml.jit(function)(X) == pytest.approx(function(X), rel=1e-15)


def test_second_derivatives_of_a_length() -> None:
    at = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(jitml.hessian(lambda x: math.hypot(*x))(at), np.diag([1.0, 1.0, 0.0]), atol=1e-15)
    np.testing.assert_array_equal(jitml.grad(lambda x: math.hypot(*x))(np.zeros(3)), np.zeros(3))


@pytest.mark.parametrize(
    "point", [(np.inf, np.nan, 1.0), (-np.inf, 2.0, 1.0), (np.nan, 1.0, 1.0), (0.0, -0.0, 0.0), (5e-324,) * 3]
)
def test_lengths_at_the_ends(point: tuple[float, ...]) -> None:
    x = np.array(point)
    np.testing.assert_array_equal(jitml.jit(lambda x: math.hypot(*x))(x), math.hypot(*x))


@pytest.mark.parametrize(("re", "im"), [(-0.0, -0.0), (np.inf, 1.0), (1.0, -np.inf), (np.nan, 2.0)])
def test_parts_are_kept(re: float, im: float) -> None:
    x = np.array([re, im])
    made, plain = jitml.jit(lambda x: complex(x[0], x[1]))(x), complex(re, im)
    assert type(made) is complex
    assert repr(made) == repr(plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_ranges_have_the_bits_of_numpys(dtype: Any) -> None:
    drawn = np.random.default_rng(0)
    f = jitml.jit(lambda x: np.arange(x[0], x[1], x[2]))
    for _ in range(5):
        x = np.array([drawn.normal(), drawn.normal() + 9, drawn.uniform(0.3, 0.7)]).astype(dtype)
        made, plain = f(x), np.arange(x[0], x[1], x[2])
        assert made.dtype == plain.dtype
        np.testing.assert_array_equal(made, plain)
        shown = jitml.value_and_grad(lambda x: (np.arange(x[0], x[1], x[2]).sum(), np.arange(x[0], x[1], x[2])), has_aux=True)(x)
        np.testing.assert_array_equal(shown[0][1], plain)


def test_the_length_of_a_range_has_no_slope() -> None:
    assert jitml.grad(lambda v: np.arange(0.0, v).sum() + v)(3.5) == 1.0
    assert jitml.grad(lambda v: np.arange(int(v), 7).sum() * v)(3.5) == 18.0


OUTSIDE: dict[str, tuple[Function, type[Exception]]] = {
    "sqrt": (lambda x: math.sqrt(-x), ValueError),
    "log": (lambda x: math.log(-x), ValueError),
    "log of 0": (lambda x: math.log(x - x), ValueError),
    "log by a base": (lambda x: math.log(x, -x), ValueError),
    "acos": (lambda x: math.acos(2 * x), ValueError),
    "atanh": (lambda x: math.atanh(x / 1.5), ValueError),
    "sin": (lambda x: math.sin(x * 1e308 * 10), ValueError),
    "fmod": (lambda x: math.fmod(x, 0.0), ValueError),
    "a root of a negative": (lambda x: math.pow(-x, 0.5), ValueError),
    "a power of 0": (lambda x: math.pow(x - x, -1.0), ValueError),
    "exp": (lambda x: math.exp(1000 * x), OverflowError),
    "cosh": (lambda x: math.cosh(1000 * x), OverflowError),
    "pow": (lambda x: math.pow(10 * x, 1000.0), OverflowError),
    "cmath.log": (lambda x: cmath.log(x - x).real, ValueError),
    "cmath.atanh": (lambda x: cmath.atanh(x / 1.5).real, ValueError),
    "cmath.exp": (lambda x: cmath.exp(1000 * x).real, OverflowError),
    "cmath.sin": (lambda x: cmath.sin(1000j * x).real, OverflowError),
    "cmath.polar": (lambda x: cmath.polar(complex(x, 1.0) * 1.1e308)[0], OverflowError),
    "in vain": (lambda x: (math.sqrt(-x), x)[1], ValueError),
    "in a loop": (lambda x: sum(math.sqrt(x - k) for k in range(4)), ValueError),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_python_raises_transforms_raise(name: str) -> None:
    function, error = OUTSIDE[name]
    with pytest.raises(error) as info:
        function(1.5)
    text = str(info.value)
    for transform in (
        jitml.grad(function),
        jitml.jit(jitml.grad(function)),
        jitml.jacfwd(function),
        jitml.grad(jitml.grad(function)),
    ):
        for _ in range(2):
            with pytest.raises(error, match=text):
                transform(1.5)
    for batched in (jitml.vmap(function), jitml.jit(jitml.vmap(jitml.grad(function)))):
        with pytest.raises(error, match=text):
            batched(np.array([1.5, 1.25]))


def test_nan_and_infinities_pass_as_in_python() -> None:
    assert np.isnan(jitml.grad(math.sqrt)(math.nan))
    assert jitml.value_and_grad(math.exp)(math.inf)[0] == math.inf
    assert jitml.value_and_grad(math.sqrt)(math.inf)[0] == math.inf
    assert jitml.value_and_grad(lambda x: math.hypot(x, 1e308))(1.7e308)[0] == math.hypot(1.7e308, 1e308)


def test_rows_that_do_not_compute_it_do_not_raise() -> None:
    root = jitml.vmap(jitml.grad(lambda x: math.sqrt(x) if x > 0 else x))
    np.testing.assert_allclose(root(np.array([4.0, -1.0])), [0.25, 1.0])


ENDS = [complex(a, b) for a in (0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan) for b in (0.0, -0.0, 1.5, np.inf, np.nan)]


@pytest.mark.parametrize(
    "name", ["sqrt", "exp", "log", "log10", "sin", "cosh", "tanh", "asin", "acosh", "atan", "phase", "isnan", "isinf"]
)
def test_complex_functions_at_the_ends(name: str) -> None:
    """Errors are Python's, and so are values of finite numbers; of others they are those of NumPy's functions."""
    function = getattr(cmath, name)
    compiled = jitml.jit(lambda z: function(z[0]))
    for z in ENDS:
        try:
            plain = function(z)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                compiled(np.array([z]))
            continue
        made = compiled(np.array([z]))
        assert type(made) is type(plain)
        if cmath.isfinite(z):
            np.testing.assert_allclose(np.array(made), np.array(plain), rtol=1e-14, err_msg=f"{name}({z})")
