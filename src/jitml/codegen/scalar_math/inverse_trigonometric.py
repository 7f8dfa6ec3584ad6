"""arcsin, arccos, arctan, arctan2: one odd polynomial each, after the argument has been folded into its range."""

from __future__ import annotations

from math import inf, nan

from jitml.codegen.scalar_math import coefficients as c
from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.formats import FloatFormat, format_of, horner
from jitml.codegen.scalar_math.table import rule
from jitml.ir.types import signed


def _pi(form: FloatFormat, fraction: float) -> tuple[float, float]:
    """pi * fraction (a power of two) in two parts."""
    high, low = form.pick(c.PI, c.PI_F32)
    return high * fraction, low * fraction


def _arctan_of_ratio(b: ScalarBuilder[V], y: V, x: V) -> V:
    """arctan(y / x) for y, x >= 0, in [0, pi/2], with a single division.

    Above tan(3 pi/8) it is pi/2 - arctan(x / y), above tan(pi/8) it is pi/4 + arctan((y - x) / (y + x)).
    """
    form = format_of(y)
    is_steep = b.fcmp("ogt", y, b.fmul(x, 2.414213562373095))
    is_middle = b.fcmp("ogt", y, b.fmul(x, 0.41421356237309503))
    numerator = b.select(is_steep, b.fneg(x), b.select(is_middle, b.fsub(y, x), y))
    denominator = b.select(is_steep, y, b.select(is_middle, b.fadd(y, x), x))
    t = b.fdiv(numerator, denominator)
    z = b.fmul(t, t)
    tail = b.fmul(b.fmul(t, z), horner(b, z, form.pick(c.ATAN, c.ATAN_F32)))
    (half, half_low), (quarter, quarter_low) = _pi(form, 0.5), _pi(form, 0.25)
    zero = b.const(0.0, y.dtype)
    base = b.select(is_steep, half, b.select(is_middle, quarter, zero))
    base_low = b.select(is_steep, half_low, b.select(is_middle, quarter_low, zero))
    return b.fadd(base, b.fadd(t, b.fadd(tail, base_low)))


@rule("arctan")
def arctan(b: ScalarBuilder[V], x: V) -> V:
    return b.copysign(_arctan_of_ratio(b, b.fabs(x), b.splat(b.const(1.0, x.dtype), x.lanes)), x)


@rule("arctan2")
def arctan2(b: ScalarBuilder[V], y: V, x: V) -> V:
    y, x = b.operands(y, x)
    form = format_of(x)
    height, width = b.fabs(y), b.fabs(x)
    # A quarter of huge values, so that their sum stays finite.
    is_huge = b.fcmp("ogt", b.max(height, width), 2.0 ** (form.bias - 2))
    factor = b.select(is_huge, 0.25, b.const(1.0, x.dtype))
    height, width = b.fmul(height, factor), b.fmul(width, factor)
    is_undefined = b.and_(b.fcmp("oeq", height, width), b.or_(b.fcmp("oeq", width, 0.0), b.fcmp("oeq", width, inf)))
    # 0 / 0 counts as 0 / 1, and inf / inf as 1 / 1.
    height = b.select(is_undefined, b.min(height, 1.0), height)
    angle = _arctan_of_ratio(b, height, b.select(is_undefined, 1.0, width))
    pi, pi_low = _pi(form, 1.0)
    is_left = b.icmp("lt", b.bitcast(x, signed(x.dtype)), 0)
    angle = b.select(is_left, b.fsub(pi, b.fsub(angle, pi_low)), angle)
    return b.select(b.fcmp("uno", x, y), nan, b.copysign(angle, y))


@rule("arcsin")
def arcsin(b: ScalarBuilder[V], x: V) -> V:
    form = format_of(x)
    magnitude, is_outer, root, tail = _arcsin_parts(b, x)
    half, half_low = _pi(form, 0.5)
    outer = b.fsub(half, b.fsub(b.fmul(b.fadd(root, tail), 2.0), half_low))
    return b.copysign(b.select(is_outer, outer, b.fadd(magnitude, tail)), x)


def _arcsin_parts(b: ScalarBuilder[V], x: V) -> tuple[V, V, V, V]:
    """(|x|, |x| > 1/2, s, tail) with arcsin(s) = s + tail, where s is |x|, or sqrt((1 - |x|) / 2) for the outer half."""
    form = format_of(x)
    magnitude = b.fabs(x)
    is_outer = b.fcmp("ogt", magnitude, 0.5)
    z = b.select(is_outer, b.fma(magnitude, -0.5, 0.5), b.fmul(magnitude, magnitude))
    s = b.select(is_outer, b.sqrt(z), magnitude)
    return magnitude, is_outer, s, b.fmul(b.fmul(s, z), horner(b, z, form.pick(c.ASIN, c.ASIN_F32)))


@rule("arccos")
def arccos(b: ScalarBuilder[V], x: V) -> V:
    """pi/2 - arcsin(x) inside; outside twice the arcsin of the root, from 0 or from pi."""
    form = format_of(x)
    _, is_outer, s, tail = _arcsin_parts(b, x)
    (pi, pi_low), (half, half_low) = _pi(form, 1.0), _pi(form, 0.5)
    is_left = b.fcmp("olt", x, 0.0)
    twice, twice_tail = b.fmul(s, 2.0), b.fmul(tail, 2.0)
    # The base minus (or plus) s, the smaller parts first.
    zero: V | float = b.const(0.0, x.dtype)
    base = b.select(is_outer, b.select(is_left, pi, zero), half)
    base_low = b.select(is_outer, b.select(is_left, pi_low, zero), half_low)
    step, small = b.select(is_outer, twice, s), b.select(is_outer, twice_tail, tail)
    is_minus = b.xor(is_outer, b.fcmp("oge", x, 0.0))
    step = b.select(is_minus, b.fneg(step), step)
    small = b.select(is_minus, b.fneg(small), small)
    return b.fadd(base, b.fadd(step, b.fadd(small, base_low)))
