"""Check elimination: which checks cannot fail?  Those that follow from the loops, branches and checks around them.

So do overflows that cannot come up (`i - start` of an index `i` that starts at `start` is as small as the loop is long), and the
sign of most indices: one that is not negative does not count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from jitml.ir.types import BOOL, F64, I64
from jitml.kernels.analysis.affine_sums import within
from jitml.kernels.analysis.monotone import Cells
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    If,
    Let,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    While,
    affine,
    walk,
    walk_expressions,
)


def without_proven(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without checks of what is known to hold."""
    return Prover(body).block(body)


def may_overflow(body: Sequence[Stmt]) -> bool:
    """Whether the statements look for overflows of integers."""
    return any(map(_raises, walk_expressions(body)))


def _raises(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.fn == "raise_overflow"


class Prover:
    def __init__(self, body: Sequence[Stmt]) -> None:
        self.ranges = Ranges({})
        self.cells = Cells(body, self.ranges)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        with self.ranges.scope():
            return self.statements(body)

    def statements(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        kept: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, (Loop, While)):
                self.forget_updated(stmt)
            for new in self.statement(stmt):
                self.keep(kept, new)
            self.forget_updated(stmt)
            if isinstance(stmt, If):
                self.ranges.learn(stmt)
        return tuple(kept)

    def keep(self, kept: list[Stmt], stmt: Stmt) -> None:
        """Put a statement behind those of its block."""
        kept.append(stmt)

    def statement(self, stmt: Stmt) -> list[Stmt]:
        match stmt:
            case Check(condition):
                whole = self.in_integers(condition)
                if self.ranges.holds(condition) or self.ranges.holds(whole):
                    return []
                self.ranges.assume(condition)
                self.ranges.assume(whole)
                return [stmt if whole is condition else replace(stmt, condition=whole)]
            case Let(name, value):
                value = self.simplified(value)
                self.ranges.define_now(name, value)
                return [stmt if value is stmt.value else replace(stmt, value=value)]
            case Store() | Update():
                value = self.simplified(stmt.value)
                return [stmt if value is stmt.value else replace(stmt, value=value)]
            case Draw():
                self.ranges.draw(stmt)
            case Cell():
                self.cells.begin(stmt)
            case Alloc(_, body):
                return [replace(stmt, body=self.block(body))]
            case Loop(_, _, _, _, _, body):
                with self.ranges.scope():
                    self.ranges.enter(stmt)
                    return [replace(stmt, body=self.statements(body))]
            case While(test, condition, body):
                with self.ranges.scope():
                    first = self.statements(test)
                    self.ranges.assume(condition)
                    return [replace(stmt, test=first, body=self.statements(body))]
            case If(condition, then, orelse):
                arms = []
                for arm, holds in ((then, True), (orelse, False)):
                    with self.ranges.scope():
                        self.ranges.assume(condition, holds)
                        arms.append(self.statements(arm))
                return [replace(stmt, then=arms[0], orelse=arms[1])]
        return [stmt]

    def simplified(self, value: Expr) -> Expr:
        """A value without an overflow that cannot come up, and of two the one that it is known to be."""
        match value:
            case Apply("raise_overflow", (result, condition)) if self.is_out_of_question(condition):
                return result
            case Apply("select", (condition, then, orelse)) if (holds := self.ranges.decided(condition)) is not None:
                return self.simplified(then if holds else orelse)
        return value

    def in_integers(self, condition: Expr) -> Expr:
        """A claim about the size of `3.0 * n + 1.0`, of an integer `n`, as limits of `n`: a comparison in place of arithmetic."""
        match condition:
            case Apply("le", (Apply("abs", (x,)), Const(most))) if x.dtype == F64 and abs(most) < 2.0**63:
                whole = self.ranges.integer(x)
                terms = None if whole is None else affine(whole)
                if terms is None or len(terms.keys() - {""}) != 1:
                    return condition
                ((name, factor),) = ((name, c) for name, c in terms.items() if name)
                ends = sorted(Fraction(side * int(most) - terms.get("", 0), factor) for side in (-1, 1))
                least, greatest = math.ceil(ends[0]), math.floor(ends[1])
                if within(least, greatest, I64):
                    n = Var(name, I64)
                    return Apply("bit_and", (Apply("ge", (n, Const(least)), BOOL), Apply("le", (n, Const(greatest)), BOOL)), BOOL)
        return condition

    def is_out_of_question(self, overflow: Expr) -> bool:
        """Whether an overflow cannot come up."""
        match overflow:
            case Apply("add_overflows" | "sub_overflows" | "mul_overflows" as fn, (x, _) as operands):
                result = Apply(fn.removesuffix("_overflows"), operands, x.dtype)
                total = self.ranges.arithmetic(result, self.ranges.exact)
                return total is not None and self.ranges.fits(total, x.dtype)
        return self.ranges.decided(overflow) is False

    def forget_updated(self, stmt: Stmt) -> None:
        """What was known of cells that a statement changes holds no longer."""
        for inner in walk((stmt,)):
            if isinstance(inner, Update):
                self.cells.forget(inner.cell)
