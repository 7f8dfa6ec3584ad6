"""What the polynomials need to know of float32 and float64: widths, limits, and the bit tricks built on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, sqrt

import numpy as np

from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.ir.types import F32, F64, DType, signed
from jitml.records import dataclass


@dataclass(frozen=True)
class FloatFormat:
    """An IEEE binary format: `mantissa` stored bits, exponent bias `bias`."""

    dtype: DType
    mantissa: int
    bias: int

    @property
    def integer(self) -> DType:
        return signed(self.dtype)

    @property
    def magic(self) -> float:
        """1.5 * 2**mantissa: a small number added to it is rounded to an integer, which then stands in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def largest(self) -> float:
        return (2 - 2.0**-self.mantissa) * 2.0**self.bias

    def bits(self, value: float) -> int:
        return int(np.array(value, self.dtype).view(self.integer))

    def pick(self, double: Sequence[float], single: Sequence[float]) -> Sequence[float]:
        return double if self is DOUBLE else single


DOUBLE, SINGLE = FloatFormat(F64, 52, 1023), FloatFormat(F32, 23, 127)


def format_of(x: V) -> FloatFormat:
    return DOUBLE if x.dtype == F64 else SINGLE


def horner(b: ScalarBuilder[V], x: V, coefficients: Sequence[float]) -> V:
    """A polynomial, lowest power first. Horner's order: the interleaved copies hide the latency of the chain."""
    *rest, last = coefficients
    total = b.const(last, x.dtype)
    for c in reversed(rest):
        total = b.fma(total, x, c)
    return total


def nearest_integer(b: ScalarBuilder[V], x: V, factor: float) -> tuple[V, V]:
    """rint(x * factor) as a float and as an integer, for |x * factor| < 2**(mantissa - 2)."""
    form = format_of(x)
    shifted = b.fma(x, factor, form.magic)
    return b.fsub(shifted, form.magic), b.sub(b.bitcast(shifted, form.integer), form.bits(form.magic))


def power_of_two(b: ScalarBuilder[V], k: V, form: FloatFormat) -> V:
    """2.0**k for an integer k in the range of normal numbers."""
    return b.bitcast(b.shl(b.add(k, form.bias), form.mantissa), form.dtype)


def scale(b: ScalarBuilder[V], x: V, k: V) -> V:
    """x * 2.0**k for |k| <= 2 * bias: two factors, so that overflow and subnormal results round once, at the end."""
    form = format_of(x)
    both = b.add(k, 2 * form.bias)
    half = b.lshr(both, 1)
    low, high = (b.bitcast(b.shl(e, form.mantissa), form.dtype) for e in (half, b.sub(both, half)))
    return b.fmul(b.fmul(x, low), high)


def split_exponent(b: ScalarBuilder[V], x: V) -> tuple[V, V]:
    """x = 2.0**k * m with sqrt(1/2) <= m < sqrt(2), both as floats, for 0 < x < inf (subnormals too)."""
    form = format_of(x)
    is_tiny = b.fcmp("olt", x, form.smallest_normal)
    up = form.mantissa + 2
    one = b.const(1.0, x.dtype)
    bits = b.bitcast(b.fmul(x, b.select(is_tiny, 2.0**up, one)), form.integer)  # so that no large x overflows
    least = form.bits(sqrt(0.5))
    shifted = b.add(bits, (form.bias << form.mantissa) - least)
    m = b.bitcast(b.add(b.and_(shifted, (1 << form.mantissa) - 1), least), form.dtype)
    # An integer below 2**mantissa, put into the mantissa of 2.0**mantissa, becomes a float without a conversion.
    unit = 2.0**form.mantissa
    exponent = b.bitcast(b.or_(b.lshr(shifted, form.mantissa), form.bits(unit)), form.dtype)
    offset = b.select(is_tiny, b.const(unit + form.bias + up, form.dtype), unit + form.bias)
    return b.fsub(exponent, offset), m


def mark(b: ScalarBuilder[V], m: V, at_pole: float, pole: V, outside: V) -> V:
    """m, but where a function has a pole or is not defined, what makes a division by it raise that error.

    The quotient is not used there. `at_pole` is the m that makes the divisor 0.
    """
    return b.select(outside, inf, b.select(pole, at_pole, m))


def fix_log(b: ScalarBuilder[V], x: V, result: V, pole: float = 0.0) -> V:
    """The logarithm's values outside (pole, inf): -inf at the pole, nan below it, inf and nan handed on."""
    result = b.select(b.fcmp("olt", x, inf), result, x)
    outside = b.select(b.fcmp("oeq", x, pole), b.const(-inf, x.dtype), nan)
    return b.select(b.fcmp("ole", x, pole), outside, result)
