"""Names that nobody reads: what the passes over a kernel have left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.kernels.ir import Alloc, If, Let, Loop, Stmt, Var, While, walk_expressions


def without_unused(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without names that are never used."""
    used: set[str] | None = None
    while (uses := {e.name for e in walk_expressions(body) if isinstance(e, Var)}) != used:
        used, body = uses, _kept(body, uses)
    return tuple(body)


def _kept(body: Sequence[Stmt], used: set[str]) -> tuple[Stmt, ...]:
    kept: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(name):
                if name in used:
                    kept.append(stmt)
            case Loop() | Alloc():
                kept.append(replace(stmt, body=_kept(stmt.body, used)))
            case If(_, then, orelse):
                kept.append(replace(stmt, then=_kept(then, used), orelse=_kept(orelse, used)))
            case While(test, _, inner):
                kept.append(replace(stmt, test=_kept(test, used), body=_kept(inner, used)))
            case _:
                kept.append(stmt)
    return tuple(kept)
