"""Spelling: how are types, numbers and names written in CUDA C++?  The type names are the prelude's (`prelude.cuh`)."""

from __future__ import annotations

import re
from math import copysign, isinf, isnan

import numpy as np

from jitml.ir.types import BOOL, F16, F32, DType, dtype_name

# A program's own names must not be these.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    i8 u8 i16 u16 i32 u32 i64 u64 f16 error parts failed scratch wide linux unix
    threadIdx blockIdx blockDim gridDim warpSize
    fabs floor ceil trunc rint sqrt copysign fma fmod sin cos tan pow min max abs
"""
RESERVED = frozenset(re.findall(r"\w+", _WORDS))
_NO_WORD = re.compile(r"\W")
_LIBRARY = re.compile(r"(ji|ce|cuda|CE|JI)_\w*|_+[A-Z_]\w*|y[01n]|j[01n]|(\w+[fl])")


def identifier(name: str) -> str:
    """A name that C++ takes, and that means nothing there.

    Args:
        name: of a buffer, an index, a cell.

    >>> identifier("%3"), identifier("int"), identifier("sinf"), identifier("i0")
    ('v_3', 'int_', 'sinf_', 'i0')
    """
    word = _NO_WORD.sub("_", name)
    if word.startswith("_") or word[:1].isdigit() or not word:
        word = f"v{word}" if word.startswith("_") else f"v_{word}"
    return f"{word}_" if word in RESERVED or _LIBRARY.fullmatch(word) else word


def type_of(dtype: DType) -> str:
    """The type of a value in a register.

    >>> type_of(np.dtype("f4")), type_of(np.dtype("u1")), type_of(np.dtype("f2"))
    ('float', 'u8', 'f16')
    """
    if dtype == BOOL:
        return "bool"
    if dtype.kind == "f" and dtype != F16:
        return "float" if dtype == F32 else "double"
    return dtype_name(dtype)


def memory_type_of(dtype: DType) -> str:
    """The type of an element in memory, where a bool is a byte."""
    return "u8" if dtype == BOOL else type_of(dtype)


def literal(value: float, dtype: DType) -> str:
    """A constant's text: exact, and of a type that C++ does not change on the way.

    Short decimals stand for themselves, other floats as hexadecimal digits; a float16 as its bits. Integers wrap around.

    >>> literal(0.5, np.dtype("f4")), literal(0.1, np.dtype("f8")), literal(-1, np.dtype("u4")), literal(2**40, np.dtype("i8"))
    ('0.5f', '0x1.999999999999ap-4', '4294967295u', '1099511627776LL')
    """
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype == F16:
        with np.errstate(over="ignore"):
            return f"0x{int(np.array(value, F16).view(np.uint16)):04x}"
    return _float_literal(value, dtype) if dtype.kind == "f" else _integer_literal(int(value), dtype)


def _float_literal(value: float, dtype: DType) -> str:
    with np.errstate(over="ignore"):
        number = float(dtype.type(value))
    suffix = "f" if dtype == F32 else ""
    if isnan(number) or isinf(number):
        word = f"ji_{'nan' if isnan(number) else 'inf'}{suffix}"
        return f"-{word}" if copysign(1.0, number) < 0 else word
    text = repr(number)
    # A quotient of small numbers, by a power of two, is the same number to every compiler.
    if len(text) > 8 or "e" in text or number * 1024 != int(number * 1024):
        sign, digits = ("-", number.hex()[1:]) if number < 0 else ("", number.hex())
        text = sign + re.sub(r"\.?0*p", "p", digits, count=1)
    return f"{text}{suffix}"


def _integer_literal(value: int, dtype: DType) -> str:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    if dtype.kind == "u":
        return f"{value}ULL" if value >> 32 else f"{value}u" if bits >= 32 else f"{value}"
    if value >> (bits - 1):
        value -= 1 << bits
    if value == -(1 << bits - 1) and bits >= 32:
        return "(-2147483647 - 1)" if bits == 32 else "(-9223372036854775807LL - 1)"
    return f"{value}LL" if not -(1 << 31) < value < 1 << 31 else f"{value}"
