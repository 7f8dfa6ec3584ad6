"""Counters: which cells never get ahead of a loop's index?  Counters of what a mask keeps, for instance."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from jitml.ir.types import BOOL
from jitml.kernels.ir import Alloc, Apply, Const, If, Loop, Stmt, Update, walk


def trails(loop: Loop, cell: str) -> bool:
    """Whether a cell that is 0 before a loop is at most the index in each iteration, until it is updated there."""
    return isinstance(loop.start, Const) and loop.start.value >= 0 and loop.step >= 1 and _climb(loop.body, cell) <= loop.step


def _climb(body: Sequence[Stmt], cell: str) -> float:
    """The most that statements add to a cell."""
    total: float = 0
    for stmt in body:
        match stmt:
            case Update(name, Const(1) | Apply("convert", (_,)) as value, "add") if name == cell and _is_a_bit(value):
                total += 1
            case If(_, then, orelse):
                total += max(_climb(then, cell), _climb(orelse, cell))
            case Alloc(_, inner):
                total += _climb(inner, cell)
            case _ if any(isinstance(s, Update) and s.cell == cell for s in walk((stmt,))):
                return inf
    return total


def _is_a_bit(value: Const | Apply) -> bool:
    return isinstance(value, Const) or value.args[0].dtype == BOOL
