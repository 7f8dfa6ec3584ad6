"""How is one scalar expression written for many lanes at once?  Straight-line LLVM IR text, vector by vector.

Every value is an `Operand`: a dtype, a lane count, and one SSA name (or constant) per *copy*. A kernel works on several
vectors per iteration, and each operation is written for all copies before the next operation starts, so that
independent chains overlap in the processor. The rules in `math/` and the statement emitter both write through this
class; it knows nothing of loops or memory. Text, because LLVM parses it faster than an object tree can be built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from jitml.ir.types import BOOL, DTYPES, F32, F64, I32, I64, DType

F16, U32, U64 = DTYPES["f16"], DTYPES["u32"], DTYPES["u64"]

_FLOAT_TYPES = {2: "half", 4: "float", 8: "double"}
_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


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


def llvm_type(dtype: DType, lanes: int = 1) -> str:
    """`<8 x double>` for (float64, 8); bools are i1, and integers have no sign in LLVM.

    >>> llvm_type(F64, 8)
    '<8 x double>'
    """
    if dtype == BOOL:
        element = "i1"
    elif dtype.kind == "f":
        element = _FLOAT_TYPES[dtype.itemsize]
    else:
        element = f"i{8 * dtype.itemsize}"
    return element if lanes == 1 else f"<{lanes} x {element}>"


def literal(value: bool | int | float, dtype: DType) -> str:
    """A constant's text: hex bits for floats (exact, and the only form for nan and inf), signed decimals for integers.

    >>> literal(1.0, F64), literal(0.1, F32), literal(2**64 - 1, U64)
    ('0x3FF0000000000000', '0x3FB99999A0000000', '-1')
    """
    if dtype == BOOL:
        return "true" if value else "false"
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

    >>> constant_value(Operand(F64, 8, (f"splat (double {literal(0.5, F64)})",)))
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


def signed(dtype: DType) -> DType:
    """The signed integer dtype of the same width (of a float: of its bits)."""
    return DTYPES[f"i{8 * dtype.itemsize}"]


def unsigned(dtype: DType) -> DType:
    return DTYPES[f"u{8 * dtype.itemsize}"]


@dataclass
class Declarations:
    """What the functions of one module share: declarations, constants in memory and numbered metadata, each written once."""

    externals: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)

    def declare(self, text: str) -> None:
        self.externals[f"declare {text}"] = None

    def constant(self, text: str) -> str:
        """The name of a constant in memory, for instance of `i32 5`."""
        return self.constants.setdefault(text, f"@constant.{len(self.constants)}")

    def metadata(self, text: str) -> str:
        """The reference (`!3`) of a metadata node, for instance of `!{i32 1}`."""
        return f"!{self.nodes.setdefault(text, len(self.nodes))}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """The declared functions that are not LLVM's own: somebody must supply them."""
        names = (re.search(r"@([\w.]+)\(", line) for line in self.externals)
        return tuple(name[1] for name in names if name and not name[1].startswith("llvm."))

    @property
    def text(self) -> str:
        return "\n".join(
            [
                *self.externals,
                *(f"{name} = private unnamed_addr constant {text}" for text, name in self.constants.items()),
                *(f"!{n} = {text}" for text, n in self.nodes.items()),
            ]
        )


class Builder:
    """Appends instructions to the current block of one function.

    Operands of one operation have one dtype; lanes and copies adapt: a scalar meets a vector by splat, and a Python
    number takes the dtype of the operand beside it. Operations on float16 are done in float32 and rounded, as in NumPy.

    Args:
        module: collects the intrinsics that are used.
        has_fma: whether the target has fused multiply-add; else `fma` rounds twice (see `math/exact.py` for what must not).
        fastmath: LLVM flags on `fadd fsub fmul fdiv`, for instance "contract"; the rules of `math/` switch them off.
    """

    def __init__(self, module: Declarations, *, has_fma: bool = True, fastmath: str = "") -> None:
        self.module = module
        self.has_fma = has_fma
        self.fastmath = fastmath
        self.lines: list[str] = []
        self.label = "entry"
        self._count = 0

    # ------------------------------------------------------------------------------------------------ text

    def fresh(self, stem: str = "v") -> str:
        """A name that is unused in this function, without its `%`."""
        self._count += 1
        return f"{stem}.{self._count}"

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def define(self, instruction: str) -> str:
        """Append `%name = instruction` and return `%name`."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def start_block(self, label: str) -> None:
        """Continue in a new block; the block before must have been ended by a branch."""
        self.lines.append(f"{label}:")
        self.label = label

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Inside, operations carry no fast-math flags: polynomials rely on the order that they are written in."""
        saved, self.fastmath = self.fastmath, ""
        try:
            yield
        finally:
            self.fastmath = saved

    # -------------------------------------------------------------------------------------------- operands

    def const(self, value: bool | int | float, dtype: DType) -> Operand:
        return Operand(dtype, 1, (literal(value, dtype),))

    def splat(self, x: Operand, lanes: int) -> Operand:
        """A scalar in every lane. Constants cost nothing; hoist the splat of a name out of a loop yourself."""
        if x.lanes == lanes:
            return x
        vector = llvm_type(x.dtype, lanes)
        if x.is_constant:
            return Operand(x.dtype, lanes, (f"splat ({x.type} {x.names[0]})",))
        names = []
        for name in x.names:
            first = self.define(f"insertelement {vector} poison, {x.type} {name}, i64 0")
            names.append(self.define(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"))
        return Operand(x.dtype, lanes, tuple(names))

    def operands(self, *args: Arg) -> list[Operand]:
        """Numbers made constants of the dtype beside them, and all brought to one lane count."""
        dtype = next(a.dtype for a in args if isinstance(a, Operand))
        known = [a if isinstance(a, Operand) else self.const(a, dtype) for a in args]
        lanes = max(a.lanes for a in known)
        return [self.splat(a, lanes) for a in known]

    def _each(self, xs: Sequence[Operand], dtype: DType, template: str) -> Operand:
        """Write one instruction per copy; `template` has `{0}`, `{1}`... for the operands' names."""
        copies = max(len(x.names) for x in xs)
        names = []
        for k in range(copies):
            names.append(self.define(template.format(*(x.names[k if len(x.names) > 1 else 0] for x in xs))))
        return Operand(dtype, xs[0].lanes, tuple(names))

    # -------------------------------------------------------------------------------------------- floating

    def _float(self, opcode: str, *args: Arg) -> Operand:
        xs = self.operands(*args)
        dtype = xs[0].dtype
        if dtype == F16:
            return self.convert(self._float(opcode, *(self.convert(x, F32) for x in xs)), F16)
        names = ", ".join(f"{{{k}}}" for k in range(len(xs)))
        return self._each(xs, dtype, f"{opcode} {self.fastmath}{' ' if self.fastmath else ''}{xs[0].type} {names}")

    def fadd(self, x: Arg, y: Arg) -> Operand:
        return self._float("fadd", x, y)

    def fsub(self, x: Arg, y: Arg) -> Operand:
        return self._float("fsub", x, y)

    def fmul(self, x: Arg, y: Arg) -> Operand:
        return self._float("fmul", x, y)

    def fdiv(self, x: Arg, y: Arg) -> Operand:
        return self._float("fdiv", x, y)

    def intrinsic(self, name: str, *args: Arg) -> Operand:
        """`llvm.name` of operands of one type, with a result of that type."""
        xs = self.operands(*args)
        dtype = xs[0].dtype
        if dtype == F16:
            return self.convert(self.intrinsic(name, *(self.convert(x, F32) for x in xs)), F16)
        element = f"{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"
        symbol = f"@llvm.{name}.{element if xs[0].lanes == 1 else f'v{xs[0].lanes}{element}'}"
        kind = xs[0].type
        self.module.declare(f"{kind} {symbol}({', '.join([kind] * len(xs))})")
        names = ", ".join(f"{kind} {{{k}}}" for k in range(len(xs)))
        return self._each(xs, dtype, f"call {kind} {symbol}({names})")

    def fma(self, x: Arg, y: Arg, z: Arg) -> Operand:
        """x * y + z, rounded once where the target can."""
        if self.has_fma:
            return self.intrinsic("fma", x, y, z)
        return self.fadd(self.fmul(*self.operands(x, y, z)[:2]), z)

    def sqrt(self, x: Arg) -> Operand:
        return self.intrinsic("sqrt", x)

    def fabs(self, x: Operand) -> Operand:
        return self._bits_of(x, lambda bits: self.and_(bits, (1 << (8 * x.dtype.itemsize - 1)) - 1))

    def fneg(self, x: Operand) -> Operand:
        return self._each([x], x.dtype, f"fneg {x.type} {{0}}")

    def copysign(self, x: Arg, y: Arg) -> Operand:
        """The magnitude of x with the sign of y."""
        x, y = self.operands(x, y)
        return self.bitcast(self.or_(self.bitcast(self.fabs(x), signed(x.dtype)), self.sign_bit(y)), x.dtype)

    def sign_bit(self, x: Operand) -> Operand:
        """The sign as an integer: only the highest bit, all others 0."""
        return self.and_(self.bitcast(x, signed(x.dtype)), 1 << (8 * x.dtype.itemsize - 1))

    def flip_sign(self, x: Operand, sign: Operand) -> Operand:
        """x with its sign turned where `sign` (as from `sign_bit`) is set."""
        return self._bits_of(x, lambda bits: self.xor(bits, sign))

    def _bits_of(self, x: Operand, change: Callable[[Operand], Operand]) -> Operand:
        return self.bitcast(change(self.bitcast(x, signed(x.dtype))), x.dtype)

    def rint(self, x: Arg) -> Operand:
        """To the nearest integer, ties to even."""
        return self.intrinsic("rint", x)

    def floor(self, x: Arg) -> Operand:
        return self.intrinsic("floor", x)

    def ceil(self, x: Arg) -> Operand:
        return self.intrinsic("ceil", x)

    def trunc(self, x: Arg) -> Operand:
        return self.intrinsic("trunc", x)

    def fcmp(self, predicate: str, x: Arg, y: Arg) -> Operand:
        """`predicate` in LLVM's words: olt, une, uno ..."""
        xs = self.operands(x, y)
        return self._each(xs, BOOL, f"fcmp {predicate} {xs[0].type} {{0}}, {{1}}")

    # --------------------------------------------------------------------------------------------- integer

    def _integer(self, opcode: str, x: Arg, y: Arg) -> Operand:
        xs = self.operands(x, y)
        return self._each(xs, xs[0].dtype, f"{opcode} {xs[0].type} {{0}}, {{1}}")

    def add(self, x: Arg, y: Arg) -> Operand:
        return self._integer("add", x, y)

    def sub(self, x: Arg, y: Arg) -> Operand:
        return self._integer("sub", x, y)

    def mul(self, x: Arg, y: Arg) -> Operand:
        return self._integer("mul", x, y)

    def and_(self, x: Arg, y: Arg) -> Operand:
        return self._integer("and", x, y)

    def or_(self, x: Arg, y: Arg) -> Operand:
        return self._integer("or", x, y)

    def xor(self, x: Arg, y: Arg) -> Operand:
        return self._integer("xor", x, y)

    def not_(self, x: Operand) -> Operand:
        return self.xor(x, True if x.dtype == BOOL else -1)

    def shl(self, x: Arg, y: Arg) -> Operand:
        """The count must be less than the width (this and the next two); NumPy's rule stands in `math/integers.py`."""
        return self._integer("shl", x, y)

    def lshr(self, x: Arg, y: Arg) -> Operand:
        return self._integer("lshr", x, y)

    def ashr(self, x: Arg, y: Arg) -> Operand:
        return self._integer("ashr", x, y)

    def divide(self, x: Arg, y: Arg) -> Operand:
        """The truncated quotient; the divisor must be neither 0 nor -1 beside the least integer (as in `rest`)."""
        x, y = self.operands(x, y)
        return self._integer("sdiv" if x.dtype.kind == "i" else "udiv", x, y)

    def rest(self, x: Arg, y: Arg) -> Operand:
        x, y = self.operands(x, y)
        return self._integer("srem" if x.dtype.kind == "i" else "urem", x, y)

    def icmp(self, predicate: str, x: Arg, y: Arg) -> Operand:
        """`predicate` is eq, ne, lt, le, gt or ge; the dtype says whether the comparison is signed."""
        xs = self.operands(x, y)
        if predicate not in ("eq", "ne"):
            predicate = f"{'s' if xs[0].dtype.kind == 'i' else 'u'}{predicate}"
        return self._each(xs, BOOL, f"icmp {predicate} {xs[0].type} {{0}}, {{1}}")

    # ------------------------------------------------------------------------------------------ either kind

    def compare(self, predicate: str, x: Arg, y: Arg) -> Operand:
        """eq, ne, lt, le, gt or ge of any dtype; with a nan only `ne` holds."""
        x, y = self.operands(x, y)
        if x.dtype.kind == "f":
            return self.fcmp(_PREDICATES[predicate], x, y)
        return self.icmp(predicate, x, y)

    def select(self, condition: Operand, x: Arg, y: Arg) -> Operand:
        x, y = self.operands(x, y)
        if condition.lanes > x.lanes:
            x, y = self.splat(x, condition.lanes), self.splat(y, condition.lanes)
        # A scalar condition may choose between whole vectors.
        return self._each([x, y, condition], x.dtype, f"select {condition.type} {{2}}, {x.type} {{0}}, {x.type} {{1}}")

    def min(self, x: Arg, y: Arg) -> Operand:
        """x if x < y, else y: the processor's own minimum, which hands on y if either is nan."""
        return self.select(self.compare("lt", x, y), *self.operands(x, y))

    def max(self, x: Arg, y: Arg) -> Operand:
        """x if x > y, else y (y if either is nan)."""
        return self.select(self.compare("gt", x, y), *self.operands(x, y))

    def bitcast(self, x: Operand, dtype: DType) -> Operand:
        """The same bits as another dtype of the same width."""
        source, target = llvm_type(x.dtype, x.lanes), llvm_type(dtype, x.lanes)
        if source == target:
            return replace(x, dtype=dtype)
        return self._each([x], dtype, f"bitcast {source} {{0}} to {target}")

    # ---------------------------------------------------------------------------------------------- convert

    def _cast(self, opcode: str, x: Operand, dtype: DType) -> Operand:
        return self._each([x], dtype, f"{opcode} {x.type} {{0}} to {llvm_type(dtype, x.lanes)}")

    def convert(self, x: Operand, dtype: DType) -> Operand:
        """NumPy's cast: integers wrap, floats round to nearest even, anything but zero (nan too) is True.

        A float outside the integer's range gives what NumPy gives on x86: the least integer of the 32- or 64-bit
        conversion that it goes through, cut to the width. LLVM's own casts would be undefined there.
        """
        if x.dtype == dtype:
            return x
        if dtype == BOOL:
            return self.compare("ne", x, 0)
        if x.dtype.kind == "f":
            return self._convert_float(x, dtype)
        if dtype == F16:
            return self.convert(self.convert(x, F32), F16)
        if dtype.kind == "f":
            return self._cast("sitofp" if x.dtype.kind == "i" else "uitofp", x, dtype)
        if x.dtype == BOOL or x.dtype.itemsize < dtype.itemsize:
            return self._cast("sext" if x.dtype.kind == "i" else "zext", x, dtype)
        return replace(x, dtype=dtype) if x.dtype.itemsize == dtype.itemsize else self._cast("trunc", x, dtype)

    def _convert_float(self, x: Operand, dtype: DType) -> Operand:
        if dtype.kind == "f":
            if dtype.itemsize > x.dtype.itemsize:
                return self._cast("fpext", x, dtype)
            return self._cast("fptrunc", self._to_odd(x) if (x.dtype, dtype) == (F64, F16) else x, dtype)
        if x.dtype == F16:
            wide = self.convert(x, F32)
            return self.convert(self.convert(wide, I64) if dtype == U32 else wide, dtype)
        if dtype in (U32, U64):
            width, part = 8 * dtype.itemsize, signed(dtype)
            is_large = self.fcmp("oge", x, 2.0 ** (width - 1))
            low = self._to_signed(self.select(is_large, self.fsub(x, 2.0 ** (width - 1)), x), part)
            return replace(self.xor(low, self.shl(self.convert(is_large, part), width - 1)), dtype=dtype)
        return self.convert(self._to_signed(x, I64 if dtype == I64 else I32), dtype)

    def _to_signed(self, x: Operand, dtype: DType) -> Operand:
        """fptosi, with the least integer for nan and all that does not fit."""
        limit = 2.0 ** (8 * dtype.itemsize - 1)
        # The truncation of anything above -2**31 - 1 still fits; the next float64 below -2**63 does not.
        is_above = self.fcmp("ogt", x, -limit - 1) if (x.dtype, dtype) == (F64, I32) else self.fcmp("oge", x, -limit)
        fits = self.and_(is_above, self.fcmp("olt", x, limit))
        cast = self._cast("fptosi", self.select(fits, x, 0.0), dtype)
        return self.select(fits, cast, -int(limit))

    def _to_odd(self, x: Operand) -> Operand:
        """float64 to float32, with the last bit set if inexact, so that a second rounding cannot be off by a tie."""
        near = self._cast("fptrunc", x, F32)
        wide = self._cast("fpext", near, F64)
        is_above = self.fcmp("ogt", self.fabs(wide), self.fabs(x))
        bits = self.sub(self.bitcast(near, I32), self.convert(is_above, I32))
        return self.bitcast(self.or_(bits, self.convert(self.fcmp("une", wide, x), I32)), F32)

    # -------------------------------------------------------------------------------------------- scalar code

    def any(self, mask: Operand) -> Operand:
        """Whether any lane of any copy is set, as one scalar bool."""
        name = mask.names[0]
        for other in mask.names[1:]:
            name = self.define(f"or {mask.type} {name}, {other}")
        if mask.lanes > 1:
            bits = self.define(f"bitcast {mask.type} {name} to i{mask.lanes}")
            name = self.define(f"icmp ne i{mask.lanes} {bits}, 0")
        return Operand(BOOL, 1, (name,))

    def _libm_symbol(self, function: str, dtype: DType, arity: int) -> str:
        symbol = f"@{function}{'f' if dtype == F32 else ''}"
        scalar = llvm_type(dtype)
        self.module.declare(f"{scalar} {symbol}({', '.join([scalar] * arity)}) nounwind memory(none)")
        return symbol

    def call_libm(self, function: str, *args: Arg) -> Operand:
        """The C library's function lane by lane, for instance "sin" (which is sinf for float32)."""
        xs = self.operands(*args)
        lanes, dtype = xs[0].lanes, xs[0].dtype
        if dtype == F16:
            return self.convert(self.call_libm(function, *(self.convert(x, F32) for x in xs)), F16)
        symbol, scalar = self._libm_symbol(function, dtype, len(xs)), llvm_type(dtype)
        if lanes == 1:
            names = ", ".join(f"{scalar} {{{k}}}" for k in range(len(xs)))
            return self._each(xs, dtype, f"call {scalar} {symbol}({names})")
        results = []
        for k in range(max(len(x.names) for x in xs)):
            vector = "poison"
            for lane in range(lanes):
                parts = [self.define(f"extractelement {x.type} {x.names[k % len(x.names)]}, i64 {lane}") for x in xs]
                value = self.define(f"call {scalar} {symbol}({', '.join(f'{scalar} {p}' for p in parts)})")
                vector = self.define(f"insertelement {xs[0].type} {vector}, {scalar} {value}, i64 {lane}")
            results.append(vector)
        return Operand(dtype, lanes, tuple(results))

    def where_rare(self, mask: Operand, fast: Operand, function: str, *args: Arg) -> Operand:
        """`fast`, but with the C library's `function(*args)` in the lanes where `mask` is set.

        One branch that is almost never taken guards all copies; the cold side loops over the lanes, which is small.
        """
        *xs, fast = self.operands(*args, fast)
        mask = self.splat(mask, fast.lanes)
        weights = self.module.metadata('!{!"branch_weights", i32 1, i32 100000}')
        cold, done, start = self.fresh("rare"), self.fresh("common"), self.label
        self.emit(f"br i1 {self.any(mask).names[0]}, label %{cold}, label %{done}, !prof {weights}")
        self.start_block(cold)
        repaired = []
        for k, name in enumerate(fast.names):
            pick = [x.names[k if len(x.names) > 1 else 0] for x in xs]
            repaired.append(self._repair(mask.names[k if len(mask.names) > 1 else 0], fast, name, function, pick))
        last = self.label
        self.emit(f"br label %{done}")
        self.start_block(done)
        merged = [
            self.define(f"phi {fast.type} [ {name}, %{start} ], [ {other}, %{last} ]")
            for name, other in zip(fast.names, repaired, strict=True)
        ]
        return replace(fast, names=tuple(merged))

    def _repair(self, mask: str, fast: Operand, name: str, function: str, args: list[str]) -> str:
        """Call the library for the lanes of one vector that are in `mask`, from one set bit to the next."""
        scalar, vector, bits = llvm_type(fast.dtype), fast.type, f"i{fast.lanes}"
        symbol = self._libm_symbol(function, fast.dtype, len(args))
        head, call, end = (self.fresh(stem) for stem in ("lane", "call", "end"))
        left, rest, current = (f"%{self.fresh()}" for _ in range(3))
        is_wide = fast.lanes > 1
        todo = self.define(f"bitcast {llvm_type(BOOL, fast.lanes)} {mask} to {bits}") if is_wide else mask
        before = self.label
        self.emit(f"br label %{head}")
        self.start_block(head)
        phis = len(self.lines)  # written once the values from the end of the loop have their names
        more = self.define(f"icmp ne {bits} {left}, 0")
        self.emit(f"br i1 {more}, label %{call}, label %{end}")
        self.start_block(call)
        if is_wide:
            self.module.declare(f"{bits} @llvm.cttz.{bits}({bits}, i1)")
            lane = self.define(f"call {bits} @llvm.cttz.{bits}({bits} {left}, i1 true)")
            args = [self.define(f"extractelement {vector} {x}, {bits} {lane}") for x in args]
        value = self.define(f"call {scalar} {symbol}({', '.join(f'{scalar} {x}' for x in args)})")
        if is_wide:
            value = self.define(f"insertelement {vector} {current}, {scalar} {value}, {bits} {lane}")
        less = self.define(f"sub {bits} {left}, 1")
        self.emit(f"{rest} = and {bits} {left}, {less}")
        self.emit(f"br label %{head}")
        self.lines[phis:phis] = [
            f"  {left} = phi {bits} [ {todo}, %{before} ], [ {rest}, %{call} ]",
            f"  {current} = phi {vector} [ {name}, %{before} ], [ {value}, %{call} ]",
        ]
        self.start_block(end)
        return current
