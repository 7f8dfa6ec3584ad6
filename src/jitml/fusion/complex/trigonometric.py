"""Circular and hyperbolic functions of complex numbers, and their inverses.

The circular ones are the hyperbolic ones of i z. The inverses are Kahan's ("Branch Cuts for Complex Elementary Functions",
1987): products of two square roots, which lose nothing near the branch points and know the sign of zero on the cuts.
"""

from __future__ import annotations

from collections.abc import Callable

from jitml.fusion.complex.arithmetic import choose, number, over_i, times_i
from jitml.fusion.complex.elementary import complex_sqrt, select
from jitml.fusion.complex.moves import zeros
from jitml.fusion.complex.split import Complex, splitting
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.op import Op
from jitml.ir.types import F32


def complex_sinh(z: Complex) -> Complex:
    x, y = z.re, z.im
    re, im = ops.sinh(x) * ops.cos(y), ops.cosh(x) * ops.sin(y)
    return Complex(select(ops.eq(x, 0.0), x, re), select(ops.eq(y, 0.0), y, im))


def complex_cosh(z: Complex) -> Complex:
    x, y = z.re, z.im
    one = number(x, 1.0)
    im = select(ops.eq(x, 0.0), x * ops.copysign(one, y), ops.sinh(x) * ops.sin(y))
    return Complex(ops.cosh(x) * ops.cos(y), select(ops.eq(y, 0.0), y * ops.copysign(one, x), im))


def complex_tanh(z: Complex) -> Complex:
    """(sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y); beyond some 20 it is 1 but for a rest that vanishes."""
    x, y = z.re, z.im
    size, sin, cos = ops.abs(x), ops.sin(y), ops.cos(y)
    is_far = ops.gt(size, 9.0 if x.dtype == F32 else 20.0)
    near = select(is_far, zeros(x), x)
    sinh = ops.sinh(near)
    below = sinh * sinh + cos * cos
    re = select(is_far, ops.copysign(number(x, 1.0), x), sinh * ops.cosh(near) / below)
    rest = 4.0 * (sin * cos * ops.exp(-2.0 * size))
    im = select(is_far, select(ops.isfinite(y), rest, zeros(x)), sin * cos / below)
    re = select(ops.bit_or(ops.isnan(x), ops.eq(x, 0.0)), x, re)
    return Complex(re, select(ops.eq(y, 0.0), y, select(ops.isnan(x), x, im)))


def _roots(z: Complex) -> tuple[Complex, Complex]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return complex_sqrt(Complex(1.0 - z.re, -z.im)), complex_sqrt(Complex(1.0 + z.re, z.im))


def _re_of_product(x: Complex, y: Complex) -> Value:
    result: Value = x.re * y.re - x.im * y.im
    return result


def _im_of_conjugate_product(x: Complex, y: Complex) -> Value:
    """Im(conj(x) y)."""
    result: Value = x.re * y.im - x.im * y.re
    return result


def complex_arcsin(z: Complex) -> Complex:
    below, above = _roots(z)
    return Complex(ops.arctan2(z.re, _re_of_product(below, above)), ops.arcsinh(_im_of_conjugate_product(below, above)))


def complex_arccos(z: Complex) -> Complex:
    below, above = _roots(z)
    return Complex(2.0 * ops.arctan2(below.re, above.re), ops.arcsinh(_im_of_conjugate_product(above, below)))


def complex_arccosh(z: Complex) -> Complex:
    """+-i arccos(z), the one with a real part that is not negative."""
    angle = complex_arccos(z)
    is_up = ops.bit_not(ops.signbit(z.im))
    size = ops.abs(angle.im)
    return choose(is_up, Complex(size, angle.re), Complex(size, -angle.re))


def complex_arctanh(z: Complex) -> Complex:
    """log((1 + z) / (1 - z)) / 2, its real part by log1p of 4x / ((1 - x)^2 + y^2)."""
    x, y = ops.abs(z.re), z.im
    is_far = ops.gt(ops.fmax(x, ops.abs(y)), 1e18 if x.dtype == F32 else 1e150)
    a, b = select(is_far, zeros(x), x), select(is_far, zeros(y), y)
    squares = (1.0 - a) * (1.0 - a) + b * b
    re = ops.copysign(ops.log1p(4.0 * a / squares) * 0.25, z.re)
    im = 0.5 * ops.arctan2(2.0 * b, (1.0 - a) * (1.0 + a) - b * b)
    turn = ops.copysign(number(y, 1.5707963267948966), y)
    far = Complex(ops.copysign(zeros(x), z.re), turn)
    unclear = ops.bit_and(ops.isnan(z.re), ops.bit_not(ops.isinf(y)))
    near = Complex(re, select(ops.isnan(y), y, im))
    result = choose(is_far, far, near)
    nan = number(x, float("nan"))
    return choose(unclear, Complex(nan, nan), result)


def _rule(op: Op, function: Callable[[Complex], Complex]) -> None:
    @splitting.rule(op)
    def split(node: Node, x: Complex) -> Complex:
        return function(x)


_rule(ops.sinh, complex_sinh)
_rule(ops.cosh, complex_cosh)
_rule(ops.tanh, complex_tanh)
_rule(ops.sin, lambda x: over_i(complex_sinh(times_i(x))))
_rule(ops.cos, lambda x: complex_cosh(times_i(x)))
_rule(ops.tan, lambda x: over_i(complex_tanh(times_i(x))))
_rule(ops.arcsin, complex_arcsin)
_rule(ops.arccos, complex_arccos)
_rule(ops.arctan, lambda x: over_i(complex_arctanh(times_i(x))))
_rule(ops.arcsinh, lambda x: over_i(complex_arcsin(times_i(x))))
_rule(ops.arccosh, complex_arccosh)
_rule(ops.arctanh, complex_arctanh)
