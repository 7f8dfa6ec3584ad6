"""Powers and roots: pow, cbrt, hypot.

A power is 2**(y log2(x)) with the logarithm in two parts: an error of log2(x) is multiplied by up to 2**10 in the result.
Float32 goes through float64, which leaves bits to spare.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, nextafter
from sys import float_info

from jitml.codegen.scalar_math import coefficients as c
from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.exact import Pair, constant, fast_two_sum, multiply, quotient, two_product
from jitml.codegen.scalar_math.exponential import clamp
from jitml.codegen.scalar_math.formats import DOUBLE, SINGLE, format_of, horner, nearest_integer, scale, split_exponent
from jitml.codegen.scalar_math.integers import pow_integers
from jitml.codegen.scalar_math.table import rule
from jitml.ir.types import F32, F64

MOST_WHOLE = 16  # exponents that are products: then the low part of what is half done underflows only where the result does


@rule("pow")
def pow(b: ScalarBuilder[V], x: V, y: V) -> V:
    if x.dtype.kind != "f":
        return pow_integers(b, x, y)
    x, y = b.operands(x, y)
    exponent = b.constant_value(y)
    known = None if exponent is None else _known_power(b, x, exponent)
    if known is not None:
        return known
    magnitude = b.fabs(x)
    # Beyond 2**66 an exponent gives 0, 1 or inf as 2**66 does.
    bounded = clamp(b, y, -(2.0**66), 2.0**66)
    _raise_errors(b, x, y)
    is_extreme = _is_extreme(b, magnitude)
    base = b.select(is_extreme, 1.0, magnitude)
    if format_of(x) is DOUBLE:
        result = _power(b, base, bounded)
    else:
        result = b.convert(_short_power(b, b.convert(base, F64), b.convert(bounded, F64)), F32)
    return _pow_specials(b, x, y, is_extreme, result)


def _raise_errors(b: ScalarBuilder[V], x: V, y: V) -> None:
    """Where there is a division by zero, and where nothing is defined."""
    is_negative = b.and_(b.fcmp("olt", x, 0.0), b.fcmp("ogt", x, -inf))
    is_pole = b.and_(b.fcmp("oeq", x, 0.0), b.fcmp("olt", y, 0.0))
    b.raise_errors(divide=is_pole, invalid=b.and_(is_negative, b.fcmp("one", b.rint(y), y)))


def _known_power(b: ScalarBuilder[V], x: V, y: float) -> V | None:
    """Powers that are a few products, quotients and roots, at most two of which round: as exact as the general way."""
    match y:
        case 1.0:
            return x
        case 2.0:
            return b.fmul(x, x)
        case 3.0:
            return b.fmul(b.fmul(x, x), x)
        case -1.0:
            return b.fdiv(1.0, x)
    if y in (0.25, 0.5, -0.5, 1.5):
        return _known_root(b, x, y)
    return _whole_power(b, x, int(y)) if y in range(4, MOST_WHOLE + 1) else None


def _whole_power(b: ScalarBuilder[V], x: V, n: int) -> V:
    """Products, each with its rounding error, of which the last alone is rounded; of float32 in float64.

    Up to the limit nothing overflows. Beyond it, the result is inf or nan, by one product that raises what there is to raise.
    """
    if format_of(x) is not DOUBLE:
        return b.convert(_plain_power(b, b.convert(x, F64), n), F32)
    magnitude = b.fabs(x)
    is_ordinary = b.fcmp("ole", magnitude, _largest_base(n))
    base = b.select(is_ordinary, x, 1.0)
    if n % 2:
        high, low = _pair_power(b, base, n - 1)
        result = b.fma(high, base, b.fmul(low, base))
    else:
        high, low = _pair_power(b, base, n // 2)
        result = b.fma(high, high, b.fmul(b.fadd(high, high), low))
    beyond = b.fmul(b.select(is_ordinary, 1.0, x if n % 2 else magnitude), float_info.max)
    return b.select(is_ordinary, result, beyond)


def _pair_power(b: ScalarBuilder[V], x: V, n: int) -> Pair[V]:
    """x**n, n > 1, as a pair that is not normalised. What underflows of its low part is below the last place of x**(n + 1)."""
    if n == 2:
        return two_product(b, x, x)
    if n % 2:
        high, low = _pair_power(b, x, n - 1)
        product, error = two_product(b, high, x)
        return product, b.fma(low, x, error)
    high, low = _pair_power(b, x, n // 2)
    product, error = two_product(b, high, high)
    return product, b.fma(b.fadd(high, high), low, error)


def _plain_power(b: ScalarBuilder[V], x: V, n: int) -> V:
    if n == 1:
        return x
    half = _plain_power(b, x, n // 2)
    square = b.fmul(half, half)
    return b.fmul(square, x) if n % 2 else square


def _largest_base(n: int) -> float:
    """The largest number whose power does not round to infinity."""
    overflow = 2**1024 - 2**970
    root = float_info.max ** (1 / n)

    def is_too_large(x: float) -> bool:
        whole, parts = x.as_integer_ratio()
        return whole**n >= overflow * parts**n

    while is_too_large(root):
        root = nextafter(root, 0.0)
    while not is_too_large(nextafter(root, inf)):
        root = nextafter(root, inf)
    return root


def _known_root(b: ScalarBuilder[V], x: V, y: float) -> V:
    x = b.select(b.fcmp("oeq", x, -inf), inf, x)
    root = b.fadd(b.sqrt(x), 0.0)  # the power of -0.0 is 0.0, its square root -0.0
    if y == 0.25:
        root = b.sqrt(root)
    elif y == -0.5:
        root = b.fdiv(1.0, root)
    elif y == 1.5:
        root = b.fmul(b.fabs(x), root)
    return root


def _pow_specials(b: ScalarBuilder[V], x: V, y: V, is_extreme: V, result: V) -> V:
    """C99's rules for zeros, infinities, negative bases, and for 1 to and anything to the 0."""
    known = b.constant_value(y)
    if known is not None and 0 < abs(known) < inf:
        return _specials_of_known(b, x, known, result)
    magnitude = b.fabs(x)
    grows = b.xor(b.fcmp("olt", magnitude, 1.0), b.fcmp("ogt", y, 0.0))
    result = b.select(is_extreme, b.select(grows, b.const(inf, x.dtype), 0.0), result)
    half = b.fmul(y, 0.5)
    is_whole = b.fcmp("oeq", b.rint(y), y)
    is_odd = b.and_(is_whole, b.fcmp("une", b.rint(half), half))
    result = b.select(is_odd, b.flip_sign(result, b.sign_bit(x)), result)
    is_undefined = b.and_(b.fcmp("olt", x, 0.0), b.not_(b.or_(is_whole, b.fcmp("oeq", magnitude, inf))))
    result = b.select(b.or_(is_undefined, b.fcmp("uno", x, y)), nan, result)
    return b.select(b.or_(b.fcmp("oeq", x, 1.0), b.fcmp("oeq", y, 0.0)), 1.0, result)


def _specials_of_known(b: ScalarBuilder[V], x: V, y: float, result: V) -> V:
    """The same for a finite exponent other than 0, of which all is known while the code is written."""
    magnitude = b.fabs(x)
    if y > 0:
        result = b.select(_is_extreme(b, magnitude), magnitude, result)
    else:
        result = b.select(b.fcmp("oeq", magnitude, 0.0), inf, b.select(b.fcmp("oeq", magnitude, inf), 0.0, result))
    if y % 2 == 1:
        result = b.flip_sign(result, b.sign_bit(x))
    elif y % 1 != 0:
        result = b.select(b.and_(b.fcmp("olt", x, 0.0), b.fcmp("ogt", x, -inf)), nan, result)
    return b.select(b.fcmp("uno", x, x), nan, result)


def _is_extreme(b: ScalarBuilder[V], magnitude: V) -> V:
    return b.not_(b.and_(b.fcmp("ogt", magnitude, 0.0), b.fcmp("olt", magnitude, inf)))


def _log2_pair(b: ScalarBuilder[V], x: V) -> Pair[V]:
    """log2(x), 0 < x < inf, to about 2**-66: 2 atanh(s) / ln 2 + k with s = (m - 1) / (m + 1), all in pairs."""
    k, m = split_exponent(b, x)
    s, s_low = quotient(b, b.fsub(m, 1.0), fast_two_sum(b, 1.0, m))
    square, square_low = two_product(b, s, s)
    square_low = b.fma(b.fadd(s, s), s_low, square_low)
    third = constant(b, c.THIRD, x)
    high, low = fast_two_sum(b, third[0], b.fmul(square, horner(b, square, c.ATANH)))
    bend = multiply(b, (s, s_low), multiply(b, (square, square_low), (high, b.fadd(low, third[1]))))
    high, low = fast_two_sum(b, s, bend[0])
    half_log = high, b.fadd(low, b.fadd(bend[1], s_low))
    log, log_low = multiply(b, half_log, constant(b, c.TWO_LOG2E, x))
    high, low = fast_two_sum(b, k, log)
    return high, b.fadd(low, log_low)


def _power(b: ScalarBuilder[V], x: V, y: V) -> V:
    """x**y for 0 < x < inf and |y| <= 2**66."""
    log, log_low = _log2_pair(b, x)
    exponent, low = two_product(b, y, log)
    low = b.fma(y, log_low, low)
    bounded = clamp(b, exponent, -1100.0, 1100.0)
    low = b.select(b.fcmp("oeq", exponent, bounded), low, 0.0)
    n, k = nearest_integer(b, bounded, 1.0)
    r = b.fadd(b.fsub(bounded, n), low)
    return scale(b, b.fma(r, horner(b, r, c.EXP2), 1.0), k)


def _short_power(b: ScalarBuilder[V], x: V, y: V) -> V:
    """x**y in float64 for values of float32, to about 2**-30."""
    k, m = split_exponent(b, x)
    s = b.fdiv(b.fsub(m, 1.0), b.fadd(m, 1.0))
    z = b.fmul(s, s)
    atanh = b.fma(b.fmul(s, z), horner(b, z, c.SHORT_ATANH), s)
    exponent = clamp(b, b.fmul(y, b.fma(atanh, c.TWO_LOG2E[0], k)), -400.0, 400.0)
    n, k_out = nearest_integer(b, exponent, 1.0)
    r = b.fsub(exponent, n)
    return scale(b, b.fma(r, horner(b, r, c.SHORT_EXP2), 1.0), k_out)


@rule("cbrt")
def cbrt(b: ScalarBuilder[V], x: V) -> V:
    """By the inverse root, which takes no division: a first guess by a third of the exponent's bits, then Newton's series."""
    root = _exact_cube_root if format_of(x) is DOUBLE else _single_cube_root
    return _with_special(b, x, lambda a: root(b, a))


def _with_special(b: ScalarBuilder[V], x: V, root: Callable[[V], V]) -> V:
    """An odd function that leaves zeros, infinities and nan as they are."""
    magnitude = b.fabs(x)
    is_finite = b.and_(b.fcmp("olt", magnitude, inf), b.fcmp("ogt", magnitude, 0.0))
    found = root(b.select(is_finite, magnitude, b.const(1.0, x.dtype)))
    return b.copysign(b.select(is_finite, found, magnitude), x)


def _cube_root(b: ScalarBuilder[V], a: V) -> V:
    """Of a normal number, to 1e-12 of itself. No product leaves the range, however large or small it is."""
    one = b.const(1.0, a.dtype)
    # The upper half of the bits, which a 32-bit multiplication divides by 3; 0x553F09FD is 4/3 of the bias, less what balances
    # the error: 0.04 at the most.
    upper = b.lshr(b.bitcast(a, DOUBLE.integer), 32)
    third = b.sub(0x553F09FD, b.lshr(b.mul(upper, 0x55555556), 32))
    inverse = b.bitcast(b.shl(third, 32), DOUBLE.dtype)
    error = b.fma(b.fneg(b.fmul(a, inverse)), b.fmul(inverse, inverse), one)
    series = b.fma(b.fma(error, 14 / 81, 2 / 9), error, 1 / 3)
    inverse = b.fma(b.fmul(inverse, error), series, inverse)  # (1 - error) ** (-1 / 3)
    root = b.fmul(b.fmul(a, inverse), inverse)
    error = b.fma(b.fneg(root), inverse, one)
    return b.fma(b.fmul(root, error), b.fma(error, 5 / 9, 2 / 3), root)  # (1 - error) ** (-2 / 3)


def _exact_cube_root(b: ScalarBuilder[V], a: V) -> V:
    """Of any number; the last step corrects a root of 26 bits, whose square is exact."""
    is_tiny, one = b.fcmp("olt", a, DOUBLE.smallest_normal), b.const(1.0, a.dtype)
    a = b.fmul(a, b.select(is_tiny, 2.0**54, one))
    root = b.bitcast(b.and_(b.bitcast(_cube_root(b, a), DOUBLE.integer), -(1 << 27)), DOUBLE.dtype)
    ratio = b.fdiv(a, b.fmul(root, root))
    root = b.fma(root, b.fdiv(b.fsub(ratio, root), b.fadd(b.fadd(root, root), ratio)), root)
    return b.fmul(root, b.select(is_tiny, 2.0**-18, one))


def _single_cube_root(b: ScalarBuilder[V], a: V) -> V:
    """As `_cube_root`, then Newton's step by what the root's cube, with the rest of its square, leaves of the number."""
    is_tiny, one = b.fcmp("olt", a, 2.0**-96), b.const(1.0, a.dtype)
    a = b.fmul(a, b.select(is_tiny, 2.0**72, one))
    # The upper bits as a mantissa are a float, and a third of it with a constant added is an integer in the lower bits.
    upper = b.or_(b.lshr(b.bitcast(a, SINGLE.integer), 8), SINGLE.bits(2.0**23))
    third = b.fma(b.bitcast(upper, SINGLE.dtype), 1 / 3, 2.0**23 * 7 / 6)
    inverse = b.bitcast(b.sub(-1801258349, b.shl(b.bitcast(third, SINGLE.integer), 8)), SINGLE.dtype)
    error = b.fma(b.fneg(b.fmul(a, inverse)), b.fmul(inverse, inverse), one)
    series = b.fma(b.fma(b.fma(error, 35 / 243, 14 / 81), error, 2 / 9), error, 1 / 3)
    inverse = b.fma(b.fmul(inverse, error), series, inverse)
    root = b.fmul(b.fmul(a, inverse), inverse)
    square = b.fmul(root, root)
    rest = b.fma(root, root, b.fneg(square))
    left = b.fma(b.fneg(root), rest, b.fma(b.fneg(root), square, a))
    root = b.fma(left, b.fmul(b.fmul(inverse, inverse), 1 / 3), root)
    return b.fmul(root, b.select(is_tiny, 2.0**-24, one))


@rule("hypot")
def hypot(b: ScalarBuilder[V], x: V, y: V) -> V:
    x, y = b.operands(x, y)
    if format_of(x) is not DOUBLE:
        wide = [b.convert(v, F64) for v in (x, y)]
        root = b.convert(b.sqrt(b.fma(wide[0], wide[0], b.fmul(wide[1], wide[1]))), F32)
    else:
        root = _scaled_hypot(b, b.fabs(x), b.fabs(y))
    is_infinite = b.or_(b.fcmp("oeq", b.fabs(x), inf), b.fcmp("oeq", b.fabs(y), inf))
    return b.select(is_infinite, inf, root)


def _scaled_hypot(b: ScalarBuilder[V], x: V, y: V) -> V:
    """The squares neither overflow nor underflow after a multiplication by a power of two."""
    large = b.max(x, y)
    one = b.const(1.0, x.dtype)
    is_huge, is_tiny = b.fcmp("ogt", large, 2.0**500), b.fcmp("olt", large, 2.0**-400)
    factor = b.select(is_huge, 2.0**-600, b.select(is_tiny, 2.0**600, one))
    back = b.select(is_huge, 2.0**600, b.select(is_tiny, 2.0**-600, one))
    x, y = b.fmul(x, factor), b.fmul(y, factor)
    return b.fmul(b.sqrt(b.fma(x, x, b.fmul(y, y))), back)
