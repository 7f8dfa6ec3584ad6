"""Merging of scalar kernels: which launches does a GPU not need?

Those of kernels that hold no loop, where another one comes right before: one thread runs both, and takes a few nanoseconds for
what each launch takes microseconds for. Conditions of loops, sizes and the checks of assumptions are such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jitml.kernels.analysis.substitution import another
from jitml.kernels.ir import (
    Apply,
    Cell,
    Check,
    Const,
    Expr,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Update,
    Var,
    stored_by,
    variables_of,
    walk_expressions,
)
from jitml.kernels.program import Step
from jitml.records import replace

_Stored: TypeAlias = dict[tuple[str, tuple[Expr, ...]], Expr]  # element -> what it holds
MOST = 100  # statements of one kernel


def merge_scalars(steps: Sequence[Step], step: Step, uses: Mapping[str, int]) -> list[Step] | None:
    """Two kernels without loops, one after the other, as one; a `Merge`."""
    before = steps[-1] if steps else None
    if not isinstance(step, Kernel) or not isinstance(before, Kernel) or not (_is_scalar(before) and _is_scalar(step)):
        return None
    joined = _merge_kernels(before, step)
    return None if joined is None else [*steps[:-1], joined]


def _is_scalar(kernel: Kernel) -> bool:
    """Whether a kernel computes a few numbers, each of which has a place of its own."""
    for stmt in kernel.body:
        match stmt:
            case Let() | Check() | Cell() | Update():
                pass
            case Store(_, at, _, None) if all(isinstance(e, Const) for e in at):
                pass
            case _:
                return False
    return not kernel.updates


def _merge_kernels(first: Kernel, second: Kernel) -> Kernel | None:
    params = {b.name: b for b in first.params}
    if any(params.setdefault(b.name, b) != b for b in second.params):
        return None
    writer = _ScalarWriter()
    for kernel in (first, second):
        writer.names = {}
        for stmt in kernel.body:
            writer.add(stmt)
    body = tuple(writer.body)
    stored = stored_by(body)
    if len(body) > MOST or any(isinstance(e, Load) and e.buffer in stored for e in walk_expressions(body)):
        return None  # it reads what it has stored, or what it will store, and cannot do without
    sources = tuple(dict.fromkeys((*first.sources, *second.sources)))
    ignored = first.ignored & second.ignored
    return replace(first, params=tuple(params.values()), body=body, sources=sources, ignored=ignored)


class _ScalarWriter:
    """Statements one after the other, under names that differ, in which what has been stored is known."""

    def __init__(self) -> None:
        self.body: list[Stmt] = []
        self.stored: _Stored = {}
        self.taken: dict[str, Stmt] = {}
        self.names: dict[str, str] = {}  # of the kernel that is being added

    def add(self, stmt: Stmt) -> None:
        match stmt:
            case Let(name, value):
                self.define(name, Let(name, self.expr(value)))
            case Cell(name, init):
                self.define(name, Cell(name, self.expr(init)))
            case Update(cell, value):
                self.body.append(replace(stmt, cell=self.names[cell], value=self.expr(value)))
            case Check(condition, _, _, values):
                self.body.append(replace(stmt, condition=self.expr(condition), values=tuple(map(self.expr, values))))
            case Store(buffer, at, value):
                found = self.expr(value)
                if not isinstance(found, (Const, Var)) or self.is_cell(found):
                    name = another("v0", self.taken)
                    self.put(name, Let(name, found))
                    found = Var(name, value.dtype)
                self.stored[buffer, at] = found
                self.body.append(Store(buffer, at, found))

    def is_cell(self, value: Expr) -> bool:
        return any(isinstance(self.taken.get(name), Cell) for name in variables_of(value))

    def define(self, name: str, stmt: Let | Cell) -> None:
        """A statement that names something; one that is there already is that."""
        if self.taken.get(name) == stmt and isinstance(stmt, Let) and not self.is_cell(stmt.value):
            self.names[name] = name
            return
        new = another(name, self.taken)
        self.names[name] = new
        self.put(new, replace(stmt, name=new))

    def put(self, name: str, stmt: Stmt) -> None:
        self.taken[name] = stmt
        self.body.append(stmt)

    def expr(self, expr: Expr) -> Expr:
        match expr:
            case Var(name):
                return Var(self.names.get(name, name), expr.dtype)
            case Apply(args=args):
                return replace(expr, args=tuple(map(self.expr, args)))
            case Load(buffer, at):
                at = tuple(map(self.expr, at))
                return self.stored.get((buffer, at), replace(expr, at=at))
        return expr
