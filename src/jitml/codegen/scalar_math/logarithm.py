"""log, log2, log10, log1p, and the inverse hyperbolic functions.

x = 2**k m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f); log(m) = f - f**2/2 + s (f**2/2 + R(s**2)) as in
FreeBSD's msun (e_log.c, k_log.h), whose log2, log10 and log1p are followed too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

from jitml.codegen.scalar_math import coefficients as c
from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.formats import DOUBLE, fix_log, format_of, horner, mark, split_exponent
from jitml.codegen.scalar_math.table import rule


def log_parts(b: ScalarBuilder[V], f: V) -> tuple[V, V]:
    """(f**2 / 2, r) with log(1 + f) = f - (f**2 / 2 - r)."""
    s = b.fdiv(f, b.fadd(f, 2.0))
    z = b.fmul(s, s)
    half_square = b.fmul(b.fmul(f, 0.5), f)
    tail = b.fma(z, horner(b, z, format_of(f).pick(c.LOG, c.LOG_F32)), half_square)
    return half_square, b.fmul(s, tail)


def _assemble(b: ScalarBuilder[V], k: V, f: V, correction: V | float = 0.0) -> V:
    """k ln 2 + log(1 + f) + correction, added from the smallest term up."""
    high, low = format_of(f).pick(c.LN2, c.LN2_F32)
    half_square, r = log_parts(b, f)
    small = b.fma(k, low, correction)
    return b.fma(k, high, b.fsub(f, b.fsub(half_square, b.fadd(r, small))))


@rule("log")
def log(b: ScalarBuilder[V], x: V) -> V:
    k, m = split_exponent(b, x)
    return fix_log(b, x, _assemble(b, k, _marked(b, x, b.fsub(m, 1.0))))


def _marked(b: ScalarBuilder[V], x: V, f: V, pole: float = 0.0) -> V:
    """f, but such that dividing it by f + 2 raises the error of a logarithm of x at or beyond the pole."""
    return mark(b, f, -2.0, b.fcmp("oeq", x, pole), b.fcmp("olt", x, pole))


def _other_base(b: ScalarBuilder[V], x: V, per_e: Sequence[float], k_high: V, k_low: V | float, m: V) -> V:
    """k log(2) + log(m), both in the other base: log(m) as a short high part, whose product with 1 / ln(base) is exact."""
    form = format_of(x)
    f = _marked(b, x, b.fsub(m, 1.0))
    half_square, r = log_parts(b, f)
    r = b.max(-1.0, r)  # of the pole it is -inf, of which the products below would make inf - inf
    kept = -(1 << (32 if form is DOUBLE else 12))
    high = b.bitcast(b.and_(b.bitcast(b.fsub(f, half_square), form.integer), kept), form.dtype)
    low = b.fadd(b.fsub(b.fsub(f, high), half_square), r)
    scaled = b.fmul(high, per_e[0])
    rest = b.fma(b.fadd(low, high), per_e[1], b.fma(low, per_e[0], k_low))
    total = b.fadd(k_high, scaled)
    rest = b.fadd(rest, b.fadd(b.fsub(k_high, total), scaled))
    return fix_log(b, x, b.fadd(total, rest))


@rule("log2")
def log2(b: ScalarBuilder[V], x: V) -> V:
    k, m = split_exponent(b, x)
    return _other_base(b, x, format_of(x).pick(c.LOG2E_SHORT, c.LOG2E_F32), k, 0.0, m)


@rule("log10")
def log10(b: ScalarBuilder[V], x: V) -> V:
    form = format_of(x)
    k, m = split_exponent(b, x)
    high, low = form.pick(c.LOG10_2, c.LOG10_2_F32)
    return _other_base(b, x, form.pick(c.LOG10E_SHORT, c.LOG10E_F32), b.fmul(k, high), b.fmul(k, low), m)


def _log_of_sum(b: ScalarBuilder[V], x: V, one: V | float = 1.0, doublings: V | float = 0.0, *, given: V | None = None) -> V:
    """log(x + one) + doublings * ln 2, where `one` is 1, or 0 for large x; 0 < x + one < inf.

    What x + one loses by rounding comes back as a first-order correction. Where the number `given` is -1 or below, it raises the
    error.
    """
    u = b.fadd(x, one)
    lost = b.select(b.fcmp("olt", b.fabs(x), 1.0), b.fsub(x, b.fsub(u, one)), b.fsub(one, b.fsub(u, x)))
    k, m = split_exponent(b, u)
    is_near = b.fcmp("oeq", k, 0.0)
    f = b.select(is_near, x, b.fsub(m, 1.0))
    if given is not None:
        f = _marked(b, given, f, -1.0)
    correction = b.select(is_near, 0.0, b.fdiv(lost, u))
    return _assemble(b, b.fadd(k, doublings), f, correction)


@rule("log1p")
def log1p(b: ScalarBuilder[V], x: V) -> V:
    form = format_of(x)
    inside = b.max(-1 + 2.0 ** -(form.mantissa + 1), b.min(form.largest, x))
    return fix_log(b, x, b.copysign(_log_of_sum(b, inside, given=x), x), pole=-1.0)


def _large(b: ScalarBuilder[V], magnitude: V) -> V:
    """Where x**2 + 1 is x**2 to all bits, and could overflow: log(2 x) takes over."""
    return b.fcmp("ogt", magnitude, 2.0 ** (28 if format_of(magnitude) is DOUBLE else 13))


def _log_or_double(b: ScalarBuilder[V], is_large: V, x: V, u: V) -> V:
    """log(2 x) where x is large, log1p(u) elsewhere."""
    one, finite = b.const(1.0, x.dtype), b.min(format_of(x).largest, x)
    return _log_of_sum(b, b.select(is_large, finite, u), b.select(is_large, 0.0, one), b.select(is_large, one, 0.0))


@rule("arcsinh")
def arcsinh(b: ScalarBuilder[V], x: V) -> V:
    """log1p(x + x**2 / (1 + sqrt(1 + x**2)))."""
    magnitude = b.fabs(x)
    is_large = _large(b, magnitude)
    near = b.select(is_large, 1.0, magnitude)
    square = b.fmul(near, near)
    u = b.fadd(near, b.fdiv(square, b.fadd(b.sqrt(b.fadd(square, 1.0)), 1.0)))
    result = _log_or_double(b, is_large, magnitude, u)
    return b.copysign(b.select(b.fcmp("olt", magnitude, inf), result, magnitude), x)


@rule("arccosh")
def arccosh(b: ScalarBuilder[V], x: V) -> V:
    """log1p(t + sqrt(2 t + t**2)) with t = x - 1; negative t makes the root, and so the result, nan."""
    is_large, is_outside = _large(b, x), b.fcmp("olt", x, 1.0)
    t = b.fsub(b.select(is_large, 1.0, x), 1.0)
    u = b.fadd(t, b.sqrt(b.select(is_outside, -1.0, b.fma(t, t, b.fadd(t, t)))))  # the root of -1 raises the error
    result = _log_or_double(b, is_large, x, u)
    result = b.select(b.fcmp("olt", x, inf), result, x)
    return b.select(is_outside, nan, result)


@rule("arctanh")
def arctanh(b: ScalarBuilder[V], x: V) -> V:
    """log1p(2 x + 2 x**2 / (1 - x)) / 2."""
    magnitude = b.fabs(x)
    double = b.fadd(magnitude, magnitude)
    u = b.fadd(double, b.fdiv(b.fmul(double, magnitude), b.fsub(1.0, magnitude)))
    is_outside = b.fcmp("ogt", magnitude, 1.0)
    u = b.select(is_outside, -2.0, u)  # whose logarithm raises the error
    result = b.fmul(log1p(b, u), 0.5)
    result = b.select(is_outside, nan, result)
    is_tiny = b.fcmp("olt", magnitude, 1e-9 if format_of(x) is DOUBLE else 1e-5)
    return b.copysign(b.select(is_tiny, magnitude, result), x)
