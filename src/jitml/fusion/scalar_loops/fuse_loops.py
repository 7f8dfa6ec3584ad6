"""Loop fusion: which loops of a body, one after the other over the same indices, are one loop?

    for i in 0:n { m[i] = a[i] / b }
    for j in 0:n { a[j] = m[j] }        ->  for i in 0:n { let v = a[i] / b; a[i] = v }

What one stores and another loads stays in a register, and scratch that nobody else reads is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jitml.fusion.scalar_loops.drop_proven_checks import Prover
from jitml.fusion.scalar_loops.unroll_loops import with_stores_forwarded
from jitml.ir.types import is_inexact
from jitml.kernels.analysis.substitution import new_names, substituted, with_expressions
from jitml.kernels.ir import (
    Alloc,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Var,
    affine,
    expressions,
    loaded_by,
    stored_by,
    sub,
    walk_expression,
    walk_expressions,
    with_blocks,
)
from jitml.records import dataclass, replace

MOST = 64  # accesses of a loop: beyond, its vectors do not fit into registers anyway, and each is compared with each


def with_fused_loops(body: Sequence[Stmt], *, in_order: bool) -> tuple[Stmt, ...]:
    """The statements with neighbouring loops as one, where each iteration finds in memory what it has found there before.

    Checks of what is known to hold are gone, too.

    Args:
        in_order: whether loops inside others run in order, or in lanes, whatever is proven of them.
    """
    return _LoopFuser(body, in_order=in_order).block(body)


@dataclass(frozen=True, slots=True)
class _Touch:
    """A load or a store of an element."""

    buffer: str
    at: tuple[Expr, ...]
    is_store: bool


class _LoopFuser(Prover):
    def __init__(self, body: Sequence[Stmt], *, in_order: bool) -> None:
        super().__init__(body)
        self.depth, self.in_order = 0, in_order  # loops around
        self.names = new_names(body, "v")

    def statement(self, stmt: Stmt) -> list[Stmt]:
        self.depth += isinstance(stmt, Loop)
        made = super().statement(stmt)
        self.depth -= isinstance(stmt, Loop)
        match made:
            case [Alloc(buffer, body)] if not any(
                isinstance(e, Load) and e.buffer == buffer.name for e in walk_expressions(body)
            ):
                return list(_without_stores(body, buffer.name))
        return made

    def keep(self, kept: list[Stmt], stmt: Stmt) -> None:
        """A loop joins the last one before it, which what stands in between goes in front of."""
        k = next((k for k in reversed(range(len(kept))) if not isinstance(kept[k], (Let, Observe))), None)
        first = kept[k] if k is not None else None
        if k is not None and isinstance(first, Loop) and isinstance(stmt, Loop):
            stored = stored_by(first.body)
            between = kept[k + 1 :]
            if not any(loaded_by(*expressions(s)) & stored for s in between) and (fused := self.fused(first, stmt)) is not None:
                kept[k:] = [*between, fused]
                return
        kept.append(stmt)

    def fused(self, first: Loop, second: Loop) -> Loop | None:
        """Both loops as one; None if they are not alike, share no memory, or run into each other."""
        if (first.start, first.stop, first.step) != (second.start, second.stop, second.step) or first.step != 1:
            return None
        body = first.body + with_expressions(second.body, lambda e: substituted(e, {second.index: Var(first.index)}))
        if not all(isinstance(s, (Let, Observe)) or (isinstance(s, Store) and s.combine is None) for s in body):
            return None
        touches = list(_touches(body))
        both = {t.buffer for t in _touches(first.body)} & {t.buffer for t in _touches(second.body)}
        if not both or len(touches) > MOST:
            return None
        own = {s.name for s in body if isinstance(s, Let)}
        for n, later in enumerate(touches):
            for earlier in touches[: n + later.is_store]:  # a store is compared with itself: lanes store to places of their own
                is_shared = earlier.buffer == later.buffer and (earlier.is_store or later.is_store)
                if is_shared and not self._is_in_order(earlier, later, first.index, own):
                    return None
        return replace(first, body=tuple(with_stores_forwarded(body, self.names)))

    def _is_in_order(self, earlier: _Touch, later: _Touch, index: str, own: set[str]) -> bool:
        """Whether, of two iterations that touch one element, the one whose access stands first is not after the other.

        They have to be one iteration of a loop that threads may share.
        """
        is_shared = not (self.in_order and self.depth)
        for a, b in zip(earlier.at, later.at, strict=True):
            form, gap = affine(a), affine(sub(b, a))
            if form is None or gap is None or index in gap or not own.isdisjoint(gap):
                continue
            step = form.get(index, 0)
            least, most = self.ranges.bounds(_written({name: -c if step < 0 else c for name, c in gap.items()}))
            if not step and ((least is not None and least > 0) or (most is not None and most < 0)):
                return True  # never the same element
            if step and (least == most == 0 or (not is_shared and most is not None and most <= 0)):
                return True
        return False


def _touches(body: Sequence[Stmt]) -> Iterator[_Touch]:
    """The accesses of plain statements, in order."""
    for stmt in body:
        for expr in expressions(stmt):
            yield from (_Touch(e.buffer, e.at, False) for e in walk_expression(expr) if isinstance(e, Load))
        if isinstance(stmt, Store):
            yield _Touch(stmt.buffer, stmt.at, True)


def _written(form: Mapping[str, int]) -> Expr:
    """The opposite of `affine`."""
    total: Expr = Const(form[""])
    for name, c in form.items():
        total = total + Var(name) * c if name else total
    return total


def _without_stores(body: Sequence[Stmt], buffer: str) -> Iterator[Stmt]:
    """The statements without stores to a buffer; what comes up where a value is computed is still seen."""
    others = {s.value for s in body if isinstance(s, Store) and s.buffer != buffer}
    for stmt in body:
        if not (isinstance(stmt, Store) and stmt.buffer == buffer):
            yield with_blocks(stmt, lambda block, _: tuple(_without_stores(block, buffer)))
        elif is_inexact(stmt.value.dtype) and stmt.value not in others:
            yield Observe(stmt.value)
