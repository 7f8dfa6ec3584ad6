"""Ufunc loops: what does each NumPy ufunc compute on operands that already have the loop's dtype and one shape?

`LOOPS` maps a ufunc to a function of Values. Promotion, broadcasting, `out=` and `where=` are `ufunc.py`'s business.
Where NumPy takes a shortcut that changes bits, so do we; derived functions are written in their stable form.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import BOOL, F64, I64, is_complex, is_float, is_inexact
from jitml.numpy.support.arguments import astype, full

Loop = Callable[..., Any]
LOOPS: dict[np.ufunc, Loop] = {}

_DIRECT: dict[np.ufunc, Op] = {
    np.add: ops.add,
    np.subtract: ops.sub,
    np.multiply: ops.mul,
    np.true_divide: ops.div,
    np.floor_divide: ops.floor_divide,
    np.remainder: ops.remainder,
    np.fmod: ops.fmod,
    np.power: ops.pow,
    np.float_power: ops.pow,
    np.maximum: ops.maximum,
    np.minimum: ops.minimum,
    np.arctan2: ops.arctan2,
    np.hypot: ops.hypot,
    np.copysign: ops.copysign,
    np.negative: ops.neg,
    np.sign: ops.sign,
    np.rint: ops.rint,
    np.sqrt: ops.sqrt,
    np.cbrt: ops.cbrt,
    np.exp: ops.exp,
    np.exp2: ops.exp2,
    np.expm1: ops.expm1,
    np.log: ops.log,
    np.log2: ops.log2,
    np.log10: ops.log10,
    np.log1p: ops.log1p,
    np.sin: ops.sin,
    np.cos: ops.cos,
    np.tan: ops.tan,
    np.arcsin: ops.arcsin,
    np.arccos: ops.arccos,
    np.arctan: ops.arctan,
    np.sinh: ops.sinh,
    np.cosh: ops.cosh,
    np.tanh: ops.tanh,
    np.arcsinh: ops.arcsinh,
    np.arccosh: ops.arccosh,
    np.arctanh: ops.arctanh,
    np.signbit: ops.signbit,
    np.fabs: ops.abs,
    np.bitwise_and: ops.bit_and,
    np.bitwise_or: ops.bit_or,
    np.bitwise_xor: ops.bit_xor,
    np.invert: ops.bit_not,
    np.left_shift: ops.shift_left,
    np.right_shift: ops.shift_right,
}
LOOPS.update(_DIRECT)


def loop(*ufuncs: np.ufunc) -> Callable[[Loop], Loop]:
    """Register the decorated function as the loop of each ufunc."""

    def register(function: Loop) -> Loop:
        LOOPS.update(dict.fromkeys(ufuncs, function))
        return function

    return register


def _unless_inexact(op: Op, otherwise: Loop) -> Loop:
    return lambda *xs: op(*xs) if is_inexact(xs[0].dtype) else otherwise(*xs)


def _same(x: Value) -> Value:
    return x


def _all_true(x: Value) -> Value:
    return full(x.shape, True, BOOL)


def _all_false(x: Value) -> Value:
    return full(x.shape, False, BOOL)


loop(np.positive)(_same)
loop(np.floor)(_unless_inexact(ops.floor, _same))
loop(np.ceil)(_unless_inexact(ops.ceil, _same))
loop(np.trunc)(_unless_inexact(ops.trunc, _same))
loop(np.isnan)(_unless_inexact(ops.isnan, _all_false))
loop(np.isinf)(_unless_inexact(ops.isinf, _all_false))
loop(np.isfinite)(_unless_inexact(ops.isfinite, _all_true))
loop(np.fmax)(_unless_inexact(ops.fmax, ops.maximum))
loop(np.fmin)(_unless_inexact(ops.fmin, ops.minimum))


@loop(np.conjugate)
def conjugate(x: Value) -> Any:
    return ops.conj(x) if is_complex(x.dtype) else x


@loop(np.absolute)
def absolute(x: Value) -> Any:
    return x if x.dtype.kind in "bu" else ops.abs(x)


@loop(np.square)
def square(x: Value) -> Any:
    return x * x


@loop(np.reciprocal)
def reciprocal(x: Value) -> Any:
    if is_complex(x.dtype):
        return _complex_reciprocal(x)
    if is_float(x.dtype):
        return 1.0 / x
    return astype(1.0 / astype(x, F64), x.dtype)


def _complex_reciprocal(x: Value) -> Any:
    """By the larger part, as NumPy does: not the bits of 1 / x."""
    re, im = ops.real(x), ops.imag(x)
    re_is_large = ops.ge(ops.abs(re), ops.abs(im))
    large, small = ops.select(re_is_large, re, im), ops.select(re_is_large, im, re)
    ratio = small / large
    below = ops.raise_invalid(large + small * ratio, ops.bit_or(ops.isnan(re), ops.isnan(im)))  # as of the comparison
    near, far = 1.0 / below, ratio / below
    return ops.complex(ops.select(re_is_large, near, far), -ops.select(re_is_large, far, near))


@loop(np.deg2rad, np.radians)
def deg2rad(x: Value) -> Any:
    return x * (pi / 180.0)


@loop(np.rad2deg, np.degrees)
def rad2deg(x: Value) -> Any:
    return x * (180.0 / pi)


@loop(np.logaddexp)
def logaddexp(x: Value, y: Value) -> Any:
    larger, difference = _larger(x, y)
    return larger + ops.log1p(ops.exp(difference))


@loop(np.logaddexp2)
def logaddexp2(x: Value, y: Value) -> Any:
    larger, difference = _larger(x, y)
    return larger + ops.log1p(ops.exp2(difference)) * float(1 / np.log(2.0))


def _larger(x: Value, y: Value) -> tuple[Any, Any]:
    """The larger operand, and how much the other is below it. Equal infinities would make nan of the difference.

    One choice for both, so that derivatives are those of the smooth function where the operands are equal.
    """
    x_is = ops.gt(x, y)
    infinite = ops.bit_and(ops.eq(x, y), ops.isinf(x))
    difference = ops.select(x_is, y - x, x - y)
    larger = ops.raise_invalid(ops.select(x_is, x, y), ops.bit_or(ops.isnan(x), ops.isnan(y)))  # NumPy's comparison minds nan
    return larger, ops.select(infinite, full(x.shape, 0.0, x.dtype), difference)


@loop(np.heaviside)
def heaviside(x: Value, at_zero: Value) -> Any:
    step = ops.select(ops.gt(x, 0.0), full(x.shape, 1.0, x.dtype), full(x.shape, 0.0, x.dtype))
    return ops.select(ops.isnan(x), x, ops.select(ops.eq(x, 0.0), at_zero, step))


@loop(np.divmod)
def divide_with_remainder(x: Value, y: Value) -> tuple[Any, Any]:
    return ops.floor_divide(x, y), ops.remainder(x, y)


def with_tangent_of(y: Value, x: Value) -> Value:
    """x, bit for bit, with the tangent of y beside its own. Of a finite y what is taken away is +0, which even -0.0 survives."""
    same: Value = x - (ops.stop_gradient(y) - y)
    return same


@loop(np.modf)
def modf(x: Value) -> tuple[Any, Any]:
    """Fraction and whole part, both with x's sign; an infinity has the fraction 0."""
    finite = ops.select(ops.isinf(x), full(x.shape, 0.0, x.dtype), x)
    fraction = finite - ops.trunc(finite)
    return with_tangent_of(fraction, ops.stop_gradient(ops.copysign(fraction, x))), ops.trunc(x)


def truth(x: Value) -> Value:
    """Nonzero, as bool; nan is true."""
    return x if x.dtype == BOOL else ops.ne(x, 0)


@loop(np.logical_and)
def logical_and(x: Value, y: Value) -> Any:
    return ops.bit_and(truth(x), truth(y))


@loop(np.logical_or)
def logical_or(x: Value, y: Value) -> Any:
    return ops.bit_or(truth(x), truth(y))


@loop(np.logical_xor)
def logical_xor(x: Value, y: Value) -> Any:
    return ops.bit_xor(truth(x), truth(y))


@loop(np.logical_not)
def logical_not(x: Value) -> Any:
    return ops.bit_not(truth(x))


def _minding_nan(x: Value, y: Value) -> Value:
    """x, and an error where the order of complex numbers is asked for and what decides is nan. Scalars' operators are silent."""
    if not x.ndim:
        return x
    decides = [ops.bit_or(ops.isnan(part(x)), ops.isnan(part(y))) for part in (ops.real, ops.imag)]
    ties = ops.eq(ops.real(x), ops.real(y))
    is_nan = ops.bit_or(decides[0], ops.bit_and(ties, decides[1]))
    return ops.complex(ops.raise_invalid(ops.real(x), is_nan), ops.imag(x))


def _comparison(op: Op, first_is_negative: bool, second_is_negative: bool) -> Loop:
    """A comparison that is exact between int64 and uint64 too, the one NumPy loop with two dtypes.

    Args:
        first_is_negative: the answer where a negative int64 stands on the left of a uint64.
        second_is_negative: the answer where it stands on the right.
    """

    def compare(x: Value, y: Value) -> Any:
        if x.dtype == y.dtype:
            is_ordered = op in (ops.eq, ops.ne) or not is_complex(x.dtype)
            return op(x, y) if is_ordered else op(_minding_nan(x, y), y)
        if x.dtype == I64:
            return ops.select(ops.lt(x, 0), full(x.shape, first_is_negative, BOOL), op(astype(x, y.dtype), y))
        return ops.select(ops.lt(y, 0), full(x.shape, second_is_negative, BOOL), op(x, astype(y, x.dtype)))

    return compare


COMPARISONS: dict[np.ufunc, Loop] = {
    np.equal: _comparison(ops.eq, False, False),
    np.not_equal: _comparison(ops.ne, True, True),
    np.less: _comparison(ops.lt, True, False),
    np.less_equal: _comparison(ops.le, True, False),
    np.greater: _comparison(ops.gt, False, True),
    np.greater_equal: _comparison(ops.ge, False, True),
}
LOOPS.update(COMPARISONS)


@loop(np.bitwise_count)
def bitwise_count(x: Value) -> Any:
    """Set bits of |x|."""
    size = absolute(x)  # of the least integer, itself, of which one bit is set
    return astype(ops.count_bits(size), np.dtype(np.uint8))
