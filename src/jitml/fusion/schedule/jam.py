"""Unroll and jam: how do several rows run side by side?  One loop over what they share, with the statements of each row in it.

A matrix times a vector loads the vector once for four rows, and reads four streams of memory at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitml.kernels.analysis.substitution import substituted
from jitml.kernels.ir import (
    Cell,
    Const,
    Expr,
    Let,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    add,
    floor_divide,
    mul,
    sub,
    walk,
)


def side_by_side(loop: Loop, times: int) -> tuple[Stmt, ...]:
    """A loop over independent rows as one over groups of rows, and one over those that are left.

    In it stand names, cells, stores, and loops whose limits are the same for every row (`primitives/kinds.py`).
    """
    inside = list(walk(loop.body))
    own = {s.name: (s.value if isinstance(s, Let) else s.init).dtype for s in inside if isinstance(s, (Let, Cell))}
    rows = sub(loop.stop, loop.start)
    group = Var(f"{loop.index}g")
    count = floor_divide(rows, times)
    first = add(mul(group, times), loop.start)
    rows_of: list[dict[str, Expr]] = [
        {loop.index: add(first, n)} | {name: Var(f"{name}_{n}", dtype) for name, dtype in own.items()} for n in range(times)
    ]
    together = Loop(group.name, Const(0), count, 1, loop.kind, _together(loop.body, rows_of), max(1, loop.grain // times))
    rest = replace(
        loop, start=add(mul(count, times), loop.start), kind="serial" if loop.kind == "parallel" else loop.kind, grain=1
    )
    if isinstance(rows, Const) and rows.value % times == 0:
        return (together,)
    return together, rest


def _together(body: Sequence[Stmt], rows: Sequence[Mapping[str, Expr]]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            found.append(replace(stmt, body=_together(stmt.body, rows)))
        else:
            found += [_of_row(stmt, row) for row in rows]
    return tuple(found)


def _of_row(stmt: Stmt, row: Mapping[str, Expr]) -> Stmt:
    match stmt:
        case Let(name, value):
            return Let(_renamed(name, row), substituted(value, row))
        case Cell(name, init):
            return Cell(_renamed(name, row), substituted(init, row))
        case Update(cell, value, combine):
            return Update(_renamed(cell, row), substituted(value, row), combine)
        case Store(buffer, at, value, combine):
            return Store(buffer, tuple(substituted(e, row) for e in at), substituted(value, row), combine)
    raise TypeError(type(stmt).__name__)


def _renamed(name: str, row: Mapping[str, Expr]) -> str:
    new = row.get(name, Var(name))
    assert isinstance(new, Var)
    return new.name
