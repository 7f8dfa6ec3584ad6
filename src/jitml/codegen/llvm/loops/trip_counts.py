"""Trip counts of whiles: which counter brings one to its end, and at what bound?

In `while j >= 0 and x[j] > key: ...; j -= 1` it is `j`, at 0: no run has more than `j + 1` iterations, whatever else is tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Apply, Cell, Const, Draw, Expr, If, Let, Load, Update, Var, While, sub, walk, walk_expression
from jitml.records import dataclass

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_MOST_DEEP = 16  # names in names
_FAR, _LARGE = 1 << 61, 1 << 32  # a bound, and a step, with which no counter wraps around


@dataclass(frozen=True, slots=True)
class BoundedCounter:
    """A cell that each iteration moves by 1 at least, to a bound that no iteration changes, if some conditions hold."""

    cell: str
    bound: Expr
    rises: bool
    conditions: tuple[Expr, ...]

    @property
    def distance(self) -> Expr:
        """What it still has to go. No iteration follows where that is negative."""
        here = Var(self.cell)
        return sub(self.bound, here) if self.rises else sub(here, self.bound)


def course_of(loop: While) -> BoundedCounter | None:
    """One that ends the loop, if it is plain to see."""
    return next(_WhileReader(loop).courses(), None)


class _WhileReader:
    """What names stand for in a while, and which cells it changes."""

    def __init__(self, loop: While) -> None:
        self.loop = loop
        inside = loop.test + loop.body
        times = Counter(s.name for s in walk(inside) if isinstance(s, (Let, Cell)))
        self.lets: Mapping[str, Expr] = {s.name: s.value for s in walk(inside) if isinstance(s, Let) and times[s.name] == 1}
        updated = Counter(s.cell for s in walk(inside) if isinstance(s, Update))
        self.changing = times.keys() | updated.keys() | {s.name for s in walk(inside) if isinstance(s, Draw)}
        self.following = {
            s.cell: s.value for s in loop.body if isinstance(s, Update) and s.combine is None and updated[s.cell] == 1
        }
        pairs = [pair for stmt in loop.test for pair in _only_then(stmt)]
        self.chosen = {s.cell: (stmt.condition, s.value) for s, stmt in pairs if updated[s.cell] == 2}

    def courses(self) -> Iterator[BoundedCounter]:
        for test in self.implied(self.loop.condition, 0):
            left, right = test.args
            for fn, x, y in ((test.fn, left, right), (_TURNED[test.fn], right, left)):
                rises, bound = fn in ("lt", "le"), self.written_out(y)
                cell, limits = self.limited(x, bound, rises=rises)
                if isinstance(cell, Var) and cell.name in self.following and not self.changes(bound):
                    if (more := self.moves(cell.name, bound, rises=rises)) is not None:
                        far = Apply("le" if rises else "ge", (bound, Const(_FAR if rises else -_FAR)), BOOL)
                        yield BoundedCounter(cell.name, bound, rises, tuple(dict.fromkeys((far, *limits, *more))))

    def implied(self, condition: Expr, depth: int) -> Iterator[Apply]:
        """Comparisons of integers that hold where the condition does."""
        match condition:
            case Var(name) if depth < _MOST_DEEP:
                for part in self.chosen.get(name, (self.lets[name],) if name in self.lets else ()):
                    yield from self.implied(part, depth + 1)
            case Apply("bit_and", (x, y)):
                yield from self.implied(x, depth + 1)
                yield from self.implied(y, depth + 1)
            case Apply("select", (test, x, other)) if other in (test, Const(False, BOOL)):
                yield from self.implied(test, depth)
                yield from self.implied(x, depth)
            case Apply("lt" | "le" | "gt" | "ge", (x, y)) if x.dtype == y.dtype == I64:
                yield condition

    def written_out(self, x: Expr, depth: int = 0) -> Expr:
        """Without names of the loop's."""
        if depth > _MOST_DEEP:
            return x
        if isinstance(x, Var) and x.name in self.lets:
            return self.written_out(self.lets[x.name], depth + 1)
        return Apply(x.fn, tuple(self.written_out(a, depth + 1) for a in x.args), x.dtype) if isinstance(x, Apply) else x

    def changes(self, x: Expr) -> bool:
        return any(
            isinstance(part, Load) or (isinstance(part, Var) and part.name in self.changing) for part in walk_expression(x)
        )

    def limited(self, x: Expr, bound: Expr, *, rises: bool) -> tuple[Expr, tuple[Expr, ...]]:
        """What is cut to a range here, and what must hold for that to tell nothing of it on this side of the bound."""
        x, conditions = self.written_out(x), []
        while isinstance(x, Apply) and x.fn in ("minimum", "maximum"):
            inner, limit = x.args if self.changes(x.args[0]) else x.args[::-1]
            if self.changes(limit):
                break
            if x.fn == ("minimum" if rises else "maximum"):
                conditions.append(Apply("le" if rises else "ge", (bound, limit), BOOL))
            x = inner
        return x, tuple(conditions)

    def moves(self, cell: str, bound: Expr, *, rises: bool) -> tuple[Expr, ...] | None:
        """What must hold for an iteration to bring a cell nearer to the bound by 1 at least; None if it may not."""
        match self.written_out(self.following[cell]):
            case Apply("add" | "sub" as fn, (x, Const(step))) if (
                0 < abs(step) < _LARGE and ((step > 0) == (fn == "add")) == rises
            ):
                inner, limits = self.limited(x, bound, rises=rises)
                return limits if inner == Var(cell) else None
        return None


def _only_then(stmt: object) -> Iterator[tuple[Update, If]]:
    """Cells of a test that are true only if a condition is, as those of `and` are."""
    if isinstance(stmt, If):
        for update in stmt.then:
            if isinstance(update, Update) and update.combine is None:
                other = [s.value for s in walk(stmt.orelse) if isinstance(s, Update) and s.cell == update.cell]
                if other in ([stmt.condition], [Const(False, update.value.dtype)]):
                    yield update, stmt
