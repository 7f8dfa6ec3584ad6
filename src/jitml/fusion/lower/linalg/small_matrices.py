"""Small matrices: how are they factorized in loops?  LU with LAPACK's pivots, and Cholesky's factor.

    for each column j: a[:, j] -= l[:, :j] @ u[:j, j]; exchange rows, so that the pivot a[j, j] is the largest; divide by it

As in LAPACK's unblocked routines, column by column: the order of additions is theirs, but not their fused multiply-adds.

Checks leave to NumPy what is singular, or so near to it that roundings decide whether it is, and what is not finite or
overflows: NumPy keeps the floating-point errors of such matrices to itself, and loops cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jitml.errors import Source
from jitml.fusion.lower.scalars import Scalar, Scalars
from jitml.fusion.lower.statement_writer import StatementWriter
from jitml.ir.types import I64, DType
from jitml.kernels.block import Block
from jitml.kernels.ir import Apply, Buffer, Check, Const, Expr, Var, add, as_expr, sub
from jitml.records import dataclass

LARGEST = 8  # rows
_WRITTEN_OUT = 4  # iterations of loops that are written out, so that elements can stay in registers
_ROUNDINGS = 4  # units in the last place for each row

Element = Callable[[Expr, Expr], Scalar]
Store = Callable[[Expr, Expr, Scalar], None]


@dataclass(slots=True)
class SmallMatrix:
    """Writes the statements for a square matrix, given its elements.

    Args:
        a: an element of it, in memory that does not change meanwhile.
        source: where a check fails.
    """

    w: StatementWriter
    n: int
    dtype: DType
    a: Element
    source: Source | None

    # -------------------------------------------------------------------------------------------------- results

    def solve(self, b: Element, columns: int, store: Store) -> None:
        """x of a x = b. As in LAPACK, pivots divide a single column; several are multiplied by their reciprocals."""
        x = self.w.scratch(self.dtype, (self.n, columns))
        for i in self.each(0, self.n):
            for c in self.each(0, columns):
                self.put(x, i, c, b(i, c))
        lu = self.decomposed(x, lambda is_exchanged: None)
        largest = self.w.cell(Const(0.0, self.dtype))
        for c in self.each(0, columns):
            for i in self.each(1, self.n):
                self.put(x, i, c, self.substituted(lu, x, i, c, i, from_end=False))
            for k in self.each(0, self.n):
                i = sub(self.n - 1, k)
                rest, pivot = self.substituted(lu, x, i, c, k, from_end=True), self.at(lu, i, i)
                value = self.div(rest, pivot) if columns == 1 else self.mul(rest, self.div(self.number(1.0), pivot))
                value = self.w.let(value)
                self.put(x, i, c, value)
                store(i, c, value)
                self.w.update(largest, self.w.expr(self.abs(value)), "max")
        self.require("le", self.b.cell(largest, self.dtype), self.number(self.largest))

    def slogdet(self) -> tuple[Scalar, Scalar]:
        """The sign of the determinant, and the logarithm of its size."""
        sign, log = self.w.cell(Const(1.0, self.dtype)), self.w.cell(Const(0.0, self.dtype))

        def turn(condition: Scalar) -> None:
            number = self.b.cell(sign, self.dtype)
            self.w.update(sign, self.w.expr(self.b.select(condition, self.apply("neg", number), number)))

        lu = self.decomposed(None, turn)
        for j in self.each(0, self.n):
            pivot = self.w.let(self.at(lu, j, j))
            turn(self.b.compare("lt", pivot, self.number(0.0)))
            total = self.apply("add", self.b.cell(log, self.dtype), self.apply("log", self.abs(pivot)))
            self.w.update(log, self.w.expr(total))
        return self.b.cell(sign, self.dtype), self.b.cell(log, self.dtype)

    def det(self) -> Scalar:
        """By way of logarithms, as NumPy has it."""
        sign, log = self.slogdet()
        self.require("lt", log, self.number(np.log(self.largest)))
        return self.mul(sign, self.apply("exp", log))

    def cholesky(self, store: Store) -> None:
        """l of a = l l^T, of the lower half of a."""
        l = self.w.scratch(self.dtype, (self.n, self.n))

        def element(i: Expr, j: Expr) -> Scalar:
            return self.less_sum(self.a(i, j), lambda k: self.mul(self.at(l, i, k), self.at(l, j, k)), j)

        for j in self.each(0, self.n):
            rest = self.w.let(element(j, j))
            self.require("lt", self.mul(self.a(j, j), self.number(self.slack * self.n)), rest)
            root = self.w.let(self.apply("sqrt", rest))
            inverse = self.w.let(self.div(self.number(1.0), root))
            self.put(l, j, j, root)
            store(j, j, root)
            for i in self.each(add(j, 1), self.n):
                value = self.w.let(self.mul(element(i, j), inverse))
                self.put(l, i, j, value)
                store(i, j, value)
                store(j, i, self.number(0.0))

    # --------------------------------------------------------------------------------------------- factorization

    def decomposed(self, x: Buffer | None, tell: Callable[[Scalar], None]) -> Buffer:
        """The factors of LU, in scratch. Rows of `x` are exchanged alike; `tell` is told whether rows were."""
        lu, growth = self.w.scratch(self.dtype, (self.n, self.n)), self.w.cell(Const(float(self.n), self.dtype))
        for i in self.each(0, self.n):
            for j in self.each(0, self.n):
                self.put(lu, i, j, self.a(i, j))
        for j in self.each(0, self.n):
            for i in self.each(0, j):
                self.put(lu, i, j, self.reduced(lu, i, j, i))
            place = self.pivot_place(lu, j, growth)
            tell(self.b.compare("ne", place, self.b.index(j)))
            self.exchange([lu] if x is None else [lu, x], j, place)
            inverse = self.w.let(self.div(self.number(1.0), self.at(lu, j, j)))
            for i in self.each(add(j, 1), self.n):
                self.put(lu, i, j, self.mul(self.at(lu, i, j), inverse))
        return lu

    def reduced(self, lu: Buffer, i: Expr, j: Expr, count: Expr) -> Scalar:
        """An element without what the first so many rows and columns contribute."""
        return self.less_sum(self.at(lu, i, j), lambda k: self.product(lu, lu, i, k, j), count)

    def pivot_place(self, lu: Buffer, j: Expr, growth: str) -> Scalar:
        """Writes what is left of column j from the diagonal down; returns the row of the largest element.

        Args:
            growth: of a column's roundings, by small pivots before it.
        """
        scale = self.w.cell(Const(0.0, self.dtype))
        for i in self.each(0, self.n):
            self.w.update(scale, self.w.expr(self.abs(self.a(i, j))), "max")
        largest, place = self.w.cell(Const(-1.0, self.dtype)), self.w.cell(j)
        for i in self.each(j, self.n):
            value = self.w.let(self.reduced(lu, i, j, j))
            self.put(lu, i, j, value)
            size, best = self.w.let(self.abs(value)), self.b.cell(largest, self.dtype)
            is_larger = self.w.let(self.b.compare("gt", size, best))
            self.w.update(largest, self.w.expr(self.b.select(is_larger, size, best)))
            self.w.update(place, self.w.expr(self.b.select(is_larger, self.b.index(i), self.b.cell(place, I64))))
        limit, pivot = self.w.let(self.b.cell(scale, self.dtype)), self.w.let(self.b.cell(largest, self.dtype))
        self.require("le", limit, self.number(self.largest / 2**self.n))
        roundings = self.mul(self.mul(limit, self.number(self.slack)), self.b.cell(growth, self.dtype))
        self.require("lt", self.apply("maximum", roundings, self.number(self.smallest)), pivot)
        self.w.update(growth, self.w.expr(self.div(limit, pivot)), "max")
        # What a loop has left in a cell is known to nobody else.
        bounded = Apply("minimum", (Apply("maximum", (Var(place), j)), Const(self.n - 1)))
        return self.w.let(self.b.index(bounded))

    def substituted(self, lu: Buffer, x: Buffer, i: Expr, c: Expr, count: Expr, *, from_end: bool) -> Scalar:
        """A right side without what the unknowns of the first or last so many rows contribute, one after the other."""
        if count == Const(0):
            return self.at(x, i, c)
        cell = self.w.cell(self.w.expr(self.at(x, i, c)))
        for k in self.each(0, count):
            product = self.product(lu, x, i, sub(self.n - 1, k) if from_end else k, c)
            self.w.update(cell, self.w.expr(self.apply("sub", self.b.cell(cell, self.dtype), product)))
        return self.b.cell(cell, self.dtype)

    def exchange(self, matrices: Sequence[Buffer], j: Expr, place: Scalar) -> None:
        """Rows j and `place`, which is not above."""
        is_known = isinstance(j, Const)
        for row in self.each(add(j, 1), self.n) if is_known else [self.w.index(place)]:
            condition = self.b.compare("eq" if is_known else "ne", place, self.b.index(row if is_known else j))
            with self.w.block() as then:
                for matrix in matrices:
                    for c in self.each(0, matrix.shape[1]):
                        kept = self.w.let(self.at(matrix, j, c))
                        self.put(matrix, j, c, self.at(matrix, row, c))
                        self.put(matrix, row, c, kept)
            self.w.branch(self.w.expr(condition), then, Block())

    # ------------------------------------------------------------------------------------------------ statements

    def each(self, start: Expr | int, stop: Expr | int) -> Iterator[Expr]:
        """The indices of a loop, or its index: few iterations are written out."""
        first, last = as_expr(start), as_expr(stop)
        if isinstance(first, Const) and isinstance(last, Const) and last.value - first.value <= _WRITTEN_OUT >= self.n:
            yield from map(Const, range(int(first.value), int(last.value)))
            return
        with self.w.loop(sub(last, first)) as index:
            yield add(first, index)

    def less_sum(self, first: Scalar, product: Callable[[Expr], Scalar], count: Expr) -> Scalar:
        """`first` less the sum of some products."""
        if count == Const(0):
            return first
        is_known = isinstance(count, Const)
        cell = self.w.cell(self.w.expr(product(Const(0))) if is_known else Const(0.0, self.dtype))
        for k in self.each(1 if is_known else 0, count):
            self.w.update(cell, self.w.expr(self.apply("add", self.b.cell(cell, self.dtype), product(k))))
        return self.apply("sub", first, self.b.cell(cell, self.dtype))

    def require(self, relation: str, x: Scalar, y: Scalar) -> None:
        condition = self.w.expr(self.b.compare(relation, x, y))
        self.w.check(Check(condition, "LinAlgError", "a matrix is singular, or not positive definite", (), self.source))

    def at(self, matrix: Buffer, i: Expr, j: Expr) -> Scalar:
        return self.b.load(matrix.name, (i, j), self.dtype)

    def put(self, matrix: Buffer, i: Expr, j: Expr, value: Scalar) -> None:
        self.w.store(matrix.name, (i, j), self.w.expr(value))

    # --------------------------------------------------------------------------------------------------- scalars

    @property
    def b(self) -> Scalars:
        return self.w.b

    @property
    def slack(self) -> float:
        """Of a column's largest element: what a few roundings may make of nothing."""
        return _ROUNDINGS * float(np.finfo(self.dtype.name).eps)

    @property
    def largest(self) -> float:
        return float(np.finfo(self.dtype.name).max)

    @property
    def smallest(self) -> float:
        """Of which the reciprocal is finite."""
        return float(np.finfo(self.dtype.name).tiny)

    def number(self, value: float) -> Scalar:
        return self.b.const(float(value), self.dtype)

    def product(self, x: Buffer, y: Buffer, i: Expr, k: Expr, j: Expr) -> Scalar:
        return self.mul(self.at(x, i, k), self.at(y, k, j))

    def apply(self, fn: str, *args: Scalar) -> Scalar:
        return self.b.apply(fn, args, self.dtype)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        return self.apply("mul", x, y)

    def div(self, x: Scalar, y: Scalar) -> Scalar:
        return self.apply("div", x, y)

    def abs(self, x: Scalar) -> Scalar:
        return self.apply("abs", x)
