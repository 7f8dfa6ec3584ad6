"""exp, log, sqrt and powers of complex numbers, from real functions of their parts.

C99 (annex G) says what becomes of infinities and nan, and NumPy's C library does so: products such as inf * 0 that would make
nan of a known answer are therefore chosen away.
"""

from __future__ import annotations

from math import exp, log

from jitml.fusion.complex.arithmetic import choose, div, isnan, mul, number, scale
from jitml.fusion.complex.moves import zeros
from jitml.fusion.complex.split import Complex, splitting
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder, Node, Value
from jitml.ir.op import active_recorder
from jitml.ir.types import F32

MOST_FACTORS = 100  # NumPy multiplies for whole exponents below this


def select(condition: Value, x: Value, y: Value) -> Value:
    chosen: Value = ops.select(condition, x, y)
    return chosen


def complex_exp(z: Complex) -> Complex:
    """e^x (cos y + i sin y). Where e^x alone overflows, it is taken in two steps."""
    x, y = z.re, z.im
    most = 88.0 if x.dtype == F32 else 709.0
    is_large = ops.gt(x, most)
    size = ops.exp(select(is_large, x - most, x))
    factor = select(is_large, number(x, exp(most)), number(x, 1.0))
    wild = ops.bit_not(ops.isfinite(y))
    endless, vanishes = ops.bit_and(wild, ops.isinf(x)), ops.bit_and(wild, ops.eq(x, float("-inf")))
    re = select(endless, size, size * (factor * ops.cos(y)))
    im = select(vanishes, zeros(x), size * (factor * ops.sin(y)))
    return Complex(re, select(ops.eq(y, 0.0), y, im))


def complex_log(z: Complex) -> Complex:
    return Complex(log_of_size(z), ops.arctan2(z.im, z.re))


def log_of_size(z: Complex) -> Value:
    """log |z|; near the unit circle from |z|^2 - 1, which is small there."""
    x, y = ops.abs(z.re), ops.abs(z.im)
    size, large, small = ops.hypot(x, y), ops.fmax(x, y), ops.fmin(x, y)
    near = ops.bit_and(ops.gt(size, 0.5), ops.lt(size, 2.0))
    one = number(x, 1.0)
    large, small = select(near, large, one), select(near, small, zeros(x))
    beyond = ops.log1p((large - 1.0) * (large + 1.0) + small * small) * 0.5
    return select(near, beyond, ops.log(select(near, one, size)))


def complex_sqrt(z: Complex) -> Complex:
    """The root with a real part that is not negative. Scaling by powers of four keeps huge and tiny numbers in range."""
    x, y = z.re, z.im
    top, bottom, up = (1e37, 1e-30, 2.0**40) if x.dtype == F32 else (1e307, 1e-290, 2.0**100)
    largest = ops.fmax(ops.abs(x), ops.abs(y))
    huge, tiny = ops.gt(largest, top), ops.lt(largest, bottom)

    def pick(if_huge: float, if_tiny: float) -> Value:
        return select(huge, number(x, if_huge), select(tiny, number(x, if_tiny), number(x, 1.0)))

    before, after = pick(0.25, up * up), pick(2.0, 1.0 / up)
    a, b = x * before, y * before
    root = ops.sqrt((ops.abs(a) + ops.hypot(a, b)) * 0.5)
    is_zero = ops.eq(root, 0.0)
    other = select(is_zero, b, b / select(is_zero, number(x, 1.0), root + root))
    is_right = ops.bit_not(ops.lt(x, 0.0))
    re = select(is_right, root, ops.abs(other)) * after
    im = ops.copysign(select(is_right, other, root), y) * after
    endless = ops.isinf(y)
    infinity = number(x, float("inf"))
    nan_beside = ops.bit_and(ops.isnan(y), ops.bit_and(ops.isinf(x), is_right))
    return Complex(select(endless, infinity, re), select(endless, y, select(nan_beside, y, im)))


def complex_pow(x: Complex, y: Complex) -> Complex:
    """Whole exponents that are known multiply, as NumPy's do; else e^(y log x), with NumPy's answers for zeros."""
    known = known_number(y)
    if known is not None and known.imag == 0 and known.real == int(known.real) and abs(known.real) < MOST_FACTORS:
        return _whole_power(x, int(known.real))
    one = Complex(number(x.re, 1.0), zeros(x.re))
    power = complex_exp(mul(y, complex_log(choose(_is_zero(x), one, x))))
    nan = number(x.re, float("nan"))
    of_zero = choose(ops.gt(y.re, 0.0), Complex(zeros(x.re), zeros(x.re)), Complex(nan, nan))
    result = choose(_is_zero(x), of_zero, power)
    result = choose(_is_zero(y), one, result)
    return Complex(ops.raise_invalid(result.re, _is_invalid(x, y)), result.im)


def _is_invalid(x: Complex, y: Complex) -> Value:
    """Where NumPy raises by itself: for powers of zero, and as it converts a real exponent to see whether it is an integer.

    A negative one divides, and the comparison there minds nan.
    """
    is_real = ops.eq(y.im, 0.0)
    divides = ops.bit_and(isnan(x), ops.bit_and(ops.lt(y.re, 0.0), ops.eq(y.re, ops.rint(y.re))))
    of_zero = ops.bit_not(ops.gt(y.re, 0.0))
    converts = ops.bit_and(is_real, ops.bit_or(divides, ops.bit_not(ops.lt(ops.abs(y.re), float(1 << 63)))))
    invalid: Value = ops.bit_and(ops.select(_is_zero(x), of_zero, converts), ops.bit_not(_is_zero(y)))
    return invalid


def _is_zero(x: Complex) -> Value:
    result: Value = ops.bit_and(ops.eq(x.re, 0.0), ops.eq(x.im, 0.0))
    return result


def _whole_power(x: Complex, exponent: int) -> Complex:
    one = Complex(number(x.re, 1.0), zeros(x.re))
    if exponent == 0:
        return one
    # From the fourth on NumPy begins with 1, which makes nan of an infinity.
    power, square, rest = None if exponent in (1, 2, 3) else one, x, abs(exponent)
    while rest:
        if rest & 1:
            power = square if power is None else mul(power, square)
        rest >>= 1
        square = mul(square, square) if rest else square
    assert power is not None
    if exponent > 0:
        return power
    nan = number(x.re, float("nan"))
    inverse = choose(_is_zero(x), Complex(nan, nan), div(one, power))
    return Complex(ops.raise_invalid(inverse.re, isnan(power)), inverse.im)


def known_number(x: Complex) -> complex | None:
    """The number that stands in every place of x, if it is known."""
    builder = active_recorder()
    assert isinstance(builder, GraphBuilder)
    makers = [builder.maker(part) for part in (x.re, x.im)]
    values = [m.params["value"] for m in makers if m is not None and m.op is ops.full]
    return complex(*values) if len(values) == 2 else None


@splitting.rule(ops.exp)
def split_exp(node: Node, x: Complex) -> Complex:
    return complex_exp(x)


@splitting.rule(ops.exp2)
def split_exp2(node: Node, x: Complex) -> Complex:
    return complex_exp(scale(x, log(2.0)))


@splitting.rule(ops.expm1)
def split_expm1(node: Node, x: Complex) -> Complex:
    """e^x cos y - 1 without cancellation: 1 - cos y is 2 sin^2(y/2)."""
    half = ops.sin(x.im * 0.5)
    return Complex(ops.expm1(x.re) * ops.cos(x.im) - 2.0 * half * half, ops.exp(x.re) * ops.sin(x.im))


@splitting.rule(ops.log)
def split_log(node: Node, x: Complex) -> Complex:
    return complex_log(x)


@splitting.rule(ops.log2)
def split_log2(node: Node, x: Complex) -> Complex:
    return scale(complex_log(x), 1.0 / log(2.0))


@splitting.rule(ops.log10)
def split_log10(node: Node, x: Complex) -> Complex:
    return scale(complex_log(x), 1.0 / log(10.0))


@splitting.rule(ops.log1p)
def split_log1p(node: Node, x: Complex) -> Complex:
    return Complex(ops.log(ops.hypot(x.re + 1.0, x.im)), ops.arctan2(x.im, x.re + 1.0))


@splitting.rule(ops.sqrt)
def split_sqrt(node: Node, x: Complex) -> Complex:
    return complex_sqrt(x)


@splitting.rule(ops.pow)
def split_pow(node: Node, x: Complex, y: Complex) -> Complex:
    return complex_pow(x, y)
