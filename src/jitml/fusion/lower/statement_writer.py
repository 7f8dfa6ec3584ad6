"""Statement writer: how are the statements of a rolled kernel written?

Block by block, in order, with what is known of every index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from jitml.fusion.lower.scalars import Scalar, Scalars
from jitml.ir.types import I64, DType
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.block import Block
from jitml.kernels.ir import (
    Apply,
    Buffer,
    Cell,
    Check,
    Combine,
    Const,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    While,
    add,
    mul,
    sub,
)

DEEPEST = 6  # levels of one written expression
_FOLDED = {"add": add, "sub": sub, "mul": mul}  # what simplifies as it is written


class StatementWriter:
    """Writes one kernel from its first statement to its last; nothing moves.

    Args:
        taken: names that the kernel's parameters have.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self.b = Scalars()
        self.ranges = Ranges({})
        self._blocks = [Block()]
        self._taken = set(taken)
        self._count: Counter[str] = Counter()

    def fresh(self, prefix: str) -> str:
        while True:
            name = f"{prefix}{self._count[prefix]}"
            self._count[prefix] += 1
            if name not in self._taken:
                return name

    def add(self, statement: Stmt) -> None:
        self._blocks[-1].statements.append(statement)

    def finish(self) -> tuple[Stmt, ...]:
        (block,) = self._blocks
        return block.body

    # -------------------------------------------------------------------------------------------------- scalars

    def let(self, scalar: Scalar) -> Scalar:
        """The scalar as it is now, under a name."""
        if scalar.kind == "const":
            return scalar
        name = self.fresh("t")
        value = self.expr(scalar)
        self.add(Let(name, value))
        self.ranges.define_now(name, value)
        return self.b.cell(name, scalar.dtype)

    def named(self, scalar: Scalar) -> Scalar:
        """The scalar, to be used more than once."""
        return scalar if scalar.kind in ("const", "cell", "index") else self.let(scalar)

    def index(self, scalar: Scalar) -> Expr:
        """An i64 scalar as an index expression."""
        match scalar.kind:
            case "const":
                return Const(int(scalar.value))
            case "cell":
                return Var(scalar.value)
            case "index":
                (place,) = scalar.places
                assert place is not None
                return place
            case "apply" if scalar.value in _FOLDED:
                x, y = (self.index(a) for a in scalar.args)
                return _FOLDED[scalar.value](x, y)
        return Var(str(self.let(scalar).value))

    def expr(self, root: Scalar) -> Expr:
        """The expression of a scalar, to be used in the next statement; parts that repeat get names before it."""
        order, uses = _postorder(root)
        exprs: dict[Scalar, tuple[Expr, int]] = {}
        for s in order:
            expr, depth = self._expression(s, [exprs[a] for a in s.args])
            if s is not root and s.kind in ("apply", "load") and (uses[s] > 1 or depth >= DEEPEST):
                name = self.fresh("t")
                self.add(Let(name, expr))
                self.ranges.define_now(name, expr)
                expr, depth = Var(name, s.dtype), 0
            exprs[s] = (expr, depth)
        return exprs[root][0]

    def _expression(self, s: Scalar, args: Sequence[tuple[Expr, int]]) -> tuple[Expr, int]:
        depth = 1 + max((d for _, d in args), default=0)
        match s.kind:
            case "const":
                return Const(s.value, s.dtype), 0
            case "cell":
                return Var(s.value, s.dtype), 0
            case "index":
                (place,) = s.places
                assert place is not None
                return place, 1
            case "load":
                rest = iter([e for e, _ in args])
                return Load(s.value, tuple(next(rest) if e is None else e for e in s.places), s.dtype), depth
        if s.dtype == I64 and s.value in _FOLDED:
            (x, _), (y, _) = args
            return _FOLDED[s.value](x, y), depth
        return Apply(s.value, tuple(e for e, _ in args), s.dtype), depth

    # --------------------------------------------------------------------------------------------------- blocks

    @contextmanager
    def block(self) -> Iterator[Block]:
        """Statements of their own, to be put into the statement that holds them."""
        block = Block()
        self._blocks.append(block)
        with self.ranges.scope():
            yield block
        self._blocks.pop()

    @contextmanager
    def loop(self, extent: Expr) -> Iterator[Var]:
        """A loop from 0 to an extent."""
        index = self.fresh("i")
        head = Loop(index, Const(0), extent, 1, "serial", ())
        with self.block() as block:
            self.ranges.enter(head)
            yield Var(index)
        self.add(Loop(index, Const(0), extent, 1, "serial", block.body))

    def branch(self, condition: Expr, then: Block, orelse: Block) -> None:
        self.add(If(condition, then.body, orelse.body))

    def repeat(self, test: Block, condition: Expr, body: Block) -> None:
        """What the test names is in scope in the condition and in the body, so that its scratch lives around all of them."""
        self._blocks[-1].scratch += test.scratch
        self.add(While(tuple(test.statements), condition, body.body))

    def check(self, check: Check) -> None:
        """Leave the program if a condition does not hold; nothing if it is known to."""
        if not self.ranges.holds(check.condition):
            self.add(check)
            self.ranges.assume(check.condition)

    def cell(self, init: Expr) -> str:
        name = self.fresh("s")
        self.add(Cell(name, init))
        self.ranges.forget(name)
        return name

    def update(self, cell: str, value: Expr, combine: Combine | None = None) -> None:
        self.add(Update(cell, value, combine))

    def store(self, buffer: str, at: Sequence[Expr], value: Expr, combine: Combine | None = None) -> None:
        self.add(Store(buffer, tuple(at), value, combine))

    def scratch(self, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        """Memory for the rest of this block."""
        buffer = Buffer(self.fresh("m"), dtype, shape)
        self._blocks[-1].scratch.append(buffer)
        return buffer


def _postorder(root: Scalar) -> tuple[list[Scalar], Counter[Scalar]]:
    """Operands before what uses them, each once, and how often each is used."""
    order: list[Scalar] = []
    uses: Counter[Scalar] = Counter()
    seen: set[Scalar] = set()
    stack = [(root, False)]
    while stack:
        s, done = stack.pop()
        if done:
            order.append(s)
        elif s not in seen:
            seen.add(s)
            stack.append((s, True))
            uses.update(s.args)
            stack += [(a, False) for a in reversed(s.args)]
    return order, uses
