"""Derivatives of the pointwise ops.

Conventions where a derivative does not exist: |x| has slope 0 at 0; equal operands of maximum and minimum share the
tangent equally (so a clip passes half of it at its bounds); steps (sign, floor, comparisons, ...) have slope 0; hypot
has slope 0 at the origin; x**y has slope 0 in y at x = 0 where y >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jitml.autograd.core.jvp import JvpRule, Tangent, jvp, not_differentiable, zeros_like
from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, linear_operands, transpose
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder, Value
from jitml.ir.op import Op, UserFunction, active_recorder
from jitml.ir.types import DType, is_complex
from jitml.trace.record.recording import user_source

Tangents = Sequence[Tangent]

not_differentiable(ops.floor, ops.ceil, ops.trunc, ops.rint, ops.floor_divide, ops.stop_gradient)
not_differentiable(ops.isnan, ops.isinf, ops.isfinite, ops.signbit, ops.bits, ops.from_bits)
not_differentiable(ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge)
not_differentiable(ops.bit_and, ops.bit_or, ops.bit_xor, ops.bit_not, ops.count_bits, ops.shift_left, ops.shift_right)
not_differentiable(ops.add_overflows, ops.sub_overflows, ops.mul_overflows)


@jvp.family("pointwise")
def _of_users(op: Op) -> JvpRule | None:
    """A function of the user's has the derivative that `custom_jvp` gives it, or none."""

    def refuse(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
        raise DerivativeError(
            f"{op.name.rpartition('_')[0]} is to be differentiated, and jitml does not look into it",
            source=user_source(),
            remedy="Give it a derivative by jitml.custom_jvp.",
        )

    return refuse if isinstance(op, UserFunction) else None


def full_like(x: Value, value: float) -> Value:
    return ops.full(value=value, shape=x.shape, dtype=x.dtype)


def total(*tangents: Tangent) -> Tangent:
    """The sum of the tangents that are there."""
    there = [t for t in tangents if t is not None]
    result: Tangent = None
    for t in there:
        result = t if result is None else ops.add(result, t)
    return result


def scaled(dx: Tangent, factor: Callable[[], Value]) -> Tangent:
    """`dx * factor()`; no tangent, no factor."""
    return None if dx is None else ops.mul(dx, factor())


# Functions of one operand: the tangent times a slope, or over a divisor where that is the shorter or more exact form.
Slope = Callable[[Value, Value], Value]  # of the operand and the result

SLOPES: dict[Op, Slope] = {
    ops.sqrt: lambda x, out: 0.5 / out,
    ops.exp: lambda x, out: out,
    ops.exp2: lambda x, out: out * math.log(2),
    ops.expm1: lambda x, out: ops.exp(x),  # out + 1 has no digits left far below 0
    ops.sin: lambda x, out: ops.cos(x),
    ops.cos: lambda x, out: -ops.sin(x),
    ops.tan: lambda x, out: out * out + 1.0,
    ops.sinh: lambda x, out: ops.cosh(x),
    ops.cosh: lambda x, out: ops.sinh(x),
    ops.tanh: lambda x, out: 1.0 - out * out,
    ops.logistic: lambda x, out: out * (1.0 - out),
    ops.erf: lambda x, out: ops.exp(-(x * x)) * (2 / math.sqrt(math.pi)),
}
DIVISORS: dict[Op, Slope] = {
    ops.cbrt: lambda x, out: out * out * 3.0,
    ops.log: lambda x, out: x,
    ops.log2: lambda x, out: x * math.log(2),
    ops.log10: lambda x, out: x * math.log(10),
    ops.log1p: lambda x, out: x + 1.0,
    # (1 - x)(1 + x) keeps its digits near 1, where 1 - x*x loses them.
    ops.arcsin: lambda x, out: ops.sqrt((1.0 - x) * (x + 1.0)),
    ops.arccos: lambda x, out: -ops.sqrt((1.0 - x) * (x + 1.0)),
    ops.arctan: lambda x, out: x * x + 1.0,
    ops.arcsinh: lambda x, out: _length_beside_one(x),
    # The root of the product is another one left of 0, for complex numbers, and the product overflows.
    ops.arccosh: lambda x, out: ops.sqrt(x - 1.0) * ops.sqrt(x + 1.0),
    ops.arctanh: lambda x, out: (1.0 - x) * (x + 1.0),
}


def _length_beside_one(x: Value) -> Value:
    """sqrt(x² + 1) without the square, which overflows."""
    if not is_complex(x.dtype):
        return ops.hypot(x, full_like(x, 1.0))
    turned = ops.complex(-ops.imag(x), ops.real(x))
    return ops.sqrt(turned + 1.0) * ops.sqrt(1.0 - turned)


def _register(op: Op, combine: Op, factor: Slope) -> None:
    @jvp.rule(op)
    def unary_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
        return combine(tangents[0], factor(primals[0], out))


for _op, _slope in SLOPES.items():
    _register(_op, ops.mul, _slope)
for _op, _divisor in DIVISORS.items():
    _register(_op, ops.div, _divisor)


@jvp.rule(ops.abs)
def abs_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    """Of a complex number: what of dx points along x."""
    (x,), (dx,) = primals, tangents
    assert dx is not None
    if not is_complex(x.dtype):
        return ops.mul(dx, ops.sign(x))
    return ops.real(dx * ops.conj(ops.sign(x)))


@jvp.rule(ops.sign)
def sign_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    """A step; of a complex number x / |x|, which turns with what of dx points across x."""
    (x,), (dx,) = primals, tangents
    if not is_complex(x.dtype) or dx is None:
        return None
    size = ops.abs(x)
    size = ops.select(ops.eq(size, 0.0), full_like(size, 1.0), size)
    across = ops.imag(dx * ops.conj(out)) / size
    return out * ops.complex(zeros_like(across), across)


# Linear ops, and the products.


@jvp.rule(ops.add)
def add_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    return total(*tangents)


@transpose.rule(ops.add)
def add_transpose(ct: Value, x: Operand, y: Operand) -> tuple[Cotangent, ...]:
    return linear_operands((x, y), ct)


@jvp.rule(ops.sub)
def sub_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    dx, dy = tangents
    if dy is None:
        return dx
    return -dy if dx is None else dx - dy


@transpose.rule(ops.sub)
def sub_transpose(ct: Value, x: Operand, y: Operand) -> tuple[Cotangent, ...]:
    return ct if isinstance(x, LinearPlace) else None, -ct if isinstance(y, LinearPlace) else None


@transpose.rule(ops.neg)
def neg_transpose(ct: Value, x: Operand) -> tuple[Cotangent, ...]:
    return (-ct,)


@jvp.rule(ops.mul)
def mul_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (x, y), (dx, dy) = primals, tangents
    if x is y and dx is not None:
        # A square: the factor 2, exact, meets the cotangent first, where it folds into a mean's 1/n.
        return dx * x * 2.0
    return total(scaled(dx, lambda: y), scaled(dy, lambda: x))


@transpose.rule(ops.mul)
def mul_transpose(ct: Value, x: Operand, y: Operand) -> tuple[Cotangent, ...]:
    return (ops.mul(ct, y), None) if isinstance(x, LinearPlace) else (None, ops.mul(ct, x))


@jvp.rule(ops.div)
def div_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (_, y), (dx, dy) = primals, tangents
    if dy is None:
        return _over(dx, y)
    moved = dy * out
    # One division serves both operands, here and in the transpose.
    return _over(-moved if dx is None else dx - moved, y)


def _over(dx: Tangent, y: Value) -> Value:
    """dx / y; where few numbers divide many, dx * (1 / y), so that no element is divided.

    A derivative is not held to the bits of a quotient.
    """
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    maker = b.producer(y)
    if maker is None or not y.ndim or y.dtype.kind != "f" or y.dtype.itemsize < 4:
        return ops.div(dx, y)
    if maker.op is ops.broadcast and maker.inputs[0].capacity < y.capacity:
        return ops.mul(dx, ops.broadcast(1.0 / _normal(maker.inputs[0]), **maker.params))
    if maker.op is ops.full and maker.params["value"] and abs(math.frexp(maker.params["value"])[1]) < 100:
        return ops.mul(dx, 1.0 / y)
    return ops.div(dx, y)


def _normal(y: Value) -> Value:
    """Subnormal numbers made normal: their inverses are infinite, and nothing times that would be NaN."""
    least = full_like(y, float(np.finfo(y.dtype.name).smallest_normal))
    is_subnormal = ops.bit_and(ops.lt(ops.abs(y), least), ops.ne(y, 0.0))
    normal: Value = ops.select(is_subnormal, ops.copysign(least, y), y)
    return normal


@transpose.rule(ops.div)
def div_transpose(ct: Value, x: Operand, y: Operand) -> tuple[Cotangent, ...]:
    return ops.div(ct, y), None


@transpose.rule(ops.convert)
def convert_transpose(ct: Value, x: Operand, *, dtype: DType) -> tuple[Cotangent, ...]:
    if is_complex(ct.dtype) and not is_complex(x.dtype):
        ct = ops.real(ct)
    return (ct if ct.dtype == x.dtype else ops.convert(ct, dtype=x.dtype),)


@transpose.rule(ops.select)
def select_transpose(ct: Value, condition: Operand, x: Operand, y: Operand) -> tuple[Cotangent, ...]:
    zero = zeros_like(ct)
    return (
        None,
        ops.select(condition, ct, zero) if isinstance(x, LinearPlace) else None,
        ops.select(condition, zero, ct) if isinstance(y, LinearPlace) else None,
    )


# Other functions of two operands.


@jvp.rule(ops.pow)
def pow_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (x, y), (dx, dy) = primals, tangents

    def in_base() -> Value:
        # y * x**(y-1), but 0 where y is 0: there x**-1 may be infinite.
        lowered = ops.select(ops.eq(y, 0.0), full_like(y, 0.0), y - 1.0)
        return y * ops.pow(x, lowered)

    def in_exponent() -> Value:
        # x**y * log(x), but 0 where x is 0: there the logarithm is infinite and the power is 0 or 1.
        return out * ops.log(ops.select(ops.eq(x, 0.0), full_like(x, 1.0), x))

    return total(scaled(dx, in_base), scaled(dy, in_exponent))


def _weight(wins: Value, ties: Value, like: Value) -> Value:
    """1 where x wins, a half where it ties, else 0."""
    shared = ops.select(ties, full_like(like, 0.5), full_like(like, 0.0))
    return ops.select(wins, full_like(like, 1.0), shared)


def _shared(weight: Value, dx: Tangent, dy: Tangent) -> Tangent:
    """x's part of the tangent, and the rest from y."""
    return total(scaled(dx, lambda: weight), scaled(dy, lambda: 1.0 - weight))


@jvp.rule(ops.raise_divide, ops.raise_overflow, ops.raise_underflow, ops.raise_invalid)
def raising_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    return tangents[0]


@jvp.rule(ops.maximum)
def maximum_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    x, y = primals
    return _shared(_weight(ops.gt(x, y), ops.eq(x, y), x), *tangents)


@jvp.rule(ops.minimum)
def minimum_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    x, y = primals
    return _shared(_weight(ops.lt(x, y), ops.eq(x, y), x), *tangents)


@jvp.rule(ops.fmax, ops.fmin)
def fmax_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    x, y = primals
    # Asked of the result, so that the operand that is not NaN takes the tangent.
    return _shared(_weight(ops.ne(y, out), ops.eq(x, y), x), *tangents)


@jvp.rule(ops.remainder, ops.fmod)
def remainder_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (x, y), (dx, dy) = primals, tangents
    if dy is None:
        return dx
    # The quotient as the integer it was: x // y, rounded anew, could be another near an integer.
    moved = dy * ops.rint((x - out) / y)
    return -moved if dx is None else dx - moved


@jvp.rule(ops.arctan2)
def arctan2_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (y, x), (dy, dx) = primals, tangents
    inverse = 1.0 / ops.hypot(x, y)  # whose square may overflow, or be 0
    return total(scaled(dy, lambda: x * inverse * inverse), scaled(dx, lambda: -(y * inverse * inverse)))


@jvp.rule(ops.hypot)
def hypot_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (x, y), (dx, dy) = primals, tangents
    length = ops.select(ops.eq(out, 0.0), full_like(out, 1.0), out)
    return total(scaled(dx, lambda: x / length), scaled(dy, lambda: y / length))


@jvp.rule(ops.copysign)
def copysign_jvp(out: Value, primals: Sequence[Value], tangents: Tangents) -> Tangent:
    (x, y), (dx, _) = primals, tangents
    return scaled(dx, lambda: ops.sign(x) * ops.copysign(full_like(y, 1.0), y))
