"""Operands: what is a value of emitted code?

An `Operand`: a dtype, a lane count and SSA names; and how dtypes and constants are spelt.

One name per *copy*: several vectors that go through the same operations side by side.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from jitml.ir.types import BOOL, F16, F64, DType
from jitml.records import dataclass

_FLOAT_TYPES = {2: "half", 4: "float", 8: "double"}


@dataclass(frozen=True, slots=True)
class Operand:
    """A scalar (lanes 1) or SIMD value of the kernel; `names` has one entry per copy, or one that serves all copies."""

    dtype: DType
    lanes: int
    names: tuple[str, ...]

    @property
    def is_constant(self) -> bool:
        return len(self.names) == 1 and self.lanes == 1 and not self.names[0].startswith("%")

    @property
    def type(self) -> str:
        return llvm_type(self.dtype, self.lanes)


Arg: TypeAlias = Operand | bool | int | float


@lru_cache(maxsize=256)
def llvm_type(dtype: DType, lanes: int = 1) -> str:
    """`<8 x double>` for (float64, 8); bools are i1, and integers have no sign in LLVM.

    >>> llvm_type(np.dtype("f8"), 8)
    '<8 x double>'
    """
    if dtype == BOOL:
        element = "i1"
    elif dtype.kind == "f":
        element = _FLOAT_TYPES[dtype.itemsize]
    else:
        element = f"i{8 * dtype.itemsize}"
    return element if lanes == 1 else f"<{lanes} x {element}>"


def mangled(dtype: DType, lanes: int = 1) -> str:
    """A type as it stands in the names of intrinsics.

    >>> mangled(np.dtype("f8"), 8), mangled(BOOL)
    ('v8f64', 'i8')
    """
    element = f"{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"
    return element if lanes == 1 else f"v{lanes}{element}"


def c_type(dtype: DType) -> str:
    """The type of such a number in calls of C functions, whose bool is a byte."""
    return "i8" if dtype == BOOL else llvm_type(dtype)


def literal(value: bool | int | float, dtype: DType) -> str:
    """A constant's text: hex bits for floats (exact, and the only form for nan and inf), signed decimals for integers.

    >>> literal(1.0, np.dtype("f8")), literal(0.1, np.dtype("f4")), literal(2**64 - 1, np.dtype("u8"))
    ('0x3FF0000000000000', '0x3FB99999A0000000', '-1')
    """
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype == F64:
        return f"0x{int.from_bytes(struct.pack('>d', value)):016X}"
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            number = dtype.type(value)
        if dtype == F16:
            return f"0xH{int(number.view(np.uint16)):04X}"
        # LLVM writes a float constant as the double of the same value.
        return f"0x{int(np.float64(number).view(np.uint64)):016X}"
    bits = 8 * dtype.itemsize
    wrapped = int(value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


def constant_value(x: Operand) -> int | float | None:
    """The number that a constant, or the splat of one, stands for; None for a computed value.

    >>> constant_value(Operand(np.dtype("f8"), 8, (f"splat (double {literal(0.5, np.dtype('f8'))})",)))
    0.5
    """
    digits = x.names[0].removeprefix(f"splat ({llvm_type(x.dtype)} ").removesuffix(")")
    if len(x.names) != 1 or digits[0] not in "-0123456789tf":
        return None
    if x.dtype == BOOL:
        return int(digits == "true")
    if x.dtype.kind != "f":
        return int(digits)
    if x.dtype == F16:
        return float(np.uint16(int(digits[3:], 16)).view(np.float16))
    return float(np.uint64(int(digits, 16)).view(np.float64))
