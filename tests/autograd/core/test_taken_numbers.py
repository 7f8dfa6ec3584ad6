"""What takes a number that is differentiated, to compute with it out of sight, is an error; what merely steers by it is not."""

from __future__ import annotations

import array
import copy
import math
import pickle
import pstats
import statistics
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import DerivativeError

# Function, and who is said to take the number.
TAKING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "struct": (lambda x: struct.unpack("d", struct.pack("d", x))[0] * x, "struct.pack"),
    "array": (lambda x: array.array("d", [x])[0] * x, "array.array"),
    "fraction": (lambda x: float(Fraction(x)) * x, "fractions.Fraction"),
    "hex": (lambda x: float.fromhex(x.hex()) * x, "code that is not converted"),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x)) * x, "pickle.dumps"),
    "a sum of a library": (lambda x: statistics.fmean([x, 2 * x]), "statistics.fmean"),
    "a method of a library": (lambda x: statistics.NormalDist().cdf(x), "statistics.NormalDist.cdf"),
    "in a loop": (lambda x: sum(statistics.NormalDist().cdf(x * k) for k in range(3)), "statistics.NormalDist.cdf"),
    "in a branch": (lambda x: statistics.NormalDist().cdf(x) if x > 0 else x, "statistics.NormalDist.cdf"),
}

# Function, and its slope at 2.5.
STEERING: dict[str, tuple[Callable[[Any], Any], float]] = {
    "int": (lambda x: int(x) * x, 2.0),
    "round": (lambda x: round(x) * x, 2.0),
    "floor": (lambda x: math.floor(x) * x, 2.0),
    "key": (lambda x: {2.5: 3.0}[x] * x, 3.0),
    "set": (lambda x: x * (x in {2.5, 1.0}), 1.0),
    "truth": (lambda x: 2 * x if x else x, 2.0),
    "order": (lambda x: sorted([x, 2.0, 3.0], key=lambda v: -v)[1] * x, 5.0),
    "isclose": (lambda x: 2 * x if math.isclose(x, 2.5) else x, 2.0),
    "is_integer": (lambda x: x if x.is_integer() else 3 * x, 3.0),
    "text": (lambda x: (f"{x:.2f}", 2 * x)[1], 2.0),
    "text of a library": (lambda x: (pstats.f8(x), 2 * x)[1], 2.0),
    "size": (lambda x: np.ones(int(x)).sum() * x, 2.0),
    "copy": (lambda x: copy.deepcopy([x])[0] * copy.copy(x), 5.0),
    "stopped": (lambda x: statistics.NormalDist().cdf(jitml.stop_gradient(x)) * 0 + 4 * x, 4.0),
    "integer": (lambda x: statistics.NormalDist().cdf(int(x)) * 0 + 4 * x, 4.0),
}

TRANSFORMS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "grad": lambda f, x: jitml.grad(f)(x),
    "jit(grad)": lambda f, x: jitml.jit(jitml.grad(f))(x),
    "grad(jit)": lambda f, x: jitml.grad(jitml.jit(f))(x),
    "grad(checkpoint)": lambda f, x: jitml.grad(jitml.checkpoint(f))(x),
    "jvp": lambda f, x: jitml.jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f, x: jitml.linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", TAKING)
def test_what_takes_a_number_is_refused(case: str, transform: str) -> None:
    function, name = TAKING[case]
    with pytest.raises(DerivativeError, match=name) as info:
        TRANSFORMS[transform](function, 2.5)
    assert info.value.source is not None
    assert info.value.source.file == __file__


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", STEERING)
def test_what_steers_is_not(case: str, transform: str) -> None:
    function, slope = STEERING[case]
    assert TRANSFORMS[transform](function, 2.5) == slope


@pytest.mark.parametrize("case", TAKING)
def test_without_a_derivative_numbers_may_be_taken(case: str) -> None:
    function, _ = TAKING[case]
    assert jitml.jit(function)(2.5) == pytest.approx(function(2.5), rel=1e-12)


@pytest.mark.parametrize("order", [2, 3])
def test_derivatives_of_any_order_refuse(order: int) -> None:
    function: Callable[..., Any] = lambda x: statistics.NormalDist().cdf(x) * x * x  # noqa: E731
    for _ in range(order):
        function = jitml.grad(function)
    with pytest.raises(DerivativeError, match=r"NormalDist\.cdf"):
        function(2.5)
    with pytest.raises(DerivativeError, match=r"NormalDist\.cdf"):
        jitml.hvp(lambda x: statistics.NormalDist().cdf(x), (2.5,), (1.0,))


def test_an_outer_derivative_refuses_what_the_inner_one_does_not_meet() -> None:
    def outer(a: float) -> Any:
        return jitml.grad(lambda x: statistics.NormalDist().cdf(a) * x)(1.0)

    assert jitml.jit(outer)(0.0) == 0.5
    with pytest.raises(DerivativeError, match=r"NormalDist\.cdf"):
        jitml.grad(outer)(0.5)


@pytest.mark.loose
def test_a_rule_of_ones_own_is_the_remedy() -> None:
    normal = statistics.NormalDist()
    cdf = jitml.custom_jvp(normal.cdf)
    cdf.defjvp(lambda primals, tangents: (normal.cdf(primals[0]), normal.pdf(primals[0]) * tangents[0]))
    assert jitml.grad(cdf)(0.5) == pytest.approx(normal.pdf(0.5))


def test_the_message() -> None:
    with pytest.raises(DerivativeError) as info:
        jitml.grad(TAKING["a method of a library"][0])(0.5)
    text = str(info.value)
    assert text.startswith("statistics.NormalDist.cdf takes a number that is differentiated")
    assert "lambda x: statistics.NormalDist().cdf(x)" in text
    assert "custom_vjp" in text
    assert "stop_gradient" in text


@pytest.mark.parametrize("function", [statistics.mean, statistics.variance, statistics.stdev])
def test_a_number_of_the_type_of_a_traced_one(function: Any) -> None:
    x = np.array([1.0, 2.0, 4.5])
    with pytest.raises(TypeError, match=r"which is no type of numbers|statistics\."):
        jitml.grad(lambda x: function([float(v) for v in x]))(x)
    assert jitml.jit(lambda x: function([float(v) for v in x]))(x) == function(list(x))


def test_who_asks_for_a_number_that_changes() -> None:
    normal = statistics.NormalDist()
    f = jitml.jit(lambda x: normal.cdf(x[0]))
    with pytest.raises(jitml.UnsupportedError, match=r"normal \(statistics\.NormalDist\) is read by code") as info:
        for k in range(20):
            f(np.array([0.1 * k]))
    assert "np.where" not in str(info.value)
