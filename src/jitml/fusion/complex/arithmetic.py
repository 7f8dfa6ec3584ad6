"""Arithmetic of complex numbers, and comparisons, in NumPy's own formulas."""

from __future__ import annotations

from jitml.fusion.complex.moves import zeros
from jitml.fusion.complex.split import Complex, splitting
from jitml.ir import ops
from jitml.ir.graph import Node, Value


def number(x: Value, value: float) -> Value:
    """One number in every place of x."""
    made: Value = ops.full(value=value, shape=x.shape, dtype=x.dtype)
    return made


def choose(condition: Value, x: Complex, y: Complex) -> Complex:
    return Complex(ops.select(condition, x.re, y.re), ops.select(condition, x.im, y.im))


def add(x: Complex, y: Complex) -> Complex:
    return Complex(x.re + y.re, x.im + y.im)


def sub(x: Complex, y: Complex) -> Complex:
    return Complex(x.re - y.re, x.im - y.im)


def mul(x: Complex, y: Complex) -> Complex:
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def scale(x: Complex, factor: float) -> Complex:
    return Complex(x.re * factor, x.im * factor)


def times_i(x: Complex) -> Complex:
    return Complex(-x.im, x.re)


def over_i(x: Complex) -> Complex:
    return Complex(x.im, -x.re)


def div(x: Complex, y: Complex) -> Complex:
    """Smith's algorithm, with NumPy's roundings: the part of y that is larger divides the other. By zero: each part by it."""
    re_is_large = ops.ge(ops.abs(y.re), ops.abs(y.im))
    large, small = ops.select(re_is_large, y.re, y.im), ops.select(re_is_large, y.im, y.re)
    a, b = ops.select(re_is_large, x.re, x.im), ops.select(re_is_large, x.im, x.re)
    ratio = small / large
    scale = 1.0 / (large + small * ratio)
    quotient = Complex(
        (a + b * ratio) * scale,
        ops.select(re_is_large, b - a * ratio, a * ratio - b) * scale,
    )
    is_zero = ops.bit_and(ops.eq(y.re, 0.0), ops.eq(y.im, 0.0))
    # Elsewhere by 1: what is not taken must not raise floating-point errors either.
    factor = ops.select(is_zero, number(x.re, float("inf")), number(x.re, 1.0))
    return choose(is_zero, Complex(x.re * factor, x.im * factor), quotient)


def less(x: Complex, y: Complex, *, or_equal: bool) -> Value:
    """By the real parts, then the imaginary ones; false beside nan."""
    clean = ops.bit_not(ops.bit_or(ops.isnan(x.im), ops.isnan(y.im)))
    first = ops.bit_and(ops.lt(x.re, y.re), clean)
    second = (ops.le if or_equal else ops.lt)(x.im, y.im)
    result: Value = ops.bit_or(first, ops.bit_and(ops.eq(x.re, y.re), second))
    return result


def isnan(x: Complex) -> Value:
    result: Value = ops.bit_or(ops.isnan(x.re), ops.isnan(x.im))
    return result


@splitting.rule(ops.mul)
def split_mul(node: Node, x: Complex, y: Complex) -> Complex:
    return mul(x, y)


@splitting.rule(ops.div)
def split_div(node: Node, x: Complex, y: Complex) -> Complex:
    quotient = div(x, y)
    return Complex(ops.raise_invalid(quotient.re, isnan(y)), quotient.im)  # NumPy's comparison of the parts minds nan


@splitting.rule(ops.abs)
def split_abs(node: Node, x: Complex) -> Value:
    size: Value = ops.hypot(x.re, x.im)
    return size


@splitting.rule(ops.sign)
def split_sign(node: Node, x: Complex) -> Complex:
    """x / |x|: 0 at 0, and towards an infinity if only one part is infinite."""
    size = ops.hypot(x.re, x.im)
    endless = ops.isinf(size)
    length = ops.select(ops.bit_or(endless, ops.eq(size, 0.0)), number(size, 1.0), size)
    unit = Complex(x.re / length, x.im / length)
    parts = [ops.select(ops.isinf(p), ops.sign(p), zeros(p)) for p in (x.re, x.im)]
    both = ops.bit_and(ops.isinf(x.re), ops.isinf(x.im))
    nan = number(x.re, float("nan"))
    far = choose(both, Complex(nan, nan), Complex(*parts))
    known = choose(endless, far, unit)
    known = choose(ops.eq(size, 0.0), Complex(zeros(x.re), zeros(x.im)), known)
    return choose(ops.isnan(size), Complex(nan, nan), known)


@splitting.rule(ops.isnan, ops.isinf, ops.ne)
def split_any(node: Node, *xs: Complex) -> Value:
    """Said of either part."""
    result: Value = ops.bit_or(node.op(*(x.re for x in xs)), node.op(*(x.im for x in xs)))
    return result


@splitting.rule(ops.isfinite, ops.eq)
def split_all(node: Node, *xs: Complex) -> Value:
    """Said of both parts."""
    result: Value = ops.bit_and(node.op(*(x.re for x in xs)), node.op(*(x.im for x in xs)))
    return result


@splitting.rule(ops.lt, ops.le)
def split_less(node: Node, x: Complex, y: Complex) -> Value:
    return less(x, y, or_equal=node.op is ops.le)


@splitting.rule(ops.gt, ops.ge)
def split_greater(node: Node, x: Complex, y: Complex) -> Value:
    return less(y, x, or_equal=node.op is ops.ge)


@splitting.rule(ops.maximum, ops.minimum)
def split_extreme(node: Node, x: Complex, y: Complex) -> Complex:
    """The first of equals, and the first nan."""
    first = less(y, x, or_equal=True) if node.op is ops.maximum else less(x, y, or_equal=True)
    return choose(ops.bit_or(first, isnan(x)), x, y)


@splitting.rule(ops.fmax, ops.fmin)
def split_extreme_of_numbers(node: Node, x: Complex, y: Complex) -> Complex:
    first = less(y, x, or_equal=True) if node.op is ops.fmax else less(x, y, or_equal=True)
    return choose(ops.bit_or(first, isnan(y)), x, y)
