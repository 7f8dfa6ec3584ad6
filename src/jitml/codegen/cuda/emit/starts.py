"""Pointers into buffers: where may a kernel's pointers begin, so that kernels of other elements are the same function?

A kernel that knows all elements of a buffer that it touches, `a[10]` and `a[11]`, is given a pointer to the first of them. Then
one function does for each joint of a hand what a function of its own did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from jitml.kernels.analysis.substitution import with_expressions, with_loads
from jitml.kernels.ir import Const, Expr, Kernel, Load, Stmt, Store, sub, walk, walk_expressions, with_blocks

_Index: TypeAlias = tuple[Expr, ...]


def with_starts(kernel: Kernel) -> tuple[Kernel, Mapping[str, int]]:
    """The kernel over pointers that begin later, and by how many bytes; the same one if there are none."""
    touched: dict[str, list[_Index]] = {b.name: [] for b in kernel.params}
    for e in walk_expressions(kernel.body):
        if isinstance(e, Load) and e.buffer in touched:
            touched[e.buffer].append(e.at)
    for s in walk(kernel.body):
        if isinstance(s, Store) and s.buffer in touched:
            touched[s.buffer].append(s.at)
    firsts = {name: found for name, at in touched.items() if (found := _first(at)) is not None}
    if not firsts:
        return kernel, {}
    body = with_expressions(_stored(kernel.body, firsts), lambda e: with_loads(e, lambda load: _moved(load, firsts)))
    strides = {b.name: [step * b.dtype.itemsize for step in b.element_strides] for b in kernel.params}
    starts = {name: sum(n * step for n, step in zip(first, strides[name])) for name, first in firsts.items()}
    return replace(kernel, body=body), starts


def _first(places: Sequence[_Index]) -> tuple[int, ...] | None:
    """The least index on each axis, if all are known, and one of them is not 0."""
    known = [tuple(int(e.value) for e in at if isinstance(e, Const)) for at in places]
    if not places or any(len(found) < len(at) for found, at in zip(known, places)):
        return None
    first = tuple(map(min, zip(*known)))
    return first if any(first) else None


def _moved(load: Load, firsts: Mapping[str, tuple[int, ...]]) -> Load:
    return replace(load, at=_from(load.at, firsts[load.buffer])) if load.buffer in firsts else load


def _stored(body: Sequence[Stmt], firsts: Mapping[str, tuple[int, ...]]) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store) and stmt.buffer in firsts:
            stmt = replace(stmt, at=_from(stmt.at, firsts[stmt.buffer]))
        made.append(with_blocks(stmt, lambda block, _: _stored(block, firsts)))
    return tuple(made)


def _from(at: _Index, first: Sequence[int]) -> _Index:
    return tuple(sub(e, n) for e, n in zip(at, first, strict=True))
