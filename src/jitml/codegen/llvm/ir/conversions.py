"""Conversions: how does a value change its dtype?  As in NumPy, bit for bit, and never to one of LLVM's undefined values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jitml.codegen.llvm.ir.operand import Operand
from jitml.ir.types import BOOL, DTYPES, F16, F32, F64, I32, I64, DType, signed

if TYPE_CHECKING:
    from jitml.codegen.llvm.ir.builder import Builder

U16, U32, U64 = (DTYPES[name] for name in ("u16", "u32", "u64"))


def convert(b: Builder, x: Operand, dtype: DType, *, raises: bool = False) -> Operand:
    """NumPy's cast: integers wrap, floats round to nearest even, anything but zero (nan too) is True.

    A float outside the integer's range gives what NumPy gives on x86: the least integer of the 32- or 64-bit
    conversion that it goes through, cut to the width. LLVM's own casts would be undefined there.

    Args:
        raises: such a float is a floating-point error, as in NumPy.
    """
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return b.compare("ne", x, 0)
    if x.dtype.kind == "f":
        return _from_float(b, x, dtype, raises)
    if dtype == F16:
        return convert(b, convert(b, x, F32), F16)
    if dtype.kind == "f":
        return b.cast("sitofp" if x.dtype.kind == "i" else "uitofp", x, dtype)
    if x.dtype == BOOL or x.dtype.itemsize < dtype.itemsize:
        return b.cast("sext" if x.dtype.kind == "i" else "zext", x, dtype)
    return replace(x, dtype=dtype) if x.dtype.itemsize == dtype.itemsize else b.cast("trunc", x, dtype)


def _from_float(b: Builder, x: Operand, dtype: DType, raises: bool) -> Operand:
    if dtype.kind == "f":
        return _between_floats(b, x, dtype)
    if x.dtype == F16:
        wide = convert(b, x, F32)
        return convert(b, convert(b, wide, I64, raises=raises) if dtype == U32 else wide, dtype, raises=raises)
    if dtype in (U32, U64):
        width, part = 8 * dtype.itemsize, signed(dtype)
        is_large = b.fcmp("oge", x, 2.0 ** (width - 1))
        low = _to_signed(b, b.select(is_large, b.fsub(x, 2.0 ** (width - 1)), x), part, raises)
        return replace(b.xor(low, b.shl(convert(b, is_large, part), width - 1)), dtype=dtype)
    return convert(b, _to_signed(b, x, I64 if dtype == I64 else I32, raises), dtype)


def _between_floats(b: Builder, x: Operand, dtype: DType) -> Operand:
    if F16 in (x.dtype, dtype) and F64 in (x.dtype, dtype):
        return convert(b, convert(b, x, F32) if x.dtype == F16 else _to_odd(b, x), dtype)
    # Processors without fused multiply-add have no instruction for float16 either, and LLVM would call a library.
    if x.dtype == F16 and not b.has_fma:
        return _widen_half(b, x)
    if dtype == F16 and not b.has_fma:
        return _narrow_to_half(b, x)
    return b.cast("fpext", x, dtype) if dtype.itemsize > x.dtype.itemsize else b.narrow(x, dtype)


def _widen_half(b: Builder, x: Operand) -> Operand:
    """float16 to float32: the bits moved into place, and a multiplication that rebiases the exponent, subnormals too."""
    bits = convert(b, b.bitcast(x, U16), U32)
    magnitude = b.and_(bits, 0x7FFF)
    moved = b.shl(magnitude, 13)
    finite = b.bitcast(b.fmul(b.bitcast(moved, F32), 2.0**112), U32)
    result = b.select(b.icmp("lt", magnitude, 0x7C00), finite, b.or_(moved, 0x7F800000))
    return b.bitcast(b.or_(result, b.shl(b.xor(bits, magnitude), 16)), F32)


def _narrow_to_half(b: Builder, x: Operand) -> Operand:
    """float32 to float16, ties to even (after F. Giesen's float_to_half_fast3_rtne)."""
    bits = b.bitcast(x, U32)
    magnitude = b.and_(bits, 0x7FFFFFFF)
    # Below the smallest normal float16 the addition of 1/2 leaves the rounded subnormal in the low bits.
    small = b.sub(b.bitcast(b.fadd(b.bitcast(magnitude, F32), 0.5), U32), 0x3F000000)
    odd = b.and_(b.lshr(magnitude, 13), 1)
    normal = b.lshr(b.add(b.add(magnitude, odd), (((15 - 127) << 23) + 0xFFF) & 0xFFFFFFFF), 13)
    extreme = b.select(b.icmp("gt", magnitude, 0x7F800000), b.const(0x7E00, U32), 0x7C00)
    result = b.select(b.icmp("lt", magnitude, 113 << 23), small, normal)
    result = b.select(b.icmp("ge", magnitude, (127 + 16) << 23), extreme, result)
    sign = b.and_(b.lshr(bits, 16), 0x8000)
    return b.bitcast(convert(b, b.or_(result, sign), U16), F16)


def _to_signed(b: Builder, x: Operand, dtype: DType, raises: bool) -> Operand:
    """fptosi, with the least integer for nan and all that does not fit."""
    limit = 2.0 ** (8 * dtype.itemsize - 1)
    # The truncation of anything above -2**31 - 1 still fits; the next float64 below -2**63 does not.
    is_above = b.fcmp("ogt", x, -limit - 1) if (x.dtype, dtype) == (F64, I32) else b.fcmp("oge", x, -limit)
    fits = b.and_(is_above, b.fcmp("olt", x, limit))
    if raises:
        b.raise_errors(invalid=b.not_(fits))
    cast = b.cast("fptosi", b.select(fits, x, 0.0), dtype)
    return b.select(fits, cast, -int(limit))


def _to_odd(b: Builder, x: Operand) -> Operand:
    """float64 to float32, with the last bit set if inexact, so that a second rounding cannot be off by a tie."""
    near = b.narrow(x, F32)
    wide = b.cast("fpext", near, F64)
    is_above = b.fcmp("ogt", b.fabs(wide), b.fabs(x))
    bits = b.sub(b.bitcast(near, I32), convert(b, is_above, I32))
    return b.bitcast(b.or_(bits, convert(b, b.fcmp("une", wide, x), I32)), F32)
