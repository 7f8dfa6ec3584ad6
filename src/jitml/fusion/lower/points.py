"""Lowering rules: how is an op lowered?

By a rule: which operand elements it reads for one element of the result, and what it makes of them.

A rule is a function of a `Point` and returns a `Scalar`. It runs twice: while grouping, with a point that only records
which operands are wanted where, and while lowering, with one that answers with their scalars. So there is one
statement of each access pattern, and it cannot disagree with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from jitml.fusion.lower.scalars import Scalar, Scalars
from jitml.ir.dims import Size
from jitml.ir.graph import Node, Value
from jitml.ir.op import RuleTable
from jitml.kernels.ir import Apply, Const, Expr, Load, Var, add, affine, floor_divide, mul, remainder

Index: TypeAlias = tuple[Expr, ...]
Ranges: TypeAlias = Mapping[str, tuple[int, int]]  # loop index -> its limits [low, high)


class Extents(Protocol):
    """Who knows how a size is written: `fusion.sizes.Sizes`, or a body of loops with sizes of its own."""

    def expr(self, size: Size) -> Expr: ...


class Reader(Protocol):
    """Who answers a rule's questions: the recorder of grouping, or the builder of lowering."""

    b: Scalars
    ranges: Ranges

    @property
    def sizes(self) -> Extents: ...

    @property
    def axes(self) -> Mapping[str, Size]: ...  # loop index -> extent

    def read(self, node: Node, operand: int, index: Index) -> Scalar: ...

    def load(self, node: Node, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar: ...

    def place(self, value: Value) -> Expr: ...

    def inside(self, expr: Expr, low: int, high: int) -> bool | None: ...


class Point:
    """One node at one index of its result."""

    __slots__ = ("b", "index", "node", "reader")

    def __init__(self, reader: Reader, node: Node, index: Index) -> None:
        self.reader, self.node, self.index, self.b = reader, node, index, reader.b

    def read(self, operand: int, index: Index) -> Scalar:
        """The operand's element at an index, which may be recomputed here."""
        return self.reader.read(self.node, operand, index)

    def load(self, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar:
        """The operand's element at an index that depends on data: the operand must lie in memory."""
        return self.reader.load(self.node, operand, index)

    def size(self, size: Size) -> Expr:
        """A size as an index expression."""
        return self.reader.sizes.expr(size)

    def place(self, operand: int) -> Expr:
        """An operand i64[], which has been checked to be a place in an array, as an index expression."""
        return self.reader.place(self.node.inputs[operand])

    def inside(self, expr: Expr, low: int, high: int) -> bool | None:
        """Whether low <= expr < high all over the loops here; None if it depends on the iteration."""
        return self.reader.inside(expr, low, high)

    def quotient(self, expr: Expr, divisor: int) -> Expr:
        return divided(expr, divisor, self.reader.ranges)[0]

    def remainder(self, expr: Expr, divisor: int) -> Expr:
        return divided(expr, divisor, self.reader.ranges)[1]


lowering: RuleTable[Callable[[Point], Scalar]] = RuleTable("lowering", "fusion/lower")

# Of ops that replace a window of their first operand by their second: where an element of the second goes, given the
# expressions of places that are values.
targets: RuleTable[Callable[[Node, Index, Callable[[Value], Expr]], Index]] = RuleTable("target", "fusion/lower")


def limits(expr: Expr, ranges: Ranges) -> tuple[int, int] | None:
    """The least and greatest value of an affine expression (inclusive); None if it is not affine or unknown.

    >>> limits(Var("i") * 4 - 1, {"i": (0, 3)})
    (-1, 7)
    """
    if isinstance(expr, Const):
        return int(expr.value), int(expr.value)
    terms = affine(expr)
    if terms is None:
        return None
    low = high = terms[""]
    for name, c in terms.items():
        if name == "":
            continue
        if name not in ranges:
            return None
        first, last = ranges[name][0], max(ranges[name][0], ranges[name][1] - 1)
        low, high = low + min(c * first, c * last), high + max(c * first, c * last)
    return low, high


def decide(expr: Expr, low: int, high: int, ranges: Ranges) -> bool | None:
    """Whether low <= expr < high everywhere, nowhere, or (None) here and there."""
    bounds = limits(expr, ranges)
    if bounds is None:
        return None
    if low <= bounds[0] and bounds[1] < high:
        return True
    if bounds[1] < low or bounds[0] >= high:
        return False
    return None


def divided(expr: Expr, divisor: int, ranges: Ranges) -> tuple[Expr, Expr]:
    """Quotient and remainder by a positive number, simplified as far as the ranges of the indices allow.

    >>> ranges = {"i": (0, 8), "j": (0, 4)}
    >>> divided(Var("i") * 4 + Var("j"), 4, ranges) == (Var("i"), Var("j"))
    True
    """
    terms = affine(expr)
    if divisor == 1:
        return expr, Const(0)
    if terms is not None:
        whole = {name: c for name, c in terms.items() if c % divisor == 0}
        rest = {name: c for name, c in terms.items() if c % divisor}
        rest[""] = terms[""] % divisor
        whole[""] = terms[""] - rest[""]
        remaining = sum_of(rest)
        bounds = limits(remaining, ranges)
        if bounds is not None and bounds[0] // divisor == bounds[1] // divisor:
            offset = bounds[0] // divisor
            return sum_of({name: c // divisor for name, c in whole.items()}) + offset, remaining - offset * divisor
    return floor_divide(expr, divisor), remainder(expr, divisor)


def sum_of(terms: Mapping[str, int]) -> Expr:
    """The expression of an affine view, in the order of its terms."""
    total: Expr = Const(0)
    for name, c in terms.items():
        if name:
            total = add(total, mul(Var(name), c))
    return add(total, terms.get("", 0))


def substituted(expr: Expr, values: Mapping[str, Expr], ranges: Ranges) -> Expr:
    """An index expression with other expressions for its variables, simplified again."""
    match expr:
        case Const():
            return expr
        case Var(name):
            return values.get(name, expr)
        case Apply(fn, args, dtype):
            x, y = (substituted(a, values, ranges) for a in args)
            if fn == "add":
                return add(x, y)
            if fn == "mul":
                return mul(x, y)
            if fn == "sub":
                return x - y
            if fn in ("floor_divide", "remainder") and isinstance(y, Const):
                return divided(x, int(y.value), ranges)[fn == "remainder"]
            return Apply(fn, (x, y), dtype)
        case Load():
            raise AssertionError("index expressions hold no loads")
