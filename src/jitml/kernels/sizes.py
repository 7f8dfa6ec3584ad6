"""Sizes in kernels: how does a kernel know a size, or the place of a window?

As a variable, loaded from memory where the kernel starts.

An array whose shape depends on a value has the memory of its largest shape (`aval.bounds`); its loops run to the true one,
an i64 expression over *size variables*. `SizeSource` says which 0-d buffer a variable is loaded from, and between which limits
it lies: it is clamped to them, so that no access leaves its buffer whatever the memory holds.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence

from jitml.errors import LoweringError
from jitml.ir import ops
from jitml.ir.dims import Size, Sym
from jitml.ir.graph import Graph, Value
from jitml.ir.types import I64, Aval
from jitml.kernels.ir import (
    Apply,
    Buffer,
    Const,
    Expr,
    Let,
    Load,
    Stmt,
    Var,
    add,
    as_expr,
    mul,
    sub,
    variables_of,
    walk_expression,
    walk_expressions,
)
from jitml.records import dataclass

Shape = tuple[Size, ...]
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floor_divide": lambda x, y: x // y if y else 0,
    "minimum": min,
    "maximum": max,
}
_MOST_TERMS = 64  # of an expression
_SEEN_THROUGH = ("add", "sub", "mul", "full", "check")  # in places of windows
_TAKEN = re.compile(r"([bcijkrstvxy]|row|in)\d*(_\d+)*b*")  # names that lowering and schedules use


@dataclass(frozen=True, slots=True)
class SizeSource:
    """Where a size variable comes from: a buffer i64[], and limits that are both possible (None: whoever made it has looked)."""

    buffer: str
    low: int | None
    high: int | None

    def let(self, name: str) -> Let:
        """The statement that a kernel begins with."""
        if self.low is None or self.high is None:
            return Let(name, Load(self.buffer, (), I64))
        at_least = Apply("maximum", (Load(self.buffer, (), I64), Const(self.low)))
        return Let(name, Apply("minimum", (at_least, Const(self.high))))


@dataclass(frozen=True, slots=True)
class _PlaceExpression:
    """A place as an expression, the number of its terms, and the results of checks that stand in none of them."""

    expr: Expr
    terms: int
    claims: tuple[Value, ...]


class Sizes:
    """The size variables of a graph: one for each Sym that it binds, named after it; and others for the places of windows.

    Of a place known at run time (an operand of `dynamic_slice`), what is added and multiplied on the way is kept as an
    expression, so that the difference of two places can be a number.
    """

    def __init__(self, graph: Graph) -> None:
        self.values: Mapping[Sym, Value] = graph.binders()
        self.names: dict[Sym, str] = {}
        self._makers = graph.producers()
        self._bound: dict[Value, str] = {}
        self._loose: dict[Value, str] = {}  # places that no Sym is bound to
        self._places: dict[Value, _PlaceExpression] = {}
        for sym, value in self.values.items():
            name = re.sub(r"\W", "_", sym.name)
            while name in self._bound.values() or name in self.names.values() or _TAKEN.fullmatch(name):
                name += "_"
            self.names[sym] = name
            self._bound.setdefault(value, name)

    def place(self, value: Value) -> Expr:
        """An i64[] value as an expression over the variables."""
        return self._place(value).expr

    def _place(self, value: Value) -> _PlaceExpression:
        if value not in self._places:
            self._places[value] = self._seen_through(value) or _PlaceExpression(Var(self._name(value)), 1, ())
        return self._places[value]

    def _seen_through(self, value: Value) -> _PlaceExpression | None:
        """What is computed on the way, if it is simple and short: of values that many share the terms have no end."""
        node = self._makers.get(value)
        if node is None or node.op.name not in _SEEN_THROUGH:
            return None
        if node.op is ops.full:
            return _PlaceExpression(Const(int(node.params["value"])), 1, ())
        operands = [self._place(v) for v in node.inputs[: 1 if node.op is ops.check else 2]]
        terms = 1 + sum(operand.terms for operand in operands)
        claims = dict.fromkeys(claim for operand in operands for claim in operand.claims)
        if terms > _MOST_TERMS:
            return None
        exprs = [operand.expr for operand in operands]
        match node.op.name:
            case "check":
                return _PlaceExpression(exprs[0], terms, (value, *claims))
            case "add":
                return _PlaceExpression(add(*exprs), terms, (*claims,))
            case "sub":
                return _PlaceExpression(sub(*exprs), terms, (*claims,))
            case "mul" if any(isinstance(e, Const) for e in exprs):
                return _PlaceExpression(mul(*exprs), terms, (*claims,))
        return None

    def roots(self, value: Value) -> frozenset[Value]:
        """The values that `place` loads."""
        names = variables_of(self.place(value))
        return frozenset(v for table in (self._bound, self._loose) for v, name in table.items() if name in names)

    def claims(self, value: Value) -> tuple[Value, ...]:
        """The results of checks that `place` sees through: whoever uses the place relies on them."""
        return self._place(value).claims

    def _name(self, value: Value) -> str:
        return self._bound.get(value) or self._loose.setdefault(value, f"v{len(self._loose)}")

    def expr(self, size: Size) -> Expr:
        """A size over the variables."""
        if isinstance(size, int):
            return Const(size)
        total: Expr = Const(0)
        for monomial, factor in sorted(size.terms, key=lambda term: term[1] < 0):  # 9 - n, not -n + 9
            term: Expr = Const(abs(factor))
            for sym in monomial:
                term = mul(term, Var(self.names[sym]))
            total = total + term if factor > 0 else total - term
        return total

    def from_inputs(self, size: Size, inputs: Collection[Value]) -> Expr | None:
        """A size over variables that inputs hold alone; None if the program must run to know it."""
        if isinstance(size, int):
            return Const(size)
        made: dict[Sym, Expr] = {}
        for sym in size.syms:
            found = self._from_inputs(self.values[sym], inputs, _MOST_TERMS)
            if found is None:
                return None
            made[sym] = found[0]
        return as_expr(size.evaluate(made))

    def _from_inputs(self, value: Value, inputs: Collection[Value], room: int) -> tuple[Expr, int] | None:
        """The expression of a value and the number of its terms, if it has no more than there is room for.

        A value that many share is a term for each of them: a chain of such sizes has no end of terms.
        """
        node = self._makers.get(value)
        if room < 1 or (node is None and (value not in inputs or value not in self._bound)):
            return None
        if node is None:
            return Var(self._bound[value]), 1
        if node.op is ops.full:
            return Const(int(node.params["value"])), 1
        if node.op is ops.check:
            return self._from_inputs(node.inputs[0], inputs, room - 1)
        if node.op.name not in _ARITHMETIC or value.aval != Aval((), I64):
            return None
        operands: list[Expr] = []
        terms = 1
        for operand in node.inputs:
            made = self._from_inputs(operand, inputs, room - terms)
            if made is None:
                return None
            operands.append(made[0])
            terms += made[1]
        return Apply(node.op.name, tuple(operands)), terms

    @property
    def loaded(self) -> tuple[Value, ...]:
        """The values of all variables."""
        return (*self.values.values(), *self._loose)

    def sources(self, buffers: Mapping[Value, str]) -> dict[str, SizeSource]:
        """By the variables' names, given the names of the values' buffers."""
        known = {name: SizeSource(buffers[self.values[sym]], sym.low, sym.high) for sym, name in self.names.items()}
        return known | {name: SizeSource(buffers[value], None, None) for value, name in self._loose.items()}


def with_sizes(
    body: tuple[Stmt, ...], params: Sequence[Buffer], sources: Mapping[str, SizeSource]
) -> tuple[tuple[Stmt, ...], tuple[Buffer, ...]]:
    """A kernel's body that begins with the size variables it mentions, and its parameters with their buffers."""
    used = {e.name for e in walk_expressions(body) if isinstance(e, Var)}
    needed = {name: source for name, source in sources.items() if name in used}
    known = {b.name for b in params}
    buffers = dict.fromkeys(source.buffer for source in needed.values() if source.buffer not in known)
    lets = tuple(source.let(name) for name, source in needed.items())
    return (*lets, *body), (*params, *(Buffer(name, I64, ()) for name in buffers))


def evaluate(expr: Expr, values: Mapping[str, int]) -> int:
    """A size, given its variables' values."""
    match expr:
        case Const(value):
            return int(value)
        case Var(name):
            return values[name]
        case Apply(fn, (x, y)) if fn in _ARITHMETIC:
            return _ARITHMETIC[fn](evaluate(x, values), evaluate(y, values))
    raise LoweringError(f"{expr} is no size")


def buffers_of(exprs: Sequence[Expr], sources: Mapping[str, SizeSource]) -> tuple[str, ...]:
    """The buffers that some sizes are loaded from."""
    names = (e.name for expr in exprs for e in walk_expression(expr) if isinstance(e, Var))
    return tuple(dict.fromkeys(sources[name].buffer for name in names))
