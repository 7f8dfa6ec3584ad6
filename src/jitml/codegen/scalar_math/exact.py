"""Sums and products with their rounding errors: numbers of twice the precision, as unevaluated pairs hi + lo."""

from __future__ import annotations

from typing import TypeAlias

from jitml.codegen.scalar_math.builder import ScalarBuilder, V

Pair: TypeAlias = tuple[V, V]

_SPLITTER = 2.0**27 + 1  # Veltkamp's, for float64


def fast_two_sum(b: ScalarBuilder[V], x: V | float, y: V | float) -> Pair[V]:
    """x + y exactly, for |x| >= |y| or x = 0 (Dekker 1971)."""
    total = b.fadd(x, y)
    return total, b.fsub(y, b.fsub(total, x))


def two_product(b: ScalarBuilder[V], x: V, y: V) -> Pair[V]:
    """x * y exactly, in float64; without fused multiply-add by splitting (Dekker 1971)."""
    product = b.fmul(x, y)
    if b.has_fma:
        return product, b.fma(x, y, b.fneg(product))
    x_high, x_low = _split(b, x)
    y_high, y_low = _split(b, y)
    error = b.fsub(b.fmul(x_high, y_high), product)
    error = b.fadd(b.fadd(error, b.fmul(x_high, y_low)), b.fmul(x_low, y_high))
    return product, b.fadd(error, b.fmul(x_low, y_low))


def _split(b: ScalarBuilder[V], x: V) -> Pair[V]:
    shifted = b.fmul(x, _SPLITTER)
    high = b.fsub(shifted, b.fsub(shifted, x))
    return high, b.fsub(x, high)


def quotient(b: ScalarBuilder[V], x: V, y: Pair[V]) -> Pair[V]:
    """x / y as a pair, with one division: what x has left after hi * y, times the same reciprocal."""
    reciprocal = b.fdiv(1.0, y[0])
    high = b.fmul(x, reciprocal)
    if b.has_fma:
        rest = b.fma(b.fneg(high), y[0], x)
    else:
        product, error = two_product(b, high, y[0])
        rest = b.fsub(b.fsub(x, product), error)
    return high, b.fmul(b.fma(b.fneg(high), y[1], rest), reciprocal)


def multiply(b: ScalarBuilder[V], x: Pair[V], y: Pair[V]) -> Pair[V]:
    """The product of two pairs, to about 2**-100; not normalised."""
    high, low = two_product(b, x[0], y[0])
    return high, b.fma(x[0], y[1], b.fma(x[1], y[0], low))


def constant(b: ScalarBuilder[V], parts: tuple[float, ...], like: V) -> Pair[V]:
    return b.const(parts[0], like.dtype), b.const(parts[1], like.dtype)
