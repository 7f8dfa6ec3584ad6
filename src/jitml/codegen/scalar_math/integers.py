"""Integer division, powers, bits and shifts as NumPy defines them: nothing traps, nothing is undefined."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.table import rule
from jitml.ir.types import F64, I64, unsigned


def _truncated(b: ScalarBuilder[V], x: V, y: V) -> tuple[V, V]:
    """Quotient and rest towards zero, for any divisor: by 0 both are 0, by -1 the quotient wraps."""
    divisor = b.constant_value(y)
    if divisor is not None and divisor > 0:
        quotient = b.divide(x, y)
        return quotient, b.sub(x, b.mul(quotient, y))
    is_zero = _raise_where_zero(b, y)
    is_minus_one = b.icmp("eq", y, -1) if x.dtype.kind == "i" else None
    is_special = is_zero if is_minus_one is None else b.or_(is_zero, is_minus_one)
    safe = b.select(is_special, b.const(1, y.dtype), y)
    quotient = _quotient(b, x, safe)
    rest = b.sub(x, b.mul(quotient, safe))
    if is_minus_one is not None:
        quotient = b.select(is_minus_one, b.sub(0, x), quotient)
    return b.select(is_zero, 0, quotient), b.select(is_zero, 0, rest)


def _raise_where_zero(b: ScalarBuilder[V], y: V) -> V:
    """Where a divisor is 0. A division by it in float64 would raise others too, and LLVM drops those that it can do without."""
    is_zero = b.icmp("eq", y, 0)
    if b.constant_value(y) in (None, 0):
        b.raise_errors(divide=is_zero)
    return is_zero


def _divides_in_float(x: V, y: V) -> bool:
    """Vectors of up to 32 bits divide in float64: 1/x exceeds its rounding, so that truncation is exact."""
    return x.dtype.itemsize < 8 and max(x.lanes, y.lanes) > 1


def _quotient(b: ScalarBuilder[V], x: V, y: V) -> V:
    if not _divides_in_float(x, y):
        return b.divide(x, y)
    ratio = b.fdiv(b.convert(x, F64), b.convert(y, F64))
    return b.convert(ratio, x.dtype)


def _divides_as_float(x: V, y: V) -> bool:
    """Vectors of 64 bits: no processor divides them, and LLVM takes them apart."""
    return x.dtype == I64 and max(x.lanes, y.lanes) > 1


def _floored(b: ScalarBuilder[V], x: V, y: V) -> tuple[V, V]:
    """Quotient rounded down and rest, of 64 bits, by the reciprocal in float64; all integers wrap.

    A first quotient is wrong by some 2**-50 of itself, so that |rest| < |y| + 2**13. What the rest still holds is found
    in the same way, less a little, so that it is right or one too small.
    """
    x, y = b.operands(x, y)
    is_zero = _raise_where_zero(b, y)
    inverse = b.fdiv(1.0, b.convert(b.select(is_zero, 1, y), F64))
    quotient = b.convert(b.fmul(b.convert(x, F64), inverse), I64)
    rest = b.sub(x, b.mul(quotient, y))
    held = b.floor(b.fma(b.convert(rest, F64), inverse, -(2.0**-30)))
    more = b.convert_small(held, I64)
    quotient, rest = b.add(quotient, more), b.sub(rest, b.mul(more, y))
    # It has the divisor's sign, and less than twice its size: that takes all 64 bits.
    is_negative = b.icmp("lt", y, 0)
    sizes = (b.bitcast(b.select(is_negative, b.sub(0, v), v), unsigned(I64)) for v in (rest, y))
    is_left = b.icmp("ge", *sizes)
    quotient, rest = b.select(is_left, b.add(quotient, 1), quotient), b.select(is_left, b.sub(rest, y), rest)
    return b.select(is_zero, 0, quotient), b.select(is_zero, 0, rest)


def _power_of_two(b: ScalarBuilder[V], y: V) -> int | None:
    """n of a constant 2**n."""
    divisor = b.constant_value(y)
    if not isinstance(divisor, int) or divisor <= 0 or divisor & (divisor - 1):
        return None
    return divisor.bit_length() - 1


def floor_divide_integers(b: ScalarBuilder[V], x: V, y: V) -> V:
    power = _power_of_two(b, y)
    if power is not None:
        return b.ashr(x, power) if x.dtype.kind == "i" else b.lshr(x, power)
    if x.dtype.kind == "i" and b.constant_value(y) in (None, -1):
        b.raise_errors(overflow=b.and_(b.icmp("eq", y, -1), b.icmp("eq", x, -(1 << (8 * x.dtype.itemsize - 1)))))
    if _divides_as_float(x, y):
        return _floored(b, x, y)[0]
    quotient, rest = _truncated(b, x, y)
    if x.dtype.kind == "u":
        return quotient
    return b.sub(quotient, b.convert(_is_off(b, rest, y), x.dtype))


def remainder_integers(b: ScalarBuilder[V], x: V, y: V) -> V:
    power = _power_of_two(b, y)
    if power is not None:
        return b.and_(x, (1 << power) - 1)
    if _divides_as_float(x, y):
        return _floored(b, x, y)[1]
    _, rest = _truncated(b, x, y)
    if x.dtype.kind == "u":
        return rest
    return b.select(_is_off(b, rest, y), b.add(rest, y), rest)


def _is_off(b: ScalarBuilder[V], rest: V, y: V) -> V:
    """Whether truncation rounded up: a rest is left, and its sign is not the divisor's."""
    return b.and_(b.icmp("ne", rest, 0), b.icmp("lt", b.xor(rest, y), 0))


def fmod_integers(b: ScalarBuilder[V], x: V, y: V) -> V:
    return _truncated(b, x, y)[1]


def pow_integers(b: ScalarBuilder[V], x: V, y: V) -> V:
    """Wrapping powers by repeated squaring, until no lane has an exponent left; negative exponents count as 0."""
    x, y = b.operands(x, y)
    if y.dtype.kind == "i":
        y = b.select(b.icmp("lt", y, 0), 0, y)
    one = b.splat(b.const(1, x.dtype), x.lanes)

    def step(values: list[V]) -> Sequence[V]:
        base, exponent, product = values
        is_odd = b.icmp("ne", b.and_(exponent, 1), 0)
        scaled = b.select(is_odd, b.mul(product, base), product)
        return b.mul(base, base), b.lshr(exponent, 1), scaled

    _, _, product = b.repeat((x, y, one), lambda values: b.icmp("ne", values[1], 0), step)
    return product


# ------------------------------------------------------------------------------------------------------------- bits


@rule("bit_and")
def bit_and(b: ScalarBuilder[V], x: V, y: V) -> V:
    return b.and_(x, y)


@rule("bit_or")
def bit_or(b: ScalarBuilder[V], x: V, y: V) -> V:
    return b.or_(x, y)


@rule("bit_xor")
def bit_xor(b: ScalarBuilder[V], x: V, y: V) -> V:
    return b.xor(x, y)


@rule("bit_not")
def bit_not(b: ScalarBuilder[V], x: V) -> V:
    return b.not_(x)


@rule("count_bits")
def count_bits(b: ScalarBuilder[V], x: V) -> V:
    return b.bitcast(b.count_bits(b.bitcast(x, unsigned(x.dtype))), x.dtype)


@rule("add_overflows")
def add_overflows(b: ScalarBuilder[V], x: V, y: V) -> V:
    if (flag := b.overflow_flag("add", x, y)) is not None:
        return flag
    x, y = b.operands(x, y)
    total = b.add(x, y)
    if x.dtype.kind == "u":
        return b.icmp("lt", total, x)
    return b.icmp("lt", b.and_(b.xor(x, total), b.xor(y, total)), 0)  # two of one sign, whose sum has the other


@rule("sub_overflows")
def sub_overflows(b: ScalarBuilder[V], x: V, y: V) -> V:
    if (flag := b.overflow_flag("sub", x, y)) is not None:
        return flag
    x, y = b.operands(x, y)
    if x.dtype.kind == "u":
        return b.icmp("lt", x, y)
    return b.icmp("lt", b.and_(b.xor(x, y), b.xor(x, b.sub(x, y))), 0)


@rule("mul_overflows")
def mul_overflows(b: ScalarBuilder[V], x: V, y: V) -> V:
    """By the product in twice the width; of 64 bits by the one in float64: what wraps around is off by 2**64 or more."""
    if (flag := b.overflow_flag("mul", x, y)) is not None:
        return flag
    x, y = b.operands(x, y)
    product = b.mul(x, y)
    if x.dtype.itemsize < 8:
        wide = unsigned(I64) if x.dtype.kind == "u" else I64
        return b.icmp("ne", b.mul(b.convert(x, wide), b.convert(y, wide)), b.convert(product, wide))
    with b.strict():
        rough = b.fmul(b.convert(x, F64), b.convert(y, F64))
        return b.fcmp("oge", b.fabs(b.fsub(rough, b.convert(product, F64))), 2.0**63)


def _is_shift(b: ScalarBuilder[V], count: V) -> V:
    """Whether 0 <= count < width: a negative count is a huge unsigned one."""
    return b.icmp("lt", b.bitcast(count, unsigned(count.dtype)), 8 * count.dtype.itemsize)


@rule("shift_left")
def shift_left(b: ScalarBuilder[V], x: V, count: V) -> V:
    inside = _is_shift(b, count)
    return b.select(inside, b.shl(x, b.select(inside, count, 0)), 0)


@rule("shift_right")
def shift_right(b: ScalarBuilder[V], x: V, count: V) -> V:
    inside = _is_shift(b, count)
    if x.dtype.kind == "i":
        return b.ashr(x, b.select(inside, count, 8 * x.dtype.itemsize - 1))
    return b.select(inside, b.lshr(x, b.select(inside, count, 0)), 0)
