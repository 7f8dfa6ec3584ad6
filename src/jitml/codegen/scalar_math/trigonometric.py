"""sin, cos, tan: x - n pi/2 in parts (Cody and Waite), then two short polynomials. Huge arguments go to the C library."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from jitml.codegen.scalar_math import coefficients as c
from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.formats import DOUBLE, format_of, horner, nearest_integer
from jitml.codegen.scalar_math.table import Rule, rule
from jitml.ir.types import F32, F64


def _limit(b: ScalarBuilder[V], x: V) -> float:
    """The largest magnitude for which the parts of pi/2 reach."""
    if format_of(x) is not DOUBLE:
        return 1e5
    return 1e9 if b.has_fma else 1e6


def _near(b: ScalarBuilder[V], x: V) -> tuple[V, V]:
    """|x|, and where it is too large, and 0 instead."""
    magnitude = b.fabs(x)
    is_far = b.fcmp("ogt", magnitude, _limit(b, x))
    return b.select(is_far, 0.0, magnitude), is_far


def reduce(b: ScalarBuilder[V], x: V) -> tuple[V, V]:
    """(r, n): x = n pi/2 + r with |r| <= pi/4 up to one rounding of r, n an integer.

    The first step is exact, since the difference has no bits below those of x and of the first part; so is the second
    wherever it cancels.
    """
    n, k = nearest_integer(b, x, 2 / pi)
    r = x
    for part in _parts(b, x):
        r = b.fma(n, -part, r)
    return r, k


def reduce_to_pair(b: ScalarBuilder[V], x: V) -> tuple[V, V, V]:
    """(r, rest, n): as `reduce`, with what r lost by rounding."""
    n, k = nearest_integer(b, x, 2 / pi)
    first, second, third = _parts(b, x)
    near = b.fma(n, -first, x)
    step = b.fmul(n, second)
    r = b.fsub(near, step)
    lost = b.fsub(b.fsub(near, r), step)
    small = b.fma(n, -third, b.fsub(lost, b.fma(n, second, b.fneg(step))))
    total = b.fadd(r, small)
    return total, b.fadd(b.fsub(r, total), small), k


def _parts(b: ScalarBuilder[V], x: V) -> Sequence[float]:
    return format_of(x).pick(c.PIO2, c.PIO2_F32) if b.has_fma else c.PIO2_SHORT


def _sin_cos(b: ScalarBuilder[V], r: V, rest: V | None = None) -> tuple[V, V]:
    """Both functions of r + rest, |r| <= pi/4."""
    form = format_of(r)
    z = b.fmul(r, r)
    sine = b.fmul(b.fmul(r, z), horner(b, z, form.pick(c.SIN, c.SIN_F32)))
    half = b.fmul(z, 0.5)
    near = b.fsub(1.0, half)
    lost = b.fsub(b.fsub(1.0, near), half)
    if rest is not None:
        sine, lost = b.fadd(sine, rest), b.fma(b.fneg(r), rest, lost)
    tail = b.fma(b.fmul(z, z), horner(b, z, form.pick(c.COS, c.COS_F32)), lost)
    return b.fadd(r, sine), b.fadd(near, tail)


def _turned(b: ScalarBuilder[V], value: V, n: V) -> V:
    """The value with its sign turned in the third and fourth quadrant."""
    return b.flip_sign(value, b.shl(b.and_(n, 2), 8 * n.dtype.itemsize - 2))


def _is_odd(b: ScalarBuilder[V], n: V) -> V:
    return b.icmp("ne", b.and_(n, 1), 0)


def _in_double(b: ScalarBuilder[V], function: Rule, x: V) -> V | None:
    """Without fused multiply-add the parts of pi/2 are too long for float32, which then goes through float64."""
    if b.has_fma or format_of(x) is DOUBLE:
        return None
    return b.convert(function(b, b.convert(x, F64)), F32)


@rule("sin")
def sin(b: ScalarBuilder[V], x: V) -> V:
    if (wide := _in_double(b, sin, x)) is not None:
        return wide
    near, is_far = _near(b, x)
    r, n = reduce(b, near)
    sine, cosine = _sin_cos(b, r)
    # The sign of x is put back at the end, which also keeps -0.0.
    value = b.flip_sign(_turned(b, b.select(_is_odd(b, n), cosine, sine), n), b.sign_bit(x))
    return b.where_rare(is_far, value, "sin", x)


@rule("cos")
def cos(b: ScalarBuilder[V], x: V) -> V:
    if (wide := _in_double(b, cos, x)) is not None:
        return wide
    near, is_far = _near(b, x)
    r, n = reduce(b, near)
    sine, cosine = _sin_cos(b, r)
    value = _turned(b, b.select(_is_odd(b, n), sine, cosine), b.add(n, 1))
    return b.where_rare(is_far, value, "cos", x)


@rule("tan")
def tan(b: ScalarBuilder[V], x: V) -> V:
    if (wide := _in_double(b, tan, x)) is not None:
        return wide
    near, is_far = _near(b, x)
    r, rest, n = reduce_to_pair(b, near)
    sine, cosine = _sin_cos(b, r, rest)
    is_odd = _is_odd(b, n)
    value = b.fdiv(b.select(is_odd, cosine, sine), b.select(is_odd, sine, cosine))
    value = b.flip_sign(value, b.shl(n, 8 * n.dtype.itemsize - 1))  # -cot in the odd quadrants
    value = b.flip_sign(value, b.sign_bit(x))
    return b.where_rare(is_far, value, "tan", x)
