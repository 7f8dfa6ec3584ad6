"""ScalarText: how is an expression of the kernel IR written?  As text; index arithmetic in 32 bits wherever it fits.

An index (a loop's variable, and what is made of those) has bounds. If they and all that stands in between fit, it is an `int` in
the text, though the IR's type is i64; else it is a `long long`, as everything of that type is whose bounds are not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import gcd

from jitml.codegen.cuda.emit.builder import CudaBuilder, CudaValue
from jitml.codegen.cuda.emit.functions import ScalarFunctions
from jitml.codegen.cuda.emit.spelling import identifier, literal
from jitml.errors import LoweringError
from jitml.ir.types import BOOL, I32, I64
from jitml.kernels.ir import Apply, Buffer, Const, Expr, Load, Var, add, mul
from jitml.records import dataclass

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_PRODUCT = re.compile(r"^\((\w+ \* \w+)\)$")
_NARROW, _WIDE = 1 << 31, 1 << 63


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and greatest value of an integer, both counted; None: not known."""

    low: int | None = None
    high: int | None = None

    @property
    def is_narrow(self) -> bool:
        return self._fit(_NARROW)

    @property
    def is_known(self) -> bool:
        """Whether 64 bits hold it for certain, so that nothing has wrapped around."""
        return self._fit(_WIDE)

    def _fit(self, limit: int) -> bool:
        return self.low is not None and self.high is not None and -limit <= self.low and self.high < limit

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(_sum(self.low, other.low), _sum(self.high, other.high))

    def __neg__(self) -> Bounds:
        return Bounds(None if self.high is None else -self.high, None if self.low is None else -self.low)

    def __mul__(self, other: Bounds) -> Bounds:
        sides = (self.low, self.high, other.low, other.high)
        if any(side is None for side in sides):
            return ANY
        products = [a * b for a in (self.low, self.high) for b in (other.low, other.high) if a is not None and b is not None]
        return Bounds(min(products), max(products))

    def __or__(self, other: Bounds) -> Bounds:
        """One or the other."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        return Bounds(low, None if self.high is None or other.high is None else max(self.high, other.high))

    def least(self, other: Bounds) -> Bounds:
        """Of the smaller of both."""
        highs = [x for x in (self.high, other.high) if x is not None]
        return Bounds((self | other).low, min(highs, default=None))

    def most(self, other: Bounds) -> Bounds:
        return -(-self).least(-other)


ANY = Bounds()


def _sum(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else x + y


@dataclass(frozen=True, slots=True)
class CudaIndex:
    """The text of an i64 expression: an `int` if it `is_narrow`, else a `long long`. It is a multiple of `factor` (0 of all)."""

    text: str
    bounds: Bounds = ANY
    is_narrow: bool = False
    factor: int = 1

    @property
    def wide(self) -> str:
        """As a `long long`."""
        if not self.is_narrow:
            return self.text
        return f"{self.text}LL" if self.text.lstrip("-").isdigit() else f"(i64){self.text}"

    def at(self, *, narrow: bool) -> str:
        return self.text if narrow else self.wide


@dataclass(frozen=True, slots=True)
class CudaBuffer:
    """A buffer in the text: the name of its pointer or array, and the memory that it is in, for what may be the same."""

    buffer: Buffer
    text: str
    group: str
    is_aligned: bool = False  # whether its first element is at a multiple of 16 bytes
    is_shared: bool = False  # whether it is the scratch of a block


class ScalarText:
    """The names that are known at one place, and the texts of expressions over them."""

    def __init__(self, functions: ScalarFunctions) -> None:
        self.functions = functions
        self.scope: dict[str, CudaValue | CudaIndex] = {}
        self.buffers: dict[str, CudaBuffer] = {}
        self.loaded: dict[Load, str] = {}  # elements that have been loaded ahead
        self._taken: set[str] = set()

    def name(self, stem: str) -> str:
        """A name that is unused in this function."""
        stem = word = identifier(stem)
        number = 1
        while word in self._taken:
            number += 1
            word = f"{stem}_{number}"
        self._taken.add(word)
        return word

    # ------------------------------------------------------------------------------------------------ values

    def value(self, expr: Expr) -> CudaValue:
        """What the IR says, wrapping around included."""
        match expr:
            case Const(number, dtype):
                return CudaBuilder().const(number, dtype)
            case Var(name):
                found = self._named(name)
                return found if isinstance(found, CudaValue) else _as_value(found)
            case Load():
                return self.load(expr)
            case Apply(fn, (x, y)) if fn in _COMPARISONS and x.dtype == I64:
                a, b = self.index(x), self.index(y)
                narrow = a.is_narrow and b.is_narrow
                return CudaValue(BOOL, f"({a.at(narrow=narrow)} {_COMPARISONS[fn]} {b.at(narrow=narrow)})")
            case Apply(dtype=dtype) if dtype == I64:
                return _as_value(self.index(expr))
            case Apply("convert", (x,), dtype) if x.dtype == I64 and (index := self.index(x)).is_narrow and dtype != BOOL:
                return self.functions.apply("convert", [CudaValue(I32, index.text)], dtype)
            case Apply(fn, args, dtype):
                return self.functions.apply(fn, [self.value(x) for x in args], dtype)
        raise LoweringError(f"the CUDA emitter cannot write {type(expr).__name__}")

    def load(self, expr: Load) -> CudaValue:
        text = self.loaded.get(expr) or self.element(expr.buffer, expr.at)
        return CudaValue(expr.dtype, f"({text} != 0)" if expr.dtype == BOOL else text)

    def element(self, buffer: str, at: Sequence[Expr]) -> str:
        """An element in memory."""
        return f"{self.buffers[buffer].text}[{bare(self.offset(buffer, at).text)}]"

    def offset(self, buffer: str, at: Sequence[Expr]) -> CudaIndex:
        """Where an element lies, in elements from the buffer's first."""
        total: Expr = Const(0)
        for index, step in zip(at, self.buffers[buffer].buffer.element_strides, strict=True):
            total = add(total, mul(index, step))
        return self.index(total)

    def _named(self, name: str) -> CudaValue | CudaIndex:
        if name not in self.scope:
            raise LoweringError(f"{name} is used before it has a value")
        return self.scope[name]

    # ----------------------------------------------------------------------------------------------- indices

    def index(self, expr: Expr) -> CudaIndex:
        """An i64 expression that is right where it does not wrap around."""
        match expr:
            case Const(number):
                return constant_index(int(number))
            case Var(name):
                found = self._named(name)
                return found if isinstance(found, CudaIndex) else CudaIndex(found.text)
            case Apply("add" | "sub" as fn, (x, y)):
                a, b = self.index(x), self.index(y)
                return self._combined(
                    expr, "+" if fn == "add" else "-", a, b, a.bounds + (b.bounds if fn == "add" else -b.bounds)
                )
            case Apply("mul", (x, y)):
                a, b = self.index(x), self.index(y)
                return self._combined(expr, "*", a, b, a.bounds * b.bounds)
            case Apply("neg", (x,)):
                return self.index(Apply("sub", (Const(0), x)))
            case Apply("minimum" | "maximum" as fn, (x, y)):
                a, b = self.index(x), self.index(y)
                bounds = a.bounds.least(b.bounds) if fn == "minimum" else a.bounds.most(b.bounds)
                narrow = a.is_narrow and b.is_narrow
                word = "ji_least" if fn == "minimum" else "ji_most"
                return CudaIndex(
                    f"{word}({bare(a.at(narrow=narrow))}, {bare(b.at(narrow=narrow))})", bounds, narrow, gcd(a.factor, b.factor)
                )
            case Apply("floor_divide" | "remainder" as fn, (x, Const(y))) if y > 0:
                return self._divided(fn, x, int(y), expr)
            case Apply("select", (condition, x, y)):
                a, b = self.index(x), self.index(y)
                narrow = a.is_narrow and b.is_narrow
                text = f"({self.value(condition).text} ? {a.at(narrow=narrow)} : {b.at(narrow=narrow)})"
                return CudaIndex(text, a.bounds | b.bounds, narrow)
            case Apply("convert", (x,)) if x.dtype.kind in "iub" and x.dtype != I64:
                return self._converted(x)
            case Apply(fn, args, dtype):
                return CudaIndex(self.functions.apply(fn, [self.value(x) for x in args], dtype).text)
        return CudaIndex(self.value(expr).text)

    def _combined(self, expr: Apply, symbol: str, a: CudaIndex, b: CudaIndex, bounds: Bounds) -> CudaIndex:
        narrow = a.is_narrow and b.is_narrow and bounds.is_narrow
        if not bounds.is_known:  # it may wrap around
            wide = [CudaValue(I64, x.wide) for x in (a, b)]
            return CudaIndex(self.functions.apply(expr.fn, wide, I64).text)
        factor = a.factor * b.factor if symbol == "*" else gcd(a.factor, b.factor)
        left, right = a.at(narrow=narrow), b.at(narrow=narrow)
        if symbol != "*":
            left, right = _PRODUCT.sub(r"\1", left), _PRODUCT.sub(r"\1", right)
        return CudaIndex(f"({left} {symbol} {right})", bounds, narrow, factor)

    def _divided(self, fn: str, x: Expr, y: int, expr: Apply) -> CudaIndex:
        a = self.index(x)
        low, high = a.bounds.low, a.bounds.high
        bounds = Bounds(None if low is None else low // y, None if high is None else high // y)
        if fn == "remainder":
            bounds = a.bounds if low is not None and high is not None and low >= 0 and high < y else Bounds(0, y - 1)
        if low is None or low < 0:
            value = self.functions.apply(fn, [CudaValue(I64, a.wide), self.value(expr.args[1])], I64)
            return CudaIndex(value.text, bounds)
        return CudaIndex(f"({a.text} {'/' if fn == 'floor_divide' else '%'} {literal(y, I64)})", bounds, a.is_narrow)

    def _converted(self, x: Expr) -> CudaIndex:
        value, dtype = self.value(x), x.dtype
        if dtype == BOOL:
            return CudaIndex(f"(i32){value.text}", Bounds(0, 1), is_narrow=True)
        bits = 8 * dtype.itemsize
        if dtype.kind == "u":
            bounds = Bounds(0, (1 << bits) - 1)
            return (
                CudaIndex(f"(i32){value.text}" if bits < 32 else f"(i64){value.text}", bounds, bits < 32)
                if bits < 64
                else (CudaIndex(f"(i64){value.text}"))
            )
        return CudaIndex(f"(i32){value.text}" if bits < 32 else value.text, Bounds(-(1 << bits - 1), (1 << bits - 1) - 1), True)


def _as_value(index: CudaIndex) -> CudaValue:
    return CudaValue(I64, f"({index.wide})" if index.is_narrow else index.text)


def constant_index(number: int) -> CudaIndex:
    bounds = Bounds(number, number)
    return CudaIndex(literal(number, I64), bounds, bounds.is_narrow, abs(number))


def bare(text: str) -> str:
    """Without the parentheses around the whole.

    >>> bare("(a + b)"), bare("(a) + (b)")
    ('a + b', '(a) + (b)')
    """
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and k < len(text) - 1:
            return text
    return text[1:-1]
