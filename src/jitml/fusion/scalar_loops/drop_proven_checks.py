"""Check elimination: which checks cannot fail?  Those that follow from the loops, branches and checks around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.kernels.analysis.monotone import Cells
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.ir import Alloc, Cell, Check, Draw, If, Let, Loop, Stmt, Update, While, walk


def without_proven(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without checks of what is known to hold."""
    return _Prover(body).block(body)


class _Prover:
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
            kept += self.statement(stmt)
            self.forget_updated(stmt)
            if isinstance(stmt, If):
                self.ranges.learn(stmt)
        return tuple(kept)

    def statement(self, stmt: Stmt) -> list[Stmt]:
        match stmt:
            case Check(condition):
                if self.ranges.holds(condition):
                    return []
                self.ranges.assume(condition)
            case Let(name, value):
                self.ranges.define_now(name, value)
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

    def forget_updated(self, stmt: Stmt) -> None:
        """What was known of cells that a statement changes holds no longer."""
        for inner in walk((stmt,)):
            if isinstance(inner, Update):
                self.cells.forget(inner.cell)
