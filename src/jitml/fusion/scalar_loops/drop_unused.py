"""Names that nobody reads: what the passes over a kernel have left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.kernels.ir import Alloc, If, Let, Loop, Stmt, Var, While, walk_expressions


def without_unused(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without names that are never used."""
    used: set[str] | None = None
    while (uses := {e.name for e in walk_expressions(body) if isinstance(e, Var)}) != used:
        used, body = uses, _without_unused_lets(body, uses)
    return tuple(body)


def _without_unused_lets(body: Sequence[Stmt], used: set[str]) -> tuple[Stmt, ...]:
    kept: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(name):
                if name in used:
                    kept.append(stmt)
            case Loop() | Alloc():
                kept.append(replace(stmt, body=_without_unused_lets(stmt.body, used)))
            case If(_, then, orelse):
                kept.append(replace(stmt, then=_without_unused_lets(then, used), orelse=_without_unused_lets(orelse, used)))
            case While(test, _, inner):
                kept.append(replace(stmt, test=_without_unused_lets(test, used), body=_without_unused_lets(inner, used)))
            case _:
                kept.append(stmt)
    return tuple(kept)
