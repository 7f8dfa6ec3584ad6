"""Instruction builder: how is one scalar expression written for many lanes at once?

Straight-line LLVM IR text, vector by vector.

Every value is an `Operand`: a dtype, a lane count, and one SSA name (or constant) per *copy*. A kernel works on several
vectors per iteration, and each operation is written for all copies before the next operation starts, so that
independent chains overlap in the processor. The rules in `scalar_math/`, whose `ScalarBuilder` it is, and the statement
emitter both write through this class; it knows nothing of loops or memory. Text, because LLVM parses it faster than an
object tree can be built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import lru_cache

from jitml.codegen.llvm.ir import libm, user_functions
from jitml.codegen.llvm.ir.conversions import convert
from jitml.codegen.llvm.ir.declarations import Declarations
from jitml.codegen.llvm.ir.fp_errors import raise_errors
from jitml.codegen.llvm.ir.lane_loops import repeat
from jitml.codegen.llvm.ir.operand import Arg, Operand, constant_value, literal, llvm_type, mangled
from jitml.ir.op import ScalarCode
from jitml.ir.types import BOOL, F16, F32, DType, signed

__all__ = ["Arg", "Builder", "Operand", "constant_value", "literal", "llvm_type"]

_ORDERS = ("olt", "ole", "ogt", "oge")
_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


class Builder:
    """Appends instructions to the current block of one function.

    Operands of one operation have one dtype; lanes and copies adapt: a scalar meets a vector by splat, and a Python
    number takes the dtype of the operand beside it. Operations on float16 are done in float32 and rounded, as in NumPy.

    Args:
        module: collects the intrinsics that are used.
        has_fma: whether the target has fused multiply-add; else `fma` rounds twice (see `scalar_math/exact.py` for what must
        not). compares_quietly: whether the target can order without raising a flag for a nan, as NumPy does not. is_optimized:
        whether LLVM's optimiser is to understand the scalars. half_lanes: how many float32 a register of the target holds: LLVM
        narrows no more at once to float16. fastmath: LLVM flags on `fadd fsub fmul fdiv`, for instance "contract"; the rules of
        `scalar_math/` switch them off.
    """

    def __init__(
        self,
        module: Declarations,
        *,
        has_fma: bool = True,
        compares_quietly: bool = False,
        is_optimized: bool = False,
        half_lanes: int = 8,
        fastmath: str = "",
    ) -> None:
        self.module = module
        self.has_fma = has_fma
        self.compares_quietly = compares_quietly
        self.is_optimized = is_optimized
        self.half_lanes = half_lanes
        self.fastmath = fastmath
        self.lines: list[str] = []
        self.label = "entry"
        self._count = 0

    def alone(self) -> Builder:
        """One with the same settings that has written nothing, for a module of its own."""
        found = copy(self)
        found.module, found.lines, found.label, found._count = Declarations(), [], "entry", 0
        return found

    # ------------------------------------------------------------------------------------------------ text

    def fresh(self, stem: str = "v") -> str:
        """A name that is unused in this function, without its `%`."""
        self._count += 1
        return f"{stem}.{self._count}"

    def reserve(self, count: int) -> int:
        """The first number of so many fresh names."""
        first = self._count + 1
        self._count += count
        return first

    @property
    def settings(self) -> tuple[object, ...]:
        """What an operation is written by, apart from its operands."""
        return self.has_fma, self.compares_quietly, self.is_optimized, self.half_lanes, self.fastmath

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

    def constant_value(self, x: Operand) -> int | float | None:
        return constant_value(x)

    def splat(self, x: Operand, lanes: int) -> Operand:
        """A scalar in every lane. Constants cost nothing; hoist the splat of a name out of a loop yourself."""
        if x.lanes == lanes:
            return x
        if x.is_constant:
            return Operand(x.dtype, lanes, (f"splat ({x.type} {x.names[0]})",))
        names, vector = [], llvm_type(x.dtype, lanes)
        for name in x.names:
            first = self.define(f"insertelement {vector} poison, {x.type} {name}, i64 0")
            names.append(self.define(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"))
        return Operand(x.dtype, lanes, tuple(names))

    def operands(self, *args: Arg) -> list[Operand]:
        """Numbers made constants of the dtype beside them, and all brought to one lane count."""
        known: list[Operand] = [a for a in args if type(a) is Operand]
        dtype = known[0].dtype
        if len(known) < len(args):
            known = [a if isinstance(a, Operand) else self.const(a, dtype) for a in args]
        elif len({a.lanes for a in known}) == 1:
            return known
        lanes = max([a.lanes for a in known])
        return [a if a.lanes == lanes else self.splat(a, lanes) for a in known]

    def each(self, xs: Sequence[Operand], dtype: DType, template: str) -> Operand:
        """Write one instruction per copy; `template` has `{0}`, `{1}`... for the operands' names."""
        columns = [x.names for x in xs]
        copies = max([len(column) for column in columns])
        if copies == 1:
            return Operand(dtype, xs[0].lanes, (self.define(template.format(*[column[0] for column in columns])),))
        rows = zip(*[column if len(column) == copies else column * copies for column in columns])
        first = self.reserve(copies)
        names = tuple([f"%v.{n}" for n in range(first, first + copies)])  # as `define` has them
        self.lines += [f"  {name} = {template.format(*row)}" for name, row in zip(names, rows)]
        return Operand(dtype, xs[0].lanes, names)

    # -------------------------------------------------------------------------------------------- floating

    def _float(self, opcode: str, *args: Arg) -> Operand:
        xs = self.operands(*args)
        dtype = xs[0].dtype
        if dtype == F16:
            return self.convert(self._float(opcode, *(self.convert(x, F32) for x in xs)), F16)
        if not self.fastmath:
            return self._raising(opcode, xs, dtype)
        names = ", ".join(f"{{{k}}}" for k in range(len(xs)))
        return self.each(xs, dtype, f"{opcode} {self.fastmath} {xs[0].type} {names}")

    def _raising(self, name: str, xs: Sequence[Operand], dtype: DType) -> Operand:
        """An operation that may raise floating-point errors, written so that it raises them.

        LLVM takes its own instructions for free of effects: it computes them of numbers that it knows, and in lanes that nobody
        reads, drops those whose results are not needed, and moves others under masks. These it leaves alone.
        """
        declaration, call = _constrained(name, dtype, xs[0].dtype, xs[0].lanes, len(xs))
        self.module.declare(declaration)
        return self.each(xs, dtype, call)

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
        symbol = f"@llvm.{name}.{mangled(dtype, xs[0].lanes)}"
        kind = xs[0].type
        self.module.declare(f"{kind} {symbol}({', '.join([kind] * len(xs))})")
        names = ", ".join(f"{kind} {{{k}}}" for k in range(len(xs)))
        return self.each(xs, dtype, f"call {kind} {symbol}({names})")

    def fma(self, x: Arg, y: Arg, z: Arg) -> Operand:
        """x * y + z, rounded once where the target can."""
        if self.has_fma:
            if not self.fastmath:
                return self._float("fma", x, y, z)
            with self.strict():
                return self._float("fma", x, y, z)
        return self.fadd(self.fmul(*self.operands(x, y, z)[:2]), z)

    def sqrt(self, x: Arg) -> Operand:
        with self.strict():
            return self._float("sqrt", x)

    def fabs(self, x: Operand) -> Operand:
        return self._bits_of(x, lambda bits: self.and_(bits, (1 << (8 * x.dtype.itemsize - 1)) - 1))

    def fneg(self, x: Operand) -> Operand:
        return self.each([x], x.dtype, f"fneg {x.type} {{0}}")

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

    def fcmp(self, predicate: str, x: Arg, y: Arg, *, chooses: bool = False) -> Operand:
        """`predicate` in LLVM's words: olt, une, uno ...

        Args:
            chooses: the result selects one of x and y, for which LLVM has instructions of their own, that signal.
        """
        xs = self.operands(x, y)
        if xs[0].dtype == F16:
            xs = [self.convert(v, F32) for v in xs]
        is_plain = xs[0].lanes == 1 and not chooses and self.is_optimized
        if is_plain or predicate not in _ORDERS or not self.compares_quietly:
            return self.each(xs, BOOL, f"fcmp {predicate} {xs[0].type} {{0}}, {{1}}")
        # LLVM writes a plain fcmp of vectors, or of a select, as an instruction that signals; a constrained one must not.
        result, kind = llvm_type(BOOL, xs[0].lanes), xs[0].type
        symbol = f"@llvm.experimental.constrained.fcmp.{mangled(xs[0].dtype, xs[0].lanes)}"
        self.module.declare(f"{result} {symbol}({kind}, {kind}, metadata, metadata)")
        ignored = f'metadata !"{predicate}", metadata !"fpexcept.ignore"'
        return self.each(xs, BOOL, f"call {result} {symbol}({kind} {{0}}, {kind} {{1}}, {ignored})")

    # --------------------------------------------------------------------------------------------- integer

    def count(self, index: Operand, step: int) -> str:
        """The index of the next iteration.

        LLVM must not see what it is, unless its optimiser is to: code generation would spend up to half of its time on replacing
        the index by a pointer for each array, where instructions address by a base and a scaled index for nothing.
        """
        following = self.define(f"add i64 {index.names[0]}, {step}")
        return following if self.is_optimized else self.define(f'call i64 asm "", "=r,0"(i64 {following})')

    def _integer(self, opcode: str, x: Arg, y: Arg) -> Operand:
        xs = self.operands(x, y)
        return self.each(xs, xs[0].dtype, f"{opcode} {xs[0].type} {{0}}, {{1}}")

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

    def count_bits(self, x: Operand) -> Operand:
        return self.intrinsic("ctpop", x)

    def shl(self, x: Arg, y: Arg) -> Operand:
        """The count must be less than the width (this and the next two); NumPy's rule stands in `scalar_math/integers.py`."""
        return self._integer("shl", x, y)

    def lshr(self, x: Arg, y: Arg) -> Operand:
        return self._integer("lshr", x, y)

    def ashr(self, x: Arg, y: Arg) -> Operand:
        return self._integer("ashr", x, y)

    def overflow_flag(self, operation: str, x: Operand, y: Operand) -> Operand | None:
        """Whether an operation wraps around; vectors have no flags."""
        if max(x.lanes, y.lanes) > 1:
            return None
        prefix = "s" if x.dtype.kind == "i" else "u"
        symbol, kind = f"@llvm.{prefix}{operation}.with.overflow.{mangled(x.dtype, 1)}", x.type
        self.module.declare(f"{{ {kind}, i1 }} {symbol}({kind}, {kind})")
        both = self.each([x, y], x.dtype, f"call {{{{ {kind}, i1 }}}} {symbol}({kind} {{0}}, {kind} {{1}})")
        return self.each([both], BOOL, f"extractvalue {{{{ {kind}, i1 }}}} {{0}}, 1")

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
        return self.each(xs, BOOL, f"icmp {predicate} {xs[0].type} {{0}}, {{1}}")

    # ------------------------------------------------------------------------------------------ either kind

    def compare(self, predicate: str, x: Arg, y: Arg, *, chooses: bool = False) -> Operand:
        """eq, ne, lt, le, gt or ge of any dtype; with a nan only `ne` holds. `chooses`: see `fcmp`."""
        x, y = self.operands(x, y)
        if x.dtype.kind == "f":
            return self.fcmp(_PREDICATES[predicate], x, y, chooses=chooses)
        return self.icmp(predicate, x, y)

    def select(self, condition: Operand, x: Arg, y: Arg) -> Operand:
        x, y = self.operands(x, y)
        if condition.lanes > x.lanes:
            x, y = self.splat(x, condition.lanes), self.splat(y, condition.lanes)
        # A scalar condition may choose between whole vectors.
        return self.each([x, y, condition], x.dtype, f"select {condition.type} {{2}}, {x.type} {{0}}, {x.type} {{1}}")

    def min(self, x: Arg, y: Arg) -> Operand:
        """x if x < y, else y (y if either is nan)."""
        return self.select(self.compare("lt", x, y, chooses=True), *self.operands(x, y))

    def max(self, x: Arg, y: Arg) -> Operand:
        """x if x > y, else y (y if either is nan)."""
        return self.select(self.compare("gt", x, y, chooses=True), *self.operands(x, y))

    def bitcast(self, x: Operand, dtype: DType) -> Operand:
        """The same bits as another dtype of the same width."""
        source, target = llvm_type(x.dtype, x.lanes), llvm_type(dtype, x.lanes)
        if source == target:
            return Operand(dtype, x.lanes, x.names)
        return self.each([x], dtype, f"bitcast {source} {{0}} to {target}")

    # ---------------------------------------------------------------------------------------- conversions, libm

    def cast(self, opcode: str, x: Operand, dtype: DType) -> Operand:
        """One of LLVM's cast instructions."""
        return self.each([x], dtype, f"{opcode} {x.type} {{0}} to {llvm_type(dtype, x.lanes)}")

    def narrow(self, x: Operand, dtype: DType) -> Operand:
        """A float rounded to a smaller dtype."""
        if dtype != F16 or x.lanes <= self.half_lanes:
            return self._raising("fptrunc", [x], dtype)
        low, high = (self.narrow(half, dtype) for half in self.halves(x))
        order = ", ".join(f"i32 {n}" for n in range(x.lanes))
        joined = self.each([low, high], dtype, f"shufflevector {low.type} {{0}}, {low.type} {{1}}, <{x.lanes} x i32> <{order}>")
        return replace(joined, lanes=x.lanes)

    def halves(self, x: Operand) -> tuple[Operand, Operand]:
        """The lower and the upper lanes of a vector."""
        lanes = x.lanes // 2

        def part(first: int) -> Operand:
            order = ", ".join(f"i32 {first + n}" for n in range(lanes))
            shuffle = f"shufflevector {x.type} {{0}}, {x.type} poison, <{lanes} x i32> <{order}>"
            pick = f"extractelement {x.type} {{0}}, i64 {first}"
            return replace(self.each([x], x.dtype, shuffle if lanes > 1 else pick), lanes=lanes)

        return part(0), part(lanes)

    def lane(self, x: Operand, n: int) -> Operand:
        """One lane of a vector; a scalar has one."""
        return x if x.lanes == 1 else replace(self.each([x], x.dtype, f"extractelement {x.type} {{0}}, i64 {n}"), lanes=1)

    def convert(self, x: Operand, dtype: DType, *, raises: bool = False) -> Operand:
        """NumPy's cast between any two dtypes, with its floating-point errors if it `raises`; see `conversions.py`."""
        return convert(self, x, dtype, raises=raises)

    def convert_small(self, x: Operand, dtype: DType) -> Operand:
        """A float that fits, to a signed integer."""
        return self.cast("fptosi", x, dtype)

    def repeat(
        self,
        start: Sequence[Operand],
        more: Callable[[list[Operand]], Operand],
        step: Callable[[list[Operand]], Sequence[Operand]],
    ) -> list[Operand]:
        """What is left of some values after `step` has been taken as often as `more` holds in any lane; see `lane_loops.py`."""
        return repeat(self, start, more, step)

    def any(self, mask: Operand) -> Operand:
        """Whether any lane of any copy is set, as one scalar bool."""
        name = mask.names[0]
        for other in mask.names[1:]:
            name = self.define(f"or {mask.type} {name}, {other}")
        if mask.lanes > 1:
            bits = self.define(f"bitcast {mask.type} {name} to i{mask.lanes}")
            name = self.define(f"icmp ne i{mask.lanes} {bits}, 0")
        return Operand(BOOL, 1, (name,))

    def call_libm(self, function: str, *args: Arg) -> Operand:
        """The C library's function lane by lane, for instance "sin" (which is sinf for float32)."""
        xs = self.operands(*args)
        if xs[0].dtype == F16:
            return self.convert(self.call_libm(function, *(self.convert(x, F32) for x in xs)), F16)
        return libm.call(self, function, xs)

    def call_user_function(self, name: str, code: ScalarCode, args: Sequence[Operand]) -> Operand:
        """A function of the user's in each lane: a function of vectors beside the kernels, which LLVM makes of that."""
        return user_functions.call(self, name, code, self.operands(*args))

    def raise_errors(self, **masks: Operand) -> None:
        """Raise floating-point errors (`divide=`, `overflow=`, `invalid=`) if any lane of their mask is set."""
        raise_errors(self, **masks)

    def where_rare(self, mask: Operand, fast: Operand, function: str, *args: Arg) -> Operand:
        """`fast`, but with the C library's `function(*args)` in the lanes where `mask` is set, on a cold path."""
        *xs, fast = self.operands(*args, fast)
        return libm.repair(self, self.splat(mask, fast.lanes), fast, function, xs)


@lru_cache(maxsize=4096)
def _constrained(name: str, dtype: DType, given: DType, lanes: int, count: int) -> tuple[str, str]:
    """How such an operation of so many operands is declared and called."""
    kind, result = llvm_type(given, lanes), llvm_type(dtype, lanes)
    types = dict.fromkeys(mangled(t, lanes) for t in (dtype, given))
    symbol = f"@llvm.experimental.constrained.{name}.{'.'.join(types)}"
    names = ", ".join(f"{kind} {{{k}}}" for k in range(count))
    how = 'metadata !"round.tonearest", metadata !"fpexcept.strict"'
    return f"{result} {symbol}({', '.join([kind] * count)}, metadata, metadata)", f"call {result} {symbol}({names}, {how})"
