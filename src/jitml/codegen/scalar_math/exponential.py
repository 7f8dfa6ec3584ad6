"""exp, exp2, expm1 and what is made of them: sinh, cosh, tanh, logistic.

x = n ln 2 + r with |r| <= ln(2)/2, the two parts of ln 2 subtracted one after the other; expm1(r) = r + r**2 q(r) with a
polynomial q. 2**n is put together from bits.
"""

from __future__ import annotations

from math import log

from jitml.codegen.scalar_math import coefficients as c
from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.formats import DOUBLE, FloatFormat, format_of, horner, nearest_integer, power_of_two, scale
from jitml.codegen.scalar_math.table import rule


def expm1_reduced(b: ScalarBuilder[V], x: V) -> tuple[V, V]:
    """(p, n) with exp(x) = 2**n (1 + p); n is an integer, and p has full relative precision."""
    form = format_of(x)
    n, k = nearest_integer(b, x, 1 / log(2))
    high, low = form.pick(c.LN2, c.LN2_F32)
    r = b.fma(n, -low, b.fma(n, -high, x))
    return b.fma(b.fmul(r, r), horner(b, r, form.pick(c.EXP, c.EXP_F32)), r), k


def clamp(b: ScalarBuilder[V], x: V, low: float, high: float) -> V:
    """x within bounds beyond which the result is the same; a nan stays."""
    return b.max(low, b.min(high, x))


def limits(form: FloatFormat) -> tuple[float, float]:
    """Below the first exp(x) is 0, above the second inf."""
    return (-746.0, 710.0) if form is DOUBLE else (-104.5, 89.0)


@rule("exp")
def exp(b: ScalarBuilder[V], x: V) -> V:
    p, n = expm1_reduced(b, clamp(b, x, *limits(format_of(x))))
    return scale(b, b.fadd(p, 1.0), n)


@rule("exp2")
def exp2(b: ScalarBuilder[V], x: V) -> V:
    form = format_of(x)
    x = clamp(b, x, *((-1076.0, 1025.0) if form is DOUBLE else (-151.0, 129.0)))
    n, k = nearest_integer(b, x, 1.0)
    r = b.fsub(x, n)
    return scale(b, b.fma(r, horner(b, r, form.pick(c.EXP2, c.EXP2_F32)), 1.0), k)


@rule("expm1")
def expm1(b: ScalarBuilder[V], x: V) -> V:
    form = format_of(x)
    p, n = expm1_reduced(b, clamp(b, x, *((-40.0, 709.8) if form is DOUBLE else (-20.0, 88.8))))
    # Half of 2**n, because 2**1024 is no float although exp(x) - 1 still is one.
    half = power_of_two(b, b.sub(n, 1), form)
    result = b.fmul(b.fma(half, p, b.fsub(half, 0.5)), 2.0)
    return b.copysign(b.select(b.icmp("eq", n, 0), p, result), x)


def _quarter(b: ScalarBuilder[V], x: V) -> tuple[V, V]:
    """(p, 2**n / 4) of |x|: sinh and cosh stay finite a little beyond the limit of exp."""
    form = format_of(x)
    p, n = expm1_reduced(b, b.min(710.6 if form is DOUBLE else 89.45, b.fabs(x)))
    return p, power_of_two(b, b.sub(n, 2), form)


@rule("sinh")
def sinh(b: ScalarBuilder[V], x: V) -> V:
    """With u = expm1(|x|) / 4: sinh = 2 (u + u / (4 u + 1))."""
    p, quarter = _quarter(b, x)
    u = b.fma(quarter, p, b.fsub(quarter, 0.25))
    result = b.fmul(b.fadd(u, b.fdiv(u, b.fma(u, 4.0, 1.0))), 2.0)
    is_tiny = b.fcmp("olt", b.fabs(x), 1e-8 if format_of(x) is DOUBLE else 1e-4)
    return b.select(is_tiny, x, b.copysign(result, x))


@rule("cosh")
def cosh(b: ScalarBuilder[V], x: V) -> V:
    p, quarter = _quarter(b, x)
    u = b.fma(quarter, p, quarter)
    return b.fmul(b.fadd(u, b.fdiv(0.0625, u)), 2.0)


@rule("tanh")
def tanh(b: ScalarBuilder[V], x: V) -> V:
    """With t = expm1(2 |x|): tanh = t / (t + 2)."""
    form = format_of(x)
    magnitude = b.min(20.0 if form is DOUBLE else 10.0, b.fabs(x))
    p, n = expm1_reduced(b, b.fadd(magnitude, magnitude))
    power = power_of_two(b, n, form)
    t = b.fma(power, p, b.fsub(power, 1.0))
    return b.copysign(b.fdiv(t, b.fadd(t, 2.0)), x)


@rule("logistic")
def logistic(b: ScalarBuilder[V], x: V) -> V:
    """1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) for negative x, which keeps tiny results exact."""
    p, n = expm1_reduced(b, b.max(limits(format_of(x))[0], b.fneg(b.fabs(x))))
    power = scale(b, b.fadd(p, 1.0), n)
    return b.fdiv(b.select(b.fcmp("olt", x, 0.0), power, 1.0), b.fadd(power, 1.0))
