"""Check hoisting: which checks can stand before a loop rather than in it?  Those that hold everywhere if they hold at both ends.

A claim about a loop's index that rises or falls with it is looked at for the first and the last iteration. If it fails there,
it fails in the loop: nothing is refused that would have run. What a kernel does before it fails is seen by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitml.ir.op import OPS
from jitml.ir.types import is_integer
from jitml.kernels.analysis.substitution import substituted
from jitml.kernels.ir import (
    Apply,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Stmt,
    Update,
    Var,
    affine,
    less,
    sub,
    variables_of,
    walk,
    walk_expression,
    with_blocks,
)

_ORDER = ("lt", "le", "gt", "ge")
EITHER = 2  # it rises or it falls
_LARGEST = 1000  # parts of what a check says once names are spelled out: each use of a name doubles what it stands for


def with_checks_outside(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with checks moved in front of loops, from the innermost out."""
    result: list[Stmt] = []
    for stmt in body:
        changed = with_blocks(stmt, lambda block, _: with_checks_outside(block))
        result += _before(changed) if isinstance(changed, Loop) else (changed,)
    return tuple(result)


class _Names:
    """What a loop's body names, as expressions over the index and what is outside."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        self._own = {s.name for s in walk(body) if isinstance(s, (Let, Draw, Cell))}
        self._own |= {s.cell for s in walk(body) if isinstance(s, Update)}
        self._values: dict[str, Expr] = {}
        self._sizes: dict[str, int] = {}

    def add(self, let: Let) -> None:
        """Take note of a name, unless it depends on what an iteration reads or changes, or takes too much to spell out."""
        spelled = self.spelled((let.value,))
        if spelled is not None and not any(isinstance(e, Load) for e in walk_expression(let.value)):
            self._values[let.name] = spelled[0]
            self._sizes[let.name] = self._size(let.value)

    def spelled(self, exprs: Sequence[Expr]) -> list[Expr] | None:
        """Expressions without the body's names; None if they have others, or are too large."""
        if any(variables_of(e) & self._own - self._values.keys() for e in exprs) or sum(map(self._size, exprs)) > _LARGEST:
            return None
        return [substituted(e, self._values) for e in exprs]

    def _size(self, expr: Expr) -> int:
        return sum(self._sizes.get(e.name, 1) if isinstance(e, Var) else 1 for e in walk_expression(expr))


def _before(loop: Loop) -> list[Stmt]:
    """The loop behind those of its checks that can stand before it, all of them skipped if it does not run."""
    names = _Names(loop.body)
    kept: list[Stmt] = []
    ends: dict[Check, None] = {}
    for stmt in loop.body:
        if isinstance(stmt, Let):
            names.add(stmt)
        if isinstance(stmt, Check) and (spelled := names.spelled((stmt.condition, *stmt.values))) is not None:
            condition, values = unwrapped(spelled[0]), spelled[1:]
            if holds_between(condition, loop.index):
                for end in (loop.start, sub(loop.stop, 1)):
                    place = {loop.index: end}
                    shown = tuple(substituted(v, place) for v in values)
                    ends[replace(stmt, condition=substituted(condition, place), values=shown)] = None
                continue
        kept.append(stmt)
    if len(kept) == len(loop.body):
        return [loop]
    rest = (replace(loop, body=tuple(kept)),) if any(not isinstance(s, Let) for s in kept) else ()
    inside: tuple[Stmt, ...] = (*(c for c in ends if not is_true(c.condition)), *rest)
    if isinstance(loop.start, Const) and isinstance(loop.stop, Const):
        return list(inside) if loop.start.value < loop.stop.value else []
    return [If(less(loop.start, loop.stop), inside)]


def is_true(condition: Expr) -> bool:
    """Whether a condition of numbers alone holds."""
    if any(isinstance(e, (Var, Load)) for e in walk_expression(condition)):
        return False

    def value(expr: Expr) -> Any:
        if isinstance(expr, Apply):
            result = OPS[expr.fn].run(tuple(map(value, expr.args)), {"dtype": expr.dtype} if expr.fn == "convert" else {})
            return np.asarray(result, expr.dtype)
        assert isinstance(expr, Const)
        return np.asarray(expr.value, expr.dtype)

    return bool(value(condition))


def holds_between(condition: Expr, index: str) -> bool:
    """Whether a condition is true for all values of an index between two for which it is."""
    match condition:
        case Apply("bit_and", (a, b)):
            return holds_between(a, index) and holds_between(b, index)
        case Apply(fn, (a, b)) if fn in _ORDER:
            if isinstance(a, Apply) and a.fn == "abs" and fn in ("lt", "le"):
                return direction(a.args[0], index) is not None and direction(b, index) == 0
            x, y = direction(a, index), direction(b, index)
            if x is None or y is None:
                return False
            return x * y <= 0 if EITHER not in (x, y) else 0 in (x, y)
    return direction(condition, index) == 0


def direction(expr: Expr, index: str) -> int | None:
    """Whether an expression rises (1) or falls (-1) with an index, one of them (EITHER), or does not depend on it (0).

    None if that is not known.
    """
    if not any(isinstance(e, Load) or e == Var(index) for e in walk_expression(expr)):
        return 0
    match expr:
        case Var():
            return 1
        case Apply("convert", (x,)):
            return direction(x, index) if is_integer(x.dtype) and x.dtype.itemsize <= expr.dtype.itemsize else None
        case Apply("neg", (x,)):
            inner = direction(x, index)
            return inner if inner in (None, EITHER) else -inner
        case Apply("add" | "sub" | "minimum" | "maximum" as fn, (x, y)):
            a, b = direction(x, index), direction(y, index)
            if a is None or b is None:
                return None
            if EITHER in (a, b):
                return EITHER if 0 in (a, b) else None
            b = -b if fn == "sub" else b
            return (a or b) if a * b >= 0 else None
        case Apply("mul", (x, y)):
            a, b = direction(x, index), direction(y, index)
            if a is None or b is None or (a and b):
                return None
            if not a and not b:
                return 0
            turning, factor = (a, _number(y)) if a else (b, _number(x))
            if factor is None or turning == EITHER:
                return EITHER
            return turning * ((factor > 0) - (factor < 0))
    return None


def _number(expr: Expr) -> float | None:
    match expr:
        case Const(value) | Apply("convert", (Const(value),)):
            return value
    return None


def unwrapped(condition: Expr) -> Expr:
    """A claim about an index that counts from the end where it is negative, as one about the index: -n <= x < n."""
    match condition:
        case Apply("bit_and", (a, b)):
            return replace(condition, args=(unwrapped(a), unwrapped(b)))
        case Apply("ge" | "lt" as fn, (Apply("select", (Apply("lt", (x, Const(0))), shifted, y)), Const(bound))) if x == y:
            gap = affine(sub(shifted, x))
            if gap is not None and gap.keys() == {""} and gap[""] == (bound if fn == "lt" else max(gap[""], 0)):
                if fn == "lt" or bound == 0:
                    return replace(condition, args=(x, Const(bound if fn == "lt" else -gap[""])))
    return condition
