"""Loop writer: how is a loop nest written down?  Statements block by block, each scalar in the outermost block that can hold it.

A scalar becomes a `Let` if it is used twice, if it can leave the innermost loop, or if the expression around it grows
deep; otherwise it stands where it is used. Blocks are closed innermost first, and names end with their block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.schedule.memory_views import Places, Views
from jitml.kernels.block import Block
from jitml.kernels.ir import Apply, Buffer, Cell, Const, Expr, Let, Load, Loop, Stmt, Store, Var, as_expr, variables_of
from jitml.kernels.ir import Kind as LoopKind
from jitml.records import dataclass, field, replace

DEEPEST = 6  # levels of one written expression


@dataclass
class _Level:
    """A block with the head of its loop, if it is one's body, and the scalars that are named in it."""

    loop: Loop | None
    block: Block = field(default_factory=Block)
    named: list[Scalar] = field(default_factory=list)


class LoopWriter:
    """Writes the body of one kernel.

    Args:
        views: how the kernel sees its loops and buffers.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        self.levels = [_Level(None)]
        self.base = 0  # the outermost block that scalars may move to: inside a parallel loop, or an empty one
        self.known: dict[Scalar, tuple[Expr, int]] = {}  # what is named or staged, and its expression's depth
        self._level: dict[str, int] = {}
        self._names = 0

    @contextmanager
    def loop(
        self,
        index: str,
        start: Expr | int,
        stop: Expr | int,
        kind: LoopKind,
        *,
        step: int = 1,
        grain: int = 1,
        binds: Iterable[str] = (),
    ) -> Iterator[Var]:
        """A loop around what is written inside the `with`; `binds` names the group's indices that it stands for."""
        self.levels.append(_Level(Loop(index, as_expr(start), as_expr(stop), step, kind, (), grain)))
        for name in (index, *binds):
            self._level[name] = len(self.levels) - 1
        first, end = as_expr(start), as_expr(stop)
        outside, empty = self.base, isinstance(first, Const) and isinstance(end, Const) and end.value <= first.value
        if kind == "parallel" or empty:  # what an empty loop loads may not be there
            self.base = len(self.levels) - 1
        yield Var(index)
        level = self.levels.pop()
        for scalar in level.named:
            del self.known[scalar]
        assert level.loop is not None
        self.add(replace(level.loop, body=level.block.body))
        self.base = outside

    def add(self, statement: Stmt) -> None:
        self.levels[-1].block.statements.append(statement)

    def cell(self, name: str, init: Expr) -> None:
        self.add(Cell(name, init))
        self._level[name] = len(self.levels) - 1

    def bind(self, index: str, value: Expr, binds: Iterable[str]) -> None:
        """An index that is made of others, in place of a loop over it."""
        self.add(Let(index, value))
        for name in (index, *binds):
            self._level[name] = len(self.levels) - 1

    def scratch(self, buffer: Buffer) -> str:
        """Memory for the rest of this block, under a new name."""
        name = self.fresh(buffer.name.rstrip("0123456789"))
        self.levels[-1].block.scratch.append(replace(buffer, name=name))
        return name

    @property
    def last(self) -> Loop:
        """The loop that was written last."""
        loop = self.levels[-1].block.statements[-1]
        assert isinstance(loop, Loop)
        return loop

    def replace_last(self, statements: Sequence[Stmt]) -> None:
        self.levels[-1].block.statements[-1:] = statements

    def store(self, buffer: str, at: Places, value: Expr) -> None:
        """Store at an index of the group's loops."""
        self.add(Store(buffer, self._place(buffer, at, ()), value))

    def _place(self, buffer: str, at: Places, scalars: Iterable[Expr]) -> tuple[Expr, ...]:
        rest = iter(scalars)
        return tuple(next(rest) if e is None else e for e in self.views.at(buffer, at))

    def fresh(self, prefix: str = "t") -> str:
        self._names += 1
        return f"{prefix}{self._names - 1}"

    def stage(self, scalar: Scalar, expr: Expr) -> None:
        """From here to the end of this block, `scalar` can be read back as `expr`."""
        self.known[scalar] = (expr, 1)
        self.levels[-1].named.append(scalar)

    def _known_at(self, names: Iterable[str]) -> int:
        """The outermost block that knows all of these names."""
        return max((self._level.get(name, 0) for name in names), default=0)  # a size is known everywhere

    def values(self, roots: Iterable[Scalar]) -> list[Expr]:
        """The expressions of scalars, to be used here; their parts are named where that is worth it."""
        roots = list(roots)
        order, uses = self._postorder(roots)
        here = len(self.levels) - 1
        levels: dict[Scalar, int] = {}
        for s in order:
            # A staged operand may lie in one place for each turn of a loop that it does not depend on.
            operands = [levels[a] if a in levels else self._known_at(variables_of(self.known[a][0])) for a in s.args]
            levels[s] = max(self.base, self._known_at(s.variables), *operands)
        used_at = dict.fromkeys(roots, here)  # the innermost block that uses a scalar
        for s in order:
            for a in s.args:
                used_at[a] = max(used_at.get(a, 0), levels[s])
        exprs: dict[Scalar, tuple[Expr, int]] = {}
        for s in order:
            expr, depth = self._expression(s, exprs)
            level = levels[s]
            simple = s.kind in ("const", "index", "cell")
            if not simple and (uses[s] > 1 or level < used_at[s] or depth >= DEEPEST):
                name = self.fresh()
                self.levels[level].block.statements.append(Let(name, expr))
                self.levels[level].named.append(s)
                self._level[name] = level
                expr, depth = Var(name, s.dtype), 0
                self.known[s] = (expr, depth)
            exprs[s] = (expr, depth)
        return [(exprs[s] if s in exprs else self.known[s])[0] for s in roots]

    def _expression(self, s: Scalar, exprs: Mapping[Scalar, tuple[Expr, int]]) -> tuple[Expr, int]:
        args = [exprs[a] if a in exprs else self.known[a] for a in s.args]
        depth = 1 + max((d for _, d in args), default=0)
        match s.kind:
            case "const":
                return Const(s.value, s.dtype), 0
            case "index":
                (place,) = s.places
                assert place is not None
                return self.views.expr(place), 1
            case "cell":
                return Var(s.value, s.dtype), 0
            case "load":
                return Load(s.value, self._place(s.value, s.places, (e for e, _ in args)), s.dtype), depth
        return Apply(s.value, tuple(e for e, _ in args), s.dtype), depth

    def _postorder(self, roots: list[Scalar]) -> tuple[list[Scalar], Counter[Scalar]]:
        """What is not known yet, operands first, and how often each is used."""
        order: list[Scalar] = []
        uses: Counter[Scalar] = Counter(roots)
        seen: set[Scalar] = set()
        stack: list[tuple[Scalar, bool]] = [(s, False) for s in reversed(roots)]
        while stack:
            s, done = stack.pop()
            if done:
                order.append(s)
                continue
            if s in seen or s in self.known:
                continue
            seen.add(s)
            stack.append((s, True))
            uses.update(s.args)
            stack += [(a, False) for a in reversed(s.args)]
        return order, uses

    def finish(self) -> tuple[Stmt, ...]:
        (outermost,) = self.levels
        return outermost.block.body
