"""Expressions: how is an expression evaluated?  Names in scope, pointwise operations, and index arithmetic kept symbolic.

A value is uniform (one scalar for all lanes) until an operand makes it a vector; uniform work is done once and hoisted.
The index of a vector loop is kept as a scalar, that of lane 0, and becomes a vector only where its value is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from jitml.codegen.llvm.ir.builder import Operand, literal
from jitml.codegen.llvm.loops.function import Function
from jitml.codegen.llvm.loops.linear_forms import LinearForm
from jitml.codegen.llvm.loops.stamps import emit_stamped
from jitml.codegen.scalar_math.builder import RAISING
from jitml.errors import LoweringError
from jitml.ir.op import is_total
from jitml.ir.types import I64, DType
from jitml.kernels.ir import Apply, Const, Expr, Load, Store, Var
from jitml.records import dataclass, replace

# Functions of integers that take long, or raise errors.
_HEAVY = frozenset(("floor_divide", "remainder", "fmod", "pow", *RAISING))


@dataclass(frozen=True, slots=True)
class Lanes:
    """The vector loop that is being emitted.

    Args:
        count: iterations that run side by side.
        counter: the scalar that counts iterations from 0; lane n runs iteration `counter + n`.
        mask: the lanes that run at all (None: all of them); at least one does.
        branch_mask: the part of `mask` that stems from `if` statements inside the loop.
        streamed: the store that is aligned to a vector here and goes past the caches.
        has_more: another iteration follows, so that loads may read up to its elements.
        is_all: no iterations run before these, such as some under no mask.
    """

    count: int
    counter: Operand
    mask: Operand | None = None
    branch_mask: Operand | None = None
    streamed: Store | None = None
    has_more: bool = False
    is_all: bool = False

    def within(self, condition: Operand, both: Operand | None) -> Lanes:
        return replace(self, mask=both, branch_mask=condition, streamed=None)


class Values(ABC):
    """Expressions of one function. `scope` maps names to values, `linears` those of type i64 to their symbolic form."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.builder = function.builder
        self.scope: dict[str, Operand] = {}
        self.linears: dict[str, LinearForm] = {}
        self.atoms: dict[str, Operand] = {}  # the SSA values that occur in linear forms
        self.lanes: Lanes | None = None

    # --------------------------------------------------------------------------------------------- expressions

    def value(self, expr: Expr) -> Operand:
        match expr:
            case Const(number, dtype):
                return self.builder.const(number, dtype)
            case Var(name):
                if name in self.scope:
                    return self.scope[name]
                if name in self.linears:
                    return self.evaluate(self.linears[name])
                raise LoweringError(f"{name} is used before it has a value")
            case Apply("add" | "sub" | "mul" | "neg", _, dtype) if dtype == I64:
                return self.evaluate(self.linear(expr))
            case Apply(fn, args, dtype):
                return self.apply(fn, tuple([self.value(x) for x in args]), dtype)
            case Load():
                return self.load(expr)
        raise LoweringError(f"the LLVM emitter cannot write {type(expr).__name__}")

    @abstractmethod
    def load(self, expr: Load) -> Operand:
        """`Accesses` does, which knows buffers."""

    def apply(self, fn: str, args: tuple[Operand, ...], dtype: DType) -> Operand:
        lanes = max([x.lanes for x in args])
        operands = tuple([x if x.lanes == lanes else self.widen(x, lanes) for x in args])
        is_cheap = fn not in _HEAVY and all(x.dtype.kind in "iub" for x in operands)
        floor = 0 if is_cheap else self.function.branch_floor()
        if not is_total(fn):
            floor = self.function.here.depth
        return self.function.compute((fn, dtype), operands, lambda: emit_stamped(self.builder, fn, operands, dtype), floor=floor)

    def widen(self, x: Operand, lanes: int) -> Operand:
        """A scalar in every lane. Done where it is used: a hoisted vector would hold registers through the whole loop."""
        if x.lanes == lanes:
            return x
        if x.is_constant:
            return self.builder.splat(x, lanes)
        floor = self.function.here.depth
        return self.function.compute(("splat", lanes), (x,), lambda: self.builder.splat(x, lanes), floor=floor)

    # ------------------------------------------------------------------------------------------------- indices

    def linear(self, expr: Expr) -> LinearForm:
        """The symbolic form of an i64 expression; what is not a sum of multiples becomes a name of its own."""
        match expr:
            case Const(number):
                return LinearForm(constant=int(number))
            case Var(name) if name in self.linears:
                return self.linears[name]
            case Apply("add", (x, y)):
                return self.linear(x) + self.linear(y)
            case Apply("sub", (x, y)):
                return self.linear(x) - self.linear(y)
            case Apply("neg", (x,)):
                return self.linear(x) * -1
            case Apply("mul", (x, y)):
                a, b = self.linear(x), self.linear(y)
                if not b.terms:
                    return a * b.constant
                if not a.terms:
                    return b * a.constant
                return self.atom(self.apply("mul", (self.evaluate(a), self.evaluate(b)), I64))
        return self.atom(self.value(expr))

    def atom(self, x: Operand) -> LinearForm:
        if x.is_constant:
            return LinearForm(constant=int(x.names[0]))
        self.atoms[x.names[0]] = x
        return LinearForm({x.names[0]: 1})

    def bind(self, name: str, index: LinearForm) -> None:
        """Give a name to an index, to be computed only if its value is asked for."""
        self.linears[name] = index
        self.scope.pop(name, None)

    def evaluate(self, form: LinearForm, *, is_lane_zero: bool = False) -> Operand:
        """The value of a linear form: of every lane, or (for addresses and limits) of the first."""
        total: Operand | None = None
        for name, coefficient in self._by_depth(form):
            term = self.atoms[name]
            if not is_lane_zero and self.lanes is not None and name == self.lanes.counter.names[0]:
                term = self.lane_numbers()
            if coefficient != 1:
                term = self.apply("mul", (term, self.builder.const(coefficient, I64)), I64)
            total = term if total is None else self.apply("add", (total, term), I64)
        if total is None:
            return self.builder.const(form.constant, I64)
        if form.constant:
            total = self.apply("add", (total, self.builder.const(form.constant, I64)), I64)
        return total

    def _by_depth(self, form: LinearForm) -> list[tuple[str, int]]:
        """The terms, outermost first, so that partial sums are hoisted as far as they can be."""
        return sorted(form.terms.items(), key=lambda term: self.function.depth(self.atoms[term[0]]))

    def lane_numbers(self, dtype: DType = I64) -> Operand:
        """The iteration number of every lane; lanes that do not run have that of the first, so that they raise no other error."""
        assert self.lanes is not None
        counter, count, mask = self.lanes.counter, self.lanes.count, self.lanes.mask
        if count == 1:
            return counter
        steps = ", ".join(f"i64 {literal(n, I64)}" for n in range(count))
        iota = Operand(dtype, count, (f"<{steps}>",))
        if mask is not None:
            kind, bits = f"<{count} x i64>", f"<{count} x i1> {mask.names[0]}"
            text = f"select {bits}, {kind} {iota.names[0]}, {kind} zeroinitializer"
            iota = self.function.compute(("steps",), (mask,), lambda: Operand(dtype, count, (self.builder.define(text),)))
        return self.apply("add", (counter, iota), I64)
