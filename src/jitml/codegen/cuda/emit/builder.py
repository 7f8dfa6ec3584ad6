"""Scalar builder: how is one scalar operation written in CUDA C++?  As a line of text that names its result.

The rules in `scalar_math/`, whose `ScalarBuilder` this is, write whole functions through it (`functions.py`). Each operation
is C++'s own where that is what NumPy computes; where C++ leaves something undefined (overflow of signed integers, casts of floats
that do not fit), it is written so that nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from jitml.codegen.cuda.emit.spelling import literal, type_of
from jitml.codegen.cuda.emit.user_functions import definition
from jitml.ir.op import ScalarCode
from jitml.ir.types import BOOL, F16, F32, F64, I64, DType, signed, unsigned
from jitml.records import dataclass, replace

_ORDERS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOAT_ORDERS = {"oeq": "==", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">=", "une": "!="}
_EXACT = 1 << 24  # up to here every float has all integers


@dataclass(frozen=True, slots=True)
class CudaValue:
    """A value of one lane: the text of an expression without effects; `number` is what a constant stands for."""

    dtype: DType
    text: str
    number: bool | int | float | None = None
    lanes: int = 1


CudaArg: TypeAlias = CudaValue | bool | int | float


class CudaBuilder:
    """Appends lines to the body of one function.

    Attributes:
        asks_for_constants: whether what has been written depends on the number that a constant is.
        needed: definitions of functions of the user's that it calls, by their names.
    """

    has_fma = True

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.asks_for_constants = False
        self.needed: dict[str, str] = {}
        self._count = 0

    # --------------------------------------------------------------------------------------------------- text

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def define(self, dtype: DType, expression: str) -> CudaValue:
        """Append `const T name = expression;`."""
        name = f"t{self._count}"
        self._count += 1
        self.emit(f"const {type_of(dtype)} {name} = {expression};")
        return CudaValue(dtype, name)

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Arithmetic is always as written."""
        yield

    # ------------------------------------------------------------------------------------------------- values

    def const(self, value: float, dtype: DType) -> CudaValue:
        if dtype.kind in "iu":
            bits = 8 * dtype.itemsize
            value = int(value) & ((1 << bits) - 1)
            if dtype.kind == "i" and value >> (bits - 1):
                value -= 1 << bits
        return CudaValue(dtype, literal(value, dtype), value)

    def constant_value(self, x: CudaValue) -> float | None:
        self.asks_for_constants |= x.number is not None
        return x.number

    def splat(self, x: CudaValue, lanes: int) -> CudaValue:
        return x

    def operands(self, *args: CudaArg) -> list[CudaValue]:
        dtype = next(a.dtype for a in args if isinstance(a, CudaValue))
        return [a if isinstance(a, CudaValue) else self.const(a, dtype) for a in args]

    # ----------------------------------------------------------------------------------------------- floating

    def _float(self, template: str, *args: CudaArg) -> CudaValue:
        """An operation on floats; `{f}` in its text is the letter that C's functions of float32 end with."""
        xs = self.operands(*args)
        dtype = xs[0].dtype
        if dtype == F16:
            return self.convert(self._float(template, *(self.convert(x, F32) for x in xs)), F16)
        return self.define(dtype, template.format(*(x.text for x in xs), f="f" if dtype == F32 else ""))

    def fadd(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._float("{0} + {1}", x, y)

    def fsub(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._float("{0} - {1}", x, y)

    def fmul(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._float("{0} * {1}", x, y)

    def fdiv(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._float("{0} / {1}", x, y)

    def fma(self, x: CudaArg, y: CudaArg, z: CudaArg) -> CudaValue:
        return self._float("fma{f}({0}, {1}, {2})", x, y, z)

    def sqrt(self, x: CudaArg) -> CudaValue:
        return self._float("sqrt{f}({0})", x)

    def fabs(self, x: CudaValue) -> CudaValue:
        return self._float("fabs{f}({0})", x)

    def fneg(self, x: CudaValue) -> CudaValue:
        return self._float("-({0})", x)

    def copysign(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._float("copysign{f}({0}, {1})", x, y)

    def sign_bit(self, x: CudaValue) -> CudaValue:
        return self.and_(self.bitcast(x, signed(x.dtype)), 1 << (8 * x.dtype.itemsize - 1))

    def flip_sign(self, x: CudaValue, sign: CudaValue) -> CudaValue:
        return self.bitcast(self.xor(self.bitcast(x, sign.dtype), sign), x.dtype)

    def rint(self, x: CudaArg) -> CudaValue:
        return self._float("rint{f}({0})", x)

    def floor(self, x: CudaArg) -> CudaValue:
        return self._float("floor{f}({0})", x)

    def ceil(self, x: CudaArg) -> CudaValue:
        return self._float("ceil{f}({0})", x)

    def trunc(self, x: CudaArg) -> CudaValue:
        return self._float("trunc{f}({0})", x)

    def fcmp(self, predicate: str, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        if a.dtype == F16:
            a, b = self.convert(a, F32), self.convert(b, F32)
        if predicate in _FLOAT_ORDERS:
            return self.define(BOOL, f"{a.text} {_FLOAT_ORDERS[predicate]} {b.text}")
        if predicate == "one":
            return self.define(BOOL, f"{a.text} < {b.text} || {a.text} > {b.text}")
        both = f" || {b.text} != {b.text}" if b.text != a.text and b.number is None else ""
        return self.define(BOOL, f"{a.text} != {a.text}{both}")

    # ------------------------------------------------------------------------------------------------ integer

    def _integer(self, symbol: str, x: CudaArg, y: CudaArg) -> CudaValue:
        """Modulo the width: computed without sign, of at least 32 bits, which C++ defines."""
        a, b = self.operands(x, y)
        dtype = a.dtype
        if dtype.kind == "u" and dtype.itemsize >= 4:
            return self.define(dtype, f"{a.text} {symbol} {b.text}")
        wide = "u64" if dtype.itemsize == 8 else "u32"
        return self.define(dtype, f"({type_of(dtype)})(({wide}){a.text} {symbol} ({wide}){b.text})")

    def add(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._integer("+", x, y)

    def sub(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._integer("-", x, y)

    def mul(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._integer("*", x, y)

    def _bitwise(self, symbol: str, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        return self.define(a.dtype, self._cut(f"{a.text} {symbol} {b.text}", a.dtype))

    def _cut(self, expression: str, dtype: DType) -> str:
        """C++ makes an int of what is shorter."""
        return f"({type_of(dtype)})({expression})" if dtype.itemsize < 4 else expression

    def and_(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._bitwise("&", x, y)

    def or_(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._bitwise("|", x, y)

    def xor(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self._bitwise("^", x, y)

    def not_(self, x: CudaValue) -> CudaValue:
        return self.define(x.dtype, f"!{x.text}" if x.dtype == BOOL else self._cut(f"~{x.text}", x.dtype))

    def count_bits(self, x: CudaValue) -> CudaValue:
        return self.define(x.dtype, f"({type_of(x.dtype)})__popcll({x.text})")

    def shl(self, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        wide = "u64" if a.dtype.itemsize == 8 else "u32"
        return self.define(a.dtype, f"({type_of(a.dtype)})(({wide}){a.text} << {b.text})")

    def lshr(self, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        return self.define(a.dtype, f"({type_of(a.dtype)})(({type_of(unsigned(a.dtype))}){a.text} >> {b.text})")

    def ashr(self, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        return self.define(a.dtype, f"({type_of(a.dtype)})(({type_of(signed(a.dtype))}){a.text} >> {b.text})")

    def overflow_flag(self, operation: str, x: CudaValue, y: CudaValue) -> CudaValue | None:
        """C++ shows no flags."""
        return None

    def divide(self, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        return self.define(a.dtype, self._cut(f"{a.text} / {b.text}", a.dtype))

    def icmp(self, predicate: str, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        return self.define(BOOL, f"{a.text} {_ORDERS[predicate]} {b.text}")

    # -------------------------------------------------------------------------------------------- either kind

    def compare(self, predicate: str, x: CudaArg, y: CudaArg, *, chooses: bool = False) -> CudaValue:
        """C++ orders floats as IEEE does: with a nan only `!=` holds."""
        a, b = self.operands(x, y)
        if a.dtype == F16:
            a, b = self.convert(a, F32), self.convert(b, F32)
        return self.icmp(predicate, a, b)

    def select(self, condition: CudaValue, x: CudaArg, y: CudaArg) -> CudaValue:
        a, b = self.operands(x, y)
        return self.define(a.dtype, f"{condition.text} ? {a.text} : {b.text}")

    def min(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self.select(self.compare("lt", x, y), *self.operands(x, y))

    def max(self, x: CudaArg, y: CudaArg) -> CudaValue:
        return self.select(self.compare("gt", x, y), *self.operands(x, y))

    def bitcast(self, x: CudaValue, dtype: DType) -> CudaValue:
        if x.dtype == dtype:
            return x
        if x.dtype in (F32, F64):
            bits = f"ji_bits({x.text})"
            return self.define(dtype, bits if dtype.kind == "i" else f"({type_of(dtype)}){bits}")
        if dtype in (F32, F64):
            bits = x.text if x.dtype.kind == "i" else f"({type_of(signed(x.dtype))}){x.text}"
            return self.define(dtype, f"ji_{'float' if dtype == F32 else 'double'}({bits})")
        return self.define(dtype, f"({type_of(dtype)}){x.text}")

    def convert(self, x: CudaValue, dtype: DType, *, raises: bool = False) -> CudaValue:
        """NumPy's cast; see `ScalarBuilder`. Floating-point errors are not heard of."""
        if x.dtype == dtype:
            return x
        if x.number is not None and x.dtype.kind != "f" and dtype != F16 and abs(x.number) <= _EXACT:
            return self.const(bool(x.number) if dtype == BOOL else x.number, dtype)
        if dtype == BOOL:
            return self.compare("ne", x, 0)
        if x.dtype == F16:
            return self._from_half(x, dtype)
        if dtype == F16:
            wide = x if x.dtype in (F32, F64) else self.convert(x, F32)
            return self.define(F16, f"ji_narrow({wide.text})")
        if x.dtype.kind == "f" and dtype.kind != "f":
            return self._to_integer(x, dtype)
        return self.define(dtype, f"({type_of(dtype)}){x.text}")

    def _from_half(self, x: CudaValue, dtype: DType) -> CudaValue:
        wide = self.define(F32, f"ji_widen({x.text})")
        if type_of(dtype) == "u32":
            wide = self.convert(wide, I64)
        return self.convert(wide, dtype)

    def _to_integer(self, x: CudaValue, dtype: DType) -> CudaValue:
        if dtype.itemsize >= 4:
            return self.define(dtype, f"ji_to_{type_of(dtype)}({x.text})")
        return self.define(dtype, f"({type_of(dtype)})ji_to_i32({x.text})")

    def convert_small(self, x: CudaValue, dtype: DType) -> CudaValue:
        return self.define(dtype, f"({type_of(dtype)}){x.text}")

    # ----------------------------------------------------------------------------------------- control, effects

    def repeat(
        self,
        start: Sequence[CudaValue],
        more: Callable[[list[CudaValue]], CudaValue],
        step: Callable[[list[CudaValue]], Sequence[CudaValue]],
    ) -> list[CudaValue]:
        current = []
        for x in start:
            name = f"r{self._count}"
            self._count += 1
            self.emit(f"{type_of(x.dtype)} {name} = {x.text};")
            current.append(replace(x, text=name, number=None))
        self.emit("while (true) {")
        self.depth += 1
        self.emit(f"if (!({more(current).text})) break;")
        for now, following in zip(current, step(current), strict=True):
            self.emit(f"{now.text} = {following.text};")
        self.depth -= 1
        self.emit("}")
        return current

    def raise_errors(self, **masks: CudaValue) -> None:
        """A GPU has no flags for floating-point errors."""

    def call_libm(self, function: str, *args: CudaArg) -> CudaValue:
        template = f"{function}{{f}}({', '.join(f'{{{k}}}' for k in range(len(args)))})"
        return self._float(template, *args)

    def call_user_function(self, name: str, code: ScalarCode, args: Sequence[CudaValue]) -> CudaValue:
        self.needed[name] = definition(code, name)
        return self.define(code.result, f"{name}({', '.join(x.text for x in args)})")

    def where_rare(self, mask: CudaValue, fast: CudaValue, function: str, *args: CudaArg) -> CudaValue:
        """The device's function of that name, called in a branch that is almost never taken (the prelude's `ji_rare_...`)."""
        *xs, fast = self.operands(*args, fast)
        call = f"ji_rare_{function}({', '.join(x.text for x in xs)})"
        return self.define(fast.dtype, f"{mask.text} ? {call} : {fast.text}")
